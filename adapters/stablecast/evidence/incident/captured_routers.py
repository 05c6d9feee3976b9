"""The routers in a capture: which hosts they are, when they were away, and between whom they pass messages on."""

from collections import defaultdict
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.statements import At
from stablecast.evidence.incident.tcp_lives import Pulse, Span
from stablecast.transports.wire import lbmr_extended, srs

MAX_ROUTERS: Final = 1 << 10
"""Hosts of routers that are followed, at most."""

MAX_PASSED: Final = 1 << 14
"""Hosts between which routers pass messages on, at most."""

AWAY_NS: Final = 4 * SECOND
"""Time without routes after which a router is away, ns: it announces them every second, and another one takes over."""

AWAY: Final = "it announced no routes"


@attrs.define
class CapturedRouters:
    """What one capture shows of routers.

    Attributes:
        announced: By the host of each router: its announcements of routes over UDP.
        passed: By host: the hosts with which it exchanges messages through a router, and the host of that.
    """

    announced: dict[str, Pulse] = attrs.field(factory=dict)
    passed: dict[str, dict[str, str]] = attrs.field(factory=lambda: defaultdict(dict))

    def add_packet(self, packet: CapturePacket) -> None:
        for layer in packet.layers:
            match layer.record:
                case lbmr_extended.Packet(body=lbmr_extended.DomainRoute() as route):
                    pulse = self._router(route.address)
                    if pulse is not None:
                        pulse.beat(packet.time_ns, packet.number)
                case srs.RouteInfo() as info:
                    self._router(info.address)

    def add_message(self, at: At, packet: CapturePacket) -> None:
        """Learn from a message who passed it on: its packet has another end than the message."""
        (origin, _), (target, _) = at.ends
        if packet.source is None or packet.target is None or origin == target or len(self.passed) >= MAX_PASSED:
            return
        hop = packet.source[0] if packet.source[0] != origin else packet.target[0]
        if hop not in (origin, target):
            self.passed[origin][target] = self.passed[target][origin] = hop

    def away(self, host: str, gone: list[Span]) -> list[Span]:
        """Return when a router was away: when its connections had ended, and else when it announced nothing."""
        quiet = [
            attrs.evolve(one, ending=AWAY) for one in self.announced[host].pauses if one.until - one.since > AWAY_NS
        ]
        return gone + [
            one for one in quiet if not any(span.since < one.until and one.since < span.until for span in gone)
        ]

    def _router(self, host: str) -> Pulse | None:
        if host not in self.announced and len(self.announced) >= MAX_ROUTERS:
            return None
        return self.announced.setdefault(host, Pulse())
