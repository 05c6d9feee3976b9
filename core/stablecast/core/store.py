"""The store endpoint: clients, their repositories, and what must be on disk before anybody is told.

* **Sync first.** A grant is answered and a message acknowledged only when everything written before is synced: effects
  carry tickets, `Persisted` brings them back. What a store says it holds it holds after a power cut.
* **One holder per RegID.** A registration for a RegID whose holder is active is refused (T6), unless it is the same
  life asking again, or comes from the very address the holder listens at: a port has one owner, so the old one is gone.
* A client whose process is known to have ended (connection refused) gives its RegID up at once; otherwise the activity
  timeout decides (T7). All timers start anew when a store restarts.
* RegIDs start at a random number and count up (P-235); session ids stand for (topic, role) pairs (P-244).
"""

from collections.abc import Iterable
from typing import assert_never

import attrs

from stablecast.core import serial
from stablecast.core.clients import ClientRecord, Clients
from stablecast.core.effects import (
    Client,
    Discard,
    Effect,
    Forget,
    Join,
    Leave,
    Notify,
    PersistClient,
    Send,
    SendStored,
)
from stablecast.core.events import Oddity
from stablecast.core.inputs import Arrived, Data, Ended, Evicted, Gone, Persisted, Reset, Start, StoreInput, Tick
from stablecast.core.messages import (
    ConsumptionAck,
    Keepalive,
    LateJoinInfo,
    Message,
    Refusal,
    Refused,
    Register,
    RetransmitRequest,
    Role,
    SourceInfo,
)
from stablecast.core.repository import Repository
from stablecast.core.seeded import Seeded
from stablecast.core.settings import StoreConfig
from stablecast.core.tickets import Tickets, Waiting

MAX_EARLY = 1000
"""Receivers whose registration waits for their source's SRI; the oldest goes, and asks again after its interval."""

MAX_REQUEST_MESSAGES = 4096
"""Messages that one retransmission request may ask for."""


@attrs.define
class StoreEndpoint:
    """One store. Driver contract: `stablecast.core` package docs."""

    config: StoreConfig
    clients: Clients
    repositories: dict[int, Repository] = attrs.field(factory=dict)
    streams: dict[int, int] = attrs.field(factory=dict)
    tickets: Tickets = attrs.field(factory=Tickets)
    early: list[Register] = attrs.field(factory=list)
    check_at: int | None = None
    outbox: list[Effect] = attrs.field(factory=list, eq=False)

    @classmethod
    def create(cls, config: StoreConfig) -> "StoreEndpoint":
        """A store without memory."""
        return cls(config, Clients(config, Seeded(config.seed)))

    def recover(
        self, clients: Iterable[Client], extents: Iterable[tuple[int, int, int]], trails: dict[int, int], now: int
    ) -> None:
        """Take what the journal kept; all of it is synced. Timers start anew at `now`.

        Args:
            clients: The newest state of each.
            extents: Of stored messages: source RegID, first number, count.
            trails: The oldest number kept, by source RegID.
            now: In ns.
        """
        for client in clients:
            record = self.clients.restore(client, now)
            if record.client.role is Role.SOURCE:
                repository = Repository.recover(self.config, client, trails.get(client.reg_id, 0))
                self.repositories[client.reg_id] = repository
                self.streams[client.incarnation] = client.reg_id
        for reg_id, first, count in extents:
            known = self.repositories.get(reg_id)
            if known is not None:
                known.restore(first, first + count)
        self._arm(now)

    # The machine contract.

    def receive(self, event: StoreInput, now: int) -> None:
        """Feed one input."""
        match event:
            case Data():
                self._on_data(event, now)
            case Persisted():
                self._on_persisted(event.ticket, now)
            case Arrived():
                self._on_message(event.message, now)
            case Tick():
                self.handle_timeout(now)
            case Gone():
                self.clients.on_gone(event.address, now)
            case Evicted():
                repository = self.repositories.get(event.source_reg_id)
                if repository is not None:
                    repository.evict(event.number)
            case Start():
                for record in self.clients.sources():
                    self.outbox.append(Join(record.client.incarnation, record.client.transport))
            case Reset() | Ended():
                pass  # A broken connection alone proves nothing: refusal or the activity timeout decide.
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        if self.check_at is None or now < self.check_at:
            return
        for repository in self.repositories.values():
            repository.handle_timeout(now, self.config.retry_ns, self.outbox)
        for record in self.clients.expired(now):
            if record.client.reg_id in self.clients.records:  # A receiver may have gone with its source.
                self._delete(record)
        self.check_at = None
        self._arm(now)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` wants to be called."""
        return self.check_at

    def take_effects(self) -> list[Effect]:
        """What the driver must do, in order."""
        effects, self.outbox = self.outbox, []
        return effects

    def checkpoint(self) -> list[Client]:
        """Every client as it must survive a restart."""
        return [self._durable(record) for record in self.clients.records.values()]

    # Inputs.

    def _on_data(self, data: Data, now: int) -> None:
        reg_id = self.streams.get(data.session)
        if reg_id is None:
            self.outbox.append(Discard(data.token))
            return
        self.clients.records[reg_id].lifetime.on_heard(now)
        repository = self.repositories[reg_id]
        ticket = self.tickets.draw()
        for first, stop in repository.on_data(data, ticket, now, self.outbox):
            self.tickets.wait(Waiting(ticket, reg_id, data.incarnation, first=first, stop=stop))

    def _on_persisted(self, ticket: int, now: int) -> None:
        for due in self.tickets.due(ticket):
            repository = self.repositories.get(due.reg_id)
            if due.generation >= 0:
                self._answer(due)
            elif repository is not None:
                repository.on_synced(due.incarnation, due.first, due.stop, self.outbox)

    def _on_message(self, message: Message, now: int) -> None:
        match message:
            case Register():
                self._on_register(message, now)
            case ConsumptionAck():
                self._on_consumed(message, now)
            case RetransmitRequest(by=Role.RECEIVER):
                self._on_request(message)
            case Keepalive():
                self._on_keepalive(message, now)
            case SourceInfo():
                self._on_info(message, now)
            case LateJoinInfo():
                reg_id = self.streams.get(message.incarnation)
                if reg_id is not None:
                    self.repositories[reg_id].on_late_join(message, now, self.outbox)
            case _:
                self._odd("unexpected-message", f"{type(message).__name__} is not for a store")

    def _on_register(self, request: Register, now: int) -> None:
        if self._is_early(request):
            if request not in self.early:
                self.early.append(request)
                del self.early[:-MAX_EARLY]
            return
        self.clients.on_heard_from(request.reply_to, request.context, now)
        verdict = self._verdict(request)
        if isinstance(verdict, Refusal):
            refused = Refused(
                request.role, request.store_index, request.generation, request.reg_id, request.incarnation, verdict
            )
            self.outbox.append(Send(request.reply_to, refused))
            self._probe_holder(request)
            return
        if request.role is Role.SOURCE:
            self._enter_source(verdict, request, now)
        else:
            self._enter_receiver(verdict, request, now)
        self._arm(now)

    def _is_early(self, request: Register) -> bool:
        """Whether a receiver comes before the SRI (T22): what is held may be a dead tail, so nothing can be offered."""
        if request.role is not Role.RECEIVER:
            return False
        source = self.repositories.get(request.source_reg_id)
        return source is not None and source.incarnation == request.incarnation and source.resume_point is None

    def _verdict(self, request: Register) -> ClientRecord | Refusal | None:
        """The client that may register, None for a new one, or why not (T6, P-019)."""
        if request.role is Role.RECEIVER:
            source = self.repositories.get(request.source_reg_id)
            if source is None or source.incarnation != request.incarnation:
                return Refusal.UNKNOWN_SOURCE
        return self.clients.find(request)

    def _probe_holder(self, request: Register) -> None:
        """Ask the holder of a RegID for a sign of life: if its process has ended, the connection will be refused."""
        holder = self.clients.holder(request)
        if holder is not None and holder.lifetime.active:
            client = holder.client
            probe = Keepalive(Role.STORE, client.incarnation, client.reg_id, True, client.store_index)
            self.outbox.append(Send(client.reply_to, probe))

    def _enter_source(self, record: ClientRecord | None, request: Register, now: int) -> None:
        old = record is not None
        if record is None:
            record = self.clients.add(request, now)
            self.repositories[record.client.reg_id] = Repository.create(
                self.config, record.client.reg_id, request.store_index, request.reply_to, request.incarnation
            )
        elif record.client.incarnation != request.incarnation:
            self.streams.pop(record.client.incarnation, None)
            self.outbox.append(Leave(record.client.incarnation))
        self.clients.renew(record, request, now)
        repository = self.repositories[record.client.reg_id]
        repository.begin_life(request.incarnation, request.reply_to, request.store_index)
        self.streams[request.incarnation] = record.client.reg_id
        self._persist_and_answer(record, request, old)
        self.outbox.append(Join(request.incarnation, request.transport))

    def _enter_receiver(self, record: ClientRecord | None, request: Register, now: int) -> None:
        if record is None:
            record = self.clients.add(request, now)
            repository = self.repositories[request.source_reg_id]
            start = max(repository.trail, repository.newest + 1 - self.config.rollback)
            record.client = attrs.evolve(record.client, acknowledged=start - 1)
        self.clients.renew(record, request, now)
        self._persist_and_answer(record, request, record.client.has_acknowledged)

    def _on_consumed(self, ack: ConsumptionAck, now: int) -> None:
        record = self.clients.records.get(ack.receiver_reg_id)
        repository = self.repositories.get(ack.source_reg_id)
        if (
            record is None
            or repository is None
            or record.client.role is not Role.RECEIVER
            or record.client.source_reg_id != ack.source_reg_id
            or repository.incarnation != ack.incarnation
        ):
            self._odd("late-ack", f"consumption ack of receiver {ack.receiver_reg_id} for source {ack.source_reg_id}")
            return
        record.lifetime.on_heard(now)
        if self.clients.on_acknowledged(record, serial.extend(ack.number, record.client.acknowledged)):
            self._persist(record)

    def _on_request(self, request: RetransmitRequest) -> None:
        repository = self.repositories.get(request.source_reg_id)
        if repository is None or repository.incarnation != request.incarnation:
            self._odd("wild-request", f"retransmission request for source {request.source_reg_id}")
            return
        first = serial.extend(request.first, repository.newest)
        last = serial.extend(request.last, first)
        if not 0 <= last - first < MAX_REQUEST_MESSAGES:
            self._odd("wild-request", f"retransmission request for {first}..{last}")
            return
        for low, stop in repository.available(first, last + 1):
            self.outbox.append(SendStored(request.reply_to, request.incarnation, request.source_reg_id, low, stop - 1))

    def _on_keepalive(self, message: Keepalive, now: int) -> None:
        record = self.clients.records.get(message.reg_id)
        if (
            record is None
            or record.client.role is not message.role
            or record.client.incarnation != message.incarnation
            or not record.lifetime.active
        ):
            self._odd("late-keepalive", f"keepalive of {message.role.name} {message.reg_id}")
            return
        record.lifetime.on_heard(now)
        if message.respond:
            client = record.client
            alive = Keepalive(Role.STORE, client.incarnation, client.reg_id, False, client.store_index)
            self.outbox.append(Send(client.reply_to, alive))

    def _on_info(self, info: SourceInfo, now: int) -> None:
        reg_id = self.streams.get(info.incarnation)
        if reg_id is None:
            return
        repository = self.repositories[reg_id]
        record = self.clients.records[reg_id]
        record.lifetime.on_heard(now)
        cut = repository.on_info(info, self.tickets.draw(), now, self.outbox)
        if cut is not None:
            # Receivers first: what a crash leaves of this is all done again unless the source's record is there.
            for receiver in self.clients.receivers_of(reg_id):
                if self.clients.cut_back(receiver, cut):
                    self._persist(receiver)
            self.clients.on_term(record, info.term)
            self._persist(record)
            early, self.early = self.early, []
            for request in early:
                self._on_register(request, now)

    # Rules.

    def _persist_and_answer(self, record: ClientRecord, request: Register, old: bool) -> None:
        self._persist(record)
        self.tickets.wait(
            Waiting(self.tickets.last, record.client.reg_id, request.incarnation, request.generation, old)
        )

    def _persist(self, record: ClientRecord) -> None:
        self.outbox.append(PersistClient(self.tickets.draw(), self._durable(record)))

    def _durable(self, record: ClientRecord) -> Client:
        repository = self.repositories.get(record.client.reg_id)
        if repository is None:
            return record.client
        return attrs.evolve(record.client, lives=tuple(repository.lives), lives_term=repository.lives_term)

    def _answer(self, due: Waiting) -> None:
        """A registration is on disk: grant it, with what the store holds."""
        record = self.clients.records.get(due.reg_id)
        if record is None or record.client.incarnation != due.incarnation:
            return
        client = record.client
        source_id = client.reg_id if client.role is Role.SOURCE else client.source_reg_id
        repository = self.repositories.get(source_id)
        if repository is None:
            return
        self.outbox.append(Send(client.reply_to, repository.grant(record, due.generation, due.old)))
        if client.role is Role.SOURCE:
            repository.acknowledge_all(self.outbox)

    def _delete(self, record: ClientRecord) -> None:
        """Both timeouts are over: state goes, and with a source its messages and its receivers."""
        client = record.client
        self.clients.remove(record)
        self.outbox.append(Forget(self.tickets.draw(), client.role, client.reg_id))
        if client.role is Role.SOURCE:
            del self.repositories[client.reg_id]
            self.streams.pop(client.incarnation, None)
            self.outbox.append(Leave(client.incarnation))
            for receiver in self.clients.receivers_of(client.reg_id):
                self._delete(receiver)

    def _arm(self, now: int) -> None:
        if self.check_at is None and self.clients.records:
            self.check_at = now + self.config.check_ns

    def _odd(self, code: str, text: str) -> None:
        self.outbox.append(Notify(Oddity(code, text)))

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        for repository in self.repositories.values():
            repository.check_invariants()
        assert set(self.repositories) == {record.client.reg_id for record in self.clients.sources()}

    def abstract(self) -> tuple[object, ...]:
        """What the models see: clients with their timers, and the repositories."""
        return (
            self.clients.abstract(),
            tuple((reg_id, repository.abstract()) for reg_id, repository in sorted(self.repositories.items())),
        )
