"""Effects: what a driver must do, in order.

What waits for the disk waits for a `Persisted` input, never for list order.
"""

import attrs

from stablecast.core.events import Event
from stablecast.core.messages import Address, Incarnation, Life, Message, Role


@attrs.frozen
class Send:
    """Send a message to a request or store port."""

    to: Address
    message: Message


@attrs.frozen
class Broadcast:
    """Source: put a message on the data stream, to everybody who joined it."""

    message: Message


@attrs.frozen
class Notify:
    """Tell the application."""

    event: Event


@attrs.frozen
class Release:
    """Source: the copies of everything below `number` may go."""

    number: int


@attrs.frozen
class Resend:
    """Source: send the retained messages `first`..`last` to `to`, in answer to a request of `session`."""

    to: Address
    session: Incarnation
    first: int
    last: int


@attrs.define
class Deliver:
    """Receiver: hand `count` messages of run `token`, from its `skip`th on, to the application.

    `first` is the extended number of the first of them. `done`: the run is not needed any more.
    """

    token: int
    skip: int
    count: int
    first: int
    recovered: bool
    done: bool


@attrs.define
class Discard:
    """Forget run `token` unused: it is a duplicate, too far ahead, or of another incarnation."""

    token: int


@attrs.frozen
class AskRegId:
    """Receiver: which RegID at this store? Answer with `RegIdChosen` (P-675)."""

    store_index: int
    store: Address
    source_reg_id: int


@attrs.frozen
class AskLow:
    """Receiver: where to start? Answer with `LowChosen`; `low` unchanged means no wish (P-676)."""

    high: int
    low_by_maximum: int
    low: int


@attrs.frozen
class Client:
    """A client of a store as it must survive a restart (P-014, P-244).

    A receiver has consumed everything up to `acknowledged` if it `has_acknowledged`; else it may begin behind it. Of a
    source, `term` counts the lives that registered, `lives` is the history as the life of `lives_term` told it.
    """

    role: Role
    reg_id: int
    store_index: int
    topic: str
    session_id: int
    incarnation: Incarnation
    source_reg_id: int
    reply_to: Address
    transport: Address
    activity_timeout_ms: int
    state_lifetime_ms: int
    acknowledged: int
    lives: tuple[Life, ...]
    has_acknowledged: bool = False
    term: int = 0
    lives_term: int = 0
    context: int = 0


@attrs.frozen
class PersistClient:
    """Store: write the newest state of a client."""

    ticket: int
    client: Client


@attrs.define
class PersistMessages:
    """Store: write `count` messages of run `token` from its `skip`th on.

    `first` is the extended number of the first of them. `done`: the run is not needed any more.
    """

    ticket: int
    source_reg_id: int
    incarnation: Incarnation
    token: int
    skip: int
    count: int
    first: int
    done: bool


@attrs.frozen
class Cut:
    """Store: durably forget this source's messages from `number` on; they are an older incarnation's tail."""

    ticket: int
    source_reg_id: int
    number: int


@attrs.frozen
class Forget:
    """Store: durably forget a client, and for a source all its messages."""

    ticket: int
    role: Role
    reg_id: int


@attrs.frozen
class SendStored:
    """Store: read `first`..`last` of this source from the journal and send them as retransmissions."""

    to: Address
    session: Incarnation
    source_reg_id: int
    first: int
    last: int


@attrs.frozen
class Join:
    """Store: join the stream of this incarnation at `transport`."""

    incarnation: Incarnation
    transport: Address


@attrs.frozen
class Leave:
    """Store: leave the stream of this incarnation."""

    incarnation: Incarnation


SourceEffect = Send | Broadcast | Notify | Release | Resend
ReceiverEffect = Send | Notify | Deliver | Discard | AskRegId | AskLow
StoreEffect = Send | Notify | Discard | PersistClient | PersistMessages | Cut | Forget | SendStored | Join | Leave
Effect = (
    Send
    | Broadcast
    | Notify
    | Release
    | Resend
    | Deliver
    | Discard
    | AskRegId
    | AskLow
    | PersistClient
    | PersistMessages
    | Cut
    | Forget
    | SendStored
    | Join
    | Leave
)
