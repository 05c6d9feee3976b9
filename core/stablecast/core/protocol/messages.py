"""Messages between endpoints, free of bytes.

Sequence numbers in messages are 32-bit serial numbers as on the wire. A machine extends them when it receives a message
and folds them when it sends one (`machine.serial`). Addresses are opaque `ip:port` texts. An *incarnation* names one
life of one source: the session id of its transport in the upper and its topic index in the lower 32 bits. Every header
of the protocol carries both, so a machine can always tell a late message from a current one (formal design, section 3).
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


MAX_STORES = 255
"""Stores that an SRI may name; the index is one byte in the election header."""

FROM_THE_START = -1
"""The first number of an acknowledgement that covers everything up to its number."""

ANY_STORE = -1
"""The store index of a keepalive that names none; it counts for each store with that RegID."""


def earlier(one: Incarnation, other: Incarnation) -> bool:
    """Return whether one life of a context began before another: a context numbers its topics upward, modulo 2**32."""
    return serial.before(one % serial.MODULUS, other % serial.MODULUS)


class Role(IntEnum):
    """The kind of an endpoint; the values are those of the keepalive header."""

    STORE = 0
    RECEIVER = 1
    SOURCE = 2


class Refusal(IntEnum):
    """The cause of a store's refusal of a registration (PREG_RESP error codes)."""

    NO_PATTERN = 1
    UNKNOWN_SOURCE = 2
    HELD_BY_RECEIVER = 3
    OTHER_TOPIC = 4
    HELD_BY_SOURCE = 5
    INCOMPATIBLE = 6
    NOT_PERMITTED = 7

    @property
    def text(self) -> str:
        """The cause in words."""
        return _REFUSALS[self]


_REFUSALS = {
    Refusal.NO_PATTERN: "no topic pattern of the store matches",
    Refusal.UNKNOWN_SOURCE: "the store does not know the source's registration ID",
    Refusal.HELD_BY_RECEIVER: "registration ID in use by a receiver",
    Refusal.OTHER_TOPIC: "the registration ID belongs to another topic",
    Refusal.HELD_BY_SOURCE: "registration ID in use by a different source",
    Refusal.INCOMPATIBLE: "source and store configuration are incompatible",
    Refusal.NOT_PERMITTED: "the policy of the store does not permit it",
}


class StoreMemory(IntEnum):
    """The memory of a store: its knowledge of the time before its records began (formal design, 7.11)."""

    KEPT = 0
    """Everything: it never lost its records."""
    NEW = 1
    """Nothing, and an operator declared that there was no such time."""
    LOST = 2
    """Nothing, or not everything: it may have held stable messages that it does not know any more."""


class Pace(IntEnum):
    """The clients that set the pace of a repository (P-010): its source, or the receivers that must consume (RPP)."""

    SOURCE = 0
    RECEIVERS = 1
    NON_BLOCKING = 2
    """A receiver whose messages are kept while there is room, and which never holds up the source (T18)."""


UNSET = -1
"""A wish that was not expressed, where 0 is a wish."""


@attrs.frozen
class Wishes:
    """The repository that a source asks for, within the store's maxima (P-111, P-562, P-568).

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
    """The token with which a proxy registers: the lower one wins, by value and then by store index (T23, C-14).

    `value` has 32 bits. `life` is the life of the source that the proxy replaces, 0: not stated (formal design, 7.9).
    """

    value: int
    store_index: int
    life: Incarnation = 0

    @property
    def rank(self) -> tuple[int, int]:
        """The key by which tokens are compared and ordered."""
        return (self.value, self.store_index)


@attrs.frozen
class _OfRegistration:
    """The fields of all messages of a registration, which an answer repeats."""

    role: Role
    store_index: int
    generation: int
    reg_id: int
    incarnation: Incarnation

    @property
    def names(self) -> tuple[Role, int, int, int, Incarnation]:
        """The fields that an answer repeats."""
        return (self.role, self.store_index, self.generation, self.reg_id, self.incarnation)


@attrs.frozen
class Register(_OfRegistration):
    """PREG: a source or receiver asks a store to keep its state (P-214, P-227).

    Attributes:
        reg_id: 0 lets the store choose (P-234).
        session_id: 0 means none.
        transport: Address of the source's data stream; receivers leave it empty.
        activity_timeout_ms: 0 leaves the store's own value, as it does for `state_lifetime_ms`.
        context: The process that listens at `reply_to` (its context instance); 0: not stated.
        pace: Asks for RPP, with `wishes`.
        wants_proxy: A proxy may replace this source.
        election: The token of a proxy (P-554).
        term: The store must count at least this many lives of a source (`history`).
        lives_term: If the store knows this life, it knows it under at least this term (`source.lineage`).
        known_generation: The newest generation of the store that the client knows; 0: none (`generations`).
    """

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
    known_generation: int = 0

    @property
    def wishes_proxy(self) -> bool:
        """True if the wish for a proxy counts: a client whose RegID the store chose cannot return to it (U3)."""
        return self.wants_proxy and bool(self.reg_id or self.session_id)


@attrs.frozen
class Registered(_OfRegistration):
    """PREG_RESP of a grant.

    Attributes:
        old: The store knows an earlier registration of the source, or an acknowledgement of the receiver.
        low: First number that the store offers; for a receiver the first after its last acknowledgement, if there is
            one.
        high: Last number that the store offers; `low` - 1 when there is none.
        activity_timeout_ms: The timeout in force, for the client's lease, as is `state_lifetime_ms`.
        term: For sources, as are `lives` and `lives_term`: see `history`.
        no_cache: The store keeps state only, so it acknowledges nothing and offers nothing (P-101).
        pace: The pace of the repository, or for a receiver its own (P-571).
        memory: The store's knowledge of the source's older lives. To a receiver that the store does not know, LOST says
            that it may have forgotten the receiver, or lacks messages below `low`.
        known: The last number that the store knows to be used although it does not hold it; None: not above `high`. For
            a receiver that it does not know, the first number that it lacks below `low`; None: it lacks none. For one
            that it knows and offers nothing, `high`; None: the life that it names may use that number again. For one
            that sets the pace, was registered there before, and never acknowledged, the first that it keeps or expects.
        store_generation: The generation of the store; 0: it reports none (`generations`).
        peers: For a source: the newest generations that the store knows of the source's other stores.
    """

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
    memory: StoreMemory = StoreMemory.KEPT
    known: int | None = None
    store_generation: int = 0
    peers: tuple[tuple[int, Address, int], ...] = ()


@attrs.frozen
class Refused(_OfRegistration):
    """PREG_RESP with the error indicator.

    `held_ms` is the time for which the holder keeps the RegID if it stays silent. 0: not stated, or waiting does not
    help. `pace` and `permitted` are terms that would have fitted; None: not stated.
    """

    reason: Refusal
    held_ms: int = 0
    pace: Pace = Pace.SOURCE
    permitted: Wishes | None = None


@attrs.frozen
class Deregister(_OfRegistration):
    """PREG with the deregistration flag: a client asks a store to forget it (P-584)."""

    source_reg_id: int
    reply_to: Address


@attrs.frozen
class Deregistered(_OfRegistration):
    """PREG_RESP with the deregistration flag (P-586). `number`: the newest number stored, or acknowledged."""

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
    """The way in which a receiver acknowledges; the values are those of the ACK header (P-330)."""

    NONE = 0
    EXPLICIT = 0x08
    USER_REG_ID = 0x10
    ARRIVAL_ORDER = 0x40


@attrs.frozen
class ConsumptionAck:
    """Receiver to store: all up to `number` are consumed or given up (T3). To the source: a delivery confirmation.

    A confirmation covers `first`..`number` only: the receiver consumed each of these. Lost messages stay outside, so
    that the source detects the gap (P-349). It names the session id, because RegIDs differ between stores: a receiver
    that returns counts once (P-329).
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
    """RCV_KEEPALIVE: a receiver that has nothing to confirm notifies the source that it lives (P-338)."""

    incarnation: Incarnation
    receiver_reg_id: int
    session_id: int
    context: int


@attrs.frozen
class RetransmitRequest:
    """RXREQ: send `first`..`last` to `reply_to`.

    A receiver sends it to a store (`by` RECEIVER, with the source's RegID there), a store or a late receiver to a
    source (`by` STORE, RegID 0). A store that forwards a receiver's request keeps the receiver's `reply_to` (P-404).
    A store that asks another one like a receiver names itself by its `store_index`, and so tells that it hears denials.
    """

    by: Role
    incarnation: Incarnation
    source_reg_id: int
    request: int
    first: int
    last: int
    reply_to: Address
    store_index: int = ANY_STORE


@attrs.frozen
class Keepalive:
    """KEEPALIVE: `role` is alive; with `respond` the other side answers with a keepalive of its own.

    RegIDs are scoped to a store (P-018), so `store_index` names the store (STOREID).
    """

    role: Role
    incarnation: Incarnation
    reg_id: int
    respond: bool
    store_index: int = ANY_STORE


@attrs.frozen
class StoreEntry:
    """One store of a source in its SRI (P-220). `version` rises with each registration there.

    `generation` is the newest one of the store that the source knows (`generations`).
    """

    index: int
    group: int
    address: Address
    source_reg_id: int
    version: int
    generation: int = 0


@attrs.frozen
class SourceInfo:
    """SRI: the facts about a source that receivers and stores need (P-219..P-223).

    Attributes:
        low: The resume point: the first number of this incarnation.
        high: The newest number sent; `low` - 1 before the first.
        request: The source's request address.
        group_sizes: The configured sizes of the groups of its stores.
        stores: Empty for a streaming source.
        term: Orders histories by age; see `history`.
        lives: The source's history, this life last.
        late_join: The source retransmits what it retains to receivers that ask (P-411).
        founding: This life found only stores without memory, so nobody knew of an earlier one.
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
    founding: bool = False


@attrs.frozen
class SourceInfoRequest:
    """SRI_REQ: a receiver asks for the SRI (P-227)."""

    incarnation: Incarnation


@attrs.frozen
class LateJoinRequest:
    """LJI_REQ: a store that catches up, or a late receiver, asks for the range that the source retains."""

    incarnation: Incarnation
    request: int
    reply_to: Address


@attrs.frozen
class LateJoinInfo:
    """LJ_INFO: what the sender can retransmit; it answers a `LateJoinRequest`, or denies a `RetransmitRequest`.

    The source can send `low`..`high`, and lower numbers are gone for good. A store denies a request: it has
    nothing from the first number of `request` up to `low`, and none of it is to come. `store_index` names the store.
    """

    incarnation: Incarnation
    request: int
    low: int
    high: int
    store_index: int = ANY_STORE


# fmt: off
Message = (
    Register | Registered | Refused | Deregister | Deregistered | StableAck | ConsumptionAck | ReceiverAlive
    | RetransmitRequest | Keepalive | SourceInfo | SourceInfoRequest | LateJoinRequest | LateJoinInfo
)
# fmt: on
