"""Captures that are cut, doubled, out of order or of a clock that was set; and figures that are right nevertheless."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from stablecast.evidence.capture.doctor import CaptureAdvice
from stablecast.evidence.capture.judge import judge
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole.conductor import Conductor
from stablecast.lab.whole.runner import run
from stablecast.lab.whole.schedule import Setup, WorldSchedule
from stablecast.transports.wire import lbtrm
from tests.adapters.evidence.capture.doctor.played_session import (
    FIRST,
    MS,
    NAME,
    Timed,
    advice,
    first_copies,
    packets_of,
    traffic,
)
from tests.support import captures
from tests.support.pcap import SECOND
from tests.support.world_capture import WorldCapture, captured

LOST: Final = {*range(5, 200, 10)}
"""Datagrams that the first receiver of `lossy` does not get: 20 of 200."""

CAPTURE: Final = "the capture"


@pytest.fixture(scope="module")
def lossy() -> list[Timed]:
    return packets_of(traffic(200, first_copies(["10.0.1.0:14360"], LOST)))


def found(path: Path) -> dict[tuple[str, str], CaptureAdvice]:
    return {(one.code, one.whose): one for one in judge(path).advice}


def test_packets_that_were_cut(tmp_path: Path, lossy: list[Timed]) -> None:
    path = tmp_path / "cut.pcap"
    octets = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 60, captures.RAW)]
    for at, packet in lossy:
        seconds, rest = divmod(at, 1_000_000_000)
        octets.append(struct.pack("<IIII", SECOND + seconds, rest, len(packet[:60]), len(packet)) + packet[:60])
    path.write_bytes(b"".join(octets))
    cut = sum(len(packet) > 60 for _, packet in lossy)
    assert found(path)["truncated", CAPTURE].value == cut / len(lossy)


def test_packets_out_of_order(tmp_path: Path, lossy: list[Timed]) -> None:
    """Every tenth packet is written after the next one."""
    swapped = [
        one for at in range(0, len(lossy) - 1, 10) for one in (lossy[at + 1], lossy[at], *lossy[at + 2 : at + 10])
    ]
    path = tmp_path / "order.pcap"
    with_order(path, swapped)
    one = found(path)["disorder", CAPTURE]
    assert one.value == pytest.approx(0.1, rel=0.1)
    assert len(one.frames) == 5


def test_a_clock_that_was_set(tmp_path: Path, lossy: list[Timed]) -> None:
    path = tmp_path / "clock.pcap"
    half = len(lossy) // 2
    with_order(path, [*lossy[:half], *((at - 5_000 * MS, packet) for at, packet in lossy[half:])])
    one = found(path)["clock", CAPTURE]
    assert (one.value, one.frames, round(one.figures["seconds"])) == (1, (half + 1,), 5)


def with_order(path: Path, packets: list[Timed]) -> None:
    octets = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, captures.RAW)]
    for at, packet in packets:
        seconds, rest = divmod(at, 1_000_000_000)
        octets.append(struct.pack("<IIII", SECOND + seconds, rest, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(octets))


def test_session_messages_that_are_missing(tmp_path: Path) -> None:
    """The source is idle for a while, and the capture misses every second session message."""

    def skip(who: str, packet: object) -> bool:
        return isinstance(packet, lbtrm.SessionMessage) and packet.sm_sqn % 2 == 1

    world = traffic(5)
    told = len(world.packets(lbtrm.SessionMessage))
    assert told > 20
    one = advice(tmp_path / "one.pcap", packets_of(world, skip))["session-messages", NAME]
    assert one.figures["missing"] + one.figures["captured"] in (told, told - 1)
    assert one.value == pytest.approx(0.5, abs=0.05)
    assert ("session-messages", NAME) not in advice(tmp_path / "all.pcap", packets_of(world))


def with_link(path: Path, packets: list[Timed], link: int, tags: int) -> None:
    octets = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, link)]
    for at, packet in packets:
        frame = captures.framed(link, packet, tags)
        seconds, rest = divmod(at, 1_000_000_000)
        octets.append(struct.pack("<IIII", SECOND + seconds, rest, len(frame), len(frame)) + frame)
    path.write_bytes(b"".join(octets))


def with_blocks(path: Path, packets: list[Timed]) -> None:
    resolution = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    blocks = [
        captures.enhanced(number, packet, ticks=SECOND * 1_000_000_000 + at)
        for number, (at, packet) in enumerate(packets)
    ]
    path.write_bytes(captures.section() + captures.interface(captures.RAW, options=resolution) + b"".join(blocks))


def with_cut_end(path: Path, packets: list[Timed]) -> None:
    with_order(path, packets)
    path.write_bytes(path.read_bytes()[:-7])


def pieces(packet: bytes) -> list[bytes]:
    return captures.pieces(packet, 32) if len(packet) > 60 else [packet]


FORMS: Final[dict[str, Callable[[Path, list[Timed]], None]]] = {
    "tagged": lambda path, packets: with_link(path, packets, captures.ETHERNET, 2),
    "cooked": lambda path, packets: with_link(path, packets, captures.COOKED, 0),
    "cooked 2": lambda path, packets: with_link(path, packets, captures.COOKED_2, 0),
    "pcapng in ns": with_blocks,
    "fragments": lambda path, packets: with_order(
        path, [(at, part) for at, packet in packets for part in pieces(packet)]
    ),
    "mirrored twice": lambda path, packets: with_order(
        path, [(at + step, packet) for at, packet in packets for step in (0, 1_000)]
    ),
    "the end is missing": with_cut_end,
}
"""Forms of the same traffic. The figures of the session must not depend on them."""


@pytest.mark.parametrize("form", FORMS)
def test_figures_are_the_same_in_every_form(form: str, tmp_path: Path, lossy: list[Timed]) -> None:
    path = tmp_path / "form.pcap"
    FORMS[form](path, lossy)
    figures = found(path)["loss", FIRST].figures
    assert (figures["lost"], figures["longest_gap"], sum(figures["histogram"].values())) == (20, 1, 20)
    assert figures["sent"] == len(originals(lossy))


def test_a_capture_that_begins_late(tmp_path: Path, lossy: list[Timed]) -> None:
    """It has the second half of the traffic only."""
    late = [one for one in lossy if one[0] >= 2_000 * MS]
    figures = advice(tmp_path / "late.pcap", late)["loss", FIRST].figures
    assert figures["lost"] in (10, 11)
    assert figures["sent"] == len(originals(late))


# ------------------------------------------------------------------------------------- shipped programs in whole worlds

MULTICAST: Final = Setup(options=(("transport", "lbtrm"),))
SOURCE_HOST, READER_HOST = "10.0.0.1", "10.0.0.2"


def only_lose(self: Conductor, fault: Fault, share: float) -> None:
    """Lose packets of a host in both directions. Noise would also reorder them, and a late datagram is no lost one."""
    network, here = self.world.network, self.world.host(fault.who).address
    for other in (self.world.host(name).address for name in self.names if name != fault.who):
        for path in (network.path(here, other), network.path(other, here)):
            path.loss = share


def whole(loss: int, seed: int = 3) -> WorldCapture:
    """Run the shipped programs; a receiver loses a share of the datagrams in both directions for 2.5 s."""
    struck = (Fault(1000, Kind.NOISE, "receiver0", 2500, "", loss),) if loss else ()
    with captured() as capture, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conductor, "_noise", only_lose)
        run(WorldSchedule(seed, MULTICAST, struck, horizon_ms=4_000))
    return capture


def originals(packets: list[Timed]) -> set[int]:
    """Return the numbers of new datagrams of the session; a source sends each of them once."""
    numbers = set()
    for _, packet in packets:
        if packet[9] == 17 and packet[16] >= 224:
            try:
                one = lbtrm.decode(packet[28:])
            except ValueError:
                continue
            if isinstance(one, lbtrm.Data) and not one.flags & one.RETRANSMISSION:
                numbers.add(one.sqn)
    return numbers


@pytest.mark.parametrize("loss", [20, 60])
def test_the_shipped_programs_lose_as_many_as_the_doctor_says(loss: int, tmp_path: Path) -> None:
    """The truth is the difference between the captures of both ends; the doctor sees one of them at a time."""
    capture = whole(loss)
    capture.write(tmp_path)
    sent, got = (originals(capture.hosts[host]) for host in (SOURCE_HOST, READER_HOST))
    sent = {number for number in sent if number > min(got)}  # The receiver joined after the first ones.
    assert len(sent - got) > 3
    for host in (SOURCE_HOST, READER_HOST):
        losses = {key: one for key, one in found(tmp_path / f"{host}.pcap").items() if key[0] == "loss"}
        ((_, whose),) = losses
        assert whose.startswith(READER_HOST)
        figures = losses["loss", whose].figures
        assert figures["lost"] == len(sent - got), host
        assert figures["sent"] == pytest.approx(len(sent), abs=5), host


def test_clean_worlds_have_no_finding(tmp_path: Path) -> None:
    for path in whole(0).write(tmp_path):
        assert found(path) == {}, path.name
