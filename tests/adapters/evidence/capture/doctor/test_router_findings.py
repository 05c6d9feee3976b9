"""Findings about routers: two in a domain, two numbers of a domain, and sources to which no route leads."""

from pathlib import Path

import attrs
import pytest

from stablecast.evidence.capture.doctor import CaptureAdvice
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.srs.source_records import source_info
from stablecast.transports.wire import lbmr, lbmr_extended, rsocket, srs
from tests.adapters.evidence.capture.doctor.played_session import MS, Timed, advice
from tests.adapters.evidence.capture.doctor.test_resolution_findings import RESOLUTION
from tests.support.captures import datagram, segment
from tests.support.pcap import Address

SECOND_MS = 1_000
WHERE = f"the domain at {RESOLUTION[0]}:{RESOLUTION[1]}"
EDGE: Address = ("10.0.2.1", 40_000)
OTHER: Address = ("10.0.2.2", 40_000)
RELAY: Address = ("10.0.9.9", 15_380)


def route(at_ms: int, *domains: int, of: Address = EDGE, name: bytes = b"edge0001", to: Address = RESOLUTION) -> Timed:
    """A portal in domain 1 announces that it reaches others."""
    body = lbmr_extended.DomainRoute(
        count=len(domains), address=of[0], port=14_391, length=16 + 4 * len(domains), domains=domains
    )
    trailer = lbmr.standard_options(name, lbmr.SourceType.GATEWAY, domain=1)
    return at_ms * MS, datagram(of, to, lbmr_extended.encode(lbmr_extended.Packet(body, trailer)))


def source(at_ms: int, domain: int) -> Timed:
    """A portal in domain 1 advertises a source of another one."""
    told = lbmr.Advertisement(
        "orders", lbmr.TcpTransport(EDGE[0], 14_371, 7), 60, 1, options=(lbmr.DomainId(domain=domain),)
    )
    trailer = lbmr.standard_options(b"edge0001", lbmr.SourceType.GATEWAY, domain=1)
    return at_ms * MS, datagram(
        EDGE, RESOLUTION, lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (told,), trailer))
    )


def names(found: object) -> set[str]:
    return {code for code, _ in found}  # type: ignore[attr-defined]  # by code and owner


def test_two_routers_that_announce_the_same_routes(tmp_path: Path) -> None:
    one = [route(SECOND_MS * turn, 2, 3) for turn in range(30)]
    other = [route(SECOND_MS * turn + 500, 3, of=OTHER, name=b"oth_0001") for turn in range(30)]
    found = advice(tmp_path / "both.pcap", sorted(one + other))
    assert names(found) == {"second-router"}
    (told,) = found.values()
    assert told.figures == {"routers": ["10.0.2.1:14391", "10.0.2.2:14391"]}
    assert advice(tmp_path / "one.pcap", one) == {}
    assert names(advice(tmp_path / "few.pcap", sorted(one + other), second_router=100)) == set()


def test_a_router_after_another_one_or_beside_it_or_again_is_no_second_one(tmp_path: Path) -> None:
    one = [route(SECOND_MS * turn, 2) for turn in range(30)]
    later = [route(SECOND_MS * turn, 2, of=OTHER, name=b"oth_0001") for turn in range(30, 60)]
    again = [route(SECOND_MS * turn, 2, name=b"edge0002") for turn in range(30, 60)]
    beside = [route(SECOND_MS * turn + 500, 9, of=OTHER, name=b"oth_0001") for turn in range(30)]
    elsewhere = [route(SECOND_MS * turn + 500, 2, of=OTHER, name=b"oth_0001", to=RELAY) for turn in range(30)]
    for number, more in enumerate((later, again, beside, elsewhere)):
        assert advice(tmp_path / f"{number}.pcap", sorted(one + more)) == {}


def test_a_domain_with_two_numbers(tmp_path: Path) -> None:
    trailer = lbmr.standard_options(b"context1", domain=4)
    query = lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("orders"),), (), trailer)
    astray = 1_500 * MS, datagram(OTHER, RESOLUTION, lbmr.encode(query))
    found = advice(tmp_path / "one.pcap", [route(1_000, 2), astray])
    assert {*found} == {("domain-numbers", WHERE)}
    assert found["domain-numbers", WHERE].figures == {"domains": [1, 4]}
    plain = lbmr.encode(attrs.evolve(query, options=lbmr.standard_options(b"context1")))
    assert advice(tmp_path / "two.pcap", [route(1_000, 2), (1_500 * MS, datagram(OTHER, RESOLUTION, plain))]) == {}


def test_sources_of_a_domain_to_which_no_route_leads(tmp_path: Path) -> None:
    told = [source(SECOND_MS * turn, 2) for turn in range(60)]
    found = advice(tmp_path / "one.pcap", told)
    assert names(found) == {"no-route"}
    assert {one.figures["domain"] for one in found.values()} == {2}
    routes = [route(SECOND_MS * turn + 1, 2) for turn in range(60)]
    assert advice(tmp_path / "two.pcap", sorted(told + routes)) == {}
    assert names(advice(tmp_path / "three.pcap", sorted(told + routes[:20]))) == {"no-route"}


SERVICE: Address = ("10.0.9.8", 27_000)
SERVED = f"the domain at {SERVICE[0]}:{SERVICE[1]}"


class Told:
    """What a service tells a context, one record a frame."""

    def __init__(self) -> None:
        self.packets: list[Timed] = []
        self.number = 1
        self.say(0, rsocket.encode(rsocket.setup_frame(rsocket.RsocketSetup(1000, 2000))), back=True)

    def say(self, second: int, octets: bytes, *, back: bool = False) -> None:
        ends = (EDGE, SERVICE) if back else (SERVICE, EDGE)
        self.packets.append((second * SECOND_MS * MS, segment(*ends, 1 if back else self.number, octets)))
        self.number += 0 if back else len(octets)

    def tell(self, second: int, record: srs.Message) -> None:
        self.say(second, rsocket.encode(rsocket.Frame(rsocket.FrameKind.PAYLOAD, 1, payload=srs.encode(record))))

    def route(self, second: int, name: bytes, *domains: int, kind: type = srs.RouteInfo) -> None:
        host = "10.0.2.1" if name.startswith(b"edge") else "10.0.2.2"
        self.tell(second, kind(domains=domains, address=host, port=14_391, instance=name))

    def found(self, path: Path, **thresholds: float) -> dict[tuple[str, str], CaptureAdvice]:
        return advice(path, self.packets, **thresholds)


def test_two_routers_at_a_service(tmp_path: Path) -> None:
    """They do not hear each other there. One that follows another one is there beside its routes for a while."""
    told = Told()
    told.route(1, b"edge0001", 2, 3)
    told.route(2, b"oth_0001", 3)
    told.tell(29, srs.DomainInfo(domain=1, instance=b"edge0001"))
    told.route(30, b"oth_0001", 3, kind=srs.RouteEnd)
    told.route(31, b"edge0002", 2)
    told.route(200, b"edge0002", 9)
    assert told.found(tmp_path / "one.pcap") == {}
    told.route(201, b"oth_0002", 3)
    told.tell(242, srs.DomainInfo(domain=1, instance=b"edge0001"))
    found = told.found(tmp_path / "two.pcap")
    assert {*found} == {("second-router", SERVED)}
    assert found["second-router", SERVED].figures == {"routers": ["10.0.2.1:14391", "10.0.2.2:14391"]}
    assert told.found(tmp_path / "few.pcap", second_router=12) == {}
    told.route(250, b"oth_0002", 3, kind=srs.RouteEnd)
    assert {*told.found(tmp_path / "ended.pcap", second_router=19)} == {("second-router", SERVED)}


def test_numbers_and_ways_that_a_service_tells(tmp_path: Path) -> None:
    told = Told()
    told.tell(1, srs.DomainInfo(domain=1, instance=b"edge0001"))
    for second in range(20, 40):
        told.tell(second, far_source(domain=2))
        told.tell(second, far_source(domain=1))
        told.tell(second, far_source(domain=3, cost=srs.ENDED))
    assert {*told.found(tmp_path / "one.pcap")} == {("no-route", SERVED)}
    told.tell(41, srs.DomainInfo(domain=4, instance=b"edge0001"))
    found = told.found(tmp_path / "two.pcap")
    assert {*found} == {("no-route", SERVED), ("domain-numbers", SERVED)}
    assert found["domain-numbers", SERVED].figures == {"domains": [1, 4]}
    again = Told()
    again.route(1, b"edge0001", 2)
    again.tell(1, srs.DomainInfo(domain=1, instance=b"edge0001"))
    for second in range(20, 40):
        again.tell(second, far_source(domain=2))
    assert again.found(tmp_path / "three.pcap") == {}


def far_source(domain: int, cost: int = 0) -> srs.SourceInfo:
    told = source_info("orders", SourceRecord("10.0.2.1:14371", 7, 1, instance=b"instance", domain=domain))
    return attrs.evolve(told, cost=cost)


def say(
    at_ms: int, packet: lbmr.AnyPacket | lbmr_extended.Packet, name: bytes = b"", to: Address = RESOLUTION
) -> Timed:
    """A router says something in domain 1, or the context of this name does."""
    kind = {} if name else {"source_type": lbmr.SourceType.GATEWAY}
    trailer = lbmr.standard_options(name or b"edge0001", domain=1, **kind)
    octets = (lbmr_extended if isinstance(packet, lbmr_extended.Packet) else lbmr).encode(
        attrs.evolve(packet, options=trailer)
    )
    return at_ms * MS, datagram(OTHER if name else EDGE, to, octets)


def query(at_ms: int, name: bytes = b"context1") -> Timed:
    return say(at_ms, lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("orders"),), (), ()), name)


def used(at_ms: int, kind: int = lbmr_extended.USE, flags: int = 0, name: bytes = b"") -> Timed:
    record = lbmr_extended.TopicRecord.of(lbmr.TopicQuery("orders"), kind, flags)
    return say(at_ms, lbmr_extended.Packet(lbmr_extended.Management(records=(record,)), ()), name)


ASKED = [used(10_000 + 3_000 * turn) for turn in range(5)]


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        ([query(1_000), *ASKED, query(40_000)], {"unanswered"}),
        ([query(1_000), *ASKED], set()),
        ([query(1_000), *ASKED[:4], query(40_000)], set()),
        ([query(1_000), *ASKED[:2], *ASKED[:2], *ASKED[:2], query(40_000)], set()),
        ([query(1_000), *ASKED, used(23_000, flags=0x80, name=b"context2"), query(40_000)], set()),
        ([query(1_000), used(2_000, lbmr_extended.LEAVE, name=b"context1"), *ASKED, query(40_000)], set()),
        ([query(1_000), *ASKED, query(40_000, b"context2")], set()),
        ([*ASKED, query(40_000)], set()),
    ],
)
def test_a_context_that_does_not_answer_a_router(packets: list[Timed], found: set[str], tmp_path: Path) -> None:
    """It was there, as it asks again; one that left, or another one, or an answer, is no finding."""
    told = advice(tmp_path / "one.pcap", packets, deaf=0)
    assert names(told) == found
    assert all(one.figures == {"symbols": ["'orders'"]} for one in told.values())
