"""The clients of a store: RegIDs, session ids, and their holders.

A RegID names one source or one receiver at one store (P-017..P-019). A session id replaces it within a topic and role,
and is resolved here (P-244). If a client gives both, the RegID is ignored (U20). A RegID that was given to a session
belongs to it: nobody else registers with the bare number (P-246).

A client that is silent for the keepalive interval is asked for a sign of life, once an interval (P-538, P-836). Timers
are kept in a deadline queue: with ten thousand clients a check costs only what is due (P-835).
"""

from bisect import bisect_left, insort
from operator import attrgetter

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import MILLISECOND, milliseconds
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Address, Deregister, Incarnation, Refusal, Register, Role, earlier
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig, repository_for
from stablecast.core.store.client_lifetime import Lifetime, LifetimeState
from stablecast.core.store.deadline_queue import DeadlineQueue

_NAMES = [field.name for field in attrs.fields(Client)]
_VALUES = attrgetter(*_NAMES)
_ACKNOWLEDGED, _HAS_ACKNOWLEDGED = _NAMES.index("acknowledged"), _NAMES.index("has_acknowledged")

MAX_CLIENTS = 100_000
"""Sources and receivers that one store keeps."""

MAX_ENDED = 8
"""Lives of a RegID that ended because another context got their address; the oldest is forgotten."""

LAST_REG_ID = 0xFFFF_FFFF

LAST_TERM = 0xFFFF_FFFF
"""The end of the count of a source's lives: it has 32 bits on the wire, and a term that a peer invented must fit."""


@attrs.define
class ClientRecord:
    """A client and its timers; `client` is its record in the journal.

    `asked_at` (ns): when it was asked for a sign of life. `patience`: intervals to the next such question. `spoke`: the
    client has said more than that it registers. `warned`: the release of unread messages was reported.
    `since`: the ticket of the write by which this holder got the RegID. `ended`: earlier holders, of which another
    context got the address. No crash needs them, because it breaks the connections that carry their late requests.
    """

    client: Client
    lifetime: Lifetime
    asked_at: int = 0
    patience: int = 1
    spoke: bool = False
    warned: bool = False
    since: int = 0
    ended: tuple[Incarnation, ...] = ()

    def silent_at(self, keepalive_ns: int) -> int | None:
        """Return when to ask for a sign of life, if none comes before; None: never."""
        if not keepalive_ns or not self.lifetime.active:
            return None
        return max(self.lifetime.heard_at, self.asked_at) + keepalive_ns * self.patience


@attrs.define
class ClientTable:
    """All clients of a store, by RegID.

    `readers`: the receivers of each source. `contexts`: the context at each address. `places`: the clients at an
    address.
    """

    config: StoreConfig
    seeded: Seeded
    records: dict[int, ClientRecord] = attrs.field(factory=dict)
    sessions: dict[str, int] = attrs.field(factory=dict)
    readers: dict[int, list[int]] = attrs.field(factory=dict)
    contexts: dict[str, int] = attrs.field(factory=dict)
    places: dict[str, list[int]] = attrs.field(factory=dict)
    agenda: DeadlineQueue = attrs.field(factory=DeadlineQueue)
    next_reg_id: int = 0

    def find(self, request: Register, admitted: bool | None = None) -> ClientRecord | Refusal | None:
        """Return the client that this registration continues, None for a new one, or the cause of a refusal.

        `admitted`: an election grants (or denies) the RegID; None: the holder's activity decides.
        """
        record = self.holder(request)
        if record is None:
            if admitted is False:
                return Refusal.UNKNOWN_SOURCE
            return Refusal.INCOMPATIBLE if len(self.records) >= MAX_CLIENTS else None
        client = record.client
        if client.role is not request.role:
            return Refusal.HELD_BY_RECEIVER if client.role is Role.RECEIVER else Refusal.HELD_BY_SOURCE
        if client.topic != request.topic:
            return Refusal.OTHER_TOPIC
        if request.role is Role.RECEIVER and client.source_reg_id != request.source_reg_id:
            return Refusal.UNKNOWN_SOURCE
        # A RegID that was granted to a session id is granted to no client that names only the number (P-246).
        foreign = client.session_id != request.session_id
        held = record.lifetime.active and not _follows(client, request)
        if foreign or (held if admitted is None else not admitted):
            return Refusal.HELD_BY_SOURCE if client.role is Role.SOURCE else Refusal.HELD_BY_RECEIVER
        return record

    def holder(self, request: Register) -> ClientRecord | None:
        """Return the client that has the requested RegID or session."""
        reg_id = self.sessions.get(_session(request), 0) if request.session_id else request.reg_id
        return self.records.get(reg_id)

    def held_ms(self, request: Register, now: int) -> int:
        """Return for how long (ms) a silent holder keeps the RegID from this client; 0 if waiting does not help it."""
        record = self.holder(request)
        if record is None or (record.client.role, record.client.session_id) != (request.role, request.session_id):
            return 0
        return milliseconds(record.lifetime.held_ns(now))

    def add(self, request: Register, now: int) -> ClientRecord:
        """Add a client, with the RegID it asks for or one of the store's choice (P-234)."""
        reg_id = 0 if request.session_id else request.reg_id
        client = Client(
            role=request.role,
            reg_id=reg_id or self._choose(),
            store_index=request.store_index,
            topic=request.topic,
            session_id=request.session_id,
            incarnation=request.incarnation,
            source_reg_id=request.source_reg_id,
            reply_to=request.reply_to,
            transport=request.transport,
            activity_timeout_ms=request.activity_timeout_ms,
            state_lifetime_ms=request.state_lifetime_ms,
            acknowledged=-1,
            lives=(),
            term=max(1, request.term),
            context=request.context,
            pace=request.pace,
            wishes=request.wishes,
            wants_proxy=request.wishes_proxy,
            election=request.election,
        )
        return self.restore(client, now)

    def restore(self, client: Client, now: int) -> ClientRecord:
        """Add a client from the journal; its timers start anew."""
        record = ClientRecord(client, Lifetime(*self._spans(client), heard_at=now))
        self.records[client.reg_id] = record
        self._settle(client)
        if client.session_id:
            self.sessions[_session(client)] = client.reg_id
        if client.role is Role.RECEIVER:
            insort(self.readers.setdefault(client.source_reg_id, []), client.reg_id)
        self._schedule(record)
        return record

    def renew(self, record: ClientRecord, request: Register, now: int) -> None:
        """Register a client again: its addresses may change, its timeouts may not (T8).

        Another life is counted. A source that learned of more lives elsewhere reports them, and then they count here as
        well.
        """
        self._leave(record.client)
        record.ended = _ended(record, request)
        lives = record.client.term + (record.client.incarnation != request.incarnation)
        record.client = attrs.evolve(
            record.client,
            incarnation=request.incarnation,
            reply_to=request.reply_to,
            transport=request.transport,
            store_index=request.store_index,
            context=request.context,
            election=request.election,
            term=min(max(lives, request.term), LAST_TERM),
        )
        self._settle(record.client)
        # Unread messages that were removed are reported once for each registration (P-122).
        record.warned = False
        spoke, patience = record.spoke, record.patience
        self.on_heard(record, now)
        record.spoke, record.patience = spoke, patience

    def on_heard(self, record: ClientRecord, now: int) -> None:
        """Record a sign of life of a client."""
        lifetime = record.lifetime
        returned = lifetime.state is not LifetimeState.ACTIVE
        lifetime.on_heard(now)
        sooner, record.spoke, record.patience = record.patience > 1, True, 1
        # Other deadlines of an active client only move back. `check` schedules them again, so traffic costs nothing.
        if returned or sooner:
            self._schedule(record)

    def on_acknowledged(self, record: ClientRecord, number: int) -> bool:
        """Record that a receiver consumed everything up to `number`; return whether that is news.

        Its first acknowledgement may lie below its start, because another store may know it for longer.
        """
        client = record.client
        if client.has_acknowledged and number <= client.acknowledged:
            return False
        values = list(_VALUES(client))  # `attrs.evolve` takes four times as long, and every message comes here.
        values[_ACKNOWLEDGED], values[_HAS_ACKNOWLEDGED] = number, True
        record.client = Client(*values)
        return True

    def on_term(self, record: ClientRecord, term: int) -> None:
        """Raise the count of lives to the term of a life that got to send."""
        record.client = attrs.evolve(record.client, term=max(record.client.term, term))

    def cut_back(self, record: ClientRecord, number: int) -> bool:
        """Lower an acknowledgement of numbers from `number` on, which are gone; return whether there was one."""
        if record.client.acknowledged < number:
            return False
        record.client = attrs.evolve(record.client, acknowledged=number - 1)
        return True

    def is_holder(self, record: ClientRecord, request: Deregister) -> bool:
        """Return whether this client deregisters, not an earlier holder of the RegID or a client of another store."""
        client = record.client
        if client.role is not request.role:
            return False
        if client.role is Role.SOURCE:
            # A source may deregister while a proxy stands in for its life. Then its state is deleted, too.
            proxy = client.election
            stands_in = proxy is not None and proxy.life != 0 and proxy.life == request.incarnation
            return stands_in or client.incarnation == request.incarnation
        return (client.source_reg_id, client.reply_to) == (request.source_reg_id, request.reply_to)

    def remove(self, record: ClientRecord) -> None:
        client = record.client
        if self.records.pop(client.reg_id, None) is None:
            return
        self.agenda.drop(client.reg_id)
        self._leave(client)
        if client.session_id:
            self.sessions.pop(_session(client), None)
        if client.role is Role.RECEIVER:
            readers = self.readers[client.source_reg_id]
            readers.remove(client.reg_id)
            if not readers:
                del self.readers[client.source_reg_id]

    def on_gone(self, address: Address, now: int) -> None:
        """End the activity of the clients at an address where nobody listens any more."""
        for reg_id in self.places.get(address, ()):
            self.records[reg_id].lifetime.on_gone(now)

    def on_heard_from(self, address: Address, context: int, now: int) -> None:
        """End the activity of other contexts' clients at this address: a port has one owner."""
        if not context or self.contexts.get(address) == context:
            return
        if len(self.contexts) >= MAX_CLIENTS:
            # Contexts are a hint only; forgetting them costs an activity timeout.
            self.contexts.clear()
        self.contexts[address] = context
        for reg_id in self.places.get(address, ()):
            record = self.records[reg_id]
            # A client that names no context (0) is known by its address only, so it may be the same one.
            if record.client.reply_to == address and record.client.context not in (0, context):
                record.lifetime.on_gone(now)

    def check(self, now: int) -> tuple[list[ClientRecord], list[ClientRecord]]:
        """Check the clients that are due; return those to delete, and those to ask for a sign of life."""
        expired: list[ClientRecord] = []
        silent: list[ClientRecord] = []
        for reg_id in self.agenda.due(now):
            record = self.records[reg_id]
            if record.lifetime.check(now):
                expired.append(record)
                continue
            silent_at = record.silent_at(self.config.keepalive_ns)
            if silent_at is not None and silent_at <= now:
                record.asked_at = now
                if not record.spoke:
                    record.patience *= 2  # Anybody may register, and answer nothing: that must not cost much.
                silent.append(record)
            self._schedule(record)
        return expired, silent

    def sources(self) -> list[ClientRecord]:
        """Return the sources, by RegID."""
        return [record for _, record in sorted(self.records.items()) if record.client.role is Role.SOURCE]

    def receivers_of(self, source_reg_id: int) -> list[ClientRecord]:
        """Return the receivers of one source, by RegID."""
        return [self.records[reg_id] for reg_id in self.readers.get(source_reg_id, [])]

    def _settle(self, client: Client) -> None:
        for address in dict.fromkeys((client.reply_to, client.transport)):
            insort(self.places.setdefault(address, []), client.reg_id)

    def _leave(self, client: Client) -> None:
        for address in dict.fromkeys((client.reply_to, client.transport)):
            here = self.places[address]
            del here[bisect_left(here, client.reg_id)]
            if not here:
                del self.places[address]

    def _schedule(self, record: ClientRecord) -> None:
        self.agenda.wake(record.client.reg_id, record.lifetime.next_timeout())
        self.agenda.wake(record.client.reg_id, record.silent_at(self.config.keepalive_ns))

    def _choose(self) -> int:
        """Return the next free RegID: from a random start, counting up, never 0 (P-235)."""
        if not self.next_reg_id:
            self.next_reg_id = self.seeded.between(1, LAST_REG_ID)
        # At most `MAX_CLIENTS` RegIDs of 2**32 are used, so this ends soon.
        while self.next_reg_id in self.records:
            self.next_reg_id = self.next_reg_id % LAST_REG_ID + 1
        chosen = self.next_reg_id
        self.next_reg_id = chosen % LAST_REG_ID + 1
        return chosen

    def _spans(self, client: Client) -> tuple[int, int]:
        """Return activity timeout and state lifetime in ns: the client's own, the shorter one (P-531, P-534)."""
        source = client.role is Role.SOURCE
        kept = repository_for(self.config, client.topic) or RepositoryConfig()
        activity = kept.source_activity_ns if source else kept.receiver_activity_ns
        lifetime = kept.source_lifetime_ns if source else kept.receiver_lifetime_ns
        asked = client.state_lifetime_ms * MILLISECOND
        shorter = min((span for span in (lifetime, asked) if span), default=0)
        return (client.activity_timeout_ms * MILLISECOND or activity, shorter)


def _session(who: Register | Client) -> str:
    """Return the key of a session id: one source of a topic, or one receiver of each of its sources (P-242, P-250)."""
    return f"{who.role.name}:{who.session_id}:{who.source_reg_id}:{who.topic}"


def of_two_contexts(client: Client, request: Register) -> bool:
    """Return whether another context asks; a client that names no context (0) is known by its address only."""
    return 0 not in (client.context, request.context) and client.context != request.context


def _ended(record: ClientRecord, request: Register) -> tuple[Incarnation, ...]:
    """Return the lives that have ended at their address once this request is granted.

    If one of these gets the RegID back from a silent holder, the holder has not ended: its address was not taken.
    """
    client, lives = record.client, {record.client.incarnation, request.incarnation}
    taken = client.role is Role.SOURCE and client.reply_to == request.reply_to and of_two_contexts(client, request)
    news = taken and len(lives) > 1 and lives.isdisjoint(record.ended)
    return (*record.ended, client.incarnation)[-MAX_ENDED:] if news else record.ended


def _follows(client: Client, request: Register) -> bool:
    """Return whether a request comes from the holder of the RegID itself, or from one that replaces it at once.

    A source is the same while its incarnation is, a receiver while it listens at the same address. A port has one
    owner, so a request from the holder's address is of the same context, or of a process that replaced it there. Of one
    context's lives the later one holds the RegID: a context counts its lives upward, and an earlier life that asks
    again is refused. Otherwise two lives of one context would take the RegID from each other without end.
    """
    if client.role is not Role.SOURCE:
        return client.reply_to == request.reply_to
    if client.incarnation == request.incarnation:
        return True
    one_context = client.context != 0 and client.context == request.context
    replaced = one_context and earlier(request.incarnation, client.incarnation)
    return client.reply_to == request.reply_to and not replaced
