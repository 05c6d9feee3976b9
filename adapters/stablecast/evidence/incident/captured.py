"""The acts of endpoints as one capture shows them.

A capture has no reports of stability or delivery. A message counts as stable when the acknowledgements of enough stores
have come to the source, by the groups that the source announces. It counts as delivered when it and all before it have
come to the host of the receiver.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.quorum import quorum_of
from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.ip import Endpoint, TcpSegment
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.capture.statements import (
    At,
    Ends,
    MissingBytes,
    RepeatedRun,
    SentStatement,
    StatedDatagram,
    StatedMessage,
    Statement,
    is_repair,
)
from stablecast.evidence.incident.actors import Actor, Notice, NumberedActs, keep
from stablecast.evidence.incident.captured_routers import CapturedRouters
from stablecast.evidence.incident.tcp_lives import Absences, Pulse, Span, TcpLives
from stablecast.evidence.incident.witness import FIRST_MULTICAST, CaptureWitness
from stablecast.evidence.trace.converter import encode_input
from stablecast.transports import codec
from stablecast.transports.wire import lbtrm, lbtru

MAX_ENDPOINTS: Final = 1 << 14
"""Lives of sources, stores and receivers of one capture that are followed, at most."""

SILENT_NS: Final = 12 * SECOND
"""Time without any datagram after which a session is over, ns. An idle source sends one every 10 s."""

SILENT: Final = "its session was silent"


@attrs.frozen
class SeenPacket:
    path: Path
    number: int
    time: int


@attrs.define
class CapturedActor(Actor):
    """One life of an endpoint, as one capture shows it.

    Attributes:
        witness: The capture.
        quiet: Times for which the endpoint sent nothing.
        system: Packets of its host, also those that its system sends for a process that hangs.
        routers: By host: the host of the router that passes messages on between both.
        is_router: Whether it is a router itself, which is a receiver of what it repeats.
    """

    witness: CaptureWitness = attrs.field(kw_only=True)
    quiet: list[Span] = attrs.field(factory=list)
    system: Pulse = attrs.field(factory=Pulse)
    routers: dict[str, str] = attrs.field(factory=dict)
    is_router: bool = False

    @property
    def name(self) -> str:
        return "router" if self.is_router else super().name

    @property
    def clock(self) -> str:
        return self.witness.clock

    @property
    def own(self) -> bool:
        """Return whether the capture was made at the host of the endpoint."""
        return self.witness.address == self.host


@attrs.define
class _CapturedSource:
    """A life of a source: where it sends, its newest number, and what arrives of it, by the host that gets it."""

    host: str = ""
    port: int = 0
    topic: str = ""
    newest: int = 0
    pulse: Pulse = attrs.field(factory=Pulse)
    known: RangeSet = attrs.field(factory=RangeSet)
    sent: NumberedActs = attrs.field(factory=NumberedActs)
    stores: dict[int, str] = attrs.field(factory=dict)
    groups: dict[int, set[int]] = attrs.field(factory=lambda: defaultdict(set))
    sizes: tuple[int, ...] = ()
    acked: dict[int, NumberedActs] = attrs.field(factory=lambda: defaultdict(NumberedActs))
    acknowledged: dict[int, NumberedActs] = attrs.field(factory=lambda: defaultdict(NumberedActs))
    spoke: dict[int, Pulse] = attrs.field(factory=lambda: defaultdict(Pulse))
    arrived: dict[str, NumberedActs] = attrs.field(factory=lambda: defaultdict(NumberedActs))
    read: dict[str, int] = attrs.field(factory=dict)
    receivers: set[str] = attrs.field(factory=set)
    streams: bool = False
    refusals: list[Notice] = attrs.field(factory=list)
    registered: bool = False

    def number(self, wire: int) -> int:
        return serial.extend(wire, self.newest)


@attrs.define
class CapturedActs:
    """The acts that one capture shows, collected packet by packet."""

    witness: CaptureWitness
    plan: PortPlan
    lives: TcpLives = attrs.field(factory=TcpLives)
    routers: CapturedRouters = attrs.field(factory=CapturedRouters)
    _sessions: dict[tuple[str, int | None], Pulse] = attrs.field(factory=dict)
    _sources: dict[int, _CapturedSource] = attrs.field(factory=dict)
    _stores: dict[str, Pulse] = attrs.field(factory=dict)
    _unread: dict[str, None] = attrs.field(factory=dict)

    def add_packet(self, packet: CapturePacket) -> None:
        """Count a packet of ours, and note that its host is there."""
        self.witness.packets += 1
        self.routers.add_packet(packet)
        # The system answers for processes that died, but not with messages.
        if packet.source is not None and packet.number and packet.layers:
            self.lives.host(packet.source[0]).come(packet.time_ns, packet.number)

    def add(self, statement: Statement, packet: CapturePacket) -> None:
        match statement:
            case SentStatement(at=at, life=life, wire_number=wire, count=count):
                one = self._source(life)
                if one is not None:
                    one.streams |= statement.stream
                    self._sent(at, one, wire, count)
                    if not one.topic and packet.transport is not None:
                        one.topic = self.plan.topic(packet.transport, codec.split(life)[1]) or ""
            case RepeatedRun(at=at, life=life, wire_number=wire, count=count):
                one = self._source(life)
                if one is not None:
                    self._came(at, one, one.number(wire), count)
            case StatedMessage(at=at, message=message):
                self.routers.add_message(at, packet)
                self._said(at, message)
            case MissingBytes(at=at) if len(self._unread) < MAX_ENDPOINTS:
                self._unread[at.ends[1][0]] = None

    def add_segment(self, segment: TcpSegment, time: int, frame: int, ours: bool) -> None:
        """Follow a segment of TCP; its times compare clocks. A refused connection is known by the port of a store."""
        if not ours and not {_text(segment.source), _text(segment.target)} & self._stores.keys():
            return
        self.lives.add(segment, time, frame)
        if segment.payload or segment.syn:
            size = len(segment.payload) + segment.missing
            key = f"tcp {segment.source} {segment.target} {segment.sequence} {segment.flags} {size}"
            self._time_packet((segment.source, segment.target), key, time)

    def add_datagram(self, datagram: StatedDatagram) -> None:
        """Note a datagram of a session: as long as it sends, its source is there."""
        address, _, session = datagram.session
        match datagram.packet:
            case lbtrm.Nak() | lbtru.Nak():
                key = f"nak {datagram.session} {datagram.packet.sqns}"
                self._time_packet(datagram.at.ends, key, datagram.at.time_ns)
            case lbtrm.Data() | lbtru.Data() if not is_repair(datagram.packet):
                key = f"data {datagram.session} {datagram.packet.sqn}"
                self._time_packet(datagram.at.ends, key, datagram.at.time_ns)
        if datagram.at.ends[0][0] == address and len(self._sessions) < MAX_ENDPOINTS:
            self._sessions.setdefault((address, session), Pulse()).beat(datagram.at.time_ns, datagram.at.frame)

    def _seen(self, at: At) -> SeenPacket:
        return SeenPacket(self.witness.path, at.frame, at.time_ns)

    def _source(self, life: int) -> _CapturedSource | None:
        if life not in self._sources and len(self._sources) < MAX_ENDPOINTS:
            self._sources[life] = _CapturedSource()
        return self._sources.get(life)

    def _store(self, address: str) -> Pulse:
        if address not in self._stores and len(self._stores) >= MAX_ENDPOINTS:
            return Pulse()
        return self._stores.setdefault(address, Pulse())

    def _sent(self, at: At, one: _CapturedSource, wire: int, count: int) -> None:
        first = one.number(wire)
        if not one.host:
            one.host, one.port = at.ends[0]
        one.newest = max(one.newest, first + count - 1)
        if at.ends[0][0] == one.host:
            one.pulse.beat(at.time_ns, at.frame)
            # A message goes to each store and receiver by itself, and is sent with the first of them.
            for start, stop in one.known.add(first, first + count):
                one.sent.add(self._seen(at), start, stop)
        self._came(at, one, first, count)

    def _came(self, at: At, one: _CapturedSource, first: int, count: int) -> None:
        host = at.ends[1][0]
        if int(host.partition(".")[0]) >= FIRST_MULTICAST:
            host = self.witness.address if self.witness.address != at.ends[0][0] else ""
        if host:
            one.arrived[host].add(self._seen(at), first, first + count)

    def _said(self, at: At, message: msg.Message) -> None:
        self._time(at, message)
        match message:
            case msg.Register(role=Role.SOURCE, incarnation=life, store_index=index, topic=topic):
                one = self._source(life)
                self._store(_text(at.ends[1]))
                if one is not None:
                    one.host = one.host or at.ends[0][0]
                    one.topic = topic
                    one.stores[index] = _text(at.ends[1])
            case msg.Register(role=Role.RECEIVER, incarnation=life, topic=topic):
                self._store(_text(at.ends[1]))
                if (one := self._source(life)) is not None:
                    one.receivers.add(at.ends[0][0])
                    one.topic = one.topic or topic
            case msg.Registered(role=Role.SOURCE, incarnation=life):
                if life in self._sources:
                    self._sources[life].registered = True
            case msg.Refused(role=Role.SOURCE, incarnation=life):
                self._refused(at, life, message)
            case msg.ConsumptionAck(incarnation=life) if (one := self._source(life)) is not None:
                host = at.ends[0][0]
                one.receivers.add(host)
                if host in self._unread:  # What was cut off in the capture came to it nevertheless.
                    read, stop = one.read.get(host, 0), one.number(message.number) + 1
                    if read < stop:
                        one.arrived[host].add(self._seen(at), read, stop)
                        one.read[host] = stop
            case msg.SourceInfo(incarnation=life) if (one := self._source(life)) is not None:
                one.topic, one.sizes = message.topic, message.group_sizes
                for entry in message.stores:
                    one.stores[entry.index] = entry.address
                    one.groups[entry.group].add(entry.index)
            case msg.StableAck(incarnation=life, store_index=index) if (one := self._source(life)) is not None:
                self._acknowledged(at, one, index, message)

    def _refused(self, at: At, life: int, message: msg.Refused) -> None:
        one = self._source(life)
        if one is not None:
            fields = {"store_index": message.store_index, "reason": int(message.reason)}
            one.refusals.append(Notice(at.time_ns, at.frame, self.witness.path, "Refused", fields))

    def _acknowledged(self, at: At, one: _CapturedSource, index: int, ack: msg.StableAck) -> None:
        first, last = one.number(ack.first), one.number(ack.last)
        one.spoke[index].beat(at.time_ns, at.frame)
        seen = self._seen(at)
        one.acknowledged[index].add(seen, first, last + 1)
        if self.witness.sees_come(at.ends[1][0]) and not ack.nack:
            one.acked[index].add(seen, first, last + 1)

    def _time(self, at: At, message: msg.Message) -> None:
        """Keep the time of a message, as a trace does, to compare the clocks of hosts."""
        self._time_packet(at.ends, json.dumps(encode_input(Arrived(message))["message"], sort_keys=True), at.time_ns)

    def _time_packet(self, ends: Ends, key: str, time: int) -> None:
        """Keep the time of something that left a host, or came to it."""
        here, (sender, target) = self.witness, ends
        if sender[0] == target[0]:
            return
        if here.address in (sender[0], ""):
            keep(here.went, here.repeated, key if here.address else f"via {key}", time)
        if here.address != sender[0]:
            keep(here.came, here.repeated, key, time)

    # ------------------------------------------------------------------------------------------------------- the actors

    def actors(self) -> Iterator[CapturedActor]:
        for life, one in self._sources.items():
            if one.sent.rows or one.refusals:
                yield self._source_actor(life, one)
        for address in self._stores:
            yield from self._store_lives(address)
        for life, one in self._sources.items():
            for host in one.arrived:
                if host not in self.routers.announced:
                    yield from self._receiver_lives(life, one, host)
        for host in self.routers.announced:
            yield from self._router_lives(host)

    def _actor(self, role: Role, endpoint: str, address: str, life: int, pulse: Pulse) -> CapturedActor:
        actor = CapturedActor(self.witness.path, role, endpoint, address, life, witness=self.witness)
        actor.began, actor.opening = pulse.first, pulse.first_frame
        actor.ended, actor.records = pulse.last, pulse.frame + 1
        actor.wall_known, actor.quiet = True, pulse.pauses
        actor.system = self.lives.alive.get(actor.host, Pulse())
        actor.routers = self.routers.passed.get(actor.host, {})
        return actor

    def _source_actor(self, life: int, one: _CapturedSource) -> CapturedActor:
        pulse = one.pulse if one.pulse.first else self.witness.pulse
        actor = self._actor(Role.SOURCE, one.topic or f"{life:x}", f"{one.host}:{one.port}", life, pulse)
        actor.sent, actor.notices = one.sent, one.refusals
        actor.registered = one.registered
        # The system closes the connections of a process that dies; else it may have had nothing to send.
        gone = [span for span in self.lives.host(one.host).all() if span.since >= pulse.last]
        session = self._sessions.get((one.host, codec.split(life)[0]))
        if session is not None and self.witness.pulse.last - session.last > SILENT_NS and not gone:
            gone = [Span(session.last, session.frame, ending=SILENT)]
        actor.ended = gone[0].since if gone else max(pulse.last, self.witness.pulse.last)
        actor.ending = gone[0].ending if gone else ""
        if self.witness.sees_come(one.host):
            actor.stores, actor.acked = dict(sorted(one.stores.items())), one.acked
            groups = one.groups or {0: set(one.stores)}
            sizes = {group: one.sizes[group] if group < len(one.sizes) else len(groups[group]) for group in groups}
            actor.needs = [(sorted(members), quorum_of(sizes[group])) for group, members in groups.items()]
            actor.sizes = one.sizes
            actor.stable = _stable(one, actor.needs)
        for refusal in one.refusals[:1]:
            text = msg.Refusal(refusal.fields["reason"]).text
            at = one.stores.get(refusal.fields["store_index"], "a store")
            fields = {"text": f"store {at} refused the registration: {text}"}
            actor.notices = [*one.refusals, attrs.evolve(refusal, kind="RegistrationError", fields=fields)]
        return actor

    def _store_lives(self, address: str) -> Iterator[CapturedActor]:
        host, _, port = address.rpartition(":")
        pulse = Pulse()
        at: Endpoint = (host, int(port))
        spoken = [self.lives.pulses.get(at, Pulse())]
        spoken += [
            one.spoke[index]
            for one in self._sources.values()
            for index, where in one.stores.items()
            if where == address
        ]
        _merge(pulse, spoken)
        if not pulse.first:
            return
        first = self._actor(Role.STORE, address, address, 0, pulse)
        for life, one in self._sources.items():
            if host in one.arrived:
                first.arrived[life] = one.arrived[host]
            for index, where in one.stores.items():
                if where == address and index in one.acknowledged:
                    first.acknowledged[life] = one.acknowledged[index]
        first.syncs = list(_answers(first))
        yield from self._divided(first, [self.lives.port(at), *self._own_host(host)])

    def _receiver_lives(self, life: int, one: _CapturedSource, host: str) -> Iterator[CapturedActor]:
        stores = {address.rpartition(":")[0] for address in self._stores}
        if not self.witness.address and not one.streams:
            return  # A place in the network has each datagram once, for all of its receivers.
        if not self.witness.sees_come(host) or (host in stores and host not in one.receivers):
            return
        rows = one.arrived[host].rows
        pulse = Pulse(rows[0].time, rows[0].record, max(self.witness.pulse.last, rows[-1].until), rows[-1].record)
        actor = self._actor(Role.RECEIVER, one.topic or f"{life:x}", f"{host}:0", life, pulse)
        actor.arrived[life] = one.arrived[host]
        lives = [*self._divided(actor, self._own_host(host))]
        for each in lives:
            mine = NumberedActs([act for act in rows if each.began <= act.time <= each.ended])
            each.arrived = defaultdict(NumberedActs, {life: mine})
            each.delivered = _in_order(mine)
            yield each

    def _router_lives(self, host: str) -> Iterator[CapturedActor]:
        pulse = Pulse(self.witness.pulse.first, self.witness.pulse.first_frame)
        pulse.last, pulse.frame = self.witness.pulse.last, self.witness.pulse.frame
        actor = self._actor(Role.RECEIVER, "", f"{host}:0", 0, pulse)
        actor.is_router = True
        yield from self._divided(actor, [Absences(self.routers.away(host, self.lives.host(host).all()))])

    def _own_host(self, host: str) -> list[Absences]:
        """Return the absences of a whole host, if the capture has all of its connections."""
        return [self.lives.host(host)] if self.witness.sees_come(host) else []

    def _divided(self, actor: CapturedActor, absences: Iterable[Absences]) -> Iterator[CapturedActor]:
        """Yield the lives of an endpoint: its first one, which has all acts, and one for each return."""
        spans = sorted((span for one in absences for span in one.all()), key=lambda span: span.since)
        end, last = max(actor.ended, self.witness.pulse.last), actor
        for span in spans:
            if not actor.began < span.since < end or span.since < last.began:
                continue
            last.ended, last.records, last.ending = span.since, span.frame + 1, span.ending
            yield last
            if not span.until:
                return
            last = CapturedActor(
                actor.path, actor.role, actor.endpoint, actor.address, actor.life, witness=actor.witness
            )
            last.began, last.opening, last.wall_known = span.until, span.last_frame, True
            last.quiet, last.system = actor.quiet, actor.system
            last.routers, last.is_router = actor.routers, actor.is_router
        last.ended, last.records = end, max(last.records, last.opening + 1)
        yield last


def _text(at: Endpoint) -> str:
    return f"{at[0]}:{at[1]}"


def _merge(into: Pulse, pulses: Iterable[Pulse]) -> None:
    """Join pulses of one process: it pauses when all of them do."""
    edges = []
    for one in pulses:
        if one.first:
            edges += [(one.first, one.first_frame), (one.last, one.frame)]
            edges += [(span.since, span.frame) for span in one.pauses]
            edges += [(span.until, span.last_frame) for span in one.pauses]
    # Between two pauses of a pulse there are packets, which are not kept: they end each pause of another pulse.
    busy = [span for one in pulses if one.first for span in _busy(one)]
    for time, frame in sorted(edges):
        into.beat(time, frame)
    into.pauses = [
        span for span in into.pauses if not any(since < span.until and until > span.since for since, until in busy)
    ]


def _busy(one: Pulse) -> Iterator[tuple[int, int]]:
    since = one.first
    for span in one.pauses:
        yield since, span.since
        since = span.until
    yield since, one.last


def _stable(one: _CapturedSource, needs: list[tuple[list[int], int]]) -> NumberedActs:
    """Return when messages became stable: enough acknowledgements of a group had come."""
    found, done = NumberedActs(), RangeSet()
    held: dict[int, RangeSet] = defaultdict(RangeSet)
    acts = sorted(
        ((act.until, index, act) for index, acts in one.acked.items() for act in acts.rows), key=lambda a: a[:2]
    )
    for _, index, act in acts:
        held[index].add(act.first, act.stop)
        for members, needed in needs:
            if index not in members:
                continue
            edges = {act.first, act.stop}
            for other in members:
                edges |= {at for bounds in held[other].within(act.first, act.stop) for at in bounds}
            row = sorted(edges)
            for start, stop in pairwise(row):
                if sum(start in held[other] for other in members) >= needed:
                    for first, last in done.add(start, stop):
                        found.add(SeenPacket(act.path, act.record, act.until), first, last)
    return found


def _in_order(arrived: NumberedActs) -> NumberedActs:
    """Return when messages had come with all before them. Those that never came are passed over."""
    found, held = NumberedActs(), RangeSet()
    ever = RangeSet()
    for act in arrived.rows:
        ever.add(act.first, act.stop)
    front = arrived.rows[0].first if arrived.rows else 0
    for act in arrived.rows:
        held.add(act.first, act.stop)
        while True:
            stop = held.contiguous_from(front)
            if stop > front:
                found.add(SeenPacket(act.path, act.record, act.until), front, stop)
                front = stop
            gone = ever.missing(front, act.stop)
            if not gone or gone[0][0] != front:
                break
            front = gone[0][1]
    return found


def _answers(store: CapturedActor) -> Iterator[tuple[int, int, int]]:
    """Yield arrival and acknowledgement of messages that were not sent again, and the packet."""
    for life, acts in store.acknowledged.items():
        rows = store.arrived[life].rows if life in store.arrived else []
        at = 0
        for ack in acts.rows:
            while at < len(rows) and rows[at].stop <= ack.first:
                at += 1
            if at < len(rows) and rows[at].first <= ack.first and rows[at].time <= ack.time:
                yield rows[at].time, ack.time, ack.record
