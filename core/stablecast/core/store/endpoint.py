"""The store endpoint: it routes inputs to repositories, and sync reports to whoever waits for them.

* **Sync first.** A grant is answered, a message acknowledged and a deregistration confirmed only when everything
  written before is synced: effects carry tickets, `Persisted` brings them back. So a store still holds after a power
  cut what it claimed to hold.
* **One holder per RegID.** A registration for a RegID whose holder is active is refused (T6), except for the same life,
  and for a request from the very address where the holder listens: a port has one owner, so another process there
  proves that the holder is gone. In one context a later life replaces an earlier one, which is refused then.
* A client whose process is known to have ended (connection refused) loses its RegID at once; otherwise the activity
  timeout decides (T7). All timers start anew when a store restarts (C-37).
* A tick costs only what is due: repositories and clients stand in deadline queues.

The registry has the clients and repositories (`registry`), a repository the messages (`repository`), and the service
the retransmissions (`retransmission`).
"""

from collections.abc import Iterable
from typing import assert_never

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import soonest
from stablecast.core.protocol import inputs
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Client, Discard, Effect, Join, Notify, Send, StoreEffect
from stablecast.core.protocol.events import Farewell, LackCause, Oddity
from stablecast.core.protocol.generations import NONE
from stablecast.core.protocol.inputs import Arrived, Data, Persisted
from stablecast.core.protocol.messages import Role, StoreMemory
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store.clients import ClientTable
from stablecast.core.store.proxy_elections import Elections
from stablecast.core.store.refill_service import RefillService
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.retransmission import RetransmissionService
from stablecast.core.store.status import StoreStatus
from stablecast.core.store.sync_tickets import SyncTickets


@attrs.define
class StoreEndpoint:
    """One store. Driver contract: `stablecast.core` package docs.

    `check_at` (ns): when to check the clients. `early_acks`: by RegID, acknowledgements of receivers for a life that
    has not announced here where it resumes.
    """

    config: StoreConfig
    registry: Registry
    serving: RetransmissionService
    check_at: int | None = None
    early_acks: dict[int, msg.ConsumptionAck] = attrs.field(factory=dict)
    outbox: list[Effect] = attrs.field(factory=list, eq=False)

    @classmethod
    def create(cls, config: StoreConfig) -> "StoreEndpoint":
        """Return a store that is known to be new."""
        elections = Elections(config, Seeded(Seeded(config.seed).next_u64()))
        registry = Registry(
            config, ClientTable(config, Seeded(config.seed)), elections, refilling=RefillService.create(config)
        )
        return cls(config, registry, RetransmissionService(config.request_rate))

    def recover(
        self,
        clients: Iterable[Client],
        extents: Iterable[tuple[int, int, int, int]],
        trails: dict[int, int],
        now: int,
        memory: bool = True,
        standing: StoreMemory = StoreMemory.KEPT,
        unnamed: bool = False,
        generation: int = NONE,
    ) -> None:
        """Restore what the journal kept; all of it is synced. Timers start anew at `now`.

        Args:
            clients: The newest state of each.
            extents: Stored messages: source RegID, first number, count, bytes of payload.
            trails: The oldest number kept, by source RegID.
            now: In ns.
            memory: The journal is complete; False when an earlier journal may have been lost.
            standing: What the store knows of the time before its journal, as the journal has it or as an operator
                declared for a new one. A store without `memory` knows nothing.
            unnamed: Messages may be missing, and nobody here knows which.
            generation: Of the store, from this start on; 0: not counted (`generations`).
        """
        self.registry.generation, self.registry.unaware = generation, memory
        standing = standing if memory else StoreMemory.LOST
        if standing is not StoreMemory.KEPT or unnamed:
            # The write also brings the marks below to the disk: with damage, the journal begins with a checkpoint.
            self.registry.forget(standing, self.outbox)
        for client in clients:
            # A damaged journal may lack the newest messages and lives, so it has no vote either (formal design, 7.11).
            marked = client if memory and not unnamed else self.registry.mark(client, StoreMemory.LOST)
            self.registry.restore(marked, trails.get(client.reg_id, 0), now)
        for reg_id, first, count, payload_bytes in extents:
            known = self.repositories.get(reg_id)
            if known is not None:
                known.restore(first, first + count, payload_bytes)
        for repository in self.repositories.values():
            # The first tick releases and acknowledges. By then the driver has told what it cannot read.
            self.registry.pace(repository)
            self.registry.refill_recovered(
                repository, LackCause.AWAY if memory else LackCause.DAMAGED, now, self.outbox
            )
        if not memory:
            self.registry.mute(now)
        self._arm(now)

    def shorten_wait(self, left_ns: int, now: int) -> None:
        """Grant nothing for `left_ns` only, because a start before this one waited for the rest of the time."""
        self.registry.mute(now, left_ns)

    @property
    def status(self) -> StoreStatus:
        """Read-only questions to this store."""
        return StoreStatus(self.registry, self.serving)

    def knows(self, request: msg.Register) -> bool:
        """Return whether a client holds the RegID or the session that this registration asks for."""
        return self.clients.holder(request) is not None

    def reset_rates(self, now: int) -> None:
        """Count retransmissions anew from `now` (ns) on."""
        self.serving.reset(now)

    @property
    def clients(self) -> ClientTable:
        """The registered clients; a part, for the core."""
        return self.registry.clients

    @property
    def repositories(self) -> dict[int, Repository]:
        """The repositories by source RegID; a part, for the core."""
        return self.registry.repositories

    @property
    def streams(self) -> dict[int, int]:
        """The RegID of each source's current life; a part, for the core."""
        return self.registry.streams

    @property
    def tickets(self) -> SyncTickets:
        """The writes that are not synced; a part, for the core."""
        return self.registry.tickets

    # The machine contract.

    def receive(self, event: inputs.StoreInput, now: int) -> None:
        """Feed one input. Raises MisuseError."""
        match event:
            case Data():
                self._on_data(event, now)
            case Persisted():
                self._on_persisted(event.ticket, now)
            case Arrived():
                self._on_message(event.message, now)
            case inputs.Tick():
                self.handle_timeout(now)
            case inputs.Gone():
                self.clients.on_gone(event.address, now)
            case inputs.Damaged():
                self._on_damaged(event, now)
            case inputs.Lacking():
                self._on_lacking(event, now)
            case inputs.Start():
                for record in self.clients.sources():
                    self.outbox.append(Join(record.client.incarnation, record.client.transport))
            case inputs.Lost():
                repository = self.registry.of_stream(event.session)
                if repository is not None:
                    repository.on_lost(event, now, self.outbox)
                    self.registry.after(repository, now, self.outbox)
            case inputs.ProxyQuorum() | inputs.ProxyOver():
                self.registry.elections.on_proxy(event, self.clients.records, now, self.outbox)
            case inputs.Reset() | inputs.Ended():
                pass  # A broken connection alone proves nothing: refusal or the activity timeout decide.
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        for reg_id in self.registry.agenda.due(now):
            repository = self.repositories[reg_id]
            repository.handle_timeout(self.tickets, now, self.outbox)
            self.registry.after(repository, now, self.outbox)
        self.serving.serve(self.repositories, now, self.outbox)
        self.registry.refilling.run(self.repositories, now, self.outbox)
        if self.check_at is None or now < self.check_at:
            return
        # Lifetimes come first: an election looks at who is still active.
        expired, silent = self.clients.check(now)
        expired += self.registry.elections.check(self.clients.records, now, self.outbox)
        for record in expired:
            if record.client.reg_id in self.clients.records:  # A receiver may have gone with its source.
                self.registry.delete(record, now, self.outbox, Farewell.EXPIRED)
        for record in silent:
            if record.client.reg_id in self.clients.records:
                self.registry.probe(record.client, self.outbox)
        self.check_at = None
        self._arm(now)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        registry = self.registry
        return soonest(self._next_check(), registry.agenda.next(), self.serving.next(), registry.refilling.due)

    def _next_check(self) -> int | None:
        """Return the first check that has work. Most clients are never silent, so most checks would find nothing."""
        at, due = self.check_at, self.clients.agenda.next()
        if at is None or self.registry.elections.running:
            return at
        if due is None or due <= at:
            return None if due is None else at
        return at - (at - due) // self.config.check_ns * self.config.check_ns

    def take_effects(self) -> list[StoreEffect]:
        """Return the effects to perform, in order, and empty the outbox."""
        effects: list[StoreEffect] = self.outbox  # type: ignore[assignment] # this machine has no other effects
        self.outbox = []
        return effects

    def checkpoint(self) -> list[Client]:
        """Return every client as it must survive a restart."""
        return [self.registry.durable(record) for record in self.clients.records.values()]

    # Inputs.

    def _on_data(self, data: Data, now: int) -> None:
        registry, out = self.registry, self.outbox
        reg_id = registry.streams.get(data.session)
        if reg_id is None:
            out.append(Discard(data.token))
            return
        clients, repository = registry.clients, registry.repositories[reg_id]
        clients.on_heard(clients.records[reg_id], now)
        if data.recovered:
            registry.on_recovered(repository, data, now, out)
        else:
            repository.on_data(data, registry.tickets, now, out)
        registry.after(repository, now, out)

    def _on_persisted(self, ticket: int, now: int) -> None:
        registry, out = self.registry, self.outbox
        for due in registry.tickets.due(ticket):
            repository = registry.repositories.get(due.reg_id)
            if due.farewell is not None:
                out.append(Send(due.to, due.farewell))
            elif due.generation >= 0:
                registry.answer(due, now, out)
            elif repository is not None:
                repository.on_synced(due.incarnation, due.first, due.stop, registry.tickets, now, out)
                registry.after(repository, now, out)

    def _on_damaged(self, damaged: inputs.Damaged, now: int) -> None:
        """Count damaged messages as a hole like any other, which the source may still fill."""
        repository = self.repositories.get(damaged.source_reg_id)
        if repository is not None:
            newest = repository.newest
            repository.on_damaged(damaged.first, damaged.last + 1, now, self.outbox)
            if repository.newest < newest:
                self.registry.note_known(damaged.source_reg_id, newest, self.outbox)
            self.registry.after(repository, now, self.outbox)
            self.registry.refilling.wake(repository.reg_id, now)

    def _on_lacking(self, lacking: inputs.Lacking, now: int) -> None:
        """Ask for messages that the driver misses; those that it cannot read any more are damaged."""
        if lacking.cause is LackCause.DAMAGED:
            self._on_damaged(inputs.Damaged(lacking.source_reg_id, lacking.first, lacking.last), now)
        repository = self.repositories.get(lacking.source_reg_id)
        if repository is not None:
            repository.lack([(lacking.first, lacking.last + 1)], lacking.cause, now, self.outbox)
            self.registry.refilling.wake(repository.reg_id, now)

    def _on_message(self, message: msg.Message, now: int) -> None:
        match message:
            case msg.Register():
                self.registry.register(message, now, self.outbox)
                self._arm(now)
            case msg.Deregister():
                self.registry.deregister(message, now, self.outbox)
            case msg.ConsumptionAck():
                self._on_consumed(message, now)
            case msg.RetransmitRequest(by=Role.RECEIVER):
                self._on_request(message, now)
            case msg.Keepalive():
                self._on_keepalive(message, now)
            case msg.SourceInfo():
                self.registry.on_info(message, now, self.outbox)
                if self.early_acks:
                    self._take_early_acks(now)
            case msg.LateJoinInfo():
                self._on_late_join(message, now)
            case _:
                self._odd("unexpected-message", f"{type(message).__name__} is not for a store")

    def _on_consumed(self, ack: msg.ConsumptionAck, now: int) -> None:
        record = self.clients.records.get(ack.receiver_reg_id)
        repository = self.repositories.get(ack.source_reg_id)
        if (
            record is None
            or repository is None
            or record.client.role is not Role.RECEIVER
            or record.client.source_reg_id != ack.source_reg_id
        ):
            self._late(ack)
            return
        named = serial.extend(ack.number, record.client.acknowledged)
        current = repository.incarnation == ack.incarnation
        # A receiver that has not met the current life yet would not repeat this if it ended before.
        number = named if current else repository.life.last_of(ack.incarnation, named)
        if number is None:
            self._late(ack)
            return
        self.clients.on_heard(record, now)
        if current and repository.resume_point is None:
            # The receiver counts by the history of a life that is not announced here yet, and may never be. Until then
            # its number names another message here, which may be stable and which the receiver may never have had.
            self.early_acks[ack.receiver_reg_id] = ack
            return
        if self.clients.on_acknowledged(record, number):
            self.registry.persist(record, self.outbox)
            self.registry.on_receivers(repository, now, self.outbox)

    def _take_early_acks(self, now: int) -> None:
        """Count the acknowledgements that came before their life announced where it resumes."""
        early, self.early_acks = self.early_acks, {}
        for ack in early.values():
            self._on_consumed(ack, now)

    def _on_request(self, request: msg.RetransmitRequest, now: int) -> None:
        repository = self.repositories.get(request.source_reg_id)
        if repository is None or repository.incarnation != request.incarnation:
            self._odd("wild-request", f"retransmission request for source {request.source_reg_id}")
            return
        store = repository.refill is not None and repository.refill.asks(request.reply_to)
        self.serving.on_request(request, repository, self.outbox, refill=store)
        self.serving.serve(self.repositories, now, self.outbox)

    def _on_late_join(self, answer: msg.LateJoinInfo, now: int) -> None:
        """Process what the source retains, or what another store denies to a refill."""
        repository = self.registry.of_stream(answer.incarnation)
        if repository is None:
            return
        if answer.store_index == msg.ANY_STORE:
            repository.on_late_join(answer, now, self.outbox)
            self.registry.after(repository, now, self.outbox)
        elif repository.refill is not None:
            repository.refill.on_denied(answer)
            self.registry.refilling.wake(repository.reg_id, now)

    def _on_keepalive(self, message: msg.Keepalive, now: int) -> None:
        record = self.clients.records.get(message.reg_id)
        if (
            record is None
            or record.client.role is not message.role
            or record.client.incarnation != message.incarnation
            or not record.lifetime.active
        ):
            self._odd("late-keepalive", f"keepalive of {message.role.name} {message.reg_id}")
            return
        self.clients.on_heard(record, now)
        if message.respond:
            client = record.client
            alive = msg.Keepalive(Role.STORE, client.incarnation, client.reg_id, False, client.store_index)
            self.outbox.append(Send(client.reply_to, alive))

    # Rules.

    def _arm(self, now: int) -> None:
        if self.check_at is None and self.clients.records:
            self.check_at = now + self.config.check_ns

    def _late(self, ack: msg.ConsumptionAck) -> None:
        self._odd("late-ack", f"consumption ack of receiver {ack.receiver_reg_id} for source {ack.source_reg_id}")

    def _odd(self, code: str, text: str) -> None:
        self.outbox.append(Notify(Oddity(code, text)))
