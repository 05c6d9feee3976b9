"""One store on the running event loop: sockets and journal around a `StoreEndpoint`.

What arrives is fed to the machine; runs keep their bytes here under a token until the machine says to write or drop
them.
The journal's sync reports come back as `Persisted`: only then are grants and acknowledgements sent.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import assert_never

import attrs

from stablecast.client.context import Context
from stablecast.core import effects as fx
from stablecast.core.events import Event, Oddity
from stablecast.core.inputs import Arrived, Data, Ended, Gone, Persisted, Reset, Start, StoreInput
from stablecast.core.messages import Role
from stablecast.core.repairs import Repair
from stablecast.core.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.daemon.proxy import Proxies
from stablecast.daemon.records import client_record, clients_of, forget_record
from stablecast.daemon.recovering import recovered
from stablecast.daemon.shelf import Shelf
from stablecast.journal import Journal, JournalError
from stablecast.net import address, ports
from stablecast.net.driver import Driver
from stablecast.net.joiner import Joiner
from stablecast.net.pool import Pool
from stablecast.net.requests import Peer, RequestPort
from stablecast.net.runs import Continuity, Tokens
from stablecast.net.stream import Item
from stablecast.trace import Driven, recorder
from stablecast.transports import codec
from stablecast.transports.lbttcp import Run
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message


@attrs.frozen
class StoreSettings:
    """Where a store listens and keeps its files; `config` None takes the defaults. `opened` opens its journal.

    `new` says that an empty directory is that of a new store, not one whose files are gone (formal design, 7.6).
    Proxies make themselves found through the relays `resolver` (`ip:port`) and the services `resolver_service`
    (`host:port`).
    """

    listen: str
    directory: Path
    config: StoreConfig | None = None
    trace: Path | None = None
    opened: Callable[[Path], Journal] = Journal.open
    new: bool = False
    resolver: Sequence[str] = ()
    resolver_service: Sequence[str] = ()


class Store:
    """A store daemon: `await start()`, then it serves until `await stop()`.

    When the disk fails `failed` is done: nothing is answered any more, and `stop` says why (fail-stop: what cannot be
    written or read must not be acknowledged).
    """

    def __init__(self, settings: StoreSettings) -> None:
        """A store that has not started."""
        self.settings = settings
        self.oddities: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.reports: list[str] = []
        self.address = settings.listen
        self._tokens = Tokens()
        self._streams = Continuity()
        self._joiners: dict[int, Joiner] = {}

    async def start(self) -> None:
        """Open the journal, take what it kept, and listen.

        Raises:
            JournalError: the directory is missing, not writable, or used by another process.
            RecordError: a state record of the journal is not one of ours.
            PortError: the port is in use.
            TraceError: no trace can be written.
        """
        self.failed: asyncio.Future[JournalError] = asyncio.get_running_loop().create_future()
        host, port = address.parse(self.settings.listen)
        self._journal = self.settings.opened(self.settings.directory)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self._journal.close)
            listening = undo.enter_context(ports.listen(host, port, "--listen"))
            self.address = address.join(host, listening.getsockname()[1])
            self._drive(host)
            undo.pop_all()
        self._port = RequestPort(listening, self._on_items)
        await self._port.start()
        self._driver.feed(Start())

    def _drive(self, host: str) -> None:
        """Make the machine, with what the journal kept, and connect the two."""
        journal = self._journal
        config = self.settings.config or StoreConfig(self.address, secrets.randbits(64))
        machine = self._machine = StoreEndpoint.create(attrs.evolve(config, address=self.address))
        self._shelf = Shelf(journal, self._tokens)
        settings = self.settings
        self._proxies = Proxies(
            lambda: Context(
                resolver=settings.resolver,
                resolver_service=settings.resolver_service,
                interface=host,
                trace=settings.trace,
            ),
            self._on_proxy_failed,
        )
        self.reports += journal.reports
        self._recover(machine, journal)
        recording = recorder(Role.STORE, self.address, machine, self.settings.trace)
        driven: Driven[StoreInput, fx.StoreEffect] = Driven(machine, recording)
        self._driver = Driver(driven, self._perform)
        self._pool = Pool(lambda peer: self._driver.feed(Reset(peer)), lambda peer: self._driver.feed(Gone(peer)), host)
        journal.set_checkpoint(lambda: [client_record(client) for client in machine.checkpoint()])
        journal.on_synced = self._on_synced
        journal.on_failed = self._on_failed
        journal.start(asyncio.get_running_loop())

    async def stop(self) -> None:
        """Sync what was received and leave; nothing that was reported stable is lost (P-707).

        Raises:
            JournalError: the disk failed, now or before.
        """
        await self._proxies.close()
        await self._port.close()
        for joiner in list(self._joiners.values()):
            await joiner.close()
        try:
            await self._journal.close()
        finally:
            self._driver.close()
            await self._pool.close()
        if self.failed.done():
            raise self.failed.result()

    def statistics(self) -> dict[str, object]:
        """Counters for people and tests."""
        return {
            "address": self.address,
            "clients": len(self._machine.clients.records),
            "oddities": dict(self.oddities),
            "events": dict(self.events),
        }

    def _recover(self, machine: StoreEndpoint, journal: Journal) -> None:
        clients = clients_of(journal.recovered_states)
        extents, trails = recovered(journal, clients)
        memory = journal.whole or self.settings.new
        if not memory and Repair.MEMORY in machine.config.repairs:
            self.reports.append(
                f"{self.settings.directory} holds no journal, or a damaged one: registrations are granted only when "
                "nobody can count on an earlier one any more; start with --new if this is a new store"
            )
        machine.recover(clients.values(), extents, trails, time.monotonic_ns(), memory=memory)

    # What arrives.

    def _on_items(self, items: list[Item], _: Peer) -> None:
        """Control messages and retransmissions on the store's port."""
        recovered: list[codec.Recovered] = []
        for item in items:
            if isinstance(item, Run):
                self.oddities["data-on-request-port"] += 1
                continue
            try:
                if item.kind in codec.RECOVERED_KINDS:
                    recovered.append(codec.decode_recovered(item))
                else:
                    self._driver.feed(Arrived(codec.decode(item)))
            except WireError:
                self.oddities["malformed-on-request-port"] += 1
        self._driver.feed_all(self._tokens.keep_recovered(recovered))

    def _on_stream(self, session_id: int, items: list[Item]) -> None:
        """Runs and announcements on a source's stream."""
        for item in items:
            if isinstance(item, Run):
                incarnation = codec.join(session_id, item.topic_index)
                token = self._tokens.keep(item, incarnation)
                lost = self._streams.check(incarnation, item)
                self._driver.feed(
                    Data(incarnation, incarnation, item.first, item.count, item.payload_bytes, False, token)
                )
                if lost is not None:
                    self._driver.feed(lost)
            else:
                self._on_announcement(item)
        if self._journal.pressure:
            for joiner in self._joiners.values():
                joiner.pause()

    def _on_announcement(self, item: Message) -> None:
        try:
            self._driver.feed(Arrived(codec.decode(item)))
        except WireError:
            self.oddities["malformed-on-stream"] += 1

    def _on_synced(self, ticket: int) -> None:
        self._driver.feed(Persisted(ticket))
        if not self._journal.pressure:
            for joiner in self._joiners.values():
                joiner.resume()

    def _on_failed(self, error: JournalError) -> None:
        """What is still under way is neither done nor answered."""
        if not self.failed.done():
            self.failed.set_result(error)

    # What is to be done.

    def _perform(self, effect: fx.StoreEffect) -> None:
        if self.failed.done():
            return
        match effect:
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
            case fx.PersistMessages():
                self._shelf.persist(effect)
            case fx.CacheMessages() | fx.PersistCached() | fx.Uncache() | fx.Reclaim() | fx.Cut():
                self._shelf.change(effect)
            case fx.Discard():
                self._tokens.drop(effect.token)
            case fx.PersistClient():
                self._journal.append_state(client_record(effect.client), effect.ticket)
            case fx.Forget():
                self._journal.append_state(forget_record(effect.reg_id), effect.ticket)
                if effect.role is Role.SOURCE:
                    self._shelf.forget(effect.reg_id, effect.ticket)
            case fx.SendStored():
                self._send_stored(effect)
            case fx.Join():
                self._join(effect)
            case fx.Leave():
                self._streams.forget(effect.incarnation)
                joiner = self._joiners.pop(effect.incarnation, None)
                if joiner is not None:
                    joiner.abandon()
            case fx.StartProxy():
                self._proxies.start(effect)
            case fx.StopProxy():
                self._proxies.stop(effect.source_reg_id)
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _join(self, effect: fx.Join) -> None:
        if effect.incarnation in self._joiners:
            return
        session_id, _ = codec.split(effect.incarnation)

        def ended(gone: bool) -> None:
            if gone:
                self._joiners.pop(effect.incarnation, None)
            self._driver.feed(Gone(effect.transport) if gone else Ended(effect.incarnation))

        self._joiners[effect.incarnation] = Joiner(effect.transport, session_id, self._on_stream, ended)

    def _send_stored(self, effect: fx.SendStored) -> None:
        """Read and send as retransmissions."""
        try:
            stored = self._shelf.stored(effect)
        except JournalError as error:
            self._on_failed(error)
            return
        if stored:
            self._pool.send(effect.to, stored)

    def _on_proxy_failed(self, source_reg_id: int, error: Exception) -> None:
        self.oddities["proxy-failed"] += 1
        self.reports.append(f"no proxy stands in for source {source_reg_id}: {error}")

    def _on_notify(self, event: Event) -> None:
        if isinstance(event, Oddity):
            self.oddities[event.code] += 1
        else:
            self.events[type(event).__name__] += 1
