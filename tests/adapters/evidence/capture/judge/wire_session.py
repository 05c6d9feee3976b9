"""A session on the wire: a source, its stores and a receiver send packets at chosen times."""

import struct
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.protocol import messages as core
from stablecast.core.protocol.messages import Address, Pace, Role
from stablecast.transports import codec
from stablecast.transports.wire import lbmc, lbtrm
from tests.support import captures
from tests.support.captures import datagram, segment
from tests.support.pcap import SECOND

SID, TOPIC = 0x0A0B0C0D, 77
LIFE = codec.join(SID, TOPIC)
STREAM, REQUEST, READER = "10.0.0.1:14371", "10.0.0.1:14391", "10.0.0.9:14391"
STORES = tuple(f"10.0.1.{store}:14567" for store in range(3))
MS = 1_000_000
SYN = 0x02
GROUP, SESSION = ("224.10.10.10", 14400), 0x5E5510
SENDER, NAKS, ASKER = ("10.0.0.1", 50_000), ("10.0.0.1", 14_390), ("10.0.0.9", 14_391)


def ends(address: Address) -> tuple[str, int]:
    host, _, port = address.partition(":")
    return host, int(port)


@attrs.define
class Talk:
    """`now` is milliseconds since the beginning."""

    now: int = 0
    packets: list[tuple[int, bytes]] = attrs.field(factory=list)
    sequences: dict[tuple[Address, Address], int] = attrs.field(factory=dict)

    def say(self, source: Address, target: Address, *octets: bytes) -> None:
        """Send bytes over a connection, which opens with the first of them."""
        key = source, target
        if key not in self.sequences:
            self.add(segment(ends(source), ends(target), 1000, b"", SYN))
            self.sequences[key] = 1001
        payload = b"".join(octets)
        self.add(segment(ends(source), ends(target), self.sequences[key], payload))
        self.sequences[key] += len(payload)

    def add(self, packet: bytes) -> None:
        """Add a packet, one millisecond after the last one."""
        self.now += 1
        self.packets.append((self.now, packet))

    def rm(self, packet: lbtrm.Packet) -> None:
        """Add a datagram of LBT-RM."""
        asking = isinstance(packet, lbtrm.Nak)
        self.add(datagram(*((ASKER, NAKS) if asking else (SENDER, GROUP)), lbtrm.encode(packet)))

    def write(self, path: Path) -> Path:
        lines = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, captures.RAW)]
        for at, packet in self.packets:
            seconds, rest = divmod(at * MS, 1_000_000_000)
            lines.append(struct.pack("<IIII", SECOND + seconds, rest, len(packet), len(packet)) + packet)
        path.write_bytes(b"".join(lines))
        return path


def stream(store: int) -> Address:
    """Return the endpoint of a store, or of the receiver (3), on the stream."""
    return f"10.0.1.{store}:40000" if store < len(STORES) else "10.0.0.9:40000"


@attrs.define
class World:
    """A source, its stores and a receiver; `sid` may change for another life of the source."""

    talk: Talk = attrs.field(factory=Talk)
    sid: int = SID

    @property
    def life(self) -> int:
        return codec.join(self.sid, TOPIC)

    def message(self, source: Address, target: Address, message: core.Message) -> None:
        """Send a control message over a connection."""
        self.talk.say(source, target, codec.encode(message))

    def register(self, role: Role, store: int, reply_to: Address, reg_id: int = 0, **more: Any) -> None:
        """Register a client; its connection is named after its reply address."""
        session = core.Register(
            role, store, 1, reg_id, self.life, 0, "topic", 0, reply_to, STREAM, 10_000, 600_000, **more
        )
        self.message(client(reply_to, store), STORES[store], session)

    def grant(self, role: Role, store: int, reply_to: Address, reg_id: int, low: int = 0, **more: Any) -> None:
        registered = core.Registered(
            role, store, 1, reg_id, self.life, False, low, (low - 1) % (1 << 32), 10_000, 600_000, **more
        )
        self.message(f"10.0.1.{store}:50000", reply_to, registered)

    def begin(self, low: int = 0, listeners: tuple[int, ...] = (0, 1, 2, 3), **more: Any) -> None:
        """Register the source, greet the listeners, and send its SRI."""
        for store in range(len(STORES)):
            self.register(Role.SOURCE, store, REQUEST, **more)
            self.grant(Role.SOURCE, store, REQUEST, 100 + store, **more)
        entries = tuple(core.StoreEntry(store, 0, STORES[store], 100 + store, 1) for store in range(len(STORES)))
        wire = (low - 1) % (1 << 32)
        info = core.SourceInfo(self.life, "topic", 1, low, wire, REQUEST, (3,), False, entries)
        for store in listeners:
            self.talk.say(STREAM, stream(store), codec.greeting(self.sid), codec.encode(info))

    def send(self, *numbers: int, listeners: tuple[int, ...] = (0, 1, 2, 3)) -> None:
        for number in numbers:
            octets = lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, TOPIC, number, (), b"hello"))
            for store in listeners:
                self.talk.say(STREAM, stream(store), octets)

    def ack(self, store: int, first: int, last: int) -> None:
        """Let a store acknowledge these numbers."""
        self.message(f"10.0.1.{store}:50000", REQUEST, core.StableAck(store, self.life, first, last))

    def consume(self, store: int, number: int, reg_id: int = 200, reply_to: Address = READER) -> None:
        """Let a receiver acknowledge everything up to this."""
        ack = core.ConsumptionAck(self.life, 100 + store, reg_id, number)
        self.message(client(reply_to, store), STORES[store], ack)

    def wait(self, milliseconds: int) -> None:
        """Let time pass without packets."""
        self.talk.now += milliseconds


def client(reply_to: Address, store: int) -> Address:
    """Return the connection of a process to a store."""
    host, port = ends(reply_to)
    return f"{host}:{port + 10_000 + store}"


def settled(world: World) -> World:
    """Return an ordinary session: all messages are acknowledged and consumed, for some seconds."""
    world.begin()
    for store in range(len(STORES)):
        world.register(Role.RECEIVER, store, READER)
        world.grant(Role.RECEIVER, store, READER, 200)
    for number in range(40):
        world.send(number)
        for store in range(len(STORES)):
            world.ack(store, number, number)
        if number % 5 == 4:
            for store in range(len(STORES)):
                world.consume(store, number)
        world.wait(100)
    return world


def paced() -> dict[str, Any]:
    """Return the description of a source that receivers pace."""
    return {"pace": Pace.RECEIVERS}
