"""Run a system of the proofs step by step at small bounds."""

from collections.abc import Callable, Mapping

from stablecast.lab.proof.evaluation import Evaluator, Structure, Value
from stablecast.lab.proof.system import SystemText

Step = tuple[str, dict[str, Value]]


class Run:
    """A run of a system; a step that is not enabled is an error."""

    def __init__(
        self,
        told: SystemText,
        sizes: Mapping[str, int],
        constants: Mapping[str, Value],
        change: Callable[[SystemText], None] | None = None,
    ) -> None:
        if change is not None:
            change(told)
        self.evaluator = Evaluator(told.read(), sizes, constants)
        self.at: Structure = self.evaluator.initial()

    def refused(self, name: str, **parameters: Value) -> str | None:
        return self.evaluator.enabled(self.evaluator.transitions[name], self.at, parameters)

    def step(self, name: str, **parameters: Value) -> None:
        refused = self.refused(name, **parameters)
        assert refused is None, (refused, parameters)
        self.at = self.evaluator.perform(self.evaluator.transitions[name], self.at, parameters)

    def steps(self, *steps: Step) -> None:
        for name, parameters in steps:
            self.step(name, **parameters)

    def has(self, name: str, *element: int) -> bool:
        return element in self.evaluator.value(self.at, name)

    @property
    def broken(self) -> set[str]:
        return set(self.evaluator.invariants(self.at))
