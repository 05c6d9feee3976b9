"""Statistics of a service: of the whole, of each client, and of each topic. Names of counters are the documented ones.

SIR is a source, RIR the interest in a topic, WIR the interest in a pattern; SDR, RDR and WDR withdraw them. SLR reports
that a receiver lost a source. DIR, RTIR and RTER are what routers tell: the domain, routes, and their ends.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

import attrs

from stablecast.transports.resolution.srs.client import ServiceClient
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.wire import srs

ItemT = TypeVar("ItemT")

KINDS: Final = {
    srs.SourceInfo: "SIR",
    srs.SourceDelete: "SDR",
    srs.ReceiverInfo: "RIR",
    srs.ReceiverDelete: "RDR",
    srs.PatternInfo: "WIR",
    srs.PatternDelete: "WDR",
    srs.LeaveInfo: "SLR",
    srs.DomainInfo: "DIR",
    srs.RouteInfo: "RTIR",
    srs.RouteEnd: "RTER",
}
"""The documented short name of each record that a client sends."""
ERRORS: Final = ("malformed", "refused", "silent", "ignored")
"""The counters of a service that tell of faults."""


@attrs.frozen
class ClientStatistics:
    """The statistics of one client.

    Attributes:
        instance: The 8 bytes that name the life of its context.
        peer: The other end of its connection, `ip:port`, or of its last one.
        up: Whether it is connected.
        counters: Counters by name.
        errors: Counters of faults by name.
    """

    instance: bytes
    peer: str
    up: bool
    counters: dict[str, int]
    errors: dict[str, int]


@attrs.frozen
class TopicStatistics:
    """The statistics of one topic: its sources, and the clients that want it by name."""

    topic: str
    sources: int
    receivers: int


def of_service(service: ResolutionService) -> dict[str, int]:
    """Return the counters of the whole service by name."""
    up = [client for client in service.clients.values() if client.up]
    down = [client for client in service.clients.values() if not client.up]
    counts = {f"clients.active.{name}.count": number for name, number in _records(up).items()}
    counts |= {f"clients.inactive.{name}.count": number for name, number in _records(down).items()}
    return {
        **counts,
        "clients.expired.SIR.count": service.counted.deleted,
        "active.clients.count": len(up),
        "inactive.clients.count": len(down),
        "clients.concurrent.connections.count": len(service.sessions),
        "clients.max.concurrent.connections.count": service.counted.most_connections,
        "topics.count": len(service.directory.topics),
        "frames.received.count": service.counted.frames,
        "connections.lost.count": service.counted.lost,
    }


def errors_of(service: ResolutionService) -> dict[str, int]:
    """Return the counters of faults of the whole service by name."""
    counted = attrs.asdict(service.counted)
    found = {f"{name}.count": counted[name] for name in ERRORS}
    return found | {"clients.mismatched.DIR.count": service.routers.mismatched}


def of_clients(service: ResolutionService, first: int = 0, count: int | None = None) -> list[ClientStatistics]:
    """Return the statistics of `count` clients from the `first` on, in the order of their arrival; None: of all."""
    return [_of_client(service, client) for client in _part(service.clients.values(), first, count)]


def of_topics(service: ResolutionService, first: int = 0, count: int | None = None) -> list[TopicStatistics]:
    """Return the statistics of `count` topics from the `first` on, sources before mere interest; None: of all."""
    known = dict.fromkeys([*service.directory.topics, *service.directory.wanted])
    return [of_topic(service, topic) for topic in _part(known, first, count)]


def of_topic(service: ResolutionService, topic: str) -> TopicStatistics:
    """Return the statistics of one topic, which may be unknown."""
    directory = service.directory
    return TopicStatistics(topic, len(directory.topics.get(topic, {})), len(directory.wanted.get(topic, {})))


def _records(clients: Iterable[ServiceClient]) -> dict[str, int]:
    sources = topics = patterns = 0
    for client in clients:
        wanted = sum(interest.pattern for interest in client.interests)
        sources, patterns = sources + len(client.sources), patterns + wanted
        topics += len(client.interests) - wanted
    return {"SIR": sources, "RIR": topics, "WIR": patterns}


def _of_client(service: ResolutionService, client: ServiceClient) -> ClientStatistics:
    session = service.sessions.get(client.connection)
    arrived = {} if session is None else session.arrived
    counters = {f"client.{name}.count": number for name, number in _records([client]).items()}
    counters |= {f"client.{name}.received.count": arrived.get(kind, 0) for kind, name in KINDS.items()}
    counters["client.SIR.sent.count"] = 0 if session is None else session.said
    unknown = sum(number for kind, number in arrived.items() if kind not in KINDS)
    return ClientStatistics(
        client.instance, client.peer, client.up, counters, {"client.unknown.received.count": unknown}
    )


def _part(items: Iterable[ItemT], first: int, count: int | None) -> Iterator[ItemT]:
    return islice(items, first, None if count is None else first + count)
