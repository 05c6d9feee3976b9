"""A service and its clients, frame by frame, in virtual time."""

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.srs.events import (
    BytesReceived,
    ConnectionAccepted,
    ConnectionClosed,
    Disconnect,
    SendBytes,
)
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.resolution.srs.settings import ServiceConfig
from stablecast.transports.resolution.srs.source_records import source_info
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameKind
from tests.transports.resolution.invariants import check_service

CONFIG = ServiceConfig(100 * SECOND, 50 * SECOND, SECOND, max_clients=3, max_sources=2, max_interests=3, max_patterns=1)
SETUP = rsocket.setup_frame(rsocket.RsocketSetup(5000, 15_000))
ASK = Frame(FrameKind.REQUEST_STREAM, 5, 0, rsocket.FOREVER, payload=srs.encode(srs.StreamRequest()))


def info(topic: str = "orders", index: int = 1, instance: bytes = b"instance") -> srs.SourceInfo:
    return source_info(topic, SourceRecord("10.0.0.1:14371", 7, index, instance=instance))


def register(name: int, counter: int | None = 1, mode: int = srs.FILTER) -> Frame:
    request = srs.RegistrationRequest(address="10.0.0.1", port=1, session_id=name, host_id=0, interest_mode=mode)
    metadata = None if counter is None else srs.hello(counter)
    return Frame(FrameKind.REQUEST_RESPONSE, 1, metadata=metadata, payload=srs.encode(request))


def instance(name: int) -> bytes:
    return name.to_bytes(8)


def tell(*messages: srs.Message) -> Frame:
    return Frame(FrameKind.REQUEST_FNF, 3, payload=b"".join(map(srs.encode, messages)))


def wants(topic: str) -> srs.ReceiverInfo:
    return srs.ReceiverInfo(name=topic, instance=b"instance")


def matches(pattern: str) -> srs.PatternInfo:
    return srs.PatternInfo(name=pattern, instance=b"instance")


class Played:
    """A service, its clients by connection, and the records sent to them."""

    def __init__(self, config: ServiceConfig = CONFIG) -> None:
        self.service = ResolutionService(9, config)
        self.now = 0
        self.cut: list[int] = []
        self.notes: list[str] = []

    def send(self, connection: int, *frames: Frame) -> dict[int, list[srs.Message]]:
        return self.raw(connection, b"".join(map(rsocket.encode, frames)))

    def raw(self, connection: int, data: bytes) -> dict[int, list[srs.Message]]:
        self.service.receive(BytesReceived(connection, data), self.now)
        return self.take()

    def accept(self, connection: int) -> dict[int, list[srs.Message]]:
        self.service.receive(ConnectionAccepted(connection, f"10.0.0.1:{connection}"), self.now)
        return self.take()

    def join(self, connection: int, *told: srs.Message, counter: int | None = 1, name: int = 0) -> list[srs.Message]:
        """Connect a client that announces all its records, and return the records sent to it."""
        self.accept(connection)
        frames = (tell(*told),) if told else ()
        heard = self.send(connection, SETUP, register(name or connection, counter), *frames, ASK)
        return heard.get(connection, [])

    def lose(self, connection: int) -> None:
        self.service.receive(ConnectionClosed(connection), self.now)
        self.take()

    def at(self, now: int) -> dict[int, list[srs.Message]]:
        self.now = now
        self.service.handle_timeout(now)
        return self.take()

    def take(self) -> dict[int, list[srs.Message]]:
        check_service(self.service)
        heard: dict[int, list[srs.Message]] = {}
        for effect in self.service.take_effects():
            match effect:
                case SendBytes(connection, data):
                    for frame in rsocket.FrameDecoder().feed(data):
                        heard.setdefault(connection, []).extend(srs.decode(frame.payload))
                case Disconnect(connection):
                    self.cut.append(connection)
                case Remark(text):
                    self.notes.append(text)
        return heard
