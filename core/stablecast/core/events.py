"""Events for the application: what the guide calls source and receiver events (P-65x).

Numbers in events are extended (unbounded) sequence numbers; `serial.wire` folds them to what the wire shows. Ranges are
inclusive: one event speaks for a run of messages, never one for each.
"""

from enum import IntFlag

import attrs

from stablecast.core.messages import Address


class RegistrationFlag(IntFlag):
    """Flags of the registration events (P-332)."""

    NONE = 0
    OLD = 1
    QUORUM = 2
    REQUEST_MAXIMUM = 4


class StableFlag(IntFlag):
    """Flags of the stability event (P-331)."""

    NONE = 0
    INTRAGROUP = 1
    INTERGROUP = 2
    STABLE = 4
    STORE = 8


class ConfirmFlag(IntFlag):
    """Flags of the delivery confirmation (P-330)."""

    NONE = 0
    UNIQUE = 1


@attrs.frozen
class RegistrationSuccess:
    """One store granted (P-652, P-666). `number`: a source's newest number there, or where a receiver would start."""

    store_index: int
    store: Address
    reg_id: int
    source_reg_id: int
    number: int
    flags: RegistrationFlag


@attrs.frozen
class RegistrationComplete:
    """The stores that the group rules ask for have granted (P-653, P-667).

    `number` is the first to be sent or delivered.
    """

    number: int
    flags: RegistrationFlag


@attrs.frozen
class RegistrationError:
    """A store refused, or something stands in the way of registering (P-654, P-672)."""

    store_index: int
    store: Address
    text: str


@attrs.frozen
class RegistrationChange:
    """A receiver registers again with stores whose version rose (P-673)."""

    text: str


@attrs.frozen
class StoreUnresponsive:
    """A store went silent, or does not answer registrations (P-658). `text` says so."""

    store_index: int
    store: Address
    text: str


@attrs.frozen
class QuorumLost:
    """Too few stores are registered: sending is refused until `needed` are again (P-336)."""

    registered: int
    needed: int


@attrs.frozen
class Overtaken:
    """Another life of the source registered while this one had no quorum. This one is over: make a new source."""


@attrs.frozen
class Stable:
    """`first`..`last` are stable (P-655): at one store (STORE), or as the group rules require (the other flags)."""

    first: int
    last: int
    store_index: int
    flags: StableFlag


@attrs.frozen
class Confirmed:
    """A receiver consumed everything up to `last`; `first` is the first it had not confirmed before (P-657)."""

    first: int
    last: int
    receiver_reg_id: int
    flags: ConfirmFlag


@attrs.frozen
class Reclaimed:
    """The source let go of its copies of `first`..`last`; `forced`: before they were stable and confirmed (P-659)."""

    first: int
    last: int
    forced: bool


@attrs.frozen
class FlightSize:
    """The flight size was exceeded (`over`) or is free again (P-661)."""

    over: bool


@attrs.frozen
class UnrecoverableLoss:
    """`first`..`last` could not be had from any store in time; delivery goes on behind them (P-349)."""

    first: int
    last: int


@attrs.frozen
class Oddity:
    """Something a peer did that the machine dropped, counted by `code`; `text` for people."""

    code: str
    text: str


SourceEvent = (
    RegistrationSuccess
    | RegistrationComplete
    | RegistrationError
    | StoreUnresponsive
    | QuorumLost
    | Overtaken
    | Stable
    | Confirmed
    | Reclaimed
    | FlightSize
    | Oddity
)
ReceiverEvent = (
    RegistrationSuccess
    | RegistrationComplete
    | RegistrationError
    | RegistrationChange
    | StoreUnresponsive
    | UnrecoverableLoss
    | Oddity
)
Event = SourceEvent | ReceiverEvent
