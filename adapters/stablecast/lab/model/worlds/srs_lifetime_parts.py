"""Define the parts of the world of `tla/SrsLifetime`: constants, written bytes, connections and contexts."""

from functools import cache, lru_cache

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.lab.model.canonical import Fn, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.settings import ClientConfig, ServiceConfig
from stablecast.transports.resolution.srs.source_records import source_info
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import FrameKind

TOPIC = "topic"
SERVICE = "10.0.0.9:27000"
LOCAL = "10.0.0.1:41000"
ADDRESS = "10.0.0.1:14371"
NONE = -1
"""A timer that is not armed, in the model."""
MOST_WORDS = 4_096
"""Most writes whose meaning is cached; they recur."""


@attrs.frozen
class SrsConstants:
    Contexts: int
    Sources: frozenset[int]
    Wants: frozenset[int]
    Heirs: frozenset[int]
    SourceLifetime: int
    InterestLifetime: int
    Backoff: int
    Grace: int
    Keepalive: int
    Silence: int
    Room: int
    Breaks: int
    Faults: frozenset[str]

    @property
    def tick(self) -> int:
        """A tick in ns.

        Without keepalives no connection counts as silent. Spans of keepalives are whole seconds.
        """
        return SECOND if self.Keepalive else 1

    def service(self) -> ServiceConfig:
        spans = (self.SourceLifetime, self.InterestLifetime, self.Backoff)
        return ServiceConfig(*(span * self.tick for span in spans))

    def client(self) -> ClientConfig:
        """Return a context's settings; it may reconnect at once."""
        grace = self.Grace * self.tick
        if not self.Keepalive:
            return ClientConfig(retry_min_ns=0, retry_max_ns=0, grace_ns=grace)
        keepalive, lifetime = self.Keepalive * self.tick, self.Silence * self.tick
        return ClientConfig(keepalive, lifetime, retry_min_ns=0, retry_max_ns=0, grace_ns=grace)


@attrs.frozen
class WrittenFrames:
    """Hold the bytes of one write and its form in the model."""

    octets: bytes
    seen: Fn


@lru_cache(MOST_WORDS)
def to_service(octets: bytes) -> WrittenFrames:
    """Decode a context's write."""
    frames = rsocket.FrameDecoder().feed(octets)
    kinds = {frame.kind for frame in frames}
    messages = [message for frame in frames if frame.payload for message in _decoded(frame)]
    types = {type(message) for message in messages}
    every = FrameKind.REQUEST_STREAM in kinds
    kind = "hello" if FrameKind.SETUP in kinds else "all" if every else _ASKED[frozenset(types)]
    source, want = every and srs.SourceInfo in types, every and srs.ReceiverInfo in types
    of = frozenset(named(message.source) for message in messages if isinstance(message, srs.LeaveInfo))
    return WrittenFrames(octets, record(kind=kind, source=source, want=want, of=of))


@lru_cache(MOST_WORDS)
def to_context(octets: bytes) -> WrittenFrames:
    """Decode a write of the service."""
    messages = [
        message for frame in rsocket.FrameDecoder().feed(octets) if frame.payload for message in _decoded(frame)
    ]
    infos = [message for message in messages if isinstance(message, srs.SourceInfo)]
    kinds = {type(message) for message in messages} - {srs.SourceInfo}
    kind = _TOLD[kinds.pop()] if len(kinds) == 1 else "pong"
    if infos and kind == "pong":
        kind = " ".join(sorted({"down" if info.cost == srs.ENDED else "up" for info in infos}))
    return WrittenFrames(octets, record(kind=kind, of=frozenset(number_of(info.instance) for info in infos)))


_ASKED = {
    frozenset({srs.SourceInfo}): "sir",
    frozenset({srs.SourceDelete}): "sdr",
    frozenset({srs.ReceiverInfo}): "rir",
    frozenset({srs.ReceiverDelete}): "rdr",
    frozenset({srs.LeaveInfo}): "slr",
    frozenset(): "ping",
}
_TOLD: dict[type, str] = {
    srs.RegistrationResponse: "hello",
    srs.StreamRequest: "told",
    srs.ReceiverDelete: "rdr",
}


def _decoded(frame: rsocket.Frame) -> list[srs.Message]:
    return [] if frame.kind is FrameKind.SETUP else srs.decode(frame.payload)


@attrs.frozen
class Wire:
    """Hold a connection. `number` is its name at the service; a hung one passes no bytes and notifies neither end."""

    number: int = 0
    there: tuple[WrittenFrames, ...] = ()
    back: tuple[WrittenFrames, ...] = ()
    hung: bool = False


@attrs.frozen
class Former:
    """Hold a connection that the context has left; with `ends` the service will read its end."""

    number: int = 0
    there: tuple[WrittenFrames, ...] = ()
    ends: bool = False


@attrs.define
class ContextNode:
    """Hold a context: its machine while it runs, and its connections."""

    number: int
    app: str
    shared: SharedMachine[SrsContext] | None = None
    wire: Wire = Wire()
    former: Former = Former()

    @property
    def context(self) -> SrsContext:
        """The machine while it runs; do not change it."""
        assert self.shared is not None
        return self.shared.machine

    def own(self) -> SrsContext:
        """Return the machine for a change."""
        assert self.shared is not None
        context = self.shared.own()
        for link in context.links:
            link.out = context.outbox  # Links and context share the queue, which a copy does not preserve.
        return context

    def begin(self, constants: SrsConstants) -> None:
        """Start the application with its source and its interest."""
        context = SrsContext.create(instance_of(self.number), (SERVICE,), self.number, constants.client())
        if self.number in constants.Sources:
            context.receive(source(self.number), 0)
        if self.number in constants.Wants:
            context.receive(AddReceiver(TOPIC), 0)
        context.take_effects()
        self.app, self.shared = "up", SharedMachine(context)


def source(number: int) -> AddSource:
    return AddSource(TOPIC, ADDRESS, number, 0, "", persistent=False)


def named(place: str) -> int:
    """Return the context that a source string belongs to: the session ID is its number."""
    return int(place.partition("[")[0].rpartition(":")[2], 16)


@cache
def otid_of(number: int) -> bytes:
    """Return the name of a context's source."""
    return source_info(TOPIC, SourceRecord(ADDRESS, number, 0, instance=instance_of(number))).otid


def instance_of(number: int) -> bytes:
    return number.to_bytes(8)


def number_of(instance: bytes) -> int:
    return int.from_bytes(instance)
