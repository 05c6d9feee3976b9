"""A router on the virtual clock, between the domains 1, 2 and 3, with portals 0, 1 and 2."""

from typing import Any, TypeVar

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import SourceInfo
from stablecast.transports import codec
from stablecast.transports.codec import places
from stablecast.transports.codec.lbttcp import Run, StreamDecoder, build
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.portals import PortalSettings
from stablecast.transports.routing.router import Router
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.lbmc import Message

EffectT = TypeVar("EffectT")

ORDERS = lbmr.TopicQuery("orders")
PATTERN = lbmr.WildcardQuery(lbmr.PatternLanguage.PCRE, "^ord")
NAMES = (b"portal-1", b"portal-2", b"portal-3")
SESSION, INDEX = 99, 5


def record(session: int = 7, index: int = 1, **more: Any) -> SourceRecord:
    """A source at 10.0.1.1, which is the origin."""
    found = SourceRecord("10.0.1.1:14371", session, index, "10.0.1.1:14391", instance=b"context0", **more)
    transport = places.transport_of(found.address, session)
    return attrs.evolve(found, origin=places.otid(transport, index, 1, 2))


SOURCE = record()
ORIGIN = SOURCE.origin


def packet(*queries: lbmr.Query, instance: bytes = b"context9", kind: int = lbmr.SourceType.APPLICATION) -> lbmr.Packet:
    wild = bool(queries) and isinstance(queries[0], lbmr.WildcardQuery)
    name = lbmr.PacketKind.WILDCARD if wild else lbmr.PacketKind.NORMAL
    return lbmr.Packet(name, queries, (), lbmr.standard_options(instance, kind))


def uses(query: lbmr.Query, kind: int, flags: int = 0, instance: bytes = b"context9") -> lbmr_extended.Packet:
    """A record of topic management of a context."""
    body = lbmr_extended.Management(records=(lbmr_extended.TopicRecord.of(query, kind, flags),))
    return lbmr_extended.Packet(body, lbmr.standard_options(instance))


def run(first: int, count: int = 1, size: int = 10, index: int = 1) -> Run:
    """Plain messages of a source."""
    block = build(index, first, [bytes(size)] * count)
    return Run(index, first, count, size * count, block)


def items_of(octets: bytes) -> list[Run | Message]:
    return StreamDecoder().feed(octets)


def info(life: int = SOURCE.hop, **more: Any) -> Message:
    """The announcement of a source, as a message of its stream."""
    (message,) = items_of(codec.encode(SourceInfo(life, "orders", 1, 1, 0, "10.0.1.1:14391", (), False, (), **more)))
    assert isinstance(message, Message)
    return message


@attrs.define
class Bench:
    """Feeds a router and collects its effects."""

    router: Router
    now: int = 0
    effects: list[fx.RouterEffect] = attrs.field(factory=list)

    @classmethod
    def begun(cls, domains: int = 2, **more: Any) -> "Bench":
        """A router that forwards, and whose first effects are forgotten."""
        settings = [PortalSettings(f"p{n + 1}", n + 1, (NAMES[n],), cost=n + 1, **more) for n in range(domains)]
        bench = cls(Router.create(settings, 0))
        bench.run(3 * SECOND)
        bench.effects.clear()
        return bench

    def feed(self, *events: ev.RouterInput) -> list[fx.RouterEffect]:
        found: list[fx.RouterEffect] = []
        for event in events:
            self.router.receive(event, self.now)
            found += self.router.take_effects()
        self.effects += found
        return found

    def run(self, span: int) -> list[fx.RouterEffect]:
        """Let time pass, and return what is due."""
        end, found = self.now + span, list[fx.RouterEffect]()
        while (due := self.router.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.router.handle_timeout(self.now)
            found += self.router.take_effects()
        self.now = end
        self.effects += found
        return found

    def of(self, kind: type[EffectT]) -> list[EffectT]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def flowing(self) -> "Bench":
        """A receiver in domain 2 gets what the source in domain 1 sends."""
        self.feed(ev.Overheard(1, packet(ORDERS)), ev.SourceFound(0, "orders", SOURCE))
        self.feed(ev.ProxyOpened(1, ORIGIN, SESSION, INDEX))
        return self

    def sent(self) -> list[Run | Message]:
        """What left through portal 1."""
        return items_of(b"".join(one.octets for one in self.of(fx.Forward) if one.portal == 1))
