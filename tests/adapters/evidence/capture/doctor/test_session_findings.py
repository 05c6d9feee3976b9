"""Findings about sessions: our own machines lose what a test chooses, and the doctor's figures are those."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.transports.reliable.settings import LBTRM_RECEIVER, RateSettings, SourceSettings
from stablecast.transports.wire import lbmr, lbtrm, lbtru
from stablecast.transports.wire.reliable_packets import Reason
from tests.adapters.evidence.capture.doctor.played_session import (
    FIRST,
    GROUP,
    MS,
    NAKS,
    NAME,
    SENDER,
    Drop,
    Timed,
    advice,
    encoded,
    first_copies,
    packets_of,
    traffic,
)
from tests.support.captures import datagram

RECEIVERS = ("10.0.1.0:14360", "10.0.1.1:14360")
TENTH = {*range(5, 200, 10)}
SESSION = 0xCAFE0001


def test_clean_traffic_has_no_finding(tmp_path: Path) -> None:
    assert advice(tmp_path / "one.pcap", packets_of(traffic(200))) == {}


def test_losses_are_counted_by_receiver(tmp_path: Path) -> None:
    world = traffic(200, first_copies(RECEIVERS[:1], TENTH))
    found = advice(tmp_path / "one.pcap", packets_of(world))
    assert {*found} == {("loss", FIRST)}
    sent = len({packet.sqn for _, packet in world.packets(lbtrm.Data)})
    loss = found["loss", FIRST]
    histogram = loss.figures.pop("histogram")
    assert loss.figures == {"lost": 20, "sent": sent, "gaps": 20, "longest_gap": 1, "again": 0}
    assert sum(histogram.values()) == 20
    assert f"{histogram['<100']} below 100 ms" in loss.text
    assert loss.text.startswith(f"lost 20 of {sent} datagrams (9.8 %) in 20 gaps, the longest 1")
    assert (loss.value, len(loss.frames)) == (20 / sent, 5)
    assert "Single datagrams are lost between the place of the capture and the receiver" in loss.remedy


def test_bursts_have_another_remedy(tmp_path: Path) -> None:
    burst = first_copies(RECEIVERS[:1], {*range(50, 80)})
    found = advice(tmp_path / "one.pcap", packets_of(traffic(200, burst)))
    assert found["loss", FIRST].figures["longest_gap"] == 30
    assert "transport_lbtrm_receiver_socket_buffer" in found["loss", FIRST].remedy


def test_losses_before_the_place_of_the_capture(tmp_path: Path) -> None:
    """The capture lacks the originals, and has the repairs."""
    lost = first_copies((RECEIVERS[0], "source"), TENTH)
    found = advice(tmp_path / "one.pcap", packets_of(traffic(200, lost), skip=lost))
    assert "20 datagrams are not in the capture either" in found["loss", FIRST].text
    assert "before the place of the capture" in found["loss", FIRST].remedy


def lost_repairs() -> Drop:
    """Drop a tenth for the first receiver, and its first repairs."""
    originals, again = first_copies(RECEIVERS[:1], TENTH), set[int]()

    def drop(to: str, packet: Any) -> bool:
        if originals(to, packet):
            return True
        if to != RECEIVERS[0] or not isinstance(packet, lbtrm.Data) or packet.sqn not in TENTH or packet.sqn in again:
            return False
        again.add(packet.sqn)
        return True

    return drop


def test_a_refused_nak_is_explained_and_the_advice_helps(tmp_path: Path) -> None:
    """A second NAK within the ignore interval is refused, and costs the suppress interval."""
    found = advice(tmp_path / "one.pcap", packets_of(traffic(200, lost_repairs())))
    refused = found["refused", FIRST]
    assert refused.value == 20
    assert found["loss", FIRST].figures["again"] == 20
    assert found["slow-recovery", FIRST].value > 1_000
    shorter = SourceSettings(batch_bytes=1, linger_ns=MS, ignore_ns=refused.figures["ignore_interval"] * MS)
    mended = advice(tmp_path / "two.pcap", packets_of(traffic(200, lost_repairs(), source=shorter)))
    assert {code for code, _ in mended} == {"loss"}
    patient = attrs.evolve(LBTRM_RECEIVER, backoff_ns=refused.figures["nak_backoff"] * MS)
    mended = advice(tmp_path / "three.pcap", packets_of(traffic(200, lost_repairs(), receiver=patient)))
    assert ("refused", FIRST) not in mended


def test_a_loss_at_the_end_waits_for_a_session_message(tmp_path: Path) -> None:
    found = advice(tmp_path / "one.pcap", packets_of(traffic(200, first_copies(RECEIVERS[:1], {199}))))
    assert {*found} == {("loss", FIRST), ("tail-loss", FIRST)}
    tail = found["tail-loss", FIRST]
    assert (tail.value, tail.figures["repaired"]) == (1, 1)
    assert tail.figures["longest"] > 200
    assert "sm_minimum_interval" in tail.remedy


def test_a_source_that_ends_too_early(tmp_path: Path) -> None:
    world = traffic(200, first_copies(RECEIVERS[:1], {198}), until_ms=2_995)
    world.close()
    world.run(20_000 * MS)
    packets = packets_of(world)
    naks = [(at, packet) for at, packet in packets if packet[12:16] == bytes((10, 0, 1, 0))]
    packets += [(at + 1, unreachable(packet)) for at, packet in naks[:3]]
    found = advice(tmp_path / "one.pcap", packets)
    early = found["early-exit", FIRST]
    assert (early.value, early.figures["icmp"]) == (1, 3)
    assert early.figures["asked"] > 5_000
    assert "its host answered that nothing listens there (3 ICMP messages)" in early.text


def unreachable(packet: bytes) -> bytes:
    """Return the ICMP answer of the host that a packet was sent to."""
    body = b"\x03\x03\0\0\0\0\0\0" + packet[:28]
    head = bytes((0x45, 0)) + (20 + len(body)).to_bytes(2) + bytes(4) + bytes((64, 1, 0, 0))
    return head + packet[16:20] + packet[12:16] + body


def test_what_is_never_repaired(tmp_path: Path) -> None:
    def drop(to: str, packet: Any) -> bool:
        return to == RECEIVERS[0] and isinstance(packet, lbtrm.Data) and packet.sqn in (30, 31)

    found = advice(tmp_path / "one.pcap", packets_of(traffic(2_500, drop)))
    assert found["unrepaired", FIRST].value == 2
    assert "nak_generation_interval" in found["unrepaired", FIRST].remedy


@pytest.mark.parametrize(("queued", "found"), [(1_000, True), (200, False)])
def test_a_source_at_its_data_rate_limit(tmp_path: Path, queued: int, found: bool) -> None:
    """A source queues messages at once that leave in many intervals, or in few."""
    rates = RateSettings(10 * MS, data_bits=1_000_000, repairs_count=True)
    world = traffic(0, rates=rates, until_ms=1)
    for _ in range(queued):
        world.send(7)
    world.run(10_000 * MS)
    seen = advice(tmp_path / "one.pcap", packets_of(world))
    assert (("rate-limit", NAME) in seen) == found
    if found:
        limit = seen["rate-limit", NAME]
        assert limit.figures["period"] == 10
        assert limit.figures["bits"] == pytest.approx(1_000_000, rel=0.05)
        assert "every 10.0 ms" in limit.text


def test_a_datagram_that_was_overtaken_is_not_lost(tmp_path: Path) -> None:
    """The capture is at the first receiver. Every tenth datagram comes after its NAK, but one of them never comes."""
    lost = first_copies(("source",), {45})
    world = traffic(200, first_copies(RECEIVERS[:1], TENTH))
    packets = packets_of(world, skip=lambda who, packet: lost(who, packet) or who == RECEIVERS[1])
    asked = {packet.sqns[0]: at for at, who, packet in world.wire if isinstance(packet, lbtrm.Nak)}
    late = []
    for at, packet in packets:
        number = overtaken(packet)
        late.append((asked[number] + MS if number is not None and number in TENTH else at, packet))
    found = advice(tmp_path / "late.pcap", late)
    assert found["late", FIRST].figures == {"late": 19, "longest": 1}
    assert found["loss", FIRST].figures["lost"] == 1
    assert "nak_initial_backoff_interval above 1.0 ms" in found["late", FIRST].remedy


def overtaken(packet: bytes) -> int | None:
    """Return the number of an original datagram."""
    if packet[16] < 224:
        return None
    one = lbtrm.decode(packet[28:])
    return one.sqn if isinstance(one, lbtrm.Data) and not one.flags & lbtrm.Data.RETRANSMISSION else None


def test_a_capture_that_misses_datagrams(tmp_path: Path) -> None:
    def skip(who: str, packet: Any) -> bool:
        return isinstance(packet, lbtrm.Data) and packet.sqn in TENTH

    found = advice(tmp_path / "one.pcap", packets_of(traffic(200), skip=skip))
    assert {*found} == {("missing", NAME)}
    assert found["missing", NAME].figures == {"missing": 20}


def data(sqn: int, again: bool = False) -> lbtrm.Data:
    flags = lbtrm.Data.RETRANSMISSION if again else 0
    return lbtrm.Data(nak_port=NAKS[1], session_id=SESSION, sqn=sqn, trail=0, flags=flags, payload=b"")


def nak(*sqns: int) -> lbtrm.Nak:
    return lbtrm.Nak(nak_port=NAKS[1], session_id=SESSION, sqns=sqns)


def ncf(*sqns: int, reason: int) -> lbtrm.Ncf:
    return lbtrm.Ncf(nak_port=NAKS[1], session_id=SESSION, trail=0, reason=reason, sqns=sqns)


def said(*packets: lbtrm.Packet | int) -> list[Timed]:
    """Return packets a millisecond apart, with pauses in ms between them."""
    now, found = 0, []
    for one in packets:
        if isinstance(one, int):
            now += one
            continue
        now += 1
        ends = ((RECEIVERS[0].partition(":")[0], 14360), NAKS) if isinstance(one, lbtrm.Nak) else (SENDER, GROUP)
        found.append((now * MS, datagram(*ends, encoded(one))))
    return found


@pytest.mark.parametrize(
    ("packets", "code", "value"),
    [
        ((data(0), data(1), 500, data(0, again=True)), "duplicates", 1.0),
        ((data(0), data(2), nak(1), ncf(1, reason=Reason.DELAYED)), "limited", 1),
        ((data(0), data(2), nak(1), ncf(1, reason=Reason.SHED)), "limited", 1),
        ((data(0), 15_000, data(1)), "silence", 15_001),
        ((data(0), data(1_201), nak(*range(1, 601)), nak(*range(601, 1_201))), "storm", 1_200),
    ],
)
def test_findings_about_a_source(
    packets: tuple[lbtrm.Packet | int, ...], code: str, value: float, tmp_path: Path
) -> None:
    found = advice(tmp_path / "one.pcap", said(*packets))
    assert found[code, NAME].value == value
    name = code.replace("-", "_")
    assert (code, NAME) not in advice(tmp_path / "two.pcap", said(*packets), **{name: 2 * value})


def test_what_is_captured_twice_is_counted_once(tmp_path: Path) -> None:
    packets = packets_of(traffic(200, lost_repairs()))
    alone = advice(tmp_path / "one.pcap", packets)
    twice = advice(tmp_path / "two.pcap", [one for packet in packets for one in (packet, packet)])
    assert twice.pop(("copies", "the capture")).value == 0.5
    assert {key: one.value for key, one in twice.items()} == {key: one.value for key, one in alone.items()}


def test_naks_alone_show_only_that_the_capture_lacks_the_source(tmp_path: Path) -> None:
    """Numbers that rise prove that the source goes on, so it neither ended nor lost what it sent last."""
    asked = [nak(6 + 4 * turn) for turn in range(6)]
    found = advice(tmp_path / "one.pcap", said(*asked, 3_000, nak(40)))
    assert {*found} == {("missing", NAME)}
    missing = found["missing", NAME]
    assert (missing.value, missing.figures, missing.frames) == (1, {"missing": 7}, (7,))
    assert "ask for numbers up to 40" in missing.text


def test_a_source_whose_last_datagrams_are_not_captured_has_not_ended(tmp_path: Path) -> None:
    begun = (data(0), data(1), data(3), nak(2))
    asking = (*begun, 1_500, nak(2), 100, nak(2))
    assert ("early-exit", FIRST) in advice(tmp_path / "one.pcap", said(*asking))
    found = advice(tmp_path / "two.pcap", said(*asking, 100, nak(9)))
    assert ("early-exit", FIRST) not in found
    assert found["missing", NAME].figures == {"missing": 1}
    transport = lbmr.LbtrmTransport(SENDER[0], GROUP[0], SESSION, GROUP[1], NAKS[1])
    tir = lbmr.Packet(lbmr.PacketKind.NORMAL, (), (lbmr.Advertisement("orders", transport, 60, 1),), ())
    later = (1_700 * MS, datagram(SENDER, ("224.9.10.11", 12_965), lbmr.encode(tir)))
    assert ("early-exit", FIRST) not in advice(tmp_path / "three.pcap", [*said(*asking), later])


def test_unicast_sessions_are_examined(tmp_path: Path) -> None:
    options = (lbtru.SessionId(session_id=1),)
    source, client = ("10.0.0.1", 14_380), ("10.0.1.0", 14_360)
    sent = [lbtru.Data(sqn=number, trail=0, options=options, payload=b"") for number in (0, 2, 3)]
    packets = [(one.sqn * MS, datagram(source, client, lbtru.encode(one))) for one in sent]
    asking = lbtru.encode(lbtru.Nak(options=options, sqns=(1,)))
    packets.append((60 * MS, datagram(client, source, asking)))
    found = advice(tmp_path / "one.pcap", packets)
    whose = "10.0.1.0:14360 of LBTRU:10.0.0.1:14380:00000001:10.0.1.0:14360"
    assert found["loss", whose].figures["lost"] == 1
