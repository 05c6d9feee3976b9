"""Effects: the orders of a machine to its driver, to be performed in order.

An effect that waits for the disk waits for a `Persisted` input, never for list order.
"""

import attrs

from stablecast.core.machine.records import record
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.events import Event


@record
class Send:
    """Send a message to a request or store port."""

    to: msg.Address
    message: msg.Message


@attrs.frozen
class Broadcast:
    """Source: put a message on the data stream, for everybody who joined it."""

    message: msg.Message


@record
class Notify:
    """Report an event to the application."""

    event: Event


@record
class Release:
    """Source: drop the copies of everything below `number`."""

    number: int


@attrs.frozen
class Resend:
    """Source: send the retained messages `first`..`last` to `to`, in answer to a request of `session`.

    `proactive`: unrequested, because a store has not acknowledged them in time (P-436).
    """

    to: msg.Address
    session: msg.Incarnation
    first: int
    last: int
    proactive: bool = False


@record
class Deliver:
    """Receiver: hand `count` messages of run `token`, from its `skip`th on, to the application.

    `first` is the extended number of the first of them. `recovered`: they were retransmitted, by `otr` if the receiver
    was running, else because it was late or returned (P-427). `done`: the run is not needed any more.
    """

    token: int
    skip: int
    count: int
    first: int
    recovered: bool
    done: bool
    otr: bool = False


@record
class Discard:
    """Drop run `token` unused: it is a duplicate, too far ahead, or of another incarnation."""

    token: int


@attrs.frozen
class AskRegId:
    """Receiver: ask the application for its RegID at this store. Answer with `RegIdChosen` (P-675)."""

    store_index: int
    store: msg.Address
    source_reg_id: int


@attrs.frozen
class AskLow:
    """Receiver: ask the application where to start. Answer with `LowChosen`; `low` unchanged means no wish (P-676)."""

    high: int
    low_by_maximum: int
    low: int


@attrs.frozen
class Client:
    """A client of a store as it must survive a restart (P-014, P-244).

    Attributes:
        acknowledged: Newest number that a receiver consumed if it `has_acknowledged`; else it may begin one above.
        lives: The history of a source, as the life of term `lives_term` announced it.
        term: The lives of a source that registered.
        stores: The stores in the SRI of a source, for a proxy, with `group_sizes`.
        election: The token of the proxy that holds the RegID now.
        freed: The first number that RPP has not released yet.
        memory: Of a source: what the store knows of the lives before it registered here.
        known: The last number that a source announced to a store without memory; -1: there is none.
    """

    role: msg.Role
    reg_id: int
    store_index: int
    topic: str
    session_id: int
    incarnation: msg.Incarnation
    source_reg_id: int
    reply_to: msg.Address
    transport: msg.Address
    activity_timeout_ms: int
    state_lifetime_ms: int
    acknowledged: int
    lives: tuple[msg.Life, ...]
    has_acknowledged: bool = False
    term: int = 0
    lives_term: int = 0
    context: int = 0
    pace: msg.Pace = msg.Pace.SOURCE
    wishes: msg.Wishes = msg.Wishes()
    wants_proxy: bool = False
    stores: tuple[msg.StoreEntry, ...] = ()
    group_sizes: tuple[int, ...] = ()
    election: msg.ElectionToken | None = None
    freed: int = 0
    memory: msg.StoreMemory = msg.StoreMemory.KEPT
    known: int = -1


@attrs.frozen
class PersistClient:
    """Store: write the newest state of a client."""

    ticket: int
    client: Client


@attrs.frozen
class PersistMemory:
    """Store: write what the store knows of the time before its records began, and its generation (0: not counted)."""

    ticket: int
    memory: msg.StoreMemory
    generation: int = 0


@record
class CacheMessages:
    """Store: keep `count` messages of run `token` from its `skip`th on in memory. They may go to disk later, or never.

    `first` is the extended number of the first of them. `done`: the run is not needed any more.
    """

    source_reg_id: int
    incarnation: msg.Incarnation
    token: int
    skip: int
    count: int
    first: int
    done: bool


@attrs.frozen
class PersistCached:
    """Store: write the cached messages `first`..`last` of this source; they stay in the cache."""

    ticket: int
    source_reg_id: int
    first: int
    last: int


@record
class Uncache:
    """Store: drop this source's messages below `number` from memory; what was written stays on disk."""

    source_reg_id: int
    number: int


@record
class Reclaim:
    """Store: drop this source's messages below `number` for good, in memory and durably on disk."""

    ticket: int
    source_reg_id: int
    number: int


@record
class PersistMessages:
    """Store: write `count` messages of run `token` from its `skip`th on, and keep them in memory until `Uncache`.

    `first` is the extended number of the first of them. `done`: the run is not needed any more.
    """

    ticket: int
    source_reg_id: int
    incarnation: msg.Incarnation
    token: int
    skip: int
    count: int
    first: int
    done: bool


@attrs.frozen
class Cut:
    """Store: durably drop this source's messages from `number` on; they are the tail of an older incarnation."""

    ticket: int
    source_reg_id: int
    number: int


@attrs.frozen
class Forget:
    """Store: durably forget a client, and for a source all its messages."""

    ticket: int
    role: msg.Role
    reg_id: int


@attrs.frozen
class SendStored:
    """Store: read `first`..`last` of this source from the journal and send them as retransmissions."""

    to: msg.Address
    session: msg.Incarnation
    source_reg_id: int
    first: int
    last: int


@attrs.frozen
class Join:
    """Store: join the stream of this incarnation at `transport`."""

    incarnation: msg.Incarnation
    transport: msg.Address


@attrs.frozen
class Leave:
    """Store: leave the stream of this incarnation."""

    incarnation: msg.Incarnation


@attrs.frozen
class StartProxy:
    """Store: start a proxy for the source that has this RegID here (P-540).

    It registers with these stores under these RegIDs, or its session id, at the pace and with the wishes of the source,
    because stores refuse other ones (P-569). It sends no data of its own.
    """

    source_reg_id: int
    topic: str
    session_id: int
    election: msg.ElectionToken
    stores: tuple[msg.StoreEntry, ...]
    group_sizes: tuple[int, ...]
    pace: msg.Pace = msg.Pace.SOURCE
    wishes: msg.Wishes = msg.Wishes()


@attrs.frozen
class StopProxy:
    """Store: end the proxy for this source (P-541)."""

    source_reg_id: int


# fmt: off
SourceEffect = Send | Broadcast | Notify | Release | Resend
ReceiverEffect = Send | Notify | Deliver | Discard | AskRegId | AskLow
StoreEffect = (
    Send | Notify | Discard | PersistClient | PersistMemory | PersistMessages | CacheMessages | PersistCached | Uncache
    | Reclaim | Cut | Forget | SendStored | Join | Leave | StartProxy | StopProxy
)
Effect = SourceEffect | ReceiverEffect | StoreEffect
# fmt: on
