"""Inputs: the closed union of events that a driver may feed a machine. The log of inputs is the replay log.

Numbers are extended unless the field is named `wire`. A *token* is the driver's name for a run of messages whose bytes
it keeps. Machines return tokens in effects and never see a payload.
"""

import attrs

from stablecast.core.machine.records import record
from stablecast.core.protocol.events import LackCause
from stablecast.core.protocol.messages import Address, ElectionToken, Incarnation, Message


@attrs.frozen
class Start:
    """The driver is ready to perform effects."""


@record
class Arrived:
    """A message of a peer arrived."""

    message: Message


@attrs.frozen
class Reset:
    """A connection to this address broke although nobody here closed it; the peer may have restarted."""

    address: Address


@attrs.frozen
class Gone:
    """Nobody listens at this address (connection refused): the process that did has ended."""

    address: Address


@record
class Sent:
    """Source: the application sent `count` numbers from `first` on, `payload_bytes` in all, within the credit.

    A fragmented message has one number for each fragment; `large` has the first and last number of each (P-131).
    """

    first: int
    count: int
    payload_bytes: int
    large: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class Blocked:
    """Source: the application found no credit for `count` messages and waits for `Wakeup` (T13)."""

    payload_bytes: int = 0
    count: int = 1


@attrs.frozen
class Held:
    """Source: the transport accepts no more for now (`held`), or accepts more again.

    The machine ignores it: the driver holds the application, and reports `Wakeup` when the transport goes on. A trace
    shows by it why a source waits. Drivers feed it only if there is a trace.
    """

    held: bool


@attrs.frozen
class Located:
    """Source: the store of this name has `address` now (P-203)."""

    name: str
    address: Address


@attrs.frozen
class Moved:
    """Source or receiver: its host has another address, so it listens at `reply_to` now, a source sends at `transport`.

    The life goes on. Stores and receivers learn the addresses from the registrations and the SRI.
    """

    reply_to: Address
    transport: Address = ""


@attrs.frozen
class Departed:
    """Source: the connection of this context's receivers ended (P-338)."""

    context: int


@attrs.frozen
class Withdraw:
    """Source or receiver: the application deregisters for good (P-584)."""


@record
class Data:
    """Receiver or store: a run of messages arrived.

    `session` is the incarnation whose stream or recovery it belongs to, `incarnation` the one that sent it (older for
    recovered ones). `recovered`: it is a retransmission; `proactive`: nobody had requested it.
    """

    session: Incarnation
    incarnation: Incarnation
    wire_first: int
    count: int
    payload_bytes: int
    recovered: bool
    token: int
    proactive: bool = False


@attrs.frozen
class Lost:
    """Receiver or store: the transport gives up `count` numbers from `wire_first` on; `burst`: as one burst (T30)."""

    session: Incarnation
    wire_first: int
    count: int
    burst: bool = False


@attrs.frozen
class Ended:
    """The stream of this incarnation closed."""

    incarnation: Incarnation


@attrs.frozen
class RegIdChosen:
    """Receiver: the application's answer to `AskRegId`; 0 lets the store choose (P-249)."""

    store_index: int
    reg_id: int


@attrs.frozen
class LowChosen:
    """Receiver: the application's answer to `AskLow` (P-421)."""

    number: int


@record
class Consumed:
    """Receiver: the application finished `first`..`last`.

    `unseen`: they are for other shares of the topic, and the application got none of them. They are acknowledged like
    the others, and no confirmation covers them.
    """

    first: int
    last: int
    unseen: bool = False


@attrs.frozen
class Useless:
    """Receiver: `first`..`last` were delivered, but the application gets nothing of them.

    They are pieces of a message that will never be whole, or an earlier session reported them as lost. They count as
    lost: acknowledgements pass over them, and no confirmation covers them (P-349).
    """

    first: int
    last: int


@attrs.frozen
class Acknowledge:
    """Receiver: the application itself acknowledges everything up to `number` (P-346, P-347).

    It was handed `first` (None: `number`) to `number`. In arrival order a lower number counts only if the application
    has consumed it, because it may not have that message yet.
    """

    number: int
    first: int | None = None


@attrs.frozen
class History:
    """Receiver: the application consumed `first`..`last` of this incarnation in an earlier session.

    `confirmed`: instead, what that session confirmed to the source with this incarnation, whichever life sent it. The
    source may not have heard it, and the application consumed it all the same.
    """

    incarnation: Incarnation
    first: int
    last: int
    confirmed: bool = False


@attrs.frozen
class Finish:
    """Receiver: the application closes; acknowledge now what it consumed, not at the next interval."""


@record
class Persisted:
    """Store: everything up to this ticket is synced."""

    ticket: int


@attrs.frozen
class Damaged:
    """Store: synced messages `first`..`last` of a source cannot be read back."""

    source_reg_id: int
    first: int
    last: int


@attrs.frozen
class Lacking:
    """Store: `first`..`last` of a source should be here, for all that the driver knows, and are not."""

    source_reg_id: int
    first: int
    last: int
    cause: LackCause


@attrs.frozen
class ProxyQuorum:
    """Store: its proxy with this token got a quorum (`held`), or lost it."""

    source_reg_id: int
    election: ElectionToken
    held: bool


@attrs.frozen
class ProxyOver:
    """Store: its proxy with this token is over, because a later life was counted; if it `failed`, for that reason."""

    source_reg_id: int
    election: ElectionToken
    failed: bool = False


@attrs.frozen
class Tick:
    """Time has passed: the record of `handle_timeout` in the replay log."""


# fmt: off
SourceInput = Start | Arrived | Reset | Gone | Sent | Blocked | Held | Located | Moved | Departed | Withdraw | Tick
ReceiverInput = (
    Start | Arrived | Reset | Gone | Data | Lost | RegIdChosen | LowChosen | Consumed | Useless | Acknowledge | History
    | Moved | Withdraw | Finish | Tick
)
StoreInput = (
    Start | Arrived | Reset | Gone | Data | Lost | Ended | Persisted | Damaged | Lacking | ProxyQuorum | ProxyOver
    | Tick
)
Input = SourceInput | ReceiverInput | StoreInput
# fmt: on
