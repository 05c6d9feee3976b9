"""LBT-RU is judged by the rules of LBT-RM, each session for each of its clients."""

from pathlib import Path

import pytest

from stablecast.evidence.capture.judge import CaptureFindings, RuleStanding, judge
from stablecast.transports.reliable.settings import SourceSettings
from stablecast.transports.wire import lbtru
from stablecast.transports.wire.reliable_packets import Reason
from tests.adapters.evidence.capture.judge.wire_session import SESSION, Talk
from tests.support.captures import datagram
from tests.transports.reliable import network as played

FINE, CANNOT_TELL, BROKEN = RuleStanding
SOURCE, CLIENTS = ("10.0.0.1", 14_380), (("10.0.0.9", 14_365), ("10.0.0.8", 14_365))
NAME = f"LBTRU:10.0.0.1:14380:{SESSION:08x}:10.0.0.9:14365"
SID = (lbtru.SessionId(session_id=SESSION),)


def spoken(*said: lbtru.Packet | int, client: int = 0, talk: Talk | None = None) -> Talk:
    """Return datagrams with pauses in milliseconds between them."""
    talk = talk or Talk()
    for one in said:
        if isinstance(one, int):
            talk.now += one
            continue
        asking = isinstance(one, lbtru.Nak | lbtru.Ack | lbtru.Request)
        ends = (CLIENTS[client], SOURCE) if asking else (SOURCE, CLIENTS[client])
        talk.add(datagram(*ends, lbtru.encode(one)))
    return talk


def data(sqn: int, again: bool = False, trail: int = 0) -> lbtru.Data:
    flags = lbtru.Data.RETRANSMISSION if again else 0
    return lbtru.Data(sqn=sqn, trail=trail, flags=flags, options=SID, payload=b"")


def session(lead: int, beat: int = 0, flags: int = 0) -> lbtru.SessionMessage:
    return lbtru.SessionMessage(sm_sqn=beat, lead=lead, trail=0, flags=flags, options=SID)


def nak(*sqns: int) -> lbtru.Nak:
    return lbtru.Nak(sqns=sqns, options=SID)


def ncf(*sqns: int) -> lbtru.Ncf:
    return lbtru.Ncf(trail=0, reason=Reason.IGNORED, sqns=sqns, options=SID)


def judged(talk: Talk, tmp_path: Path) -> CaptureFindings:
    return judge(talk.write(tmp_path / "talk.pcap"))


@pytest.mark.parametrize(
    ("said", "rule", "standing"),
    [
        ((data(0), data(2), 60, nak(1), data(1, again=True), 2_000, session(2)), "M2", FINE),
        ((data(0), data(2), 60, nak(1), data(1, again=True), 2_000, session(2)), "M5", FINE),
        ((data(0), data(1), nak(0), 300, nak(0), 1_500, session(1)), "M2", BROKEN),
        ((data(0), data(1), 500, nak(1), data(1, again=True), 400, nak(1), ncf(1)), "M1", FINE),
        ((data(0), nak(7), 1_500, session(0)), "M3", BROKEN),
        ((data(0), data(1), nak(0), 700, nak(0), 700, nak(0)), "M4", BROKEN),
        ((data(0), session(3)), "M5", CANNOT_TELL),
        ((data(0), data(2), data(1)), "M6", CANNOT_TELL),
    ],
)
def test_each_rule(tmp_path: Path, said: tuple[lbtru.Packet | int, ...], rule: str, standing: RuleStanding) -> None:
    findings = judged(spoken(*said), tmp_path)
    assert findings.standings[rule, NAME] is standing
    assert (findings.gravest is BROKEN) == (standing is BROKEN)


def test_a_client_that_is_new_misses_nothing_of_what_was_before(tmp_path: Path) -> None:
    syn = session(41, flags=lbtru.SessionMessage.SYN)
    findings = judged(spoken(lbtru.Request(options=SID), syn, lbtru.Ack(sqn=41, options=SID), data(42)), tmp_path)
    assert set(findings.standings.values()) == {FINE}


def test_a_repair_goes_to_the_client_that_asked(tmp_path: Path) -> None:
    talk = spoken(data(0), data(1), data(2))
    spoken(data(0), data(2), 60, nak(1), data(1, again=True), client=1, talk=talk)
    findings = judged(talk, tmp_path)
    assert set(findings.standings.values()) == {FINE}
    assert ("M2", NAME) not in findings.standings


@pytest.mark.parametrize("seed", range(4))
def test_our_own_machines_keep_the_rules(tmp_path: Path, seed: int) -> None:
    """A network that loses a tenth; what is sent is captured on its way."""
    world = played.Network(
        "lbtru", 1, played.Faults(lost=100), seed, SourceSettings(batch_bytes=1, linger_ns=played.MS)
    )
    world.run(1_000 * played.MS)
    for number in range(60):
        world.send_at(1_000 * played.MS + number * 20 * played.MS, 7)
    world.run(20_000 * played.MS)
    talk = Talk()
    for at, _, packet in world.wire:
        talk.now = at // played.MS
        spoken(packet, talk=talk)
    findings = judged(talk, tmp_path)
    assert [one for one in findings.found if one.standing is BROKEN] == []
    assert {rule for rule, _ in findings.standings} >= {"M2", "M6"}
