"""One store on the running event loop: sockets and journal around a `StoreEndpoint`.

What arrives is fed to the machine; runs keep their bytes here under a token until the machine says to write or drop
them.
The journal's sync reports come back as `Persisted`: only then are grants and acknowledgements sent.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import assert_never

import attrs

from stablecast.core import effects as fx
from stablecast.core import serial
from stablecast.core.events import Oddity
from stablecast.core.inputs import Arrived, Data, Ended, Gone, Persisted, Reset, Start, StoreInput
from stablecast.core.messages import Role
from stablecast.core.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.daemon.records import client_record, clients_of, forget_record
from stablecast.journal import Journal, JournalError
from stablecast.net import address, ports
from stablecast.net.driver import Driver
from stablecast.net.joiner import Joiner
from stablecast.net.pool import Pool
from stablecast.net.requests import RequestPort
from stablecast.net.runs import Tokens
from stablecast.net.stream import Item
from stablecast.trace import Driven, recorder
from stablecast.transports import codec
from stablecast.transports.lbttcp import Run, payloads
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message, MessageKind


@attrs.frozen
class StoreSettings:
    """Where a store listens and keeps its files; `config` None takes the defaults. `opened` opens its journal."""

    listen: str
    directory: Path
    config: StoreConfig | None = None
    trace: Path | None = None
    opened: Callable[[Path], Journal] = Journal.open


class Store:
    """A store daemon: `await start()`, then it serves until `await stop()`.

    When the disk fails `failed` is done: nothing is answered any more, and `stop` says why (fail-stop: what cannot be
    written or read must not be acknowledged).
    """

    def __init__(self, settings: StoreSettings) -> None:
        """A store that has not started."""
        self.settings = settings
        self.oddities: Counter[str] = Counter()
        self.reports: list[str] = []
        self.address = settings.listen
        self._tokens = Tokens()
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
        self._recover(machine, journal)
        self.reports = journal.reports
        driven: Driven[StoreInput] = Driven(machine, recorder(Role.STORE, self.address, machine, self.settings.trace))
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
        return {"address": self.address, "clients": len(self._machine.clients.records), "oddities": dict(self.oddities)}

    @staticmethod
    def _recover(machine: StoreEndpoint, journal: Journal) -> None:
        clients = clients_of(journal.recovered_states)
        extents = {reg_id: journal.extents(reg_id) for reg_id, c in clients.items() if c.role is Role.SOURCE}
        trails = {reg_id: runs[0][0] for reg_id, runs in extents.items() if runs}
        runs = [(reg_id, first, count) for reg_id, found in extents.items() for first, count, _ in found]
        machine.recover(clients.values(), runs, trails, time.monotonic_ns())

    # What arrives.

    def _on_items(self, items: list[Item]) -> None:
        """Control messages and retransmissions on the store's port."""
        recovered: list[codec.Recovered] = []
        for item in items:
            if isinstance(item, Run):
                self.oddities["data-on-request-port"] += 1
                continue
            try:
                if item.kind == MessageKind.RETRANSMISSION:
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
                self._driver.feed(
                    Data(incarnation, incarnation, item.first, item.count, item.payload_bytes, False, token)
                )
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

    def _perform(self, effect: fx.Effect) -> None:
        if self.failed.done():
            return
        match effect:
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
            case fx.PersistMessages():
                block = self._tokens.block(effect.token, effect.skip, effect.count, effect.done)
                self._journal.append_messages(
                    effect.source_reg_id, effect.first, effect.count, effect.incarnation, block, effect.ticket
                )
            case fx.Discard():
                self._tokens.drop(effect.token)
            case fx.PersistClient():
                self._journal.append_state(client_record(effect.client), effect.ticket)
            case fx.Cut():
                self._journal.cut(effect.source_reg_id, effect.number, effect.ticket)
            case fx.Forget():
                self._journal.append_state(forget_record(effect.reg_id), effect.ticket)
                if effect.role is Role.SOURCE:
                    self._journal.forget(effect.reg_id, effect.ticket)
            case fx.SendStored():
                self._send_stored(effect)
            case fx.Join():
                self._join(effect)
            case fx.Leave():
                joiner = self._joiners.pop(effect.incarnation, None)
                if joiner is not None:
                    joiner.abandon()
            case fx.Notify():
                if isinstance(effect.event, Oddity):
                    self.oddities[effect.event.code] += 1
            case fx.Broadcast() | fx.Release() | fx.Resend() | fx.Deliver() | fx.AskRegId() | fx.AskLow():
                raise AssertionError(f"a store does not {type(effect).__name__}")
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
        """Read from the journal and send as retransmissions, each with the life that sent it."""
        try:
            parts = list(self._stored(effect))
        except JournalError as error:
            self._on_failed(error)
            return
        if parts:
            self._pool.send(effect.to, b"".join(parts))

    def _stored(self, effect: fx.SendStored) -> Iterator[bytes]:
        number = effect.first
        while number <= effect.last:
            found = self._journal.read(effect.source_reg_id, number)
            if found is None:
                number += 1
                continue
            first, count, incarnation, block = found
            stop = min(first + count, effect.last + 1)
            for payload in payloads(block, number - first, stop - number):
                sent = codec.Recovered(effect.session, incarnation, serial.wire(number), payload)
                yield codec.encode_recovered(sent)
                number += 1
