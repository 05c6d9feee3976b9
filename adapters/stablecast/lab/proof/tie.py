"""Tie a first-order system to recorded graphs of the core: proof, model and core are one system at the bounds.

Forward: a structure is carried along every edge of the graph. Each edge is a sequence of enabled transitions, or
changes nothing that the system knows, and every invariant holds in every structure.

Backward: every step that the system enables in a structure and that the bounds of the configuration leave open occurs
in the graph, with the same parameters. No solver is needed.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import attrs

from stablecast.lab.model import equal
from stablecast.lab.model.catalog import Configuration
from stablecast.lab.model.graph import Graph
from stablecast.lab.model.worlds.receiver_votes import ReceiverVotesConstants
from stablecast.lab.model.worlds.refill import RefillConstants
from stablecast.lab.model.worlds.registration import RegistrationConstants
from stablecast.lab.model.worlds.stability_stores import StabilityConstants
from stablecast.lab.proof.bounds_stability import StabilityBounds
from stablecast.lab.proof.errors import ProofError
from stablecast.lab.proof.evaluation import Evaluator, Structure
from stablecast.lab.proof.tie_recovery import RecoveryBounds, RecoveryTie
from stablecast.lab.proof.tie_refill import RefillBounds, RefillTie
from stablecast.lab.proof.tie_registration import RegistrationBounds, RegistrationTie
from stablecast.lab.proof.tie_stability import StabilityTie, Step

EVERYBODY: Final = frozenset({"stores", "receiver"})
"""Who follows the rules of votes in `tla/ReceiverVotes`."""

_ACTION = re.compile(r"(\w+)(?:\((\d+)\))?$")


class Tie(Protocol):
    """Map states and edges of a graph to structures and steps. Parameters of actions are counted from 0."""

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of the system at the bounds."""

    def start(self) -> Structure:
        """Return the structure of the first state."""

    def differences(self, state: Any, structure: Structure) -> Iterator[str]:
        """Yield what a state shows otherwise than a structure."""

    def steps(self, action: str, number: int, before: Any, after: Any) -> Iterator[Step]:
        """Yield the transitions of an edge, in order."""

    def settled(self, structure: Structure) -> Structure:
        """Return the structure after an edge in its normal form."""

    def covers(self, action: str, state: Any) -> bool:
        """Return whether an edge is within the assumptions of the proof; one that is not is left out, and counted."""


class Bounds(Protocol):
    """List the steps that the bounds of a configuration leave open."""

    def candidates(self, state: Any) -> Iterator[tuple[str, Step]]:
        """Yield actions of the graph, each with the first step that the system may allow for it."""


@attrs.frozen
class TieResult:
    """Hold what was compared, and the first difference.

    `structures`: states with their histories. `reached`: states that were compared. `left_out`: edges beyond the
    assumptions of the proof, by action.
    """

    states: int
    reached: int
    edges: int
    structures: int
    steps: Mapping[str, int]
    allowed: Mapping[str, int]
    left_out: Mapping[str, int]
    difference: str | None = None


@attrs.define
class TieRun:
    """Carry structures along the edges of one graph."""

    graph: Graph
    tie: Tie
    bounds: Bounds
    limit: int = 0
    steps: dict[str, int] = attrs.field(factory=dict)
    allowed: dict[str, int] = attrs.field(factory=dict)
    left_out: dict[str, int] = attrs.field(factory=dict)
    edges: int = 0
    _states: dict[int, Any] = attrs.field(factory=dict)
    _candidates: dict[int, list[tuple[str, Step]]] = attrs.field(factory=dict)
    _first: dict[int, set[Any]] = attrs.field(factory=dict)

    def run(self) -> TieResult:
        """Return the first difference, if there is one."""
        start = self.tie.start()
        seen: list[set[Structure]] = [set() for _ in self.graph.states]
        queue: deque[tuple[int, Structure]] = deque()
        wrong = self._enter(0, start, seen, queue)
        count = 0
        while queue and wrong is None and (not self.limit or count < self.limit):
            count += 1
            at, structure = queue.popleft()
            wrong = self._missing(at, structure)
            if wrong is not None:
                break
            for action, to in self.graph.edges[at]:
                if not self.tie.covers(action, self._state(at)):
                    self.left_out[action] = self.left_out.get(action, 0) + 1
                    continue
                self.edges += 1
                after, wrong = self._follow(at, action, to, structure)
                wrong = wrong or self._enter(to, after, seen, queue)
                if wrong is not None:
                    path = " ".join(self.graph.path(self.graph.states[at]))
                    wrong = f"{action} after {path or 'nothing'}: {wrong}"
                    break
        compared = (self.edges, sum(map(len, seen)), self.steps, self.allowed, self.left_out)
        return TieResult(len(self.graph.states), sum(map(bool, seen)), *compared, wrong)

    def _state(self, at: int) -> Any:
        if at not in self._states:
            self._states[at] = _read(json.loads(self.graph.states[at]))
        return self._states[at]

    def _enter(
        self, at: int, structure: Structure, seen: list[set[Structure]], queue: deque[tuple[int, Structure]]
    ) -> str | None:
        if structure in seen[at]:
            return None
        seen[at].add(structure)
        queue.append((at, structure))
        differences = ", ".join(self.tie.differences(self._state(at), structure))
        if differences:
            return f"state and structure differ in {differences}"
        broken = self.tie.evaluator.invariants(structure)
        return f"the structure breaks {', '.join(broken)}" if broken else None

    def _missing(self, at: int, structure: Structure) -> str | None:
        """Return a step that system and bounds allow and the graph lacks."""
        state, evaluator = self._state(at), self.tie.evaluator
        transitions = evaluator.transitions
        for action, (name, parameters) in self._within(at):
            if evaluator.enabled(transitions[name], structure, parameters) is not None:
                continue
            self.allowed[name] = self.allowed.get(name, 0) + 1
            if (action, name, _frozen(parameters)) not in self._occurring(at, state):
                path = " ".join(self.graph.path(self.graph.states[at]))
                return f"the graph lacks {action} as {name} {parameters} after {path or 'nothing'}"
        return None

    def _within(self, at: int) -> list[tuple[str, Step]]:
        """Return the steps within the bounds of a state."""
        if at not in self._candidates:
            self._candidates[at] = list(self.bounds.candidates(self._state(at)))
        return self._candidates[at]

    def _occurring(self, at: int, state: Any) -> set[Any]:
        """Return the first steps of the edges of a state."""
        if at not in self._first:
            found = set()
            for action, to in self.graph.edges[at]:
                match = _ACTION.match(action)
                assert match is not None, action
                store = int(match[2]) - 1 if match[2] else -1
                for name, parameters in self.tie.steps(match[1], store, dict(state), self._state(to)):
                    found.add((action, name.replace("Sync.told", "Sync.granted"), _frozen(parameters)))
            self._first[at] = found
        return self._first[at]

    def _follow(self, at: int, action: str, to: int, structure: Structure) -> tuple[Structure, str | None]:
        match = _ACTION.match(action)
        assert match is not None, action
        store = int(match[2]) - 1 if match[2] else -1
        transitions = self.tie.evaluator.transitions
        for name, parameters in self.tie.steps(match[1], store, dict(self._state(at)), self._state(to)):
            transition = transitions[name]
            blocked = self.tie.evaluator.enabled(transition, structure, parameters)
            if blocked is not None:
                return structure, f"{blocked} does not hold for {parameters}"
            structure = self.tie.evaluator.perform(transition, structure, parameters)
            self.steps[name] = self.steps.get(name, 0) + 1
        return self.tie.settled(structure), None


def terms(graph: Graph) -> int:
    """Return a number above every term in a graph of `tla/Stability`."""
    return 1 + max(max(map(int, re.findall(r'\["(?:claim|term)",(\d+)\]', text))) for text in graph.states)


def _frozen(parameters: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    # The environment does not choose the numbers that a store acknowledges beside a grant.
    return frozenset((name, value) for name, value in parameters.items() if name not in ("told", "e", "e2"))


def _read(value: Any) -> Any:
    """Return a value of a canonical text."""
    if not isinstance(value, list):
        return value
    kind, *inside = value
    if kind == "fn":
        return {key: _read(one) for key, one in inside}
    return (tuple if kind == "seq" else frozenset)(map(_read, inside))


def stability_constants(constants: Mapping[str, Any]) -> StabilityConstants:
    """Return the constants of a configuration of `tla/Stability`; the core has no `Mutant`."""
    return StabilityConstants(**_of_the_core(constants))


def _of_the_core(constants: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in constants.items() if name != "Mutant"}


def is_tied(configuration: Configuration) -> bool:
    """Return whether a graph follows the rules that a proof assumes: receivers and stores those of votes."""
    votes = configuration.constants.get("Votes", EVERYBODY)
    return configuration.has_graph and configuration.model in TIED and votes == EVERYBODY


def run(configuration: Configuration, limit: int = 0) -> TieResult:
    """Tie the proof to the recorded graph of a configuration; a graph that is not kept is explored anew.

    `limit`: the number of structures after which the comparison ends, breadth first; 0: none.

    Raises:
        ModelError: the core's graph is too large.
        ProofError: there is no tie for the graph.
    """
    if not is_tied(configuration):
        raise ProofError(f"no tie to the graph {configuration.name}")
    path = equal.kept_path(configuration)
    graph = Graph.read(path) if path.exists() else equal.core_graph(configuration).graph
    return TIED[configuration.model](configuration, graph, limit).run()


def stability_run(configuration: Configuration, graph: Graph, limit: int = 0) -> TieRun:
    constants = stability_constants(configuration.constants)
    tie = StabilityTie.create(attrs.asdict(constants), terms(graph))
    return TieRun(graph, tie, StabilityBounds(constants, tie), limit)


def registration_run(configuration: Configuration, graph: Graph, limit: int = 0) -> TieRun:
    constants = RegistrationConstants(**_of_the_core(configuration.constants))
    tie = RegistrationTie.create(constants)
    return TieRun(graph, tie, RegistrationBounds(constants, tie), limit)


def refill_run(configuration: Configuration, graph: Graph, limit: int = 0) -> TieRun:
    constants = RefillConstants(**_of_the_core(configuration.constants))
    tie = RefillTie.create(constants)
    return TieRun(graph, tie, RefillBounds(constants, tie), limit)


def recovery_run(configuration: Configuration, graph: Graph, limit: int = 0) -> TieRun:
    """Return the comparison of the system Recovery with a graph of `tla/ReceiverVotes`."""
    constants = ReceiverVotesConstants(**_of_the_core(configuration.constants))
    tie = RecoveryTie.create(constants)
    return TieRun(graph, tie, RecoveryBounds(constants, tie), limit)


TIED: Final[Mapping[str, Callable[[Configuration, Graph, int], TieRun]]] = {
    "ReceiverVotes": recovery_run,
    "Refill": refill_run,
    "Registration": registration_run,
    "Stability": stability_run,
}
"""The comparison with a graph of each model that has a proof."""
