"""Events for the application: the source and receiver events of the guide (P-65x).

Numbers in events are extended sequence numbers; `serial.wire` folds them to wire numbers. Ranges are inclusive: one
event covers a run of messages.
"""

from enum import IntEnum, IntFlag

import attrs

from stablecast.core.machine.records import record
from stablecast.core.protocol.messages import Address, Role


class RegistrationFlag(IntFlag):
    """Flags of the registration events (P-332)."""

    NONE = 0
    OLD = 1
    QUORUM = 2
    REQUEST_MAXIMUM = 4
    NO_ACKS = 8
    NO_CACHE = 16
    RPP = 32
    NON_BLOCKING = 64
    SESSION = 128
    """The RegID belongs to a session id."""


class StableFlag(IntFlag):
    """Flags of the stability event (P-331)."""

    NONE = 0
    INTRAGROUP = 1
    INTERGROUP = 2
    STABLE = 4
    STORE = 8
    WHOLE_MESSAGE = 16


class NotStableFlag(IntFlag):
    """The cause for which messages will not be stable (P-656): lost at a store, or their lifetime ended."""

    STORE = 8
    LOSS = 64
    TIMEOUT = 128


class ConfirmFlag(IntFlag):
    """Flags of the delivery confirmation (P-330)."""

    NONE = 0
    UNIQUE = 1
    USER_REG_ID = 2
    OUT_OF_ORDER = 4
    EXPLICIT = 8
    WHOLE_MESSAGE = 16


class LivenessFlag(IntFlag):
    """The evidence that a receiver is gone (P-338): it was silent for too long, or its connection ended."""

    TIMEOUT = 1
    END = 2


@attrs.frozen
class RegistrationSuccess:
    """One store granted (P-652, P-666). `number`: a source's newest number there, or a receiver's first."""

    store_index: int
    store: Address
    reg_id: int
    source_reg_id: int
    number: int
    flags: RegistrationFlag


@attrs.frozen
class RegistrationComplete:
    """Enough stores for the group rules granted (P-653, P-667). `number` is the first to be sent or delivered."""

    number: int
    flags: RegistrationFlag


@attrs.frozen
class RegistrationError:
    """A store refused, or something prevents the registration (P-654, P-672)."""

    store_index: int
    store: Address
    text: str


@attrs.frozen
class RegistrationChange:
    """A receiver registers again with stores whose version rose (P-673)."""

    text: str


@attrs.frozen
class StoreUnresponsive:
    """A store is silent, or does not answer registrations (P-658); `text` describes it."""

    store_index: int
    store: Address
    text: str


@attrs.frozen
class QuorumLost:
    """Too few stores are registered: sending is refused until `needed` stores are (P-336)."""

    registered: int
    needed: int


@attrs.frozen
class Overtaken:
    """Another life of the source registered while this one had no quorum. This life is over: create a new source."""


@record
class Stable:
    """`first`..`last` are stable (P-655): at one store (STORE), or as the group rules require (the other flags)."""

    first: int
    last: int
    store_index: int
    flags: StableFlag


@attrs.frozen
class NotStable:
    """`first`..`last` will not be stable: at one store (STORE and LOSS), or at any because time ran out (TIMEOUT)."""

    first: int
    last: int
    store_index: int
    flags: NotStableFlag


@attrs.frozen
class SequenceNumberInfo:
    """A message was cut into fragments with the numbers `first`..`last` (P-334)."""

    first: int
    last: int


@attrs.frozen
class Wakeup:
    """A send that found no credit may be tried again (T13)."""


@attrs.frozen
class StoreMoved:
    """The store of this name has another address now (P-207)."""

    name: str
    before: Address
    address: Address


@attrs.frozen
class ReceiverGone:
    """A receiver that kept in touch is gone (P-338): an event of the source's context.

    `receiver_reg_id` is the number that its user gave it, else its RegID.
    """

    receiver_reg_id: int
    session_id: int
    flags: LivenessFlag


@attrs.frozen
class DeregistrationSuccess:
    """One store has forgotten the client (P-664, P-670). `number`: the newest it stored, or had acknowledged."""

    store_index: int
    store: Address
    reg_id: int
    number: int


@attrs.frozen
class DeregistrationComplete:
    """All stores have forgotten the client (P-665, P-671): the object is of no more use."""


@attrs.frozen
class Confirmed:
    """A receiver consumed everything up to `last`; `first` is the first it had not confirmed before (P-657).

    `receiver_reg_id` is the number that the receiver's user gave it (then `USER_REG_ID` is set), else its RegID.
    `session_id` is that of the receiver, 0 if it has none.
    """

    first: int
    last: int
    receiver_reg_id: int
    flags: ConfirmFlag
    session_id: int = 0


@record
class Reclaimed:
    """The source dropped its copies of `first`..`last`; `forced`: before they were stable and confirmed (P-659)."""

    first: int
    last: int
    forced: bool


@attrs.frozen
class FlightSize:
    """A send exceeded the flight size (`over`), or the flight has fallen below it again (P-661)."""

    over: bool


@attrs.frozen
class UnrecoverableLoss:
    """No store or source delivered `first`..`last` in time; delivery goes on above them (P-349).

    `burst`: more messages were missing at once than are requested (T30).
    """

    first: int
    last: int
    burst: bool = False


@attrs.frozen
class HotNumbersMissed:
    """No joined source brought the hot-failover numbers `first`..`last`; the receiver's client reports it."""

    first: int
    last: int


@attrs.frozen
class NoSource:
    """This many queries for the receiver's topic were not answered; resolution goes on. The driver reports it."""

    topic: str
    queries: int


@attrs.frozen
class EndOfSource:
    """The stream of a source at `place` is over: it ended, its connection broke, or it was silent for too long.

    It may come back, and missing messages may still be recovered. The driver reports it.
    """

    topic: str
    place: str


@attrs.frozen
class SteppedBack:
    """The source resumes at `resume_point`, below `known`, which was received from an earlier life (T20)."""

    resume_point: int
    known: int


@attrs.frozen
class ReleasedUnread:
    """A store dropped messages below `number` that a receiver has not consumed; once a registration (P-122)."""

    source_reg_id: int
    receiver_reg_id: int
    number: int


class Farewell(IntEnum):
    """The cause for which a store forgot a client: its state lifetime ended, it deregistered, or its source is gone."""

    EXPIRED = 0
    DEREGISTERED = 1
    SOURCE_GONE = 2


@attrs.frozen
class ClientForgotten:
    """A store forgot a client (P-533, P-584, P-587).

    `messages`: for a source those that the store held of it, up to number `newest`, and dropped; for a receiver those
    that it had not acknowledged. `silent_ns`: the time since its last sign of life.
    """

    role: Role
    reg_id: int
    source_reg_id: int
    topic: str
    messages: int
    newest: int
    silent_ns: int
    why: Farewell


@attrs.frozen
class MessagesDropped:
    """A store's memory is full: it dropped `first`..`last` (P-115, C-31). It asks again if a sync can make room."""

    source_reg_id: int
    first: int
    last: int


@attrs.frozen
class HistoryForgotten:
    """A store dropped `first`..`last` of a source, which may be dead: it missed more lives than are remembered."""

    source_reg_id: int
    first: int
    last: int


@attrs.frozen
class LostAtStore:
    """A store gave up `first`..`last` of a source; `burst`: as one burst (P-917, P-918)."""

    source_reg_id: int
    first: int
    last: int
    burst: bool = False


class LackCause(IntEnum):
    """The cause for which a store lacks messages that other stores may have."""

    AWAY = 0
    """The store was not there, or it could not keep up, and the source retains the messages no more."""
    EMPTY = 1
    """The store lost its disk, or replaces another one."""
    DAMAGED = 2
    """The disk cannot read them."""
    NO_ROOM = 3
    """They found no room below a limit of the repository."""


@attrs.frozen
class RefillStarted:
    """A store lacks `messages` of a source, and asks the other stores for them."""

    source_reg_id: int
    messages: int
    cause: LackCause


@attrs.frozen
class Refilled:
    """A store lacks nothing of a source any more: `messages` came back from other stores or from the source."""

    source_reg_id: int
    messages: int


@attrs.frozen
class NotRefilled:
    """No other store sent these `messages` of a source, which lie in `first`..`last`.

    `final`: the store asks again only when another store registers. Otherwise it asks again later by itself.
    """

    source_reg_id: int
    messages: int
    first: int
    last: int
    cause: LackCause
    final: bool


@attrs.frozen
class OlderCopy:
    """A store learned that it runs on an older copy of its directory: somebody knows a later generation of it.

    From now on it has no vote about older messages of a source until the source announces itself. `generation` and
    `known` are the counts of its starts and stops, in the copy and elsewhere.
    """

    generation: int
    known: int


@attrs.frozen
class RequestsDropped:
    """A store dropped retransmission requests for `count` messages: its queue is full (P-407, P-408)."""

    count: int


@attrs.frozen
class SharesChanged:
    """A member of a group gives its application the messages of these shares from now on; `members` are known."""

    topic: str
    group: str
    shares: tuple[int, ...]
    members: int


@attrs.frozen
class ProxyStarted:
    """A store started a proxy for a source (P-546)."""

    source_reg_id: int


@attrs.frozen
class ProxyEnded:
    """A store ended its proxy for a source; `text` gives the reason."""

    source_reg_id: int
    text: str


@attrs.frozen
class Oddity:
    """A peer's act that the machine ignored, counted by `code`; `text` describes it."""

    code: str
    text: str


# fmt: off
SourceEvent = (
    RegistrationSuccess | RegistrationComplete | RegistrationError | DeregistrationSuccess | DeregistrationComplete
    | StoreUnresponsive | StoreMoved | QuorumLost | Overtaken | Stable | NotStable | Confirmed | Reclaimed | FlightSize
    | Wakeup | SequenceNumberInfo | ReceiverGone | Oddity
)
ReceiverEvent = (
    RegistrationSuccess | RegistrationComplete | RegistrationError | RegistrationChange | DeregistrationSuccess
    | DeregistrationComplete | StoreUnresponsive | UnrecoverableLoss | HotNumbersMissed | SteppedBack | NoSource
    | EndOfSource | SharesChanged | Oddity
)
StoreEvent = (
    ClientForgotten | ReleasedUnread | MessagesDropped | HistoryForgotten | LostAtStore | RequestsDropped
    | RefillStarted | Refilled | NotRefilled | OlderCopy | ProxyStarted | ProxyEnded | Oddity
)
Event = SourceEvent | ReceiverEvent | StoreEvent
# fmt: on
