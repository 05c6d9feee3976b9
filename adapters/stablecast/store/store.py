"""One store on the running event loop: sockets and journal around a `StoreEndpoint`.

What arrives is fed to the machine (`inlet`); its bytes are kept until the machine says to write or drop them. The
journal's sync reports come back as `Persisted`: only then are grants and acknowledgements sent.
"""

import asyncio
import secrets
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import assert_never

import attrs

from stablecast.config.interfaces import announced
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.inputs import Arrived, Damaged, Gone, Persisted, Reset, Start, StoreInput
from stablecast.core.protocol.messages import Deregister, Message, Register, Role
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace import recorder
from stablecast.runtime import address, ports
from stablecast.runtime.connection_pool import Pool
from stablecast.runtime.driven_machine import Driven
from stablecast.runtime.driver import Driver
from stablecast.runtime.effect_execution import describe, report
from stablecast.runtime.request_port import RequestPort
from stablecast.store import directory_identity
from stablecast.store.arrivals import Inlet
from stablecast.store.client_records import client_record, clients_of, forget_record
from stablecast.store.free_space import Room
from stablecast.store.journal import Journal, JournalError
from stablecast.store.limits import refusal
from stablecast.store.log_lines import Severity
from stablecast.store.message_storage import Piece, Shelf
from stablecast.store.proxy import Proxies, context_for
from stablecast.store.recovered_state import recovered, shortened
from stablecast.store.retransmission import Retrieval
from stablecast.store.settings import StoreSettings
from stablecast.store.store_log import Teller
from stablecast.store.store_name import Naming
from stablecast.store.store_views import JournalView, Traffic
from stablecast.transports import codec

__all__ = ["Store", "StoreSettings"]

_LAST_EFFECTS = (fx.Send, fx.Discard, fx.Notify)
"""What is still done while the journal syncs its last records. Timers go on meanwhile, and a closing journal takes no
record any more. Nothing is answered that waits for one: its ticket never comes back, as in a crash.
"""


class Store:
    """A store daemon: `await start()`, then it serves until `await stop()`.

    When the disk fails `failed` is done: nothing is answered any more, and `stop` says why (fail-stop: what cannot be
    written must not be acknowledged).
    """

    def __init__(self, settings: StoreSettings) -> None:
        """A store that has not started."""
        self.settings = settings
        self.oddities: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.reports: list[str] = []
        self.address = settings.listen
        self.draining = False
        self.room = Room(settings.limits.room_bytes)
        self._ending = False
        self._stopping = False
        self.started_at = 0
        self._teller = Teller(settings.name, settings.log, self.oddities, self.events)

    async def start(self) -> None:
        """Open the journal, take what it kept, and listen.

        Raises:
            JournalError: the directory is missing, not writable, or used by another process.
            IdentityError: the state directory is missing, or another store's.
            RecordError: a state record of the journal is not one of ours.
            PortError: the port is in use.
            TraceError: no trace can be written.
            ResolverError: the relays cannot be reached from this host's address.
        """
        self.failed: asyncio.Future[JournalError] = asyncio.get_running_loop().create_future()
        self.started_at = time.monotonic_ns()
        settings = self.settings
        host, port = address.parse(settings.listen)
        here_before = settings.state_directory is not None and directory_identity.known(
            settings.state_directory, settings.name
        )
        self._journal = Journal.open(settings.directory, settings.disk)
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
        self._port = RequestPort(listening, self._inlet.on_items)
        await self._port.start()
        self._driver.feed(Start())
        self._naming = Naming(settings, announced(host))
        try:
            await self._naming.start(self.address)
        except BaseException:
            await self.stop()
            raise
        for line in self.reports:
            self._teller.say(Severity.WARNING, "restart", line)
        self._teller.say(Severity.INFO, "ready", f"ready to accept registrations at {self.address}")

    def _drive(self, host: str, here_before: bool) -> None:
        """Make the machine, with what the journal kept, and connect the two."""
        journal, settings = self._journal, self.settings
        config = settings.config or StoreConfig(self.address, secrets.randbits(64))
        machine = self._machine = StoreEndpoint.create(attrs.evolve(config, address=self.address))
        self._inlet = Inlet(self._feed, self.tell, self.oddities, host, settings.transports)
        self._shelf = Shelf(journal, self._inlet.tokens)
        self._proxies = Proxies(
            lambda: context_for(settings, host),
            self._on_proxy_failed,
            self._feed,
            settings.proxy_options,
        )
        self.reports += journal.reports
        born = self._recover(machine, journal, here_before)
        recording = recorder(Role.STORE, self.address, machine, settings.trace)
        driven: Driven[StoreInput, fx.StoreEffect] = Driven(machine, recording)
        self._driver = Driver(driven, self._perform, self._on_effect_failed)
        self._pool = Pool(lambda peer: self._feed(Reset(peer)), lambda peer: self._feed(Gone(peer)), host)
        limits = (settings.reads, settings.disk.buffer_bytes)
        self._retrieval = Retrieval(self._shelf, journal, limits, self._send_stored, self._on_damaged, self.oddities)
        journal.set_checkpoint(lambda: [client_record(client) for client in machine.checkpoint()])
        journal.on_synced = self._on_synced
        journal.on_failed = self._on_failed
        journal.start(asyncio.get_running_loop())
        if born:
            journal.append_state(forget_record(0), born)  # Who comes back finds that there was a journal.

    async def stop(self) -> None:
        """Sync what was received and leave; nothing that was reported stable is lost (P-707).

        Raises:
            JournalError: the disk failed, now or before.
        """
        self._stopping = True
        await self._naming.close()
        await self._proxies.close()
        await self._port.close()
        await self._inlet.close()
        self._ending = True
        try:
            await self._journal.close()
        finally:
            self._driver.close()
            await self._pool.close()
        if self.failed.done():
            raise self.failed.result()
        self._teller.say(Severity.INFO, "stopped", "stopped, everything received is on the disk")

    # What others may look at (`observe`).

    def statistics(self) -> dict[str, object]:
        """Counters for people and tests."""
        return {
            "address": self.address,
            "clients": len(self._machine.status.clients),
            "oddities": dict(self.oddities),
            "events": dict(self.events),
            "sessions": self.sessions,
        }

    @property
    def sessions(self) -> dict[str, dict[str, int]]:
        """The counters of each session over LBT-RM or LBT-RU that it joined, by source string."""
        return self._inlet.statistics()

    @property
    def machine(self) -> StoreEndpoint:
        """The state machine; only to be looked at."""
        return self._machine

    @property
    def config(self) -> StoreConfig:
        """What the machine was told."""
        return self._machine.config

    @property
    def traffic(self) -> dict[int, Traffic]:
        """What came on the streams, by the life that sent it."""
        return self._inlet.traffic

    @property
    def connections(self) -> int:
        """Connections to the store's port and from it."""
        return len(self._port) + len(self._pool)

    @property
    def proxies(self) -> int:
        """Sources that the store stands in for."""
        return len(self._proxies)

    @property
    def expired(self) -> tuple[int, int]:
        """Sources whose state lifetime ended since the start, and the messages that went with them."""
        return self._teller.expired, self._teller.expired_messages

    def evict(self, reg_id: int) -> bool:
        """Forget a client because an operator asks for it; False: it is not here."""
        known = self._machine.status.clients.get(reg_id)
        if known is None:
            return False
        client = known.client
        who = f"{client.role.name.lower()} {reg_id} of topic {client.topic!r}"
        self._teller.say(Severity.WARNING, "evicted", f"{who}: an operator has it forgotten")
        self.tell(
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

    def reads_of(self, source_reg_id: int) -> int:
        """Records of this source that are being read from the disk."""
        return self._retrieval.reading(source_reg_id)

    def journal_view(self) -> JournalView:
        """The disk."""
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
        )

    # What arrives.

    def tell(self, message: Message) -> None:
        """A control message of a client, or in the name of one."""
        if isinstance(message, Register):
            why = refusal(message, self._machine, self.settings.limits, self._journal.disk_bytes, self.draining)
            if why is not None:
                self.oddities["over-limit"] += 1
                self._teller.refused(message, why)
                self._pool.send(message.reply_to, codec.encode(why.answer))
                return
        self._feed(Arrived(message))

    def _feed(self, event: StoreInput) -> None:
        self._driver.feed(event)
        if self._journal.pressure:
            self._inlet.pause(True)

    def _on_synced(self, ticket: int) -> None:
        self._driver.feed(Persisted(ticket))
        if not self._journal.pressure:
            self._inlet.pause(False)

    def _on_failed(self, error: JournalError) -> None:
        """What is still under way is neither done nor answered."""
        if not self.failed.done():
            self._teller.say(Severity.ERROR, "disk-failed", f"{error}; nothing is acknowledged any more")
            self.failed.set_result(error)

    def _on_effect_failed(self, effect: object, error: Exception) -> None:
        """Serve no more: the machine counts on what was not done, for instance that a record waits for its sync.

        A store that stops answers nobody anyway: its journal takes no more records by then.
        """
        if self._stopping:
            return
        cause = f"{describe(effect)} failed: {type(error).__name__}: {error}"
        failure = error if isinstance(error, JournalError) else JournalError(f"store {self.address}: {cause}")
        report(f"store {self.address} serves no more: {cause}", error)
        self._on_failed(failure)

    def _recover(self, machine: StoreEndpoint, journal: Journal, here_before: bool) -> int:
        """Take what the journal kept; returns the ticket of a first record, for a new store that others know of."""
        clients = clients_of(journal.recovered_states)
        found = recovered(journal, clients)
        extents, trails = shortened(journal, clients, found, self.settings.restore_last_ns)
        memory = journal.whole or (self.settings.new and not here_before)
        if not memory and Repair.MEMORY in machine.config.repairs:
            advice = "" if here_before else "; start with --new if this is a new store"
            self.reports.append(
                f"{self.settings.directory} holds no journal, or a damaged one: registrations are granted only when "
                f"nobody can count on an earlier one any more{advice}"
            )
        machine.recover(clients.values(), extents, trails, time.monotonic_ns(), memory=memory)
        born = memory and not journal.whole and self.settings.state_directory is not None
        return machine.draw_ticket() if born else 0

    # What is to be done.

    def _perform(self, effect: fx.StoreEffect) -> None:
        if self.failed.done() or (self._ending and not isinstance(effect, _LAST_EFFECTS)):
            return
        match effect:
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
                self._teller.sent(effect.message)
            case fx.PersistMessages():
                self._shelf.persist(effect)
            case fx.CacheMessages() | fx.PersistCached() | fx.Uncache() | fx.Reclaim() | fx.Cut():
                self._shelf.change(effect)
            case fx.Discard():
                self._inlet.tokens.drop(effect.token)
            case fx.PersistClient():
                self._journal.append_state(client_record(effect.client), effect.ticket)
            case fx.Forget():
                self._forget(effect)
            case fx.SendStored():
                self._retrieval.serve(effect)
            case fx.Join():
                self._inlet.join(effect)
            case fx.Leave():
                self._inlet.leave(effect)
            case fx.StartProxy():
                self._proxies.start(effect)
            case fx.StopProxy():
                self._proxies.stop(effect.source_reg_id)
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _forget(self, effect: fx.Forget) -> None:
        self._journal.append_state(forget_record(effect.reg_id), effect.ticket)
        if effect.role is Role.SOURCE:
            self._shelf.forget(effect.reg_id, effect.ticket)

    def _send_stored(self, to: str, stored: bytes) -> None:
        if stored and not self.failed.done():
            self._pool.send(to, stored)

    def _on_damaged(self, source_reg_id: int, piece: Piece, error: JournalError) -> None:
        """The disk does not give back what was on it; the rest is served.

        Reads that wait for a slow disk may all meet the record. When the later ones end, the source may have sent its
        messages again, and these newer records are good.
        """
        self._teller.damaged(source_reg_id, piece.number, piece.stop - 1, error)
        parts = self._parts_shown(source_reg_id, piece)
        if piece.record is not None and not self.failed.done() and not self._ending:
            self._journal.disown(source_reg_id, piece.number, piece.stop, piece.record)
        for first, stop in parts:
            self._feed(Damaged(source_reg_id, first, stop - 1))

    def _parts_shown(self, source_reg_id: int, piece: Piece) -> list[tuple[int, int]]:
        """The numbers of a piece that the journal still finds in its record, as ranges."""
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
        self._teller.say(Severity.WARNING, "proxy-failed", self.reports[-1])

    def _on_notify(self, event: Event) -> None:
        self._teller.event(event)
