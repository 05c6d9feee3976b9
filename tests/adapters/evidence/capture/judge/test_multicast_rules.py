"""The rules of LBT-RM: what our own machines say on a network that loses is fine, and each planted fault is found."""

import struct
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from stablecast.evidence.capture.judge import CaptureFindings, RuleStanding, judge
from stablecast.evidence.capture.judge.multicast_rules import MAX_NUMBERS, DatagramSession
from stablecast.evidence.capture.statements import At
from stablecast.transports.reliable.settings import SourceSettings
from stablecast.transports.wire import lbmc, lbtrm
from stablecast.transports.wire.reliable_packets import Reason
from tests.adapters.evidence.capture.judge.wire_session import ASKER, NAKS, SESSION, Talk
from tests.transports.reliable import network as played

FINE, CANNOT_TELL, BROKEN = RuleStanding


def judged(talk: Talk, tmp_path: Path) -> CaptureFindings:
    return judge(talk.write(tmp_path / "talk.pcap"))


def standings(talk: Talk, tmp_path: Path) -> dict[str, RuleStanding]:
    return {rule: standing for (rule, _), standing in judged(talk, tmp_path).standings.items()}


def test_a_datagram_captured_twice_was_sent_once(tmp_path: Path) -> None:
    """Copies come from two interfaces, or from two captures put together."""
    talk = spoken(*REPAIRED, nak(1), ncf(1), 900, data(1, again=True))
    alone = judge(talk.write(tmp_path / "alone.pcap")).standings
    talk.packets = [one for one in talk.packets for _ in range(2)]
    assert judge(talk.write(tmp_path / "twice.pcap")).standings == alone
    talk.packets = talk.packets[::2] * 2
    assert judge(talk.write(tmp_path / "behind.pcap")).standings == alone


def data(sqn: int, again: bool = False, trail: int = 0) -> lbtrm.Data:
    flags = lbtrm.Data.UNICAST_NAKS | (lbtrm.Data.RETRANSMISSION if again else 0)
    return lbtrm.Data(nak_port=NAKS[1], session_id=SESSION, sqn=sqn, trail=trail, flags=flags, payload=b"")


def session(lead: int, trail: int = 0, beat: int = 0) -> lbtrm.SessionMessage:
    return lbtrm.SessionMessage(nak_port=NAKS[1], session_id=SESSION, sm_sqn=beat, lead=lead, trail=trail)


def nak(*sqns: int) -> lbtrm.Nak:
    return lbtrm.Nak(nak_port=NAKS[1], session_id=SESSION, sqns=sqns)


def ncf(*sqns: int, reason: int = Reason.IGNORED) -> lbtrm.Ncf:
    return lbtrm.Ncf(nak_port=NAKS[1], session_id=SESSION, trail=0, reason=reason, sqns=sqns)


def spoken(*said: lbtrm.Packet | int) -> Talk:
    """Return datagrams with pauses in milliseconds between them."""
    talk = Talk()
    for one in said:
        if isinstance(one, int):
            talk.now += one
        else:
            talk.rm(one)
    return talk


@pytest.mark.parametrize("seed", range(4))
def test_our_own_machines_keep_the_rules(tmp_path: Path, seed: int) -> None:
    """A network that loses a tenth; what goes to the group is captured on its way."""
    world = played.Network(
        "lbtrm", 2, played.Faults(lost=100), seed, SourceSettings(batch_bytes=1, linger_ns=played.MS)
    )
    world.run(1_000 * played.MS)
    for number in range(60):
        world.send_at(1_000 * played.MS + number * 20 * played.MS, 7)
    world.run(20_000 * played.MS)
    talk, seen = Talk(), None
    for at, _, packet in world.wire:
        if (at, packet) != seen:
            talk.now = at // played.MS
            talk.rm(packet)
            seen = (at, packet)
    findings = judged(talk, tmp_path)
    assert [one for one in findings.found if one.standing is BROKEN] == []
    assert {rule for rule, _ in findings.standings} >= {"M2", "M6"}


RECOVERED = (data(0), data(2), 60, nak(1), data(1, again=True), 2_000, session(2))
REPAIRED = (data(0), data(1), 500, nak(1), data(1, again=True), 100)

IGNORED = (*REPAIRED, 300, nak(1), ncf(1), 900, nak(1), data(1, again=True))


@pytest.mark.parametrize(
    ("said", "rule", "standing"),
    [
        (RECOVERED, "M2", FINE),
        (RECOVERED, "M5", FINE),
        ((*REPAIRED, nak(1), ncf(1), 900, data(1, again=True)), "M1", FINE),
        ((*IGNORED, 100, nak(1), data(1, again=True)), "M1", BROKEN),
        ((*IGNORED, 300, nak(1), data(1, again=True)), "M1", CANNOT_TELL),  # each may have been on its way for 100 ms
        ((*IGNORED, 100, data(1, again=True)), "M1", CANNOT_TELL),
        ((*IGNORED, nak(1), 100, ncf(1), 1_000, ncf(1)), "M1", FINE),
        ((*REPAIRED, data(1, again=True)), "M1", CANNOT_TELL),
        ((data(0), data(1), nak(0), 300, nak(0), 1_500, session(1)), "M2", BROKEN),
        ((data(0), data(1), nak(0), 1_500, session(1)), "M2", CANNOT_TELL),
        ((data(0), data(1), data(3), nak(0), 300, nak(0), 1_500, session(3)), "M2", CANNOT_TELL),
        ((data(0), session(0, beat=1), nak(0), 300, nak(0), 1_500, session(0, beat=4)), "M2", CANNOT_TELL),
        ((data(0), session(0, beat=1), nak(0), 300, nak(0), 1_500, session(0, beat=2)), "M2", BROKEN),
        ((data(0), data(2), nak(1), 300, nak(1), 1_500, session(2)), "M2", BROKEN),
        ((data(0), data(1), nak(0), 1_500, session(1, trail=1)), "M2", FINE),
        ((data(0), data(1), nak(0), ncf(0, reason=Reason.DELAYED)), "M2", FINE),
        ((data(0), nak(7), 1_500, session(0)), "M3", BROKEN),
        ((data(0), ncf(7), 1_500, session(0)), "M3", BROKEN),
        ((data(0), nak(1), data(1)), "M3", CANNOT_TELL),
        ((data(0), nak(7), 300, nak(7), 1_500, nak(7)), "M3", CANNOT_TELL),
        ((data(0), data(1), nak(7, 0), 100, data(0, again=True)), "M3", CANNOT_TELL),
        ((data(0), data(1), nak(7, 0), 100, data(0, again=True), session(1)), "M3", BROKEN),
        ((nak(1),), "M3", CANNOT_TELL),
        ((data(0), data(1), nak(0), 700, nak(0), 700, nak(0)), "M4", BROKEN),
        ((data(0), data(1), nak(0)), "M4", CANNOT_TELL),
        ((data(0), data(1), nak(0), 60_000), "M4", CANNOT_TELL),
        ((data(0), session(3)), "M5", CANNOT_TELL),
        ((data(0), session(3), nak(3), data(3, again=True), nak(1, 2), data(1, True), data(2, True)), "M5", FINE),
        ((data(0), data(2), data(1)), "M6", CANNOT_TELL),
        ((data(0), data(1), 30, data(1)), "M6", CANNOT_TELL),
        ((data(0), data(1), data(1)), "M6", FINE),
        ((data(0), data(1)), "M6", FINE),
        ((data(1, again=True), data(2)), "M6", FINE),
    ],
)
def test_each_rule(tmp_path: Path, said: tuple[lbtrm.Packet | int, ...], rule: str, standing: RuleStanding) -> None:
    found = standings(spoken(*said), tmp_path)
    assert found[rule] is standing
    assert [one for one, verdict in found.items() if verdict is BROKEN] == ([rule] if standing is BROKEN else [])


def lost(*sqns: int, again: bool) -> Callable[[lbtrm.Packet], bool]:
    def is_lost(packet: lbtrm.Packet) -> bool:
        flagged = isinstance(packet, lbtrm.Data) and bool(packet.flags & lbtrm.Data.RETRANSMISSION)
        return isinstance(packet, lbtrm.Data) and packet.sqn in sqns and flagged is again

    return is_lost


def test_datagrams_lost_by_the_capture_break_no_rule(tmp_path: Path) -> None:
    """Datagrams, or repairs, are taken out of the capture, and the endpoints had them."""
    for again in (False, True):
        gone = lost(1, again=again)
        said = [one for one in RECOVERED if isinstance(one, int) or not gone(one)]
        assert BROKEN not in standings(spoken(*said), tmp_path).values()


def test_datagrams_that_were_cut_may_have_been_answers(tmp_path: Path) -> None:
    """A snap length leaves only the heads of large datagrams."""
    talk = spoken(data(0), data(1), nak(0), 300, nak(0))
    repair = attrs.evolve(data(0, again=True), payload=lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, 1, 0, (), b"a")))
    talk.rm(repair)
    _, packet = talk.packets[-1]
    talk.now += 1_500
    talk.rm(session(1))
    path = talk.write(tmp_path / "whole.pcap")
    assert BROKEN not in judge(path).standings.values()
    octets = path.read_bytes()
    cut = struct.pack("<I", len(packet)) + packet
    assert octets.count(cut) == 1
    shorter = struct.pack("<I", len(packet)) + packet[:-5]
    before = octets.index(cut) - 4
    octets = octets[:before] + struct.pack("<I", len(packet) - 5) + shorter + octets[before + 4 + len(cut) :]
    path.write_bytes(octets)
    findings = judge(path)
    assert {rule: standing for (rule, _), standing in findings.standings.items()}["M2"] is CANNOT_TELL
    assert BROKEN not in findings.standings.values()


def test_a_source_that_the_capture_lost_has_not_ended(tmp_path: Path) -> None:
    """A receiver knows of later numbers, or the source's context advertises: both live beyond the capture."""
    asking = (data(0), data(1), data(3), 100, nak(2), 700, nak(2), 700, nak(2))
    assert standings(spoken(*asking), tmp_path)["M4"] is BROKEN
    assert standings(spoken(*asking, 10, nak(9)), tmp_path)["M4"] is CANNOT_TELL


def test_a_pause_of_the_capture_is_no_fault(tmp_path: Path) -> None:
    """Or the clock was set: nobody is late because of that."""
    talk = spoken(*IGNORED, nak(0), 3_600_000, ncf(1), session(1), nak(0))
    assert BROKEN not in standings(talk, tmp_path).values()


def test_a_number_that_was_ignored_at_once_is_not_awaited(tmp_path: Path) -> None:
    """The first NAK within the ignore interval gets an NCF, any further one nothing."""
    found = standings(spoken(*REPAIRED, nak(1), ncf(1), 50, nak(1), 5_000, session(1)), tmp_path)
    assert BROKEN not in found.values()
    assert CANNOT_TELL not in found.values()


@pytest.mark.no_cover
def test_remembered_datagrams_are_bounded() -> None:
    one = DatagramSession("a", CaptureFindings())
    for sqn in range(MAX_NUMBERS + 10):
        one.judge_datagram(At(1, sqn, (NAKS, ASKER)), data(sqn))
    assert len(one.shots) == MAX_NUMBERS
    one.judge_datagram(At(1, 1 << 40, (NAKS, ASKER)), data(3, again=True))
    assert len(one.shots) == MAX_NUMBERS
