"""What the world of `tla/SrsLifetime` is made of: constants, what is said on connections, and each context's part."""

from functools import cache, lru_cache

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.lab.model.canonical import Fn, record
from stablecast.lab.model.clone import Shared
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
"""A timer that is not armed, as the model writes it."""
MOST_WORDS = 4_096
"""Writes whose meaning is remembered: they recur."""


@attrs.frozen
class Constants:
    """The model's constants."""

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
        """Nanoseconds. Without keepalives nothing is ever silent: the spans that are allowed are seconds."""
        return SECOND if self.Keepalive else 1

    def service(self) -> ServiceConfig:
        """The service's settings."""
        spans = (self.SourceLifetime, self.InterestLifetime, self.Backoff)
        return ServiceConfig(*(span * self.tick for span in spans))

    def client(self) -> ClientConfig:
        """A context's settings: it may connect again at once."""
        grace = self.Grace * self.tick
        if not self.Keepalive:
            return ClientConfig(retry_min_ns=0, retry_max_ns=0, grace_ns=grace)
        keepalive, lifetime = self.Keepalive * self.tick, self.Silence * self.tick
        return ClientConfig(keepalive, lifetime, retry_min_ns=0, retry_max_ns=0, grace_ns=grace)


@attrs.frozen
class Said:
    """What was written at one time, and what the model sees of it."""

    octets: bytes
    seen: Fn


@lru_cache(MOST_WORDS)
def to_service(octets: bytes) -> Said:
    """What a context wrote."""
    frames = rsocket.FrameDecoder().feed(octets)
    kinds = {frame.kind for frame in frames}
    messages = [message for frame in frames if frame.payload for message in _decoded(frame)]
    types = {type(message) for message in messages}
    every = FrameKind.REQUEST_STREAM in kinds
    kind = "hello" if FrameKind.SETUP in kinds else "all" if every else _ASKED[frozenset(types)]
    source, want = every and srs.SourceInfo in types, every and srs.ReceiverInfo in types
    of = frozenset(named(message.source) for message in messages if isinstance(message, srs.LeaveInfo))
    return Said(octets, record(kind=kind, source=source, want=want, of=of))


@lru_cache(MOST_WORDS)
def to_context(octets: bytes) -> Said:
    """What the service wrote."""
    messages = [
        message for frame in rsocket.FrameDecoder().feed(octets) if frame.payload for message in _decoded(frame)
    ]
    infos = [message for message in messages if isinstance(message, srs.SourceInfo)]
    kinds = {type(message) for message in messages} - {srs.SourceInfo}
    kind = _TOLD[kinds.pop()] if len(kinds) == 1 else "pong"
    if infos and kind == "pong":
        kind = " ".join(sorted({"down" if info.cost == srs.ENDED else "up" for info in infos}))
    return Said(octets, record(kind=kind, of=frozenset(number_of(info.instance) for info in infos)))


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
    """A connection. `number`: its name at the service; `hung`: nothing passes, and nobody is told."""

    number: int = 0
    there: tuple[Said, ...] = ()
    back: tuple[Said, ...] = ()
    hung: bool = False


@attrs.frozen
class Former:
    """A connection that the context has left; `ends`: the service will read its end."""

    number: int = 0
    there: tuple[Said, ...] = ()
    ends: bool = False


@attrs.define
class Node:
    """A context: its machine while it runs, and its connections."""

    number: int
    app: str
    shared: Shared[SrsContext] | None = None
    wire: Wire = Wire()
    former: Former = Former()

    @property
    def context(self) -> SrsContext:
        """The machine while it runs; not to be changed."""
        assert self.shared is not None
        return self.shared.machine

    def own(self) -> SrsContext:
        """The machine, to be changed."""
        assert self.shared is not None
        self.shared = self.shared.own()
        context = self.shared.machine
        for link in context.links:
            link.out = context.outbox  # They share it, which a copy does not know.
        return context

    def begin(self, constants: Constants) -> None:
        """The application starts, with its source and its interest."""
        context = SrsContext.create(instance_of(self.number), (SERVICE,), self.number, constants.client())
        if self.number in constants.Sources:
            context.receive(source(self.number), 0)
        if self.number in constants.Wants:
            context.receive(AddReceiver(TOPIC), 0)
        context.take_effects()
        self.app, self.shared = "up", Shared(context)


def source(number: int) -> AddSource:
    """The source of a context."""
    return AddSource(TOPIC, ADDRESS, number, 0, "", persistent=False)


def named(place: str) -> int:
    """The context of the source with this source string: the session ID is its number."""
    return int(place.partition("[")[0].rpartition(":")[2], 16)


@cache
def otid_of(number: int) -> bytes:
    """The name of a context's source."""
    return source_info(TOPIC, SourceRecord(ADDRESS, number, 0, instance=instance_of(number))).otid


def instance_of(number: int) -> bytes:
    """The name of a context."""
    return number.to_bytes(8)


def number_of(instance: bytes) -> int:
    """The context that has this name."""
    return int.from_bytes(instance)
