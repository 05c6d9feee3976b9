"""A store's process: the store endpoint driven as the daemon does it, on a disk in memory."""

from collections.abc import Iterator
from functools import partial
from typing import assert_never

from stablecast.core import effects as fx
from stablecast.core import serial
from stablecast.core.inputs import Arrived, Data, Ended, Gone, Persisted, Reset, Start, StoreInput
from stablecast.core.messages import Message, Registered, Role, StableAck
from stablecast.core.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.daemon.records import client_record, clients_of, forget_record
from stablecast.net.runs import Tokens
from stablecast.sim.checkers import Checkers
from stablecast.sim.disk import Disk, Kind, Record, Syncer
from stablecast.sim.network import Network
from stablecast.sim.process import Driver, Item, Joiner, Process, serve
from stablecast.sim.world import Clock
from stablecast.trace import Driven
from stablecast.trace.recording import Recorder
from stablecast.transports import codec
from stablecast.transports.lbttcp import Run, payloads
from stablecast.transports.wire.lbmc import MessageKind


class StoreProcess(Process):
    """One life of a store."""

    def __init__(
        self, network: Network, name: str, config: StoreConfig, clock: Clock, disk: Disk, checkers: Checkers
    ) -> None:
        """It has not started."""
        super().__init__(network, name, config.address.partition(":")[0], clock)
        self.disk = disk
        self.machine = StoreEndpoint.create(config)
        self._address = config.address
        self._checkers = checkers
        self._tokens = Tokens()
        self._joiners: dict[int, Joiner] = {}
        self._syncer = Syncer(
            self.world,
            disk,
            lambda ticket: self.deliver(lambda: self._driver.feed(Persisted(ticket))),
            lambda: self.deliver(self._fail),
        )

    def start(self, recorder: Recorder | None) -> None:
        """Take what the disk kept, and listen. The recorder must be of this machine, made before."""
        driven: Driven[StoreInput] = Driven(self.machine, recorder)
        self._driver = Driver(self, driven, self._perform)
        self.listen(self._address, serve(self._on_items))
        self._driver.feed(Start())

    def recover(self) -> None:
        """What the daemon does before it listens."""
        clients = clients_of(self.disk.states())
        extents = {reg_id: self.disk.extents(reg_id) for reg_id, c in clients.items() if c.role is Role.SOURCE}
        trails = {reg_id: runs[0][0] for reg_id, runs in extents.items() if runs}
        runs = [(reg_id, first, count) for reg_id, found in extents.items() for first, count in found]
        self.machine.recover(clients.values(), runs, trails, self.now())

    def broken(self, event: Reset | Gone) -> None:
        """A connection broke."""
        self._driver.feed(event)

    def crash(self, *, flush: bool = True) -> None:
        """Killed: a part of what was not synced may have reached the disk all the same."""
        super().crash(flush=flush)
        self._syncer.stopped = True
        self.disk.crash(self.world.rng.random())

    def _fail(self) -> None:
        """The disk failed: nothing is answered any more, and the process ends."""
        self._checkers.on_store_failed(self.name)
        self.crash()

    # What arrives.

    def _on_items(self, items: list[Item]) -> None:
        recovered = []
        for item in items:
            assert not isinstance(item, Run)
            if item.kind == MessageKind.RETRANSMISSION:
                recovered.append(codec.decode_recovered(item))
            else:
                self._driver.feed(Arrived(codec.decode(item)))
        for data in self._tokens.keep_recovered(recovered):
            self._driver.feed(data)

    def _on_stream(self, session_id: int, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Run):
                incarnation = codec.join(session_id, item.topic_index)
                token = self._tokens.keep(item, incarnation)
                self._driver.feed(
                    Data(incarnation, incarnation, item.first, item.count, item.payload_bytes, False, token)
                )
            else:
                self._driver.feed(Arrived(codec.decode(item)))

    # What is to be done.

    def _perform(self, effect: fx.Effect) -> None:
        if not self.alive:
            return
        match effect:
            case fx.Send():
                self._check(effect.message)
                self.pool.send(effect.to, codec.encode(effect.message))
            case fx.PersistMessages():
                block = self._tokens.block(effect.token, effect.skip, effect.count, effect.done)
                stop = effect.first + effect.count
                self._append(
                    Record(
                        effect.ticket,
                        Kind.MESSAGES,
                        None,
                        effect.source_reg_id,
                        effect.first,
                        stop,
                        effect.incarnation,
                        block,
                    )
                )
            case fx.Discard():
                self._tokens.drop(effect.token)
            case fx.PersistClient():
                self._remember(effect)
            case fx.Cut():
                self._checkers.on_cut(self.name, effect.source_reg_id, effect.number)
                self._append(Record(effect.ticket, Kind.CUT, None, effect.source_reg_id, effect.number))
            case fx.Forget():
                self._forget(effect)
            case fx.SendStored():
                parts = list(self._stored(effect))
                if parts:
                    self.pool.send(effect.to, b"".join(parts))
            case fx.Join():
                self._join(effect)
            case fx.Leave():
                joiner = self._joiners.pop(effect.incarnation, None)
                if joiner is not None:
                    joiner.abandon()
            case fx.Notify():
                self._checkers.on_oddity(effect.event)
            case fx.Broadcast() | fx.Release() | fx.Resend() | fx.Deliver() | fx.AskRegId() | fx.AskLow():
                raise AssertionError(f"a store does not {type(effect).__name__}")
            case _:
                assert_never(effect)

    def _remember(self, effect: fx.PersistClient) -> None:
        client = effect.client
        state = partial(client_record, client)
        self._append(Record(effect.ticket, Kind.STATE, state, client.reg_id, tag=client.incarnation))

    def _forget(self, effect: fx.Forget) -> None:
        self._append(Record(effect.ticket, Kind.STATE, partial(forget_record, effect.reg_id), effect.reg_id))
        if effect.role is Role.SOURCE:
            self._checkers.on_cut(self.name, effect.reg_id, 0)
            self._append(Record(effect.ticket, Kind.CUT, None, effect.reg_id, 0))

    def _append(self, record: Record) -> None:
        self._syncer.append(record)

    def _check(self, message: Message) -> None:
        """What a store says it holds it holds."""
        if isinstance(message, Registered):
            self._checkers.on_granted(self.name, message.reg_id, message.incarnation)
        elif isinstance(message, StableAck):
            self._check_ack(message)

    def _check_ack(self, ack: StableAck) -> None:
        repository = self.machine.repositories.get(self.machine.streams.get(ack.incarnation, 0))
        if repository is not None:
            first = serial.extend(ack.first, repository.newest)
            stop = serial.extend(ack.last, first) + 1
            self._checkers.on_acknowledged(self.name, ack.incarnation, first, stop)

    def _join(self, effect: fx.Join) -> None:
        if effect.incarnation in self._joiners:
            return
        session_id, _ = codec.split(effect.incarnation)

        def ended(gone: bool) -> None:
            if gone:
                self._joiners.pop(effect.incarnation, None)
            self._driver.feed(Gone(effect.transport) if gone else Ended(effect.incarnation))

        self._joiners[effect.incarnation] = Joiner(self, effect.transport, session_id, self._on_stream, ended)

    def _stored(self, effect: fx.SendStored) -> Iterator[bytes]:
        for number, record in self.disk.read(effect.source_reg_id, effect.first, effect.last + 1):
            payload = payloads(record.block, number - record.first, 1)[0]
            yield codec.encode_recovered(codec.Recovered(effect.session, record.tag, serial.wire(number), payload))
