"""Define a state of the world by the numbers of its parts, the actions, and the losses."""

from enum import StrEnum
from operator import attrgetter

import attrs

from stablecast.core.protocol.messages import StableAck
from stablecast.lab.prove.sources import Told


class Deed(StrEnum):
    """The actions on the source, on one store, and on the receiver, with what a story says of them."""

    BEGIN = "begins"
    STOP = "ends"
    SEND = "sends"
    TAKE_OVER = "is taken over"
    """Partition the source from every store, and start another process with its RegID."""
    COME_BACK = "comes back"
    """Let the process that is aside reach stores. A running one is partitioned and is aside then."""
    DOUBLE = "is doubled"
    """Let the context make a second source with the same RegID. The first one is aside and does not know it."""
    ALTERNATE = "registers again"
    """Let the other one of two sources of one context register again with every store."""
    SYNC = "syncs and acknowledges"
    SYNC_FIRST = "syncs its first write only, and acknowledges"
    SYNC_LATE = "syncs; its acknowledgements are late"
    """Sync a store. Its acknowledgements are under way, also after the life has ended."""
    HEAR = "has its late acknowledgements delivered"
    WRITE = "writes what it kept in memory"
    FILL = "recovers its holes from the source"
    REFILL = "gets from the other stores what it lacks"
    INFORM = "learns where the source resumed"
    RETURN = "returns"
    CRASH = "crashes and loses what is not synced"
    LEAVE = "is partitioned, its messages are synced"
    """Partition a store or end it; its writes are kept."""
    WIPE = "loses its disk"
    ATTEND = "begins a session with the present life"
    LEARN = "learns what the source sent"
    WAIT = "waits, and asks the stores for what it misses"
    CONSUME = "consumes the next message, and acknowledges it"
    QUIT = "dies"
    """End the receiver without a word."""


REGISTERING = (
    *(Deed.BEGIN, Deed.RETURN, Deed.LEAVE, Deed.CRASH),
    *(Deed.TAKE_OVER, Deed.COME_BACK, Deed.DOUBLE, Deed.ALTERNATE, Deed.INFORM),
)
"""Actions after which the source asks the stores that are up, and waiting ones receive SRIs."""
Action = tuple[Deed, tuple[int, ...]]
"""An action with the indices of stores.

BEGIN and COME_BACK have the stores that the process reaches, STOP those that lose unsynced records, SEND those that
lose the message (-1: the receiver does), any other action its store.
"""
Run = tuple[Action, ...]
NOBODY = -1
"""No source runs."""


class LossKind(StrEnum):
    """Name how a message that was reported stable is lost."""

    GONE = "gone"
    REUSED = "reused"
    UNRECOVERABLE = "unrecoverable"
    BROKEN = "broken"
    """Another guarantee does not hold."""


@attrs.frozen
class Loss:
    """Name a lost message by life and number, how it is lost, and the guarantee that breaks, with the reason."""

    kind: LossKind
    life: int
    number: int
    rule: str = "S3"
    why: str = ""


@attrs.define
class StateParts:
    """Hold the source (-1: none runs), the number of its lives, the stores, and what was reported stable.

    `aside` is the other live process (-1: there is none), and `takeovers` how often one took the stores from the other.
    `doubled` means that both are sources of one context, and neither is partitioned. `receiver` is the receiver, and
    `late` has the acknowledgements under way from each store. `emptied` is the store that lost its disk last (-1: none
    did), where the world asks whether it is whole again.
    """

    source: int
    lives: int
    stores: tuple[int, ...]
    safe: frozenset[tuple[int, int]] = frozenset()
    wipes: int = 0
    aside: int = NOBODY
    takeovers: int = 0
    doubled: bool = False
    receiver: int = NOBODY
    late: tuple[tuple[StableAck, ...], ...] = ()
    emptied: int = NOBODY


_PARTS = attrgetter(*(field.name for field in attrs.fields(StateParts)))


@attrs.frozen
class State(StateParts):
    """Hold a finished state, which the search uses as a key."""


@attrs.define
class Draft(StateParts):
    """Hold a state under construction, and what is reported to the application meanwhile."""

    told: list[tuple[int, Told]] = attrs.field(factory=list)
    """Reports with the life of the source that received them."""

    @classmethod
    def of(cls, state: State) -> "Draft":
        return cls(*_PARTS(state))

    def put(self, index: int, store: int) -> None:
        self.stores = (*self.stores[:index], store, *self.stores[index + 1 :])

    def done(self) -> State:
        return State(*_PARTS(self))
