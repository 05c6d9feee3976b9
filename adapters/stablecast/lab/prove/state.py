"""A state of the world, by the numbers of its parts; what can happen in it, and how a message can be lost."""

from enum import IntEnum, StrEnum

import attrs

from stablecast.lab.prove.sources import Told
from stablecast.lab.prove.stores import Fate


class Deed(IntEnum):
    """What can happen: to the source, then to one store."""

    BEGIN = 0
    STOP = 1
    SEND = 2
    SYNC = 3
    FILL = 4
    RETURN = 5
    CRASH = 6
    LEAVE = 7
    WIPE = 8
    TAKE_OVER = 9
    """The source is cut off from every store, and another process begins with its RegID."""
    COME_BACK = 10
    """The process that is aside reaches stores; one that runs is cut off from them, and is aside then."""
    DOUBLE = 11
    """The context makes a second source with the same RegID. The first one is aside, and knows nothing of it."""
    ALTERNATE = 12
    """The other one of two sources of one context registers again with every store."""
    INFORM = 13
    """An SRI reaches a store that was not told yet where this life resumes."""


FATES = {
    Deed.SYNC: Fate.SYNC,
    Deed.RETURN: Fate.RETURN,
    Deed.CRASH: Fate.CRASH,
    Deed.LEAVE: Fate.LEAVE,
    Deed.WIPE: Fate.WIPE,
}
"""What happens to one store alone."""
REGISTERING = (
    *(Deed.BEGIN, Deed.RETURN, Deed.LEAVE, Deed.CRASH),
    *(Deed.TAKE_OVER, Deed.COME_BACK, Deed.DOUBLE, Deed.ALTERNATE, Deed.INFORM),
)
"""After these the source asks the stores that are there, and those that wait are told."""
Action = tuple[Deed, tuple[int, ...]]
"""With the indices of stores: those that a process reaches when it begins or comes back, those that lose something at
STOP, the one of any other."""
NOBODY = -1
"""No source runs."""


class Kind(StrEnum):
    """How a message that was reported stable is lost."""

    GONE = "gone"
    REUSED = "reused"
    UNRECOVERABLE = "unrecoverable"


@attrs.frozen
class Loss:
    """A message, told by its life and number, and how it is lost."""

    kind: Kind
    life: int
    number: int


@attrs.frozen
class State:
    """What there is: the source (-1: none runs), how many lives it had, the stores, and what was reported stable.

    `aside` is the other living process (-1: there is none), `takeovers` how often one took the stores from the other.
    `doubled`: both are sources of one context, and neither is cut off.
    """

    source: int
    lives: int
    stores: tuple[int, ...]
    safe: frozenset[tuple[int, int]] = frozenset()
    wipes: int = 0
    aside: int = NOBODY
    takeovers: int = 0
    doubled: bool = False


@attrs.define
class Draft:
    """A state in the making, and what the application is told on the way."""

    source: int
    lives: int
    stores: list[int]
    safe: frozenset[tuple[int, int]]
    wipes: int
    aside: int
    takeovers: int
    doubled: bool
    told: list[tuple[int, Told]] = attrs.field(factory=list)
    """With the life of the source that was told."""

    @classmethod
    def of(cls, state: State) -> "Draft":
        """From a state on."""
        return cls(
            state.source,
            state.lives,
            list(state.stores),
            state.safe,
            state.wipes,
            state.aside,
            state.takeovers,
            state.doubled,
        )

    def done(self) -> State:
        """What it came to."""
        stores = tuple(self.stores)
        return State(self.source, self.lives, stores, self.safe, self.wipes, self.aside, self.takeovers, self.doubled)
