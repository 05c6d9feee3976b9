"""A clean session, captured in some forty other ways: none raises, and none breaks a rule."""

import gzip
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from stablecast.evidence.capture.files import CaptureError
from stablecast.evidence.capture.judge import RuleStanding, judge
from stablecast.evidence.capture.link import ETHERNET, IPV4, LINUX_COOKED, LINUX_COOKED_2, LOOP, NULL, RAW_IP
from tests.adapters.evidence.capture.judge.wire_session import World, settled
from tests.support.captures import datagram, segment

FRAMES = [(at * 1_000_000, packet) for at, packet in settled(World()).talk.packets]

Frames = list[tuple[int, bytes]]
IPV4_TYPE = b"\x08\x00"


def written(
    path: Path, frames: Frames, link: int = RAW_IP, header: bytes = b"", snap: int = 1 << 18, order: str = "<"
) -> Path:
    """Return a capture with nanoseconds, at most `snap` bytes of each frame, each after a header of its link."""
    parts = [struct.pack(f"{order}IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, link)]
    for at, packet in frames:
        whole = header + packet
        lengths = min(len(whole), snap), len(whole)
        parts.append(struct.pack(f"{order}IIII", *divmod(at, 1_000_000_000), *lengths) + whole[:snap])
    path.write_bytes(b"".join(parts))
    return path


def fragmented(frames: Frames, size: int = 40) -> Frames:
    pieces = []
    for number, (at, packet) in enumerate(frames):
        head, body = packet[:20], packet[20:]
        for offset in range(0, len(body), size):
            part = body[offset : offset + size]
            more = 0x2000 if offset + size < len(body) else 0
            lengths = struct.pack(">HHH", 20 + len(part), number & 0xFFFF, more | offset // 8)
            pieces.append((at, head[:2] + lengths + head[8:] + part))
    return pieces


def lossy(share: float, seed: int = 1) -> Callable[[Frames], Frames]:
    random = Random(seed)
    return lambda frames: [one for one in frames if random.random() >= share]


def swapped(seed: int) -> Callable[[Frames], Frames]:
    def swap(frames: Frames) -> Frames:
        random, found = Random(seed), [*frames]
        for first in range(0, len(found) - 4, 7):
            second = first + random.randrange(4)
            found[first], found[second] = found[second], found[first]
        return found

    return swap


def ports(packet: bytes) -> tuple[int, int]:
    source, target = struct.unpack_from(">HH", packet, 20)
    return source, target


def only(keep: Callable[[int, int], bool]) -> Callable[[Frames], Frames]:
    return lambda frames: [one for one in frames if keep(*ports(one[1]))]


def noisy(frames: Frames) -> Frames:
    """Between them other traffic, some of it at the ports of ours."""
    random, found, host = Random(2), Frames(), "10.9.9.9"
    for number, (at, packet) in enumerate(frames):
        octets = random.randbytes(40)
        get = b"GET / HTTP/1.1\r\n\r\n"
        found += [
            (at, packet),
            (at, datagram((host, 53), ("10.0.0.1", 40_000), octets)),
            (at, datagram((host, 40_000), ("10.0.0.1", random.choice((12965, 14380, 14400))), octets)),
            (at, segment((host, 50_001), ("10.0.0.1", 80), 1 + len(get) * number, get)),
            (at, segment((host, 50_002), ("10.0.0.1", 14371), 1 + len(get) * number, get)),
            (at, segment((host, 50_003), ("10.0.0.1", 14567), 1 + len(octets) * number, octets)),
        ]
    return found


def resized(packet: bytes, ahead: int, payload: bytes) -> bytes:
    """Return a segment with another payload that begins later, or earlier if negative."""
    sequence = (int.from_bytes(packet[24:28]) + ahead) % (1 << 32)
    lengths = struct.pack(">H", 40 + len(payload))
    return packet[:2] + lengths + packet[4:24] + sequence.to_bytes(4) + packet[28:40] + payload


def tiny(size: int) -> Callable[[Frames], Frames]:
    return lambda frames: [
        (at, resized(packet, start, packet[40 + start : 40 + start + size]))
        for at, packet in frames
        for start in range(0, max(len(packet) - 40, 1), size)
    ]


def overlapping(frames: Frames) -> Frames:
    """Return segments that begin with the last bytes of the one before."""
    found, before = Frames(), dict[bytes, bytes]()
    for at, packet in frames:
        old, payload = before.get(packet[12:24], b"")[-7:], packet[40:]
        found.append((at, resized(packet, -len(old), old + payload) if payload else packet))
        before[packet[12:24]] = payload
    return found


def retransmitted(frames: Frames) -> Frames:
    random = Random(3)
    return sorted(frames + [(at + random.randrange(10**8), packet) for at, packet in frames if random.random() < 0.2])


def kept_alive(frames: Frames) -> Frames:
    """Behind each segment the last byte before the next one again, as a host sends that hears nothing."""
    found = Frames()
    for at, packet in frames:
        found.append((at, packet))
        if len(packet) > 40:
            found.append((at, resized(packet, len(packet) - 41, b"\0")))
    return found


def in_blocks(size: int) -> Callable[[Frames], Frames]:
    """Return blocks of frames in any order."""

    def shuffle(frames: Frames) -> Frames:
        blocks = [frames[at : at + size] for at in range(0, len(frames), size)]
        Random(2).shuffle(blocks)
        return [one for block in blocks for one in block]

    return shuffle


def at_other_ports(frames: Frames) -> Frames:
    """Return the session at unknown ports."""
    others = {14371: 33_111, 14391: 33_222, 14567: 33_333}
    moved = [struct.pack(">HH", *(others.get(port, port) for port in ports(packet))) for _, packet in frames]
    return [(at, packet[:20] + new + packet[24:]) for (at, packet), new in zip(frames, moved, strict=True)]


CHANGES: dict[str, Callable[[Frames], Frames]] = {
    "as it is": lambda frames: frames,
    "each frame twice": lambda frames: [one for one in frames for _ in range(2)],
    "the whole twice, one behind the other": lambda frames: frames + frames,
    "from the middle": lambda frames: frames[len(frames) // 2 :],
    "from the first data": lambda frames: frames[30:],
    "to the middle": lambda frames: frames[: len(frames) // 2],
    "an hour later in the middle": lambda frames: [
        (at + 3600 * 10**9 * (number > 150), packet) for number, (at, packet) in enumerate(frames)
    ],
    "the clock set back in the middle": lambda frames: [
        (at + 3600 * 10**9 * (number < 150), packet) for number, (at, packet) in enumerate(frames)
    ],
    "all at one instant": lambda frames: [(0, packet) for _, packet in frames],
    "in fragments": fragmented,
    "in fragments, some lost": lambda frames: lossy(0.03)(fragmented(frames)),
    "in fragments, swapped": lambda frames: swapped(1)(fragmented(frames)),
    "mixed with other traffic": noisy,
    "mixed with other traffic, some lost": lambda frames: lossy(0.1)(noisy(frames)),
    "the stream alone": only(lambda source, _: source == 14371),
    "all but the stream": only(lambda source, _: source != 14371),
    "what stores are told": only(lambda _, target: target == 14567),
    "what stores say": only(lambda _, target: target == 14391),
    "without SYN": lambda frames: [one for one in frames if not one[1][33] & 2],
    **{f"{share:.0%} lost, {seed}": lossy(share, seed) for share in (0.01, 0.1, 0.4, 0.8) for seed in (1, 2)},
    "in reversed order": lambda frames: frames[::-1],
    "in reversed order, at one instant": lambda frames: [(0, packet) for _, packet in frames[::-1]],
    "in reversed order from the middle": lambda frames: frames[:150] + frames[150:][::-1],
    "the second half first": lambda frames: frames[len(frames) // 2 :] + frames[: len(frames) // 2],
    "every second frame behind the others": lambda frames: frames[::2] + frames[1::2],
    "at two places, one behind the other": lambda frames: sorted(
        frames + [(at + 9 * 10**7, one) for at, one in frames]
    ),
    "in a thousandth of the time": lambda frames: [(at // 1000, packet) for at, packet in frames],
    **{f"in blocks of {size} in any order": in_blocks(size) for size in (1, 5, 20, 100)},
    **{f"swapped, {seed}": swapped(seed) for seed in range(4)},
}

LINKS: dict[str, tuple[int, bytes]] = {
    "Ethernet": (ETHERNET, bytes(12) + IPV4_TYPE),
    "a VLAN": (ETHERNET, bytes(12) + b"\x81\x00\x00\x05" + IPV4_TYPE),
    "two VLANs": (ETHERNET, bytes(12) + b"\x88\xa8\x00\x05\x81\x00\x00\x06" + IPV4_TYPE),
    "Linux cooked": (LINUX_COOKED, bytes(14) + IPV4_TYPE),
    "Linux cooked, 2": (LINUX_COOKED_2, IPV4_TYPE + bytes(18)),
    "loopback": (NULL, struct.pack("<I", 2)),
    "loopback of the other byte order": (NULL, struct.pack(">I", 2)),
    "loopback, OpenBSD": (LOOP, struct.pack(">I", 2)),
    "IPv4": (IPV4, b""),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_nobody_is_blamed_for_how_it_was_captured(tmp_path: Path, change: Callable[[Frames], Frames]) -> None:
    findings = judge(written(tmp_path / "a.pcap", change(FRAMES)))
    assert [one for one in findings.found if one.standing is RuleStanding.BROKEN] == []


SAME: dict[str, Callable[[Frames], Frames]] = {
    "overlapping": overlapping,
    "retransmitted": retransmitted,
    "kept alive": kept_alive,
    "at other ports": at_other_ports,
    **{f"in segments of {size}": tiny(size) for size in (1, 3, 30)},
    "in segments of 3 at other ports": lambda frames: tiny(3)(at_other_ports(frames)),
    "in segments of 40 at other ports": lambda frames: tiny(40)(at_other_ports(frames)),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_segmentation_by_tcp_makes_no_difference(tmp_path: Path, change: Callable[[Frames], Frames]) -> None:
    standings = judge(written(tmp_path / "a.pcap", change(FRAMES))).standings
    assert {rule for rule, _ in standings} == {"P7", "A1", "A4", "D3", "R1"}
    assert set(standings.values()) == {RuleStanding.FINE}


def test_frames_in_any_order_are_told(tmp_path: Path) -> None:
    world = settled(World())
    world.ack(1, 39, 4_000)
    world.wait(2_000)
    world.send(40)
    frames = [(at * 1_000_000, packet) for at, packet in world.talk.packets]
    assert judge(written(tmp_path / "a.pcap", frames)).gravest is RuleStanding.BROKEN
    first, last = 60, 320  # connections open before, and what is behind the pause stays there
    pairs = [one for at in range(first, last, 2) for one in reversed(frames[at : at + 2])]
    pairs = frames[:first] + pairs + frames[last:]
    findings = judge(written(tmp_path / "b.pcap", pairs))
    assert findings.gravest is RuleStanding.CANNOT_TELL
    assert any(one.text.endswith("`reordercap` puts them in order") for one in findings.found)


@pytest.mark.parametrize(("link", "header"), LINKS.values(), ids=LINKS)
def test_links_make_no_difference(tmp_path: Path, link: int, header: bytes) -> None:
    findings = judge(written(tmp_path / "a.pcap", FRAMES, link, header))
    assert findings.standings == judge(written(tmp_path / "b.pcap", FRAMES, order=">")).standings
    assert set(findings.standings.values()) == {RuleStanding.FINE}


@pytest.mark.parametrize("snap", [20, 40, 54, 60, 80, 96, 128])
def test_cut_frames_leave_doubt_at_most(tmp_path: Path, snap: int) -> None:
    findings = judge(written(tmp_path / "a.pcap", FRAMES, snap=snap))
    assert findings.gravest is not RuleStanding.BROKEN


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_file_is_a_sentence_or_is_judged(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    octets = bytearray(written(tmp_path / "a.pcap", FRAMES).read_bytes())
    for _ in range(20):
        octets[random.randrange(len(octets))] = random.randrange(256)
    path = tmp_path / "b.pcap"
    path.write_bytes(octets)
    with suppress(CaptureError):
        judge(path)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", "it is empty"),
        (b"hello\n" * 9, "it starts like neither pcap nor pcapng"),
        (bytes(99), "it starts like neither pcap nor pcapng"),
        (gzip.compress(bytes(99)), "it starts like neither pcap nor pcapng"),
    ],
)
def test_a_file_that_is_no_capture_is_a_sentence(tmp_path: Path, octets: bytes, why: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(octets)
    with pytest.raises(CaptureError, match=why):
        judge(path)
