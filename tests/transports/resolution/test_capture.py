"""A small exchange over a relay as a stock Wireshark shows it, found by its ports alone."""

from pathlib import Path

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.inputs import (
    AddName,
    AddPattern,
    AddReceiver,
    AddSource,
    AskName,
    RemoveSource,
    Wake,
)
from stablecast.transports.resolution.udp.settings import SAFE, AdvertiseOptions
from stablecast.transports.wire import lbmr
from tests.support.pcap import Address, Capture
from tests.support.tshark import Packet, dissect, summary
from tests.transports.resolution.domain import RELAY, Domain
from tests.transports.resolution.virtual import QUERIES

SOURCE, RECEIVER = "10.0.0.1:14402", "10.0.0.2:14402"
BY_TYPE = {"0x00": "normal", "0x02": "receiver alive", "0x03": "source alive"}


def address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> list[Packet]:
    """Return six seconds of one source, one receiver of its topic, one of a topic without source, and the relay."""
    domain = Domain()
    domain.relay()
    domain.context(SOURCE)
    domain.context(RECEIVER)
    domain.feed(RECEIVER, AddReceiver("orders"))
    domain.feed(RECEIVER, AddReceiver("trades"))
    domain.feed(SOURCE, AddSource("orders", "10.0.0.1:14371", 0x11223344, 4711, "10.0.0.1:14391", persistent=True))
    domain.run(6 * SECOND)
    capture = Capture()
    for _, sender, to, data in domain.sent:
        capture.udp(address(sender), address(to), data)
    path: Path = tmp_path_factory.mktemp("capture") / "exchange.pcap"
    capture.write(path)
    assert summary(path, {}) == []
    return dissect(path, {})


def test_every_datagram_is_resolution_without_a_problem(packets: list[Packet]) -> None:
    assert packets
    assert [packet.problems for packet in packets if packet.problems] == []
    assert all("lbmr" in packet.protocols for packet in packets)
    assert {tuple(packet.fields["lbmr.hdr.ver"]) for packet in packets} == {("1",)}
    assert {tuple(packet.fields["lbmr.opt.len.total_len"]) for packet in packets} == {("36",), ("48",)}


def test_keepalives_and_their_answers(packets: list[Packet]) -> None:
    kinds = [BY_TYPE[packet.fields["lbmr.hdr.type"][0]] for packet in packets]
    bare = [p for p in packets if "lbmr.tqr.name" not in p.fields and "lbmr.tir.name" not in p.fields]
    answers = [p for p in bare if BY_TYPE[p.fields["lbmr.hdr.type"][0]] == "normal"]
    assert (kinds.count("receiver alive"), kinds.count("source alive")) == (8, 8)
    assert len(answers) == 16
    assert {packet.fields["udp.srcport"][0] for packet in answers} == {"15380"}


@pytest.mark.rows("T-021", "T-030")
def test_two_topics_are_asked_for_in_one_datagram(packets: list[Packet]) -> None:
    queries = [p for p in packets if "lbmr.tqr.name" in p.fields and p.fields["udp.srcport"] == ["14402"]]
    assert len(queries) == len(QUERIES)
    assert {tuple(packet.fields["lbmr.tqr.name"]) for packet in queries} == {("orders", "trades")}


def test_fields_of_an_advertisement(packets: list[Packet]) -> None:
    first, *later = [p for p in packets if "lbmr.tir.name" in p.fields and p.fields["ip.src"] == ["10.0.0.1"]]
    assert first.fields["lbmr.tir.ttl"] == ["16"]
    assert {packet.fields["lbmr.tir.ttl"][0] for packet in later} == {"60"}
    expected = {
        "lbmr.tir.name": "orders",
        "lbmr.tir.index": "4711",
        "lbmr.tir.tcp.ip": "10.0.0.1",
        "lbmr.tir.tcp.session_id": "0x11223344",
        "lbmr.tir.tcp.port": "14371",
        "lbmr.topt.exfunc.src_ip_addr": "10.0.0.1",
        "lbmr.topt.exfunc.src_tcp_port": "14391",
        "lbmr.topt.exfunc.functionality_flags": "0x00000003",
        "lbmr.topt.ctxinst.ctxinst": b"10.0.0.1".hex(":"),
        "lbmr.opt.src_id.src_id": b"10.0.0.1".hex(":"),
    }
    assert {field: later[-1].fields[field][0] for field in expected} == expected


def test_sources_on_other_transports(tmp_path: Path) -> None:
    """Advertisements of LBT-RM and LBT-RU, the OTID included; and one of a router, with cost and domain."""
    domain = Domain()
    domain.member(SOURCE)
    rm, ru = "LBTRM:10.0.0.1:14390:11223344:239.1.1.1:14400", "LBT-RU:10.0.0.1:14380:11223345"
    domain.feed(SOURCE, AddSource("orders", rm, 0x11223344, 4711, "10.0.0.1:14391", persistent=True))
    domain.feed(SOURCE, AddSource("trades", ru, 0x11223345, 4712, "10.0.0.1:14391", persistent=False))
    tcp = AddSource("prices", "10.0.0.1:14371", 7, 4713, "10.0.0.2:14391", persistent=True)
    origin = bytes(range(32))
    domain.feed(SOURCE, attrs.evolve(tcp, origin=origin, cost=5, hops=2, domain=9))
    domain.run(SECOND)
    capture, path = Capture(), tmp_path / "transports.pcap"
    for _, sender, to, data in domain.sent:
        capture.udp(address(sender), address(to), data)
    capture.write(path)
    assert summary(path, {}) == []
    packets = dissect(path, {})
    assert packets
    assert all("lbmr" in packet.protocols and not packet.problems for packet in packets)
    expected = {
        "lbmr.tir.name": ["orders", "trades", "prices"],
        "lbmr.tir.lbtrm.srcip": ["10.0.0.1"],
        "lbmr.tir.lbtrm.mcastip": ["239.1.1.1"],
        "lbmr.tir.lbtrm.sessid": ["0x11223344"],
        "lbmr.tir.lbtrm.dport": ["14400"],
        "lbmr.tir.lbtrm.sport": ["14390"],
        "lbmr.topt.otid.originating_transport": [
            "10:0a:00:00:01:38:36:ef:01:01:01:38:40:44:33:22:11:00:00:12:67:" + b"10.0.0.1".hex(":") + ":00:00:01",
            "01:0a:00:00:01:38:2c:45:33:22:11:00:00:12:68:" + b"10.0.0.1".hex(":") + ":00" * 8 + ":01",
            origin.hex(":"),
        ],
        "lbmr.topt.cost.hop_count": ["2"],
        "lbmr.topt.cost.cost": ["5"],
        "lbmr.topt.domain_id.domain_id": ["9"],
        "lbmr.tir.lbtru.ip": ["10.0.0.1"],
        "lbmr.tir.lbtru.session_id": [str(0x11223345)],
        "lbmr.tir.lbtru.port": ["14380"],
    }
    assert {field: packets[-1].fields.get(field) for field in expected} == expected


@pytest.mark.rows("T-022", "T-031", "T-201")
def test_everything_else_in_a_group(tmp_path: Path) -> None:
    """Patterns, names of stores, requests, final advertisements; the group identifies them."""
    domain = Domain()
    ending = attrs.evolve(SAFE, advertise=AdvertiseOptions(at_end=True))
    domain.member(SOURCE, ending)
    domain.member(RECEIVER)
    domain.feed(RECEIVER, AddPattern("^ord"))
    domain.feed(RECEIVER, AddPattern("^[[:lower:]]+$", lbmr.PatternLanguage.REGEX))
    domain.feed(RECEIVER, AskName("store-A"))
    domain.feed(SOURCE, AddSource("orders", "10.0.0.1:14371", 7, 4711, "10.0.0.1:14391", persistent=True))
    domain.run(SECOND)
    domain.feed(SOURCE, AddName("store-A", "10.0.0.1:14567"))
    domain.feed(RECEIVER, Wake(lbmr.ResolutionRequest.ADVERTISEMENTS | lbmr.ResolutionRequest.NAMES, 0, 0))
    domain.feed(SOURCE, RemoveSource(7, 4711))
    domain.run(2 * SECOND)
    capture = Capture()
    for _, sender, to, data in domain.sent:
        capture.udp(address(sender), address(to), data)
    path = tmp_path / "group.pcap"
    capture.write(path)
    assert summary(path, {}) == []
    packets = dissect(path, {})
    assert all("lbmr" in packet.protocols and not packet.problems for packet in packets)
    kinds = {packet.fields["lbmr.hdr.type"][0] for packet in packets}
    assert kinds == {"0x00", "0x01", "0x07"}
    extended = {kind for packet in packets for kind in packet.fields.get("lbmr.hdr.ext_type", [])}
    assert {int(kind, 0) for kind in extended} == {3, 4}
    patterns = {name for packet in packets for name in packet.fields.get("lbmr.tqr.pattern", [])}
    assert len(patterns) == 2
    assert any(name.endswith("^ord") for name in patterns)


def test_the_relay_changes_nothing(packets: list[Packet]) -> None:
    """Each advertisement appears twice, the second time from the relay to the receiver."""
    host, port = address(RELAY)
    told = [p for p in packets if "lbmr.tir.name" in p.fields]
    forwarded = [p for p in told if (p.fields["ip.src"], p.fields["udp.srcport"]) == ([host], [str(port)])]
    assert 2 * len(forwarded) == len(told)
    assert {packet.fields["ip.dst"][0] for packet in forwarded} == {"10.0.0.2"}
