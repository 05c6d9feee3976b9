"""A world that is small enough to be drawn: a counter that goes up to a limit and may be reset."""

from collections.abc import Iterator, Mapping
from typing import Self

import attrs

from stablecast.lab.model.canonical import Value
from stablecast.lab.model.explorer import Action, State


@attrs.define
class SmallWorld:
    """`hidden` is what the abstraction forgets; it matters if `leaky`."""

    limit: int
    at: int = 0
    hidden: int = 0
    leaky: bool = False

    @classmethod
    def create(cls, constants: Mapping[str, Value]) -> Self:
        limit = constants["Limit"]
        assert isinstance(limit, int)
        return cls(limit)

    def actions(self) -> Iterator[Action]:
        if self.at < self.limit and not (self.leaky and self.hidden > self.at):
            yield ("Up", 1)
        if self.at:
            yield ("Reset",)

    def do(self, action: Action) -> None:
        self.at = self.at + 1 if action == ("Up", 1) else 0
        self.hidden += 1

    def abstract(self) -> State:
        return {"at": self.at}


MODEL = r"""---- MODULE Small ----
EXTENDS Naturals
CONSTANT Limit
VARIABLE at
====
"""


def dump(limit: int, wrong: bool = False) -> str:
    """Return the checker's output, as far as it is read; `wrong`: a reset leads to the limit."""
    lines = ["strict digraph DiskGraph {", "nodesep=0.35;"]
    lines += [rf'{at * 7 - 3} [label="/\\ at = {at}",style = filled]' for at in range(limit + 1)]
    for at in range(limit + 1):
        if at < limit:
            lines.append(f'{at * 7 - 3} -> {at * 7 + 4} [label="Up(1)",color="black"];')
        if at:
            target = limit * 7 - 3 if wrong else -3
            lines.append(f'{at * 7 - 3} -> {target} [label="Reset",color="black"];')
    return "\n".join([*lines, "}"]) + "\n"
