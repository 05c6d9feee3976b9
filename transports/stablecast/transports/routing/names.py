"""Names of stores across domains: what one domain asks, the others are asked, and their answers go back (R-222).

The router remembers which domains look for a name, and for how long. It keeps no addresses: stores answer each
question, and announce themselves when they start or move. So an answer is never older than its store.
"""

from collections.abc import Iterator

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.schedule import Limiter
from stablecast.transports.resolution.udp.settings import RateLimit
from stablecast.transports.resolution.udp.store_names import MAX_NAME_BYTES, MAX_NAMES
from stablecast.transports.routing.link_messages import NameTold
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.fields import name_of, octets_of

FORGET_NS = 900 * SECOND
"""Time for which a domain looks for a name after its last question (R-224)."""

RATE = RateLimit(records=100, bits=0)
"""Questions that one domain is asked on behalf of the others in a second; contexts repeat theirs."""

_INFO, _RECORD = lbmr.ContextInfo, lbmr_extended.RemoteRecord

AnyPacket = lbmr.AnyPacket | lbmr_extended.Packet


def question(name: str) -> lbmr_extended.RemoteRecord:
    """Return the question for a name, on behalf of another domain."""
    return _RECORD(_RECORD.QUERY, (lbmr_extended.RemoteName(flags=0, name=octets_of(name) + b"\0"),))


@attrs.define
class DomainNames:
    """The names that one domain looks for, each with its last question (ns), and the limit of questions to it."""

    asked: dict[str, int] = attrs.field(factory=dict)
    limiter: Limiter = attrs.field(factory=lambda: Limiter(RATE))

    def ask(self, name: str, now: int) -> bool:
        """Note that the domain looks for a name; return whether others may be asked for it."""
        if not 0 < len(octets_of(name)) <= MAX_NAME_BYTES:
            return False
        self.asked.pop(name, None)
        self.asked[name] = now  # at the end, so that the longest silent one is the first
        if len(self.asked) > MAX_NAMES:
            del self.asked[next(iter(self.asked))]
        return True

    def admits(self, now: int) -> bool:
        """Return whether the domain may be asked one more question, which is then counted."""
        if not self.limiter.admits(now):
            return False
        self.limiter.spend(0, now)
        return True

    def wants(self, name: str, now: int) -> bool:
        return now - self.asked.get(name, -FORGET_NS) < FORGET_NS


def answers(packet: AnyPacket, domain: int) -> Iterator[NameTold]:
    """Yield the names whose stores a packet tells, and where they are; `domain` is their own."""
    if isinstance(packet, lbmr.ContextInfo):
        if packet.name and packet.flags & _INFO.ADDRESS and not packet.flags & _INFO.QUERY:
            yield NameTold(packet.name, domain, False, (packet.address, packet.port), packet.instance)
    elif isinstance(packet, lbmr_extended.Packet) and isinstance(packet.body, lbmr_extended.RemoteContexts):
        for record in packet.body.records:
            name, where, instance = "", ("", 0), bytes(8)
            for option in record.options:
                match option:
                    case lbmr_extended.RemoteName():
                        name = name_of(option.name)
                    case lbmr_extended.RemoteAddress():
                        where = option.address, option.port
                    case lbmr_extended.RemoteInstance():
                        instance = option.instance
            if name and where[1] and not record.flags & _RECORD.QUERY:
                yield NameTold(name, domain, False, where, instance)


def answer(told: NameTold) -> lbmr_extended.RemoteRecord:
    """Return the record that tells other domains where a store is."""
    host, port = told.address
    return _RECORD(
        0,
        (
            lbmr_extended.RemoteAddress(flags=0, domain=told.domain, address=host, port=port),
            lbmr_extended.RemoteInstance(flags=0, instance=told.instance),
            lbmr_extended.RemoteOrigin(flags=0, domain=told.domain),
            lbmr_extended.RemoteName(flags=0, name=octets_of(told.name) + b"\0"),
        ),
    )
