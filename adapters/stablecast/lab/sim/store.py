"""Simulate a store's process: the store endpoint driven as the daemon does, on a simulated disk."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from stablecast.core.machine import serial
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import inputs
from stablecast.core.protocol.events import MessagesDropped
from stablecast.core.protocol.generations import NONE, following
from stablecast.core.protocol.messages import Message, Registered, Role, SourceInfo, StableAck, StoreMemory
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.live_trace import LiveTrace
from stablecast.lab.sim.disk import NO_STREAM, DiskRecord, DiskRecordKind, Syncer, VirtualDisk
from stablecast.lab.sim.earlier_release import as_earlier
from stablecast.lab.sim.lossy_transport import Lossy
from stablecast.lab.sim.network import VirtualNetwork
from stablecast.lab.sim.process import NO_MESSAGE, Item, VirtualDriver, VirtualJoiner, VirtualProcess, encode, serve
from stablecast.lab.sim.proxy import Advertise, Proxy
from stablecast.lab.sim.setup import PAYLOAD_BYTES
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.lab.sim.virtual_time import VirtualClock
from stablecast.runtime.driver import Driven
from stablecast.runtime.kept_runs import Continuity, Tokens
from stablecast.store.client_records import (
    Waiting,
    client_record,
    clients_of,
    forget_record,
    generation_of,
    memory_of,
    memory_record,
)
from stablecast.store.message_storage import MessagePiece, MessageStorage, encoded, pieces_of
from stablecast.store.recovered_state import recovered
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run


class StoreProcess(VirtualProcess):
    def __init__(
        self,
        network: VirtualNetwork,
        name: str,
        config: StoreConfig,
        clock: VirtualClock,
        disk: VirtualDisk,
        checkers: Checkers,
        advertise: Advertise,
        lossy: int,
    ) -> None:
        """Prepare the process.

        `advertise` makes each proxy known to receivers. `lossy` percent of a stream's runs are lost, repeated or late.
        `falter` is called once when a proxy starts.
        """
        super().__init__(network, name, config.address.partition(":")[0], clock)
        self.disk = disk
        self.machine = StoreEndpoint.create(config)
        self.falter: Callable[[], None] | None = None
        self._address = config.address
        self._checkers = checkers
        self._advertise = advertise
        self._lossy = lossy
        self._tokens = Tokens()
        self._streams = Continuity()
        self._generation = NONE
        self._written = self._synced = 0
        self._damaged: list[tuple[int, int]] = []
        self._proxies: dict[int, Proxy] = {}
        self._joiners: dict[int, VirtualJoiner] = {}
        self._syncer = Syncer(
            self.world,
            disk,
            lambda ticket: self.deliver(lambda: self._on_synced(ticket)),
            lambda: self.deliver(self._fail),
            lambda *bad: self.deliver(lambda: self._on_damaged(*bad)),
        )
        self._shelf = MessageStorage(self._syncer, self._tokens)

    def start(self, trace: LiveTrace) -> None:
        """Listen and start the machine. The trace must belong to this machine."""
        driven: Driven[inputs.StoreInput, fx.StoreEffect] = Driven(self.machine, trace)
        self._driver = VirtualDriver(self, driven, self._perform)
        self.listen(self._address, serve(self._on_items))
        self._driver.feed(inputs.Start())
        self.disk.note(self._memory_record(0, self.machine.status.memory))
        self._end_wait_later()
        for stream, number in self._damaged:
            self._driver.feed(inputs.Damaged(stream, number, number))

    def recover(self) -> None:
        """Recover from the disk, as the daemon does before it listens."""
        lost = self.disk.verify()
        states = self.disk.states()
        clients = clients_of(states)
        self._checkers.stores.on_start(self.name, clients.values())
        extents, trails = recovered(self.disk, clients)
        # The machine gets lost messages too. Then it learns that they cannot be read, as from any other read.
        self._damaged = [(stream, number) for stream, number in lost if stream in clients]
        extents = sorted([*extents, *((stream, number, 1, PAYLOAD_BYTES) for stream, number in self._damaged)])
        generation, waiting, _ = generation_of(states)
        self.disk.starts += 1
        self._generation = NONE if self._earlier else following(generation, self.disk.starts)
        self.machine.recover(
            clients.values(),
            extents,
            trails,
            self.now(),
            memory=self._earlier or (self.disk.remembers and not waiting),
            standing=memory_of(states),
            generation=self._generation,
        )

    def scrub(self) -> None:
        """Read all messages on the disk, so that the store learns of damage."""
        for stream, number in self.disk.bad():
            self._syncer.read(stream, number)

    @property
    def proxies(self) -> int:
        return len(self._proxies)

    @property
    def registered_proxies(self) -> int:
        return len(self.proxies_registered_at)

    @property
    def proxies_registered_at(self) -> list[int]:
        """The times at which the registered proxies got their quorum, in ns."""
        return [proxy.registered_at for proxy in self._proxies.values() if proxy.registered]

    def broken(self, event: inputs.Reset | inputs.Gone) -> None:
        """Pass the event to the machine and to every proxy."""
        self._driver.feed(event)
        for proxy in list(self._proxies.values()):
            proxy.driver.feed(event)

    def crash(self, *, flush: bool = True) -> None:
        """Kill the process. A part of the unsynced records may have reached the disk."""
        super().crash(flush=flush)
        if self._checkers.facts.setup.volatile:
            self._checkers.facts.on_lost(self.name, disk=False)
        self._syncer.stopped = True
        self.disk.crash(self.world.rng.random())

    def _on_synced(self, ticket: int) -> None:
        self._synced = ticket
        self._checkers.stores.on_synced(self.name, ticket)
        self._driver.feed(inputs.Persisted(ticket))

    def _fail(self) -> None:
        self._checkers.facts.counts["disks failed"] += 1
        self.crash()

    def _on_damaged(self, stream: int, first: int, stop: int) -> None:
        """Report messages that were requested and cannot be read."""
        self._checkers.facts.counts["damage found"] += 1
        self._driver.feed(inputs.Damaged(stream, first, stop - 1))

    # Inputs.

    def _on_items(self, items: Sequence[Item]) -> None:
        again: list[codec.Recovered] = []
        for item in items:
            if isinstance(item, codec.Recovered):
                again.append(item)
            else:
                assert not isinstance(item, NO_MESSAGE)
                self._driver.feed(inputs.Arrived(self._known(item)))
        for data in self._tokens.keep_recovered(again):
            self._driver.feed(data)

    def _on_lost(self, session_id: int, run: Run) -> None:
        """Report a run that the transport gave up."""
        self._driver.feed(inputs.Lost(codec.join(session_id, run.topic_index), run.first, run.count))

    def _on_stream(self, session_id: int, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Run):
                incarnation = codec.join(session_id, item.topic_index)
                token = self._tokens.keep(item, incarnation)
                lost = None if self._lossy else self._streams.check(incarnation, item)
                self._driver.feed(
                    inputs.Data(incarnation, incarnation, item.first, item.count, item.payload_bytes, False, token)
                )
                if lost is not None:
                    self._driver.feed(lost)
                continue
            assert not isinstance(item, NO_MESSAGE)
            if isinstance(item, SourceInfo):
                self._checkers.stores.on_info(self.name, item)
            self._driver.feed(inputs.Arrived(self._known(item)))
            if isinstance(item, SourceInfo):
                self._checkers.stores.on_read(self.name, item, self._written)
                self._checkers.stores.on_synced(self.name, self._synced)

    @property
    def _earlier(self) -> bool:
        return not self._checkers.facts.setup.refills(self.name)

    def _known(self, message: Message) -> Message:
        return as_earlier(message) if self._earlier else message

    # Effects.

    def _perform(self, effect: fx.StoreEffect) -> None:
        if not self.alive:
            return
        match effect:
            case fx.Send():
                self._check(effect.message)
                self.pool.send(effect.to, encode(self._known(effect.message)))
            case fx.PersistMessages():
                self._shelf.persist(effect)
            case fx.Discard():
                self._tokens.drop(effect.token)
            case fx.PersistClient() | fx.PersistMemory():
                self._remember(effect)
            case fx.CacheMessages() | fx.PersistCached() | fx.Uncache() | fx.Reclaim() | fx.Cut():
                self._change(effect)
            case fx.Forget():
                self._forget(effect)
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
                self._end_proxy(effect.source_reg_id)
                feed = self._driver.feed
                self._proxies[effect.source_reg_id] = Proxy(self, effect, self._advertise, self._checkers, feed)
                self._falter()
            case fx.StopProxy():
                self._end_proxy(effect.source_reg_id)
            case fx.Notify(event=MessagesDropped() as dropped):
                self._checkers.stores.on_dropped(self.name, dropped.first, dropped.last + 1)
            case fx.Notify():
                self._checkers.on_oddity(effect.event)
            case _:
                assert_never(effect)

    def _change(self, effect: fx.CacheMessages | fx.PersistCached | fx.Uncache | fx.Reclaim | fx.Cut) -> None:
        if isinstance(effect, fx.Cut):
            self._checkers.stores.on_cut(self.name, effect.source_reg_id, effect.number)
        elif isinstance(effect, fx.Reclaim):
            self._checkers.stores.on_reclaim(self.name, effect.source_reg_id, effect.number)
        elif isinstance(effect, fx.CacheMessages):
            stop = effect.first + effect.count
            self.disk.keep(effect.source_reg_id, effect.first, stop, effect.incarnation)
        self._shelf.change(effect)

    def _send_stored(self, effect: fx.SendStored) -> None:
        def piece(source: int, number: int) -> MessagePiece | None:
            found = self._shelf.cached(source, number) or self._syncer.read(source, number)
            return None if found is None else MessagePiece(number, found[0] + found[1], found[0], found[2], found[3])

        stored = encoded(effect.session, pieces_of(effect, piece))
        if stored:
            self.pool.send(effect.to, stored)

    def _remember(self, effect: fx.PersistClient | fx.PersistMemory) -> None:
        if isinstance(effect, fx.PersistMemory):
            self._generation = effect.generation
            self._syncer.append(self._memory_record(effect.ticket, effect.memory))
            self._end_wait_later()
            return
        client, self._written = effect.client, effect.ticket
        self._checkers.stores.on_client(self.name, client)
        state = partial(client_record, client)
        self._syncer.append(DiskRecord(effect.ticket, DiskRecordKind.STATE, state, client.reg_id))

    def _memory_record(self, ticket: int, memory: StoreMemory) -> DiskRecord:
        waiting = Waiting.REQUIRED if self.waits else Waiting.NONE
        state = partial(memory_record, memory, self._generation, waiting)
        return DiskRecord(ticket, DiskRecordKind.STATE, state, NO_STREAM)

    @property
    def waits(self) -> bool:
        """True while the store grants nothing, because clients may count on grants that it does not know."""
        until = self.machine.status.muted_until
        return until is not None and self.now() < until

    def _end_wait_later(self) -> None:
        """Let the next start grant at once, when this one has waited long enough."""
        until = self.machine.status.muted_until
        if until is not None and self.waits:
            self.world.at(self.clock.when(until), lambda: self.deliver(self._end_wait))

    def _end_wait(self) -> None:
        if self.waits:
            self._end_wait_later()
        else:
            self.disk.note(self._memory_record(0, self.machine.status.memory))

    def _forget(self, effect: fx.Forget) -> None:
        self._syncer.append(
            DiskRecord(effect.ticket, DiskRecordKind.STATE, partial(forget_record, effect.reg_id), effect.reg_id)
        )
        self._checkers.stores.on_forget(self.name, effect.role, effect.reg_id)
        if effect.role is Role.SOURCE:
            self._shelf.forget(effect.reg_id, effect.ticket)

    def _check(self, message: Message) -> None:
        if isinstance(message, Registered):
            self._checkers.facts.on_granted(self.name, message.reg_id, message.incarnation)
        elif isinstance(message, StableAck) and not message.nack:
            self._check_ack(message)

    def _check_ack(self, ack: StableAck) -> None:
        repository = self.machine.status.of_stream(ack.incarnation)
        if repository is not None:
            first = serial.extend(ack.first, repository.newest)
            stop = serial.extend(ack.last, first) + 1
            self._checkers.stores.on_acknowledged(self.name, ack.incarnation, first, stop)

    def _join(self, effect: fx.Join) -> None:
        if effect.incarnation in self._joiners:
            return
        session_id, _ = codec.split(effect.incarnation)

        def ended(gone: bool) -> None:
            if gone:
                self._joiners.pop(effect.incarnation, None)
            self._driver.feed(inputs.Gone(effect.transport) if gone else inputs.Ended(effect.incarnation))

        stream = Lossy(self, self._lossy, self._on_stream, self._on_lost).take if self._lossy else self._on_stream
        self._joiners[effect.incarnation] = VirtualJoiner(self, effect.transport, session_id, stream, ended)

    def _falter(self) -> None:
        falter, self.falter = self.falter, None
        if falter is not None:
            falter()

    def _end_proxy(self, source_reg_id: int) -> None:
        proxy = self._proxies.pop(source_reg_id, None)
        if proxy is not None:
            proxy.close()
