"""One store on the running event loop: sockets and journal around a `StoreEndpoint`.

Arriving messages are fed to the machine (`arrivals`), and their bytes are kept until the machine writes or drops them.
The journal's sync reports come back as the input `Persisted`. Only then does the machine send grants and
acknowledgements.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import assert_never

import attrs

from stablecast.config.plan import StoreLimits
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, LackCause, OlderCopy
from stablecast.core.protocol.inputs import Arrived, Damaged, Gone, Lacking, Persisted, Reset, Start, StoreInput
from stablecast.core.protocol.messages import (
    Deregister,
    Message,
    Refusal,
    Refused,
    Register,
    Registered,
    Role,
    StoreMemory,
)
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.protocol.stored_contents import StoredQuestion
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace import recorder
from stablecast.runtime import address, machine, ports, tls
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.driver import Driven, Driver, describe, report
from stablecast.runtime.interfaces import ANY, announced
from stablecast.runtime.own_address import OwnAddress
from stablecast.runtime.policy import Right
from stablecast.runtime.request_port import RequestPort
from stablecast.store import directory_identity
from stablecast.store.arrivals import StoreArrivals
from stablecast.store.client_records import (
    Waiting,
    client_record,
    clients_of,
    forget_record,
    generation_of,
    memory_of,
    memory_record,
)
from stablecast.store.contents import StoreContents
from stablecast.store.failed_stores import FreeSpace
from stablecast.store.journal import Journal, JournalError
from stablecast.store.journal.lock import shown_to_others
from stablecast.store.journal.segments import RecordPlace
from stablecast.store.limits import HostCounts, OverLimit, barred, refusal
from stablecast.store.log_lines import Severity
from stablecast.store.message_storage import MessagePiece, MessageStorage
from stablecast.store.name_service import NameService
from stablecast.store.permissions import Permissions
from stablecast.store.proxy import Proxies, context_for
from stablecast.store.recovered_state import lost_extents, recovered, shortened, strangers
from stablecast.store.retransmission import Retrieval
from stablecast.store.settings import StoreSettings
from stablecast.store.store_log import StoreLog
from stablecast.store.store_views import JournalView, Traffic
from stablecast.text.scarcity import is_scarce
from stablecast.transports import codec

__all__ = ["Store", "StoreSettings"]

WAIT_NOTE_SECONDS = 1.0
"""Time between two notes of how long a store that may have lost its journal still waits."""

_LAST_EFFECTS = (fx.Send, fx.Discard, fx.Notify)
"""The effects that are still performed while the journal syncs its last records.

Timers go on meanwhile, but a closing journal accepts no record. Answers that wait for such a record are never sent,
because its ticket never comes back, as in a crash.
"""


class Store:
    """A store daemon: `await start()`, then it serves until `await stop()`.

    Attributes:
        failed: A future that is done when the disk fails. Then the store answers nothing more, because messages that
            cannot be written must not be acknowledged. `stop` raises the error.
        reports: Sentences about the restart and about failed proxies, for people.
        draining: True refuses new clients.
        generation: The generation of the store (`directory_identity.StoreGeneration`).
    """

    def __init__(self, settings: StoreSettings) -> None:
        self.settings = settings
        self.oddities: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.reports: list[str] = []
        self.address = settings.listen
        self.draining = False
        self.generation = directory_identity.StoreGeneration(settings.state_directory, settings.name)
        self._hosts = HostCounts()
        self.room = FreeSpace(settings.limits.room_bytes)
        self._ending = False
        self._stopping = False
        self.started_at = 0
        self._asking: Register | None = None
        self._wait_end: asyncio.TimerHandle | None = None
        self._waiting = Waiting.REQUIRED
        self._log = StoreLog(settings.name, settings.log, self.oddities, self.events)

    async def start(self) -> None:
        """Open the journal, recover its records, and listen.

        Raises:
            JournalError: The directory is missing, not writable, or used by another process.
            IdentityError: The state directory is missing, or belongs to another store.
            RecordError: A state record of the journal is not one of ours.
            PortError: The port is in use, or the relays cannot be reached from this host's address.
            TlsError: The policy of the certificates does not let this process be a store.
            TraceError: No trace can be written.
        """
        tls.require_right(Right.STORE, "", f"the store at {self.address}")
        self.failed: asyncio.Future[JournalError] = asyncio.get_running_loop().create_future()
        self.started_at = machine.clock.monotonic_ns()
        settings = self.settings
        host, port = address.parse(settings.listen)
        here_before = settings.state_directory is not None and directory_identity.known(
            settings.state_directory, settings.name
        )
        beside = (
            [] if settings.state_directory is None else [settings.state_directory / directory_identity.IDENTITY_NAME]
        )
        self._journal = Journal.open(settings.directory, settings.disk, beside)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self._journal.close)
            if settings.state_directory is not None:
                directory_identity.note(settings.state_directory, settings.name)
            within = settings.ports if not port else None
            opened = ports.listen(host, port, "--listen") if within is None else ports.listen_within(host, within)
            listening = undo.enter_context(opened)
            self.address = address.join(announced(host), listening.getsockname()[1])
            self._drive(announced(host), here_before)
            undo.pop_all()
        # A store at all addresses follows its host; one that was told an address waits for that one.
        self._own = OwnAddress(announced(host), lambda: announced(host), self._move, lambda: False)
        if host == ANY:
            self._own.follow()
        self._port = RequestPort(listening, self._arrivals.on_items)
        await self._port.start()
        self._driver.feed(Start())
        self._journal.append_note(self._memory_record())
        self._name_service = NameService(settings, announced(host), self._log, self._pool, self._arrivals.distant)
        try:
            await self._name_service.start(self.address)
        except BaseException:
            await self.stop()
            raise
        for line in self.reports:
            self._log.write(Severity.WARNING, "restart", line)
        if self.waiting_ns:
            self._wait()
        else:
            self._log_ready()

    async def _move(self, host: str) -> None:
        """Connect to peers from another address of this host, and hear groups there. Raises PortError."""
        self._pool.move(host)
        self._arrivals.move(host)
        self.address = self._pool.routing.here = address.join(host, address.parse(self.address)[1])

    def _wait(self) -> None:
        """Log that nothing is granted yet, and when that is over."""
        seconds = self.waiting_ns / SECOND
        text = f"{self.address} accepts connections, and grants registrations in {seconds:.0f} s"
        self._log.write(Severity.WARNING, "waiting", text)
        if self._wait_end is not None:
            self._wait_end.cancel()
        self._note_later()

    def _note_later(self) -> None:
        seconds = min(self.waiting_ns / SECOND, WAIT_NOTE_SECONDS)
        self._wait_end = asyncio.get_running_loop().call_later(seconds, self._on_waited)

    def _on_waited(self) -> None:
        """Let the next start wait for the rest only, so that a store that is killed again and again serves some day."""
        if not self.failed.done():
            self._journal.append_note(self._memory_record())
        if self.waiting_ns:
            self._note_later()
        else:
            self._log_ready()

    def _log_ready(self) -> None:
        self._log.write(Severity.INFO, "ready", f"ready to accept registrations at {self.address}")

    def _drive(self, host: str, here_before: bool) -> None:
        """Make the machine from the recovered records, and connect it to journal, streams and peers."""
        journal, settings = self._journal, self.settings
        config = settings.config or StoreConfig(self.address, machine.entropy.bits(64))
        endpoint = self._machine = StoreEndpoint.create(attrs.evolve(config, address=self.address))
        self._pool = ConnectionPool(
            lambda peer: self._on_broken(Reset(peer)), lambda peer: self._on_broken(Gone(peer)), host
        )
        self._pool.origins.oddities = self.oddities
        self._pool.routing.here = self.address
        everywhere = address.parse(settings.listen)[0] == ANY
        may_say = Permissions(
            lambda: endpoint.status, self._pool, everywhere, lambda request: self._deny(request, barred(request))
        ).may_say
        self._arrivals = StoreArrivals(
            self._feed, self.on_message, may_say, self._pool.routing, host, settings.transports
        )
        self._messages = MessageStorage(journal, self._arrivals.tokens)
        self._proxies = Proxies(
            lambda: context_for(settings, host),
            self._on_proxy_failed,
            self._feed,
            settings.proxy_options,
            self._pool.routing,
        )
        self.reports += journal.reports
        if shown_to_others(settings.directory):
            self.reports.append(
                f"other users of this host may read the messages in {settings.directory}: "
                f"chmod -R go= {settings.directory}"
            )
        self._recover(endpoint, journal, here_before)
        recording = recorder(Role.STORE, self.address, endpoint, settings.trace)
        driven: Driven[StoreInput, fx.StoreEffect] = Driven(endpoint, recording)
        self._driver = Driver(driven, self._perform, self._on_effect_failed)
        limits = (settings.reads, settings.disk.buffer_bytes)
        self._retrieval = Retrieval(
            self._messages, journal, limits, self._send_stored, self._on_damaged, self.oddities, self._pool.room
        )
        self._pool.on_room = self._retrieval.resume
        self._contents = StoreContents(endpoint, journal, self.address, self._send_stored, self.oddities)
        journal.set_checkpoint(lambda: [self._memory_record(), *map(client_record, endpoint.checkpoint())])
        journal.on_synced = self._on_synced
        journal.on_failed = self._on_failed
        journal.on_bad = self._on_bad_record
        journal.start(asyncio.get_running_loop())
        self._report_lost(journal)

    async def stop(self) -> None:
        """Sync the received messages and leave; no message that was reported stable is lost (P-707).

        Raises:
            JournalError: The disk failed, now or before.
        """
        await self._own.close()
        self._stopping = True
        if self._wait_end is not None:
            self._wait_end.cancel()
        await self._name_service.close()
        await self._proxies.close()
        await self._port.close()
        await self._arrivals.close()
        await self._contents.close()
        self._ending = True
        try:
            await self._end_generation()
        finally:
            self._driver.close()
            await self._pool.close()
        if self.failed.done():
            raise self.failed.result()
        self._log.write(Severity.INFO, "stopped", "stopped, everything received is on the disk")

    # ----------------------------------------------------------------------------------------------------------- views

    def limit(self, limits: StoreLimits) -> None:
        """Follow other limits from now on. Clients beyond a lower limit stay."""
        self.settings = attrs.evolve(self.settings, limits=limits)
        self.room.least = limits.room_bytes

    @property
    def waiting_ns(self) -> int:
        """Return for how long (ns) no registration is granted yet, because the store may have lost its journal."""
        until = self._machine.status.muted_until
        return 0 if until is None else max(0, until - machine.clock.monotonic_ns())

    def statistics(self) -> dict[str, object]:
        """Return counters for people and tests."""
        return {
            "address": self.address,
            "clients": len(self._machine.status.clients),
            "oddities": dict(self.oddities),
            "events": dict(self.events),
            "sessions": self.sessions,
        }

    @property
    def sessions(self) -> dict[str, dict[str, int]]:
        """Return the counters of each joined session over LBT-RM or LBT-RU, by source string."""
        return self._arrivals.statistics()

    @property
    def machine(self) -> StoreEndpoint:
        """Return the state machine, for reading only."""
        return self._machine

    @property
    def config(self) -> StoreConfig:
        return self._machine.config

    def traffic_of(self, incarnation: int) -> Traffic:
        """Return a copy of the traffic of a life, with the repairs of its session."""
        return self._arrivals.traffic_of(incarnation)

    @property
    def connections(self) -> int:
        """Return the number of connections to the store's port and from it."""
        return len(self._port) + len(self._pool)

    @property
    def proxies(self) -> int:
        """Return the number of sources that the store stands in for."""
        return len(self._proxies)

    @property
    def expired(self) -> tuple[int, int]:
        """Return the number of sources whose state lifetime ended since the start, and of their messages."""
        return self._log.expired, self._log.expired_messages

    def evict(self, reg_id: int) -> bool:
        """Forget a client for an operator; return False if the store does not know it."""
        known = self._machine.status.clients.get(reg_id)
        if known is None:
            return False
        client = known.client
        who = f"{client.role.name.lower()} {reg_id} of topic {client.topic!r}"
        self._log.write(Severity.WARNING, "evicted", f"{who}: an operator has it forgotten")
        self.on_message(
            Deregister(
                client.role,
                client.store_index,
                0,
                reg_id,
                client.incarnation,
                source_reg_id=client.source_reg_id,
                reply_to=client.reply_to,
            )
        )
        return True

    def lacking(self, source_reg_id: int, ranges: Iterable[tuple[int, int]], cause: LackCause) -> None:
        """Ask other stores for these numbers [first, stop) of a source, which should be here.

        With the cause `DAMAGED` the store forgets its own copies first. Numbers that it holds, that a rule released, or
        that belong to no known life of the source are passed over.
        """
        for first, stop in ranges:
            self._feed(Lacking(source_reg_id, first, stop - 1, cause))

    def reads_of(self, source_reg_id: int) -> int:
        """Return the number of records of this source that are being read from the disk."""
        return self._retrieval.reading(source_reg_id)

    def journal_view(self) -> JournalView:
        journal = self._journal
        syncs = journal.syncs
        return JournalView(
            journal.disk_bytes,
            journal.segments,
            journal.queued_bytes,
            journal.pressure,
            syncs.count,
            syncs.last_ns,
            syncs.longest_ns,
            self._retrieval.waiting,
            syncs.times.view(),
            journal.waits.view(),
            journal.scrubber.done.verified,
            journal.scrubber.done.ended_ns,
        )

    def scrub(self) -> None:
        """Verify all records of the journal now. The messages of bad ones are fetched again."""
        self._journal.scrubber.hurry()

    # ---------------------------------------------------------------------------------------------------------- inputs

    def on_message(self, message: Message) -> None:
        """Process a control message of a client. Registrations beyond a limit are refused here."""
        if isinstance(message, StoredQuestion):
            self._contents.answer(message)
            return
        if isinstance(message, Register):
            limits, size = self.settings.limits, self._journal.disk_bytes
            why = refusal(message, self._machine, limits, size, self.draining, self._hosts)
            if why is not None:
                self.oddities["over-limit"] += 1
                self._deny(message, why)
                return
            self._asking = message  # An answer does not repeat the topic, and the log needs it.
        self._feed(Arrived(message))

    def _deny(self, request: Register, why: OverLimit) -> None:
        """Answer a registration that the machine does not get."""
        self._log.refused(request, why)
        self._pool.send(request.reply_to, codec.encode(why.answer))

    def _feed(self, event: StoreInput) -> None:
        self._driver.feed(event)
        if self._journal.pressure:
            self._arrivals.pause(True)

    def _on_synced(self, ticket: int) -> None:
        self.generation.note()  # Its record precedes the one that was reported.
        self._driver.feed(Persisted(ticket))
        if not self._journal.pressure:
            self._arrivals.pause(False)

    def _on_failed(self, error: JournalError) -> None:
        """End the service. Effects that are under way are neither performed nor answered."""
        if not self.failed.done():
            code = "resources-failed" if is_scarce(error.__cause__) else "disk-failed"
            self._log.write(Severity.ERROR, code, f"{error}; nothing is acknowledged any more")
            self.failed.set_result(error)

    def _on_effect_failed(self, effect: object, error: Exception) -> None:
        """End the service, because the machine counts on the effect, for instance on the sync of a record."""
        if self._stopping:
            return  # The closing journal accepts no record, and such a store answers nothing that waits for one.
        cause = f"{describe(effect)} failed: {type(error).__name__}: {error}"
        failure = error if isinstance(error, JournalError) else JournalError(f"store {self.address}: {cause}")
        report(f"store {self.address} serves no more: {cause}", error)
        self._on_failed(failure)

    def _recover(self, endpoint: StoreEndpoint, journal: Journal, here_before: bool) -> None:
        states = journal.recovered_states
        clients = clients_of(states)
        if not journal.whole and Repair.ONE_LIFE in self.config.repairs:
            for stranger in strangers(journal, clients):
                journal.disown(*stranger)
        found = recovered(journal, clients)
        extents, trails = shortened(journal.came_at, clients, found, self.settings.restore_last_ns)
        # The machine gets lost messages too. Then it learns that they cannot be read, as from any other read.
        extents = sorted([*extents, *lost_extents(journal, clients)])
        new = self.settings.new and not here_before
        # A journal without a record may be one that a crash ended before its first sync.
        standing = memory_of(states) if states else StoreMemory.NEW if new else StoreMemory.LOST
        now = machine.clock.monotonic_ns()
        before, waiting, left = generation_of(states)
        restored = self.generation.begin(before)
        if waiting is Waiting.UNLESS_NEW and self.settings.new and not clients:
            # The operator follows the advice of the first start, which granted nothing.
            waiting, standing = Waiting.NONE, StoreMemory.NEW
        # A journal with states is not new, whatever the operator declares.
        memory = (journal.whole or (new and not states)) and not (restored or waiting)
        first = not (memory or states or here_before)
        self._waiting = Waiting.UNLESS_NEW if first else waiting or Waiting.REQUIRED
        endpoint.recover(
            clients.values(),
            extents,
            trails,
            now,
            memory=memory,
            standing=standing,
            unnamed=journal.unnamed,
            generation=self.generation.current,
        )
        if waiting and left is not None and journal.whole and not restored:
            endpoint.shorten_wait(left, now)
        if restored:
            self.events[OlderCopy.__name__] += 1
            self.reports.append(f"{self.settings.directory} is an older copy: the state directory knows a later one")
        elif self.waiting_ns:
            why = "holds no journal, or a damaged one"
            if waiting:
                why = "was declared a copy or a new disk, or its last start did not wait to the end"
            new_store = self._waiting is Waiting.UNLESS_NEW
            advice = ". If this is a new store, stop it and start it with --new" if new_store else ""
            self.reports.append(
                f"{self.settings.directory} {why}: no registration is granted for {self.waiting_ns / SECOND:.0f} s, "
                f"because clients may count on earlier ones{advice}"
            )
        if endpoint.status.memory is StoreMemory.LOST and Repair.VOTE in self.config.repairs:
            self.reports.append(
                f"{self.settings.directory} may be a replaced disk: the store has no vote about earlier messages of a "
                "source until that source announces itself"
            )

    def _memory_record(self) -> bytes:
        return self._memory_record_of(self._machine.status.memory)

    def _memory_record_of(self, memory: StoreMemory) -> bytes:
        left = self.waiting_ns
        return memory_record(memory, self.generation.current, self._waiting if left else Waiting.NONE, left)

    async def _end_generation(self) -> None:
        """Begin the generation in which the store does not run, and close the journal."""
        if not self.failed.done():
            self.generation.end()
            self._journal.append_note(self._memory_record())
        await self._journal.close()
        if not self.failed.done():
            self.generation.note()

    def _report_lost(self, journal: Journal) -> None:
        """Report messages that the open could not read to the machine."""
        for reg_id, first, count, _ in lost_extents(journal, self._machine.status.repositories):
            self._log.damaged(reg_id, first, first + count - 1, JournalError("their record fails its checksum"))
            self._feed(Damaged(reg_id, first, first + count - 1))

    # --------------------------------------------------------------------------------------------------------- effects

    def _perform(self, effect: fx.StoreEffect) -> None:
        if self.failed.done() or (self._ending and not isinstance(effect, _LAST_EFFECTS)):
            return
        match effect:
            case fx.Send():
                message = self._explained(effect)
                self._pool.send(effect.to, codec.encode(message))
                self._log_answer(effect, message)
            case fx.PersistMessages():
                self._messages.persist(effect)
            case fx.CacheMessages() | fx.PersistCached() | fx.Uncache() | fx.Reclaim() | fx.Cut():
                self._messages.change(effect)
            case fx.Discard():
                self._arrivals.tokens.drop(effect.token)
            case fx.PersistClient():
                self._journal.append_state(client_record(effect.client), effect.ticket)
            case fx.PersistMemory():
                self.generation.adopt(effect.generation)
                self._journal.append_state(self._memory_record_of(effect.memory), effect.ticket)
            case fx.Forget():
                self._forget(effect)
            case fx.SendStored():
                self._retrieval.serve(effect)
            case fx.Join():
                holder = self._machine.status.holder(0, effect.incarnation)
                self._arrivals.join(effect, "" if holder is None else holder.topic)
            case fx.Leave():
                self._arrivals.leave(effect)
            case fx.StartProxy():
                self._proxies.start(effect)
            case fx.StopProxy():
                self._proxies.stop(effect.source_reg_id)
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _explained(self, effect: fx.Send) -> Message:
        """Return a message to send; a refusal of incompatible terms gets those that would have fitted."""
        message, asked = effect.message, self._asking
        if not isinstance(message, Refused) or message.reason is not Refusal.INCOMPATIBLE or asked is None:
            return message
        return self._machine.status.with_terms(message, asked)

    def _log_answer(self, effect: fx.Send, message: Message) -> None:
        if isinstance(message, Registered):
            client = self._machine.status.clients.get(message.reg_id)
            self._log.granted(message, effect.to, "" if client is None else client.client.topic)
        elif isinstance(message, Refused):
            asked, refused = self._asking, (effect.to, message.role, message.incarnation)
            known = asked is not None and (asked.reply_to, asked.role, asked.incarnation) == refused
            self._log.denied(message, effect.to, asked if known else None)

    def _forget(self, effect: fx.Forget) -> None:
        self._journal.append_state(forget_record(effect.reg_id), effect.ticket)
        if effect.role is Role.SOURCE:
            self._messages.forget(effect.reg_id, effect.ticket)

    def refuses(self, address: str) -> bool:
        """Return whether the last connection to a client was refused: nobody listens there any more."""
        return self._pool.refused(address)

    def _on_broken(self, event: Reset | Gone) -> None:
        self._retrieval.forget(event.address)
        self._feed(event)

    def _send_stored(self, to: str, stored: bytes) -> None:
        if stored and not self.failed.done():
            self._pool.send(to, stored)

    def _on_damaged(self, source_reg_id: int, piece: MessagePiece, error: JournalError) -> None:
        """Forget messages that the disk cannot read. The retrieval serves the others.

        Several reads may fail on one record while the disk is slow. When the last of them ends, the source may have
        sent the messages again, and the newer records are good. So only numbers still in the bad record are forgotten.

        A process without descriptors or memory cannot read a good disk: nothing is forgotten, and peers ask again.
        """
        if is_scarce(error.__cause__):
            self.oddities["reads-without-resources"] += 1
            return
        self._log.damaged(source_reg_id, piece.number, piece.stop - 1, error)
        parts = self._parts_shown(source_reg_id, piece)
        if piece.record is not None and not self.failed.done() and not self._ending:
            self._journal.disown(source_reg_id, piece.number, piece.stop, piece.record)
        for first, stop in parts:
            self._feed(Damaged(source_reg_id, first, stop - 1))

    def _on_bad_record(self, source_reg_id: int, record: RecordPlace, error: JournalError) -> None:
        """Forget the messages of a record that the scrubber cannot read."""
        piece = MessagePiece(record.first, record.first + record.count, record.first, record.tag, b"", record)
        if self._parts_shown(source_reg_id, piece):
            self._on_damaged(source_reg_id, piece, error)

    def _parts_shown(self, source_reg_id: int, piece: MessagePiece) -> list[tuple[int, int]]:
        """Return the numbers [first, stop) of a piece that the journal still finds in its record."""
        parts: list[tuple[int, int]] = []
        number = piece.number
        while number < piece.stop:
            found = self._journal.find(source_reg_id, number)
            stop = number + 1 if found is None else min(found.first + found.count, piece.stop)
            if found is not None and found.record == piece.record:
                parts.append((number, stop))
            number = stop
        return parts

    def _on_proxy_failed(self, source_reg_id: int, error: Exception) -> None:
        self.oddities["proxy-failed"] += 1
        self.reports.append(f"no proxy stands in for source {source_reg_id}: {error}")
        self._log.write(Severity.WARNING, "proxy-failed", self.reports[-1])

    def _on_notify(self, event: Event) -> None:
        self._log.event(event)
        if isinstance(event, OlderCopy):
            self._wait()
