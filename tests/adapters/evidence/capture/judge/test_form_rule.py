"""W1, damage and what cannot be judged: who sends what cannot be read, and what says nothing of anybody."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.evidence.capture.judge import CaptureFindings, RuleStanding, judge
from stablecast.transports.wire import lbmc
from tests.adapters.evidence.capture.judge.wire_session import STORES, STREAM, TOPIC, Talk, World, settled, stream
from tests.support import captures
from tests.support.captures import checked, datagram
from tests.support.program import outcome
from tests.support.traffic_capture import GROUP, RESOLUTION, SOURCE, all_kinds

FINE, CANNOT_TELL, BROKEN = RuleStanding


def judged(talk: Talk, tmp_path: Path) -> CaptureFindings:
    return judge(talk.write(tmp_path / "talk.pcap"))


def broken(findings: CaptureFindings) -> set[tuple[str, str]]:
    return {key for key, standing in findings.standings.items() if standing is BROKEN}


def message(number: int, kind: int = 0) -> bytes:
    octets = lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, TOPIC, number, (), b"hello"))
    return bytes((octets[0] & 0xF0 | kind,)) + octets[1:]


def test_the_sender_of_malformed_packets_is_named(tmp_path: Path) -> None:
    """W1: a message of a kind that there is not, on one connection."""
    world = settled(World())
    world.talk.say(STREAM, stream(1), message(40, kind=5))
    frame = len(world.talk.packets)
    findings = judged(world.talk, tmp_path)
    assert broken(findings) == {("W1", STREAM)}
    (fault,) = (one for one in findings.found if one.standing is BROKEN)
    assert fault.frame == frame


def test_packets_that_are_ours_by_their_port_alone_break_no_rule(tmp_path: Path) -> None:
    world = settled(World())
    for port in range(40):
        world.talk.add(datagram(("10.9.9.9", 50_000 + port), GROUP, b"\1\2\3\4 of another program"))
        world.talk.say(f"10.9.9.9:{60_000 + port}", STORES[0], b"GET / HTTP/1.1\r\n\r\n")
    findings = judged(world.talk, tmp_path)
    assert {rule for rule, _ in findings.standings} == {"P7", "A1", "A4", "D3", "R1"}
    assert findings.gravest is FINE


def test_behind_missing_bytes_nothing_is_malformed_for_sure(tmp_path: Path) -> None:
    world = settled(World())
    gone = len(world.talk.packets)
    world.send(40)
    world.talk.say(STREAM, stream(1), message(41, kind=5))
    del world.talk.packets[gone + 1]
    assert broken(judged(world.talk, tmp_path)) == set()


Spoil = Callable[[bytes], list[bytes]]


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda packet: [packet], FINE),
        (lambda packet: [packet[:-1] + b"?"], CANNOT_TELL),
        (lambda packet: [packet[:-1] + b"?", packet], CANNOT_TELL),
        (lambda packet: [packet[:8] + bytes((packet[8] ^ 4,)) + packet[9:], packet], CANNOT_TELL),
    ],
)
def test_a_damaged_packet_is_taken_by_nobody(tmp_path: Path, spoil: Spoil, expected: RuleStanding) -> None:
    """The receiver drops the packet, and it comes again; else its bytes are missing."""
    world = settled(World())
    world.talk.packets = [(at, checked(packet)) for at, packet in world.talk.packets]
    at = next(at for at, packet in enumerate(world.talk.packets) if packet[1].endswith(b"hello"))
    time, packet = world.talk.packets[at]
    world.talk.packets[at : at + 1] = [(time, one) for one in spoil(packet)]
    findings = judged(world.talk, tmp_path)
    assert findings.gravest is expected
    assert findings.standings.get(("W1", STREAM), FINE) is expected


def test_packets_without_checksums_are_believed(tmp_path: Path) -> None:
    """Loopback computes no checksums: a malformed packet was sent malformed."""
    world = settled(World())
    at = next(at for at, packet in enumerate(world.talk.packets) if packet[1].endswith(b"hello"))
    time, packet = world.talk.packets[at]
    number = packet.index(b"hello") - 1
    world.talk.packets[at] = time, packet[:number] + b"\7" + packet[number + 1 :]
    assert broken(judged(world.talk, tmp_path)) == {("D3", STREAM)}


def test_a_capture_that_was_cut_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    world = settled(World())
    world.send(39)
    path = world.talk.write(tmp_path / "cut.pcap")
    path.write_bytes(path.read_bytes()[:-5])
    status, out, err = outcome("verify", str(path))
    where = f"{path} ends in the middle of frame {len(world.talk.packets)}"
    assert (status, err) == (1, f"stablecast: {where}; if it was copied, copy it again\n")
    assert "broken: number 39 is sent, 40 comes next" in out


def test_why_nothing_can_be_judged(tmp_path: Path) -> None:
    quiet = [packet for packet in all_kinds().packets if packet[16:20] == bytes(map(int, RESOLUTION[0].split(".")))]
    strange = [datagram(SOURCE, RESOLUTION, b"\xf0\0\0\0 of another version")]
    version_6 = [b"\x60" + bytes(60)]
    for packets, why in (
        (quiet, "1 packet is ours, and no rule is about that; `stablecast capture decode` shows it"),
        (strange, "1 packet is ours by its port and cannot be read; `stablecast capture decode` shows why"),
        (version_6, "it has IPv6, and all of this protocol is IPv4; --port may help with the rest"),
    ):
        path = captures.pcap(tmp_path / "a.pcap", packets)
        assert outcome("verify", str(path))[::2] == (2, f"stablecast: nothing in {path} can be judged: {why}\n")
