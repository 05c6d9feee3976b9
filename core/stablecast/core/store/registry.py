"""The registry of a store: clients and repositories, which come and go together.

* A granted registration changes the client, its repository and the streams at once; the answer waits until the record
  is on disk.
* **No memory, no grants.** A store that may have forgotten its grants answers no registration until the longest of its
  activity timeouts has passed; clients repeat their requests (formal design, 7.6).
* **No memory, no vote.** A store without memory marks the records of its sources. A source counts it in no decision
  about older lives before the source's current life announced itself here: that life found a quorum of other stores
  (formal design, 7.11). Receivers may be forgotten for longer, and their grants say so (`grants`).
* **An older copy has no memory.** A store learns from registrations and SRIs that it was started later than its journal
  shows (`generations`). Then it does as after a loss of its memory, and asks its peers for what it lacks.
* A receiver that registers before the SRI of its source waits for it (T22).
* **A port has one owner.** A life is over once another context has its address. Its late request is refused, which the
  network may carry for long after the process has ended.
* When a source goes, by timeout or by deregistration, its messages and receivers go with it (P-584, P-587). A
  deregistration of an unknown client is confirmed as well, and logged (P-586). A source is also known by its life, so
  it is found even under a RegID that it had before.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import (
    Client,
    Effect,
    Forget,
    Join,
    Leave,
    Notify,
    PersistClient,
    PersistMemory,
    Send,
)
from stablecast.core.protocol.events import ClientForgotten, Farewell, LackCause, Oddity, OlderCopy, ReleasedUnread
from stablecast.core.protocol.generations import MARK_BITS, NONE, following, newest, outdated
from stablecast.core.protocol.inputs import Data
from stablecast.core.protocol.messages import Role, StoreMemory
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig, repository_for
from stablecast.core.store.clients import ClientRecord, ClientTable, of_two_contexts
from stablecast.core.store.deadline_queue import DeadlineQueue
from stablecast.core.store.grants import first_number, grant, verdict
from stablecast.core.store.proxy_elections import Elections
from stablecast.core.store.refill import SourceRefill
from stablecast.core.store.refill_service import RefillBudget, RefillService
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms, terms_of
from stablecast.core.store.sync_tickets import PendingSync, SyncTickets

MAX_EARLY = 1000
"""Receivers whose registration waits for their source's SRI; the oldest is dropped, and asks again after its interval.
"""


@attrs.define
class Registry:
    """The clients of a store and their repositories, by RegID; `streams` has the RegID of each life.

    `agenda` has the deadline of each repository. Until `mute_until` (ns) nothing is granted. `memory`: what the store
    knows of sources that never registered here since its records began. `generation`: of the store. `unaware`: it
    began this run in the belief that it kept its memory.
    """

    config: StoreConfig
    clients: ClientTable
    elections: Elections
    repositories: dict[int, Repository] = attrs.field(factory=dict)
    streams: dict[int, int] = attrs.field(factory=dict)
    tickets: SyncTickets = attrs.field(factory=SyncTickets)
    agenda: DeadlineQueue = attrs.field(factory=DeadlineQueue)
    early: list[msg.Register] = attrs.field(factory=list)
    mute_until: int | None = None
    memory: StoreMemory = StoreMemory.KEPT
    generation: int = NONE
    unaware: bool = True
    refilling: RefillService = attrs.field(factory=lambda: RefillService(RefillBudget(0, 0)))

    def of_stream(self, incarnation: msg.Incarnation) -> Repository | None:
        """Return the repository of the source whose current life this is."""
        reg_id = self.streams.get(incarnation)
        return None if reg_id is None else self.repositories[reg_id]

    def restore(self, client: Client, trail: int, now: int) -> None:
        """Add a client from the journal."""
        record = self.clients.restore(client, now)
        record.lifetime.kept = self.elections.enter(record, now)
        if client.role is Role.SOURCE:
            self.repositories[client.reg_id] = Repository.recover(self.config, client, trail, self._terms(client))
            self.streams[client.incarnation] = client.reg_id
            self.agenda.wake(client.reg_id, now)

    def mute(self, now: int, most: int | None = None) -> None:
        """Grant nothing for the longest activity timeout, or `most` ns of it: earlier grants may be forgotten."""
        if Repair.MEMORY in self.config.repairs:
            kept = [rule.repository for rule in self.config.topics] + [self.config.repository or RepositoryConfig()]
            longest = max(max(one.source_activity_ns, one.receiver_activity_ns) for one in kept)
            self.mute_until = now + (longest if most is None else min(longest, most))

    # Registrations.

    def register(self, request: msg.Register, now: int, out: list[Effect]) -> None:
        self.learn_generation(request.known_generation, now, out)
        if self.mute_until is not None and now < self.mute_until:
            return
        if request.role is Role.SOURCE and not request.reg_id and not request.session_id:
            # The store may have chosen a RegID for this life already: the source repeats the request until the answer
            # arrives (T6, P-234).
            request = attrs.evolve(request, reg_id=self.streams.get(request.incarnation, 0))
        source = self.repositories.get(request.source_reg_id) if request.role is Role.RECEIVER else None
        if source is not None and source.incarnation == request.incarnation and source.resume_point is None:
            # Before the SRI held messages may be a dead tail, so nothing can be offered.
            if request not in self.early:
                self.early.append(request)
                # Receivers that wait for an SRI that never comes must not fill the memory.
                del self.early[:-MAX_EARLY]
            return
        if self._is_late(request):
            self._refuse(request, msg.Refusal.HELD_BY_SOURCE, now, out)
            return
        self.clients.on_heard_from(request.reply_to, request.context, now)
        admitted = self.elections.admits(request, self.clients.holder(request)) if source is None else None
        found = verdict(request, self.clients, source, self.config, admitted)
        if isinstance(found, msg.Refusal):
            self._refuse(request, found, now, out)
        elif source is None:
            self._enter_source(found, request, now, out)
        else:
            self._enter_receiver(found, source, request, now, out)

    def _is_late(self, request: msg.Register) -> bool:
        """Return whether a life asks that was registered here, and whose address another context has now.

        Without a living holder the life gets a grant, and learns that it was followed.
        """
        holder = self.clients.holder(request)
        if request.role is not Role.SOURCE or holder is None or holder.client.role is not Role.SOURCE:
            return False
        if not holder.lifetime.active:
            return False
        client = holder.client
        if not of_two_contexts(client, request):
            return False
        # The history has lives that announced themselves, and survives a restart of the store.
        known = (*holder.ended, *(life for life, _ in self.repositories[client.reg_id].life.lives))
        return client.reply_to == request.reply_to and request.incarnation in known

    def answer(self, due: PendingSync, now: int, out: list[Effect]) -> None:
        """Grant a registration that is on disk, with the numbers that the store holds."""
        record = self.clients.records.get(due.reg_id)
        if record is None or record.client.incarnation != due.incarnation:
            return
        if self.tickets.synced < record.since:
            # The holder was here before, another one or none between, and this is its earlier registration. After a
            # crash the disk would show what lies between.
            return
        client = record.client
        own = client.role is Role.SOURCE
        repository = self.repositories[client.reg_id if own else client.source_reg_id]
        owner = self.clients.records[repository.reg_id].client
        granted = grant(record, owner, repository, due.generation, due.old, self.generation, kept=due.kept)
        out.append(Send(client.reply_to, granted))
        if own:
            repository.acknowledge_all(now, out)

    def on_info(self, info: msg.SourceInfo, now: int, out: list[Effect]) -> None:
        """Process the SRI of a source; if it announces a resume point, admit the receivers that waited for it."""
        repository = self.of_stream(info.incarnation)
        if repository is None:
            return
        record = self.clients.records[repository.reg_id]
        self.clients.on_heard(record, now)
        for entry in info.stores:
            if entry.index == record.client.store_index:
                self.learn_generation(entry.generation, now, out)
        if record.client.election is not None and repository.life.is_behind(info):
            # A source comes back before the leases of its proxy end, so the proxy still announces itself. What the
            # source made stable since must stay.
            return
        learned = self._learn_stores(record, info)
        cut = repository.on_info(info, self.tickets, now, out)
        if learned and cut is None:  # Otherwise the record is written below.
            self.persist(record, out)
        self._refill(record.client, repository, now, out, begins=cut is not None)
        forgot = record.client.memory is not StoreMemory.KEPT
        if (forgot and self._knows_of_loss(record, info)) or (cut is not None and record.client.known >= 0):
            self._vouch(record, repository, info, out)
        if cut is not None:
            # Receivers first: after a crash between the writes all of this happens again, because the source's record
            # comes last.
            for receiver in self.clients.receivers_of(repository.reg_id):
                if self.clients.cut_back(receiver, cut):
                    self.persist(receiver, out)
            self.on_receivers(repository, now, out)
            self.clients.on_term(record, info.term)
            self.persist(record, out)
            early, self.early = self.early, []
            for request in early:
                self.register(request, now, out)
        self.after(repository, now, out)

    def _refill(self, client: Client, repository: Repository, now: int, out: list[Effect], *, begins: bool) -> None:
        """Learn from an SRI who has what this store lacks, and if a life `begins`, what it lacks of older ones."""
        refill = repository.refill
        if refill is None:
            return
        refill.on_peers(client.stores, (client.store_index, self.config.address))
        if begins:
            empty = client.memory is not StoreMemory.KEPT
            repository.lack_history(LackCause.EMPTY if empty else LackCause.AWAY, now, out)
        if refill:
            self.refilling.wake(repository.reg_id, now)

    def forget(self, memory: StoreMemory, out: list[Effect]) -> None:
        """Have no memory of sources that register from now on, durably."""
        self.memory = memory
        out.append(PersistMemory(self.tickets.draw(), memory, self.generation))

    def learn_generation(self, known: int, now: int, out: list[Effect]) -> None:
        """Learn that somebody knows this generation of the store.

        If it is a later one, the journal is an older copy: the store may have acknowledged messages and granted RegIDs
        that it does not know. So it grants nothing for a while, has no vote, and asks for what it lacks.
        """
        before = self.generation
        if before == NONE or not outdated(before, known) or Repair.VOTE not in self.config.repairs:
            return
        # The next generation is later than both, so that nobody reports this copy again.
        self.generation = following(known, self.clients.seeded.below(1 << MARK_BITS))
        if not self.unaware:
            out.append(PersistMemory(self.tickets.draw(), self.memory, self.generation))
            return
        self.unaware = False
        out.append(Notify(OlderCopy(before >> MARK_BITS, known >> MARK_BITS)))
        self.forget(StoreMemory.LOST, out)
        for record in self.clients.sources():
            record.client = self.mark(record.client, StoreMemory.LOST)
            self.persist(record, out)
            self.refill_recovered(self.repositories[record.client.reg_id], LackCause.AWAY, now, out)
        self.mute(now)

    def mark(self, client: Client, memory: StoreMemory) -> Client:
        """Return the record of a source that registers, or registered, at a store with this memory."""
        votes = client.role is Role.RECEIVER or Repair.VOTE not in self.config.repairs
        return client if votes else attrs.evolve(client, memory=memory)

    def _knows_of_loss(self, record: ClientRecord, info: msg.SourceInfo) -> bool:
        """Return whether a life has heard of this generation of the store, so that it did not count on its vote.

        One that registered before may have been followed by lives that the store has forgotten. Peers of earlier
        releases name no generation.
        """
        named = {entry.generation for entry in info.stores if entry.index == record.client.store_index}
        return named <= {NONE, self.generation}

    def _vouch(self, record: ClientRecord, repository: Repository, info: msg.SourceInfo, out: list[Effect]) -> None:
        """Learn from a life that found enough stores with a memory: this store votes again.

        The store may lack numbers that are stable elsewhere. They must not be used again, so it reports that it knows
        them, whether it gets them or not.
        """
        high = serial.extend(info.high, repository.newest)
        record.client = attrs.evolve(record.client, memory=StoreMemory.KEPT, known=high)
        self.persist(record, out)
        if info.founding and self.memory is StoreMemory.NEW:
            # No store knew of an older life, as an operator declared here. From now on this store is a witness.
            self.memory = StoreMemory.KEPT
            out.append(PersistMemory(self.tickets.draw(), self.memory, self.generation))

    def note_known(self, reg_id: int, number: int, out: list[Effect]) -> None:
        """Record durably that a source used `number`, which the store had and holds no more."""
        record = self.clients.records[reg_id]
        if record.client.known < number and Repair.VOTE in self.config.repairs:
            record.client = attrs.evolve(record.client, known=number)
            self.persist(record, out)

    def deregister(self, request: msg.Deregister, now: int, out: list[Effect]) -> None:
        """Process a deregistration, and confirm it."""
        record = self.leaver(request)
        number = -1
        if record is None:
            text = f"{request.role.name} {request.reg_id} is not registered"
            out.append(Notify(Oddity("unknown-deregistration", text)))
        else:
            own = request.role is Role.SOURCE
            number = self.repositories[record.client.reg_id].newest if own else record.client.acknowledged
            self.delete(record, now, out, Farewell.DEREGISTERED)
        farewell = msg.Deregistered(*request.names, serial.wire(number))
        if self.tickets.pending:
            self.tickets.wait(PendingSync(self.tickets.last, 0, 0, farewell=farewell, to=request.reply_to))
        else:
            out.append(Send(request.reply_to, farewell))

    def delete(self, record: ClientRecord, now: int, out: list[Effect], why: Farewell) -> None:
        """Delete a client, and with a source its messages and receivers. Report every loss: someone may wait."""
        client = record.client
        own = client.role is Role.SOURCE
        source = self.repositories.get(client.reg_id if own else client.source_reg_id)
        self._part(record, source, now, out, why)
        if own:
            del self.repositories[client.reg_id]
            self.agenda.drop(client.reg_id)
            self.tickets.drop(client.reg_id, 0)
            self.streams.pop(client.incarnation, None)
            out.append(Leave(client.incarnation))
            for receiver in self.clients.receivers_of(client.reg_id):
                self._part(receiver, source, now, out, Farewell.SOURCE_GONE)
        elif source is not None:
            self.on_receivers(source, now, out)

    def _part(
        self, record: ClientRecord, source: Repository | None, now: int, out: list[Effect], why: Farewell
    ) -> None:
        """Forget one client, and report its losses; `source` is its repository, or that of its source."""
        client = record.client
        messages, newest = 0, -1
        if source is not None:
            newest = source.newest
            own = client.role is Role.SOURCE
            messages = source.held.total() if own else max(0, newest - max(client.acknowledged, source.trail - 1))
        silent_ns = now - record.lifetime.heard_at
        names = (client.role, client.reg_id, client.source_reg_id, client.topic)
        out.append(Notify(ClientForgotten(*names, messages, newest, silent_ns, why)))
        self.clients.remove(record)
        self.elections.forget(record, out)
        out.append(Forget(self.tickets.draw(), client.role, client.reg_id))

    # Consequences of changes.

    def on_receivers(self, repository: Repository, now: int, out: list[Effect]) -> None:
        """Review the pace after a receiver of this source came, went or acknowledged."""
        if repository.paced is not None:
            repository.on_receivers(self._readers(repository), self.tickets, now, out)
            self.after(repository, now, out)

    def pace(self, repository: Repository) -> None:
        """Tell a repository how far the receivers are that it waits for."""
        if repository.paced is not None:
            repository.paced.update(self._readers(repository))

    def _readers(self, repository: Repository) -> list[Client]:
        return [record.client for record in self.clients.receivers_of(repository.reg_id)]

    def after(self, repository: Repository, now: int, out: list[Effect]) -> None:
        """Arm the timer of a changed repository, and report receivers whose unread messages were released (P-122)."""
        due = repository.next_timeout()
        if due is not None:
            self.agenda.wake(repository.reg_id, due)
        refill = repository.refill
        if refill is not None and (refill.seen != repository.filling.given_up or refill.since is not None):
            self._on_lacking(repository, refill, now, out)
        trail, before = repository.window.trail, repository.noticed
        repository.noticed = trail  # A life that uses numbers again, and a refill, move the trail back.
        if trail > before:
            for record in self.clients.receivers_of(repository.reg_id) if repository.terms.keeps else ():
                if record.client.acknowledged + 1 < trail and not record.warned:
                    record.warned = True
                    out.append(Notify(ReleasedUnread(repository.reg_id, record.client.reg_id, trail)))

    def on_recovered(self, repository: Repository, data: Data, now: int, out: list[Effect]) -> None:
        """Process a retransmitted run; charge what was lacking to the budget of refill."""
        refill = repository.refill
        gained = 0 if refill is None else refill.gained
        repository.on_data(data, self.tickets, now, out)
        if refill is not None and refill.gained > gained:
            messages = refill.gained - gained
            self.refilling.on_gained(messages, data.payload_bytes * messages // data.count, now)

    def refill_recovered(self, repository: Repository, cause: LackCause, now: int, out: list[Effect]) -> None:
        """Ask the stores that the journal names for what is missing of older lives, and between recovered messages."""
        refill, client = repository.refill, self.clients.records[repository.reg_id].client
        if refill is None or repository.resume_point is None:
            return
        refill.on_peers(client.stores, (client.store_index, self.config.address))
        stop = max(repository.newest + 1, repository.resume_point)
        repository.lack([(repository.window.released, stop)], cause, now, out)
        if refill:
            self.refilling.wake(repository.reg_id, now)

    def _on_lacking(self, repository: Repository, refill: SourceRefill, now: int, out: list[Effect]) -> None:
        if refill.seen != repository.filling.given_up:
            repository.lack_losses(self.clients.records[repository.reg_id].client.known, now, out)
            self.refilling.wake(repository.reg_id, now)
        refill.settle(out)

    def persist(self, record: ClientRecord, out: list[Effect]) -> None:
        """Write the newest state of a client."""
        out.append(PersistClient(self.tickets.draw(), self.durable(record)))

    def durable(self, record: ClientRecord) -> Client:
        """Return a client as it must survive a restart."""
        repository = self.repositories.get(record.client.reg_id)
        if repository is None:
            return record.client
        life = repository.life
        freed = repository.trail if repository.terms.paced else 0
        return attrs.evolve(record.client, lives=tuple(life.lives), lives_term=life.term, freed=freed)

    def probe(self, client: Client, out: list[Effect]) -> None:
        """Ask a client for a sign of life."""
        keepalive = msg.Keepalive(Role.STORE, client.incarnation, client.reg_id, True, client.store_index)
        out.append(Send(client.reply_to, keepalive))

    def leaver(self, request: msg.Deregister) -> ClientRecord | None:
        """Return the client that asks to be forgotten, if it is known.

        A source may name a RegID that this store does not know. The store may hold it under another RegID, by its
        session id, and that answer was lost or came when it was another store's turn. So its life is looked up as well.
        """
        record = self.clients.records.get(request.reg_id)
        if record is not None and self.clients.is_holder(record, request):
            return record
        current = self.streams.get(request.incarnation) if request.role is Role.SOURCE else None
        return None if current is None else self.clients.records[current]

    def _refuse(self, request: msg.Register, why: msg.Refusal, now: int, out: list[Effect]) -> None:
        """Refuse, and state for how long the RegID is held."""
        holder = self.clients.holder(request)
        refused = msg.Refused(*request.names, why)
        if holder is not None and why in (msg.Refusal.HELD_BY_SOURCE, msg.Refusal.HELD_BY_RECEIVER):
            refused = attrs.evolve(refused, reg_id=holder.client.reg_id, held_ms=self.clients.held_ms(request, now))
        out.append(Send(request.reply_to, refused))
        # If the holder's process has ended, its port refuses this probe, and the RegID is free at once.
        if holder is not None and holder.lifetime.active:
            self.probe(holder.client, out)

    def _enter_source(self, record: ClientRecord | None, request: msg.Register, now: int, out: list[Effect]) -> None:
        old = record is not None
        anew = record is None or record.client.incarnation != request.incarnation
        if record is None:
            record = self.clients.add(request, now)
            record.client = client = self.mark(record.client, self.memory)
            record.lifetime.kept = self.elections.enter(record, now)
            self.repositories[client.reg_id] = Repository.create(
                self.config,
                client.reg_id,
                request.store_index,
                request.reply_to,
                request.incarnation,
                self._terms(client),
            )
        elif record.client.incarnation != request.incarnation:
            self.streams.pop(record.client.incarnation, None)
            out.append(Leave(record.client.incarnation))
        self.clients.renew(record, request, now)
        self.elections.on_registered(request, record, now, out)
        repository = self.repositories[record.client.reg_id]
        repository.begin_life(request.incarnation, request.reply_to, request.store_index)
        repository.life.affirm(request.lives_term)
        if repository.resume_point is not None:
            # The life goes on, so messages that were given up may be available again.
            self.agenda.wake(repository.reg_id, now)
        self.streams[request.incarnation] = repository.reg_id
        self._persist_and_answer(record, request, old, anew, out)
        out.append(Join(request.incarnation, request.transport))

    def _enter_receiver(
        self, record: ClientRecord | None, source: Repository, request: msg.Register, now: int, out: list[Effect]
    ) -> None:
        kept = record is not None
        anew = record is None or record.client.reply_to != request.reply_to
        if record is None:
            record = self.clients.add(request, now)
            start = first_number(request, source, self.config)
            record.client = attrs.evolve(record.client, acknowledged=start - 1)
            if source.terms.paced:
                # Messages released before it came must never be offered to it, even after a crash (formal design, 7.8).
                self.persist(self.clients.records[source.reg_id], out)
            self.on_receivers(source, now, out)
        self.clients.renew(record, request, now)
        self._persist_and_answer(record, request, record.client.has_acknowledged, anew, out, kept=kept)

    def _persist_and_answer(
        self,
        record: ClientRecord,
        request: msg.Register,
        old: bool,
        anew: bool,
        out: list[Effect],
        kept: bool = False,
    ) -> None:
        self.persist(record, out)
        if anew:
            record.since = self.tickets.last
        last, reg_id = self.tickets.last, record.client.reg_id
        self.tickets.wait(PendingSync(last, reg_id, request.incarnation, request.generation, old, kept))

    def _learn_stores(self, record: ClientRecord, info: msg.SourceInfo) -> bool:
        """Learn the stores that a proxy or a refill needs from the SRI of the real source; return whether they changed.

        A proxy's own SRI is an echo.
        A life names the stores that granted it. A store that only an earlier life named stays known: a proxy that does
        not ask it could miss the proxy that store follows (formal design, 7.9).
        """
        client = record.client
        if not (client.wants_proxy or self.config.refill) or client.election is not None:
            return False
        same = client.group_sizes == info.group_sizes
        known = {entry.index: entry for entry in (client.stores if same else ())}
        known |= {entry.index: _newer(entry, known.get(entry.index)) for entry in info.stores}
        stores = tuple(entry for _, entry in sorted(known.items()))
        if (client.stores, client.group_sizes) == (stores, info.group_sizes):
            return False
        record.client = attrs.evolve(client, stores=stores, group_sizes=info.group_sizes)
        return True

    def _terms(self, client: Client) -> Terms:
        """Return the terms that follow from the store's configuration and the wishes of a source."""
        kept = repository_for(self.config, client.topic) or RepositoryConfig()
        return terms_of(kept, client.pace, client.wishes)


def _newer(entry: msg.StoreEntry, before: msg.StoreEntry | None) -> msg.StoreEntry:
    """Return the entry of a store, with the newest generation that either names."""
    if before is None or before.address != entry.address:
        return entry
    generation = newest(entry.generation, before.generation)
    return entry if generation == entry.generation else attrs.evolve(entry, generation=generation)
