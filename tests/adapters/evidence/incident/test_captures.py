"""Staged incidents by captures of all hosts, and of some: no trace shows what happened."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Register, Role
from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.ip import FrameVerdict, TcpSegment
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.capture.statements import At, StatedMessage
from stablecast.evidence.incident import command
from stablecast.evidence.incident.captured import CapturedActs
from stablecast.evidence.incident.report import Incident, examine
from stablecast.evidence.incident.tcp_lives import ACK, REFUSED, RST
from stablecast.evidence.incident.witness import CaptureWitness
from stablecast.lab.world.clock import EPOCH_NS
from tests.adapters.evidence.capture.doctor import played_session as session
from tests.adapters.evidence.incident.test_staged import READER, SOURCE, STORES, TIMES, Worlds
from tests.support import captures
from tests.support.world_capture import WorldCapture, octets

SOURCE_HOST: Final = "10.0.0.1"
READER_HOST: Final = "10.0.0.2"
KILLED: Final = "two stores are killed"
NOISY: Final = "datagrams and NAKs are lost"

EXPECTED: Final = {
    KILLED: rf"No quorum for \d\.\d s: {STORES} were down {TIMES} \(connections ended\)",
    "all stores are killed": rf"No quorum for \d\.\d s: stores .*, .* and .* were down {TIMES} \(connections ended\)",
    "the source is cut off": rf"Nothing stable for \d\.\d s: {SOURCE} was cut off from all of its stores {TIMES}",
    "two stores cannot reach the source": rf"No quorum for \d\.\d s: nothing reached {STORES} .*: a path was cut",
    "two disks are slow": rf"late by up to 1\.\d s .*: acknowledgements of {STORES} came up to 1\.\d+ s after the mess",
    "two stores hang": rf"No quorum for \d\.\d s: {STORES} got messages and answered nothing {TIMES}",
    "an option does not fit the stores": r"Source orders could not register: .*: source and store configuration are",
    NOISY: rf"Delivery to {READER} late by .*; \d+ of \d+ NAKs from 10\.0\.0\.2 did not come to 10\.0\.0\.1",
    "the source is killed": rf"{SOURCE} was down for \d\.\d s, {TIMES}: connections ended; nothing of it was sent",
    "a receiver is killed": rf"No delivery to {READER} for \d\.\d s: {READER} was down {TIMES} \(connections ended\)",
    "a receiver is cut off": rf"No delivery to {READER} for \d\.\d s: nothing reached {READER} {TIMES}, although it",
    "one store of three is killed": rf"Store 10\.0\.0\.4:14567 was down for \d\.\d s, {TIMES}: connections ended",
}
"""The sentence by captures alone. They do not show that an option demands all stores."""


@pytest.fixture
def killed(worlds: Worlds) -> WorldCapture:
    return worlds(KILLED)[1]


def first_three(report: Incident) -> str:
    return "\n".join([*report.lines()][:3])


@pytest.mark.parametrize("name", EXPECTED)
def test_captures_of_all_hosts_name_the_cause(name: str, worlds: Worlds, tmp_path: Path) -> None:
    report = examine((), captures=worlds(name)[1].write(tmp_path))
    assert re.search(EXPECTED[name], first_three(report)), first_three(report)
    assert not report.unread


@pytest.mark.parametrize(
    "name", ["nothing", "nothing over multicast", "one disk of three is slow", "connections break"]
)
def test_captures_of_worlds_without_a_gap_have_no_finding(name: str, worlds: Worlds, tmp_path: Path) -> None:
    report = examine((), captures=worlds(name)[1].write(tmp_path))
    assert [one.text for one in report.happenings] == []
    assert re.match(r"nothing happened: [\d,]+ packets of \d endpoints", next(report.lines()))


@pytest.mark.parametrize(
    "form",
    [{"link": captures.ETHERNET, "tags": 2}, {"link": captures.COOKED_2}, {"link": captures.COOKED}, {"snap": 200}],
    ids=str,
)
def test_every_form_of_capture_shows_it(killed: WorldCapture, form: dict[str, Any], tmp_path: Path) -> None:
    report = examine((), captures=killed.write(tmp_path, **form))
    assert re.search(EXPECTED[KILLED], first_three(report)), first_three(report)


def test_the_capture_of_the_source_is_enough_for_a_killed_store(killed: WorldCapture, tmp_path: Path) -> None:
    """Nobody captured at the stores. Their systems refused new connections."""
    killed.write(tmp_path)
    report = examine((), captures=[tmp_path / f"{SOURCE_HOST}.pcap"])
    assert re.search(rf"No quorum .*: {STORES} were down {TIMES} \(connections refused\)", first_three(report))


def test_a_mirrored_port_shows_all_hosts(killed: WorldCapture, tmp_path: Path) -> None:
    """Each packet is captured once, in the network: no host has all of them."""
    passed = [
        (at, packet)
        for host, packets in killed.hosts.items()
        for at, packet in packets
        if ".".join(map(str, packet[12:16])) == host
    ]
    path = tmp_path / "mirror.pcap"
    path.write_bytes(octets(passed, EPOCH_NS))
    report = examine((), captures=[path])
    assert re.search(EXPECTED[KILLED], first_three(report)), first_three(report)
    assert [one.host for one in report.clocks] == ["mirror.pcap"]


def test_clocks_of_captures_are_aligned_by_what_both_have(killed: WorldCapture, tmp_path: Path) -> None:
    ahead = {SOURCE_HOST: 3 * SECOND, READER_HOST: -2 * SECOND}
    files = killed.write(tmp_path, ahead)
    report = examine((), captures=files)
    found = {one.host: one for one in report.clocks if one.error >= 0}
    for host, one in found.items():
        assert abs(one.ahead - ahead.get(host, 0)) <= max(one.error, 1_000_000), host
    assert re.search(EXPECTED[KILLED], first_three(report)), first_three(report)
    report = examine((), captures=[one for one in files if one.stem in ahead])
    apart = {one.host: one.ahead for one in report.clocks}
    assert abs(apart[SOURCE_HOST] - apart[READER_HOST] - 5 * SECOND) < 1_000_000


def test_a_capture_stands_in_for_a_trace_that_is_lost(worlds: Worlds, tmp_path: Path) -> None:
    night, capture = worlds(KILLED)
    traces = [one for one in night.rglob("*.sct") if one.parent.name not in ("store0", "store1")]
    assert "there is no trace" in first_three(examine(traces))
    files = [one for one in capture.write(tmp_path / "pcap") if one.stem in ("10.0.0.4", "10.0.0.5")]
    report = examine(traces, captures=files)
    assert re.search(EXPECTED[KILLED], first_three(report)), first_three(report)
    proofs = " ".join(one.text for one in report.happenings[0].proofs)
    assert re.search(r"source-\S+\.sct record \d+ .*10\.0\.0\.4\.pcap packet \d+", proofs)


def test_the_command_finds_captures_in_a_directory(
    killed: WorldCapture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed.write(tmp_path / "night")
    page = tmp_path / "page.html"
    assert command.run(command.IncidentRequest([tmp_path / "night"], page=page)) == 1
    assert re.search(EXPECTED[KILLED], capsys.readouterr().out)
    assert "<h1>No quorum for 2." in page.read_text()
    # The packet of that number is the last one of a store before it died: it ended a connection.
    report = examine((), captures=[tmp_path / "night" / "10.0.0.4.pcap", tmp_path / "night" / f"{SOURCE_HOST}.pcap"])
    proof = next(one for one in report.happenings[0].proofs if one.path.stem == "10.0.0.4")
    (_, packet) = sorted(killed.hosts["10.0.0.4"], key=lambda one: one[0])[proof.record - 1]
    assert packet[33] & 5, "a segment with FIN or RST"


def test_a_source_that_ends_too_early_is_named_first(tmp_path: Path) -> None:
    """It ends while its receiver still asks for a datagram. Its capture has no other host's view."""
    traffic = session.traffic(200, session.first_copies(["10.0.1.0:14360"], {198}), until_ms=2_995)
    traffic.close()
    traffic.run(20_000 * session.MS)
    path = session.written(tmp_path / f"{SOURCE_HOST}.pcap", session.packets_of(traffic))
    head = first_three(examine((), captures=[path]))
    assert head.startswith("The source ended while 1 datagram was asked for; the receiver went on to ask for "), head


def test_a_capture_that_is_cut_is_told(killed: WorldCapture, tmp_path: Path) -> None:
    path = killed.write(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:-3])
    (tmp_path / "no.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")
    report = examine((), captures=[path, tmp_path / "no.pcap"])
    assert len(report.unread) == 2
    assert command.run(command.IncidentRequest([tmp_path / "no.pcap"])) == 2


def test_a_capture_of_others_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = session.written(tmp_path / "dns.pcap", [(0, captures.datagram(("10.0.0.1", 5), ("10.0.0.2", 53), b"?"))])
    assert command.run(command.IncidentRequest([path])) == 2
    out, err = capsys.readouterr()
    assert (out, "no packet of a source or store" in err) == ("", True)


UNUSUAL: Final = ("10.0.0.4", 40_567)
"""A store at a free port, as `stablecast up` has them."""


def test_a_refused_connection_is_known_by_the_port_of_a_store() -> None:
    """It shows no message, so nothing else tells that it is ours."""
    acts = CapturedActs(CaptureWitness(Path("one.pcap"), SOURCE_HOST), PortPlan())
    registering = Register(Role.SOURCE, 0, 1, 0, 7, 0, "orders", 1, "10.0.0.1:14391", "10.0.0.1:14371", 1_000, 1_000)
    for port, ours in ((5001, True), (5002, False)):
        client = (SOURCE_HOST, port)
        acts.add_segment(TcpSegment(client, UNUSUAL, 1, TcpSegment.SYN, b"", 0), port * SECOND, port, ours)
        if ours:
            acts.add_segment(TcpSegment(UNUSUAL, client, 1, TcpSegment.SYN | ACK, b"", 0), port * SECOND, port, ours)
            at = At(port, port * SECOND, (client, UNUSUAL))
            packet = CapturePacket(port, 0, at.time_ns, *at.ends, None, None, "", (), FrameVerdict.DECODED)
            acts.add(StatedMessage(at, registering), packet)
        else:
            acts.add_segment(TcpSegment(UNUSUAL, client, 1, RST | ACK, b"", 0), port * SECOND, port, ours)
    stranger = ("10.0.0.9", 80)
    acts.add_segment(TcpSegment((SOURCE_HOST, 5003), stranger, 1, TcpSegment.SYN, b"", 0), SECOND, 3, False)
    acts.add_segment(TcpSegment(stranger, (SOURCE_HOST, 5003), 1, RST | ACK, b"", 0), SECOND, 4, False)
    assert [one.ending for one in acts.lives.port(UNUSUAL).all()] == [REFUSED]
    assert acts.lives.port(stranger).all() == []
