"""Messages between endpoints: what one machine says to another, free of bytes.

Sequence numbers in messages are 32-bit serial numbers as on the wire; a machine extends them when it reads a message
and folds them when it writes one (`machine.serial`). Addresses are opaque `ip:port` texts. An *incarnation*
names one life of one source: the session id of its transport in the upper and its topic index in the lower 32 bits.
Every header of the protocol carries both, so late can always be told from current (formal design, section 3).
"""

from enum import IntEnum, IntFlag

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.records import record

Address = str
Incarnation = int
Life = tuple[Incarnation, int]
"""One life of a source and its first number; see `stablecast.core.protocol.history`."""

GENERATIONS = 128
"""A registration generation is a 7-bit marker of PREG, echoed in its answer."""


FROM_THE_START = -1
"""As the first number of an acknowledgement: it speaks for everything up to its number."""

ANY_STORE = -1
"""A keepalive that does not say which store it concerns: it is taken for each with that RegID."""


def earlier(one: Incarnation, other: Incarnation) -> bool:
    """Return whether one life of a context began before another: it numbers its topics upward, in 32 bits that wrap."""
    return serial.before(one % serial.MODULUS, other % serial.MODULUS)


class Role(IntEnum):
    """Who speaks; the values are those of the keepalive header."""

    STORE = 0
    RECEIVER = 1
    SOURCE = 2


class Refusal(IntEnum):
    """Why a store refused a registration (PREG_RESP error codes)."""

    NO_PATTERN = 1
    UNKNOWN_SOURCE = 2
    HELD_BY_RECEIVER = 3
    OTHER_TOPIC = 4
    HELD_BY_SOURCE = 5
    INCOMPATIBLE = 6

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return _REFUSALS[self]


_REFUSALS = {
    Refusal.NO_PATTERN: "no topic pattern of the store matches",
    Refusal.UNKNOWN_SOURCE: "the store does not know the source's registration ID",
    Refusal.HELD_BY_RECEIVER: "registration ID in use by a receiver",
    Refusal.OTHER_TOPIC: "the registration ID belongs to another topic",
    Refusal.HELD_BY_SOURCE: "registration ID in use by a different source",
    Refusal.INCOMPATIBLE: "source and store configuration are incompatible",
}


class Pace(IntEnum):
    """Who sets the pace of a repository (P-010): its source, or the receivers that must consume (RPP)."""

    SOURCE = 0
    RECEIVERS = 1
    NON_BLOCKING = 2
    """Of a receiver: its messages are kept for it while there is room, and it never holds up the source (T18)."""


UNSET = -1
"""A wish that was not uttered, where 0 is one."""


@attrs.frozen
class Wishes:
    """What a source asks of its repository, within the store's maxima (P-111, P-562, P-568).

    Sizes in bytes, 0: the store's value. `write_delay_ms` may be `UNSET`; 0 is no delay.
    """

    size_threshold: int = 0
    size_limit: int = 0
    disk_limit: int = 0
    flight_messages: int = 0
    flight_bytes: int = 0
    write_delay_ms: int = UNSET
    ack_on_reception: bool = False


@attrs.frozen
class ElectionToken:
    """What a proxy registers with: the lower one wins, by value and then by the index of the store (T23, C-14).

    `value` has 32 bits. `life` is the life of the source that it stands in for, 0: not said (formal design, 7.9).
    """

    value: int
    store_index: int
    life: Incarnation = 0

    @property
    def rank(self) -> tuple[int, int]:
        """What tokens are told apart and ordered by."""
        return (self.value, self.store_index)


@attrs.frozen
class Register:
    """PREG: a source or receiver asks a store to keep its state (P-214, P-227).

    `reg_id` 0 asks the store to choose (P-234). `session_id` 0 means none. Timeouts of 0 ms leave the store's own
    value. `transport` is where the source's data stream can be joined; receivers leave it empty. `context` names the
    process that listens at `reply_to` (its context instance); 0: it did not say. `pace` asks for RPP, with `wishes`.
    `wants_proxy`: a proxy may stand in for this source. A PREG with `election` is that of a proxy (P-554). Of a source
    the store is to count at least `term` lives (`history`); if it was told of this life, then as of
    `lives_term` at least (`stablecast.core.source.lineage`).
    """

    role: Role
    store_index: int
    generation: int
    reg_id: int
    incarnation: Incarnation
    source_reg_id: int
    topic: str
    session_id: int
    reply_to: Address
    transport: Address
    activity_timeout_ms: int
    state_lifetime_ms: int
    context: int = 0
    pace: Pace = Pace.SOURCE
    wishes: Wishes = Wishes()
    wants_proxy: bool = False
    election: ElectionToken | None = None
    term: int = 0
    lives_term: int = 0

    @property
    def wishes_proxy(self) -> bool:
        """Whether the wish for a proxy counts: whoever lets the store choose its RegID cannot return to it (U3)."""
        return self.wants_proxy and bool(self.reg_id or self.session_id)


@attrs.frozen
class Registered:
    """PREG_RESP of a grant. `low`..`high` are the numbers the store offers; `low` = `high` + 1 when there are none.

    For a receiver `low` is where it starts: after its last acknowledgement, or where it may begin if there was none.
    `old`: the store knows an earlier registration of the source, or an acknowledgement of the receiver. The timeouts
    are those in force, for the client's lease. `term`, `lives` and `lives_term` are for sources: see `history`.
    `no_cache`: the store keeps state only, acknowledges nothing to a source and has nothing for a receiver (P-101).
    `pace` is that of the repository, or for a receiver its own (P-571).
    """

    role: Role
    store_index: int
    generation: int
    reg_id: int
    incarnation: Incarnation
    old: bool
    low: int
    high: int
    activity_timeout_ms: int
    state_lifetime_ms: int
    term: int = 0
    lives: tuple[Life, ...] = ()
    lives_term: int = 0
    no_cache: bool = False
    pace: Pace = Pace.SOURCE


@attrs.frozen
class Refused:
    """PREG_RESP with the error indicator.

    `held_ms` is how long the holder of the RegID keeps it if it gives no further sign of life. 0: the store did not
    say, or waiting does not help.
    """

    role: Role
    store_index: int
    generation: int
    reg_id: int
    incarnation: Incarnation
    reason: Refusal
    held_ms: int = 0


@attrs.frozen
class Deregister:
    """PREG with the deregistration flag: a client asks a store to forget it (P-584)."""

    role: Role
    store_index: int
    generation: int
    reg_id: int
    incarnation: Incarnation
    source_reg_id: int
    reply_to: Address


@attrs.frozen
class Deregistered:
    """PREG_RESP with the deregistration flag (P-586). `number`: the newest number stored, or acknowledged."""

    role: Role
    store_index: int
    generation: int
    reg_id: int
    incarnation: Incarnation
    number: int


@record
class StableAck:
    """Store to source: `first`..`last` of this incarnation are synced at the store (P-302).

    With `nack` they are lost there for good, and need not be sent to it again (P-441, T16).
    """

    store_index: int
    incarnation: Incarnation
    first: int
    last: int
    nack: bool = False


class AckFlag(IntFlag):
    """How a receiver acknowledges; the values are those of the ACK header (P-330)."""

    NONE = 0
    EXPLICIT = 0x08
    USER_REG_ID = 0x10
    ARRIVAL_ORDER = 0x40


@attrs.frozen
class ConsumptionAck:
    """Receiver to store: all up to `number` are consumed, or lost to it (T3). To the source: a delivery confirmation.

    A confirmation speaks for `first`..`number` only: the receiver consumed each of these. Messages that were lost stay
    outside, so that the source sees a gap (P-349). `FROM_THE_START` as `first` means everything up to `number`.
    A confirmation names the session id, because RegIDs differ from store to store: a receiver that returns counts once
    (P-329).
    """

    incarnation: Incarnation
    source_reg_id: int
    receiver_reg_id: int
    number: int
    flags: AckFlag = AckFlag.NONE
    session_id: int = 0
    first: int = FROM_THE_START


@attrs.frozen
class ReceiverAlive:
    """RCV_KEEPALIVE: a receiver tells the source that it lives, while it has nothing to confirm (P-338)."""

    incarnation: Incarnation
    receiver_reg_id: int
    session_id: int
    context: int


@attrs.frozen
class RetransmitRequest:
    """RXREQ: send `first`..`last` to `reply_to`.

    From a receiver to a store (`by` RECEIVER, with the source's RegID there) or from a store to a source (`by` STORE,
    RegID 0); a store that forwards a receiver's request leaves the receiver's `reply_to` in it (P-404). A receiver asks
    a source for late join as a store does.
    """

    by: Role
    incarnation: Incarnation
    source_reg_id: int
    request: int
    first: int
    last: int
    reply_to: Address


@attrs.frozen
class Keepalive:
    """KEEPALIVE: `role` is alive; with `respond` the other side answers with one of its own.

    RegIDs are scoped to a store (P-018), so `store_index` says which store's RegID this is (STOREID).
    """

    role: Role
    incarnation: Incarnation
    reg_id: int
    respond: bool
    store_index: int = ANY_STORE


@attrs.frozen
class StoreEntry:
    """One store of a source as its SRI names it (P-220). `version` rises with each registration there."""

    index: int
    group: int
    address: Address
    source_reg_id: int
    version: int


@attrs.frozen
class SourceInfo:
    """SRI: what a receiver or a store must know of a source (P-219..P-223).

    `low` is the resume point: the first number this incarnation sends, `high` the newest sent (`low` - 1: none yet).
    `request` is the source's request address. No stores: a streaming source. `group_sizes` are the configured sizes of
    its groups. `lives` is the source's history, this life last; `term` says how new it is. `late_join`: the source
    retransmits what it still has to receivers that ask it (P-411).
    """

    incarnation: Incarnation
    topic: str
    version: int
    low: int
    high: int
    request: Address
    group_sizes: tuple[int, ...]
    confirmations: bool
    stores: tuple[StoreEntry, ...]
    term: int = 0
    lives: tuple[Life, ...] = ()
    late_join: bool = True


@attrs.frozen
class SourceInfoRequest:
    """SRI_REQ: a receiver asks for the SRI (P-227)."""

    incarnation: Incarnation


@attrs.frozen
class LateJoinRequest:
    """LJI_REQ: a store that catches up, or a receiver that joins late, asks what the source can still retransmit."""

    incarnation: Incarnation
    request: int
    reply_to: Address


@attrs.frozen
class LateJoinInfo:
    """LJ_INFO: the source can retransmit `low`..`high`; what lies below is gone for good."""

    incarnation: Incarnation
    request: int
    low: int
    high: int


Message = (
    Register
    | Registered
    | Refused
    | Deregister
    | Deregistered
    | StableAck
    | ConsumptionAck
    | ReceiverAlive
    | RetransmitRequest
    | Keepalive
    | SourceInfo
    | SourceInfoRequest
    | LateJoinRequest
    | LateJoinInfo
)
