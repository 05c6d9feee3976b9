"""A receiver's session with one LBT-RM source."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable.effects import (
    Began,
    Received,
    ReceiverEffect,
    SendDatagrams,
    SessionEnded,
    TopicLost,
)
from stablecast.transports.reliable.inputs import LeaveSession, SessionDatagrams
from stablecast.transports.reliable.lbtrm import LbtrmReceiver, by_name, name_of
from stablecast.transports.reliable.lbtrm.receiver import LISTENING, ListeningChart, ListeningEvent, ListeningState
from stablecast.transports.reliable.packets import SourcePacket
from stablecast.transports.reliable.receiver import OtherDatagram
from stablecast.transports.reliable.settings import ReceiverSettings
from stablecast.transports.wire import lbtrm
from stablecast.transports.wire.reliable_packets import Format
from tests.transports.reliable import invariants
from tests.transports.reliable.network import NAK_PORT, SESSION_ID, SOURCE, block
from tests.transports.resolution.charts import agree

MS = MILLISECOND
NAMES: dict[str, Any] = {"nak_port": NAK_PORT, "session_id": SESSION_ID}


def data(number: int, again: bool = False, trail: int = 0, **other: int) -> bytes:
    flags = lbtrm.Data.UNICAST_NAKS | (lbtrm.Data.RETRANSMISSION if again else 0)
    return lbtrm.encode(
        lbtrm.Data(**{**NAMES, **other}, sqn=number, trail=trail, flags=flags, payload=block(7, number, 1))
    )


def standing(lead: int, trail: int = 0) -> bytes:
    return lbtrm.encode(lbtrm.SessionMessage(**NAMES, sm_sqn=0, lead=lead, trail=trail))


def ncf(*numbers: int, form: int = Format.SELECTIVE) -> bytes:
    return lbtrm.encode(lbtrm.Ncf(**NAMES, trail=0, reason=1, sqns=numbers, format=form))


def receiver(settings: ReceiverSettings | None = None) -> LbtrmReceiver:
    return LbtrmReceiver(SOURCE, SESSION_ID, 1, 0, settings or ReceiverSettings())


def hear(machine: LbtrmReceiver, *datagrams: bytes, now: int = 0) -> list[ReceiverEffect]:
    machine.receive(SessionDatagrams(datagrams), now)
    invariants.check(machine)
    return machine.take_effects()


def naks(effects: list[ReceiverEffect]) -> list[tuple[int, ...]]:
    found = []
    for effect in effects:
        if isinstance(effect, SendDatagrams):
            assert (effect.session, effect.to) == (0, SOURCE)
            for octets in effect.datagrams:
                packet = lbtrm.decode(octets)
                assert isinstance(packet, lbtrm.Nak)
                assert (packet.nak_port, packet.session_id) == (NAK_PORT, SESSION_ID)
                found.append(packet.sqns)
    return found


@given(st.lists(st.sampled_from(list(ListeningEvent)), max_size=6))
def test_the_rows_do_what_the_library_does(events: list[ListeningEvent]) -> None:
    agree(ListeningChart, LISTENING, ListeningState.WAITING, list(events))


def test_the_first_sign_of_life_begins_the_session() -> None:
    """Activity of any kind reports BOS, which contains nothing about topics."""
    machine = receiver()
    assert hear(machine, standing(4)) == [Began()]
    assert invariants.abstract(machine) == ("ACTIVE", 4, ())
    (effect,) = hear(machine, data(5))
    assert isinstance(effect, Received)


@pytest.mark.rows("P-401")
def test_missing_datagrams_are_requested_at_the_port_in_the_header() -> None:
    """By unicast to the source's NAK port."""
    machine = receiver()
    hear(machine, data(0), data(2), data(4))
    due = machine.next_timeout()
    assert due is not None
    assert due <= 75 * MS
    machine.handle_timeout(75 * MS)
    assert naks(machine.take_effects()) == [(1, 3)]
    assert machine.statistics.nak_pckts_sent == 1
    assert naks(hear(machine, ncf(1), data(3, again=True), now=80 * MS)) == []
    assert invariants.abstract(machine) == ("ACTIVE", 4, (1,))
    assert machine.statistics.ncfs_ignored == 1


def test_a_silent_source_ends_the_session_and_what_topics_lack_is_lost() -> None:
    """EOS after the activity timeout; a retransmission and an NCF are signs of life too."""
    machine = receiver(ReceiverSettings(activity_ns=3 * SECOND, send_naks=False))
    hear(machine, data(0), data(2))
    hear(machine, ncf(9), now=2 * SECOND)
    hear(machine, data(0, again=True), now=4 * SECOND)
    machine.handle_timeout(7 * SECOND - 1)
    assert machine.take_effects() == []
    machine.handle_timeout(7 * SECOND)
    lost, ended = machine.take_effects()
    assert lost == TopicLost(7, 1, 1)
    assert isinstance(ended, SessionEnded)
    assert machine.next_timeout() is None
    assert hear(machine, data(3), now=8 * SECOND) == []
    machine.handle_timeout(9 * SECOND)
    machine.receive(LeaveSession(), 9 * SECOND)
    assert machine.take_effects() == []


@pytest.mark.parametrize(("preactivity", "expected"), [(0, 60 * SECOND), (5 * SECOND, 5 * SECOND)])
def test_another_timeout_may_apply_before_the_first_datagram(preactivity: int, expected: int) -> None:
    machine = receiver(ReceiverSettings(preactivity_ns=preactivity))
    assert machine.next_timeout() == expected
    machine.handle_timeout(expected)
    (ended,) = machine.take_effects()
    assert isinstance(ended, SessionEnded)


def test_a_receiver_that_leaves_gets_no_more_effects() -> None:
    machine = receiver()
    machine.receive(SessionDatagrams((data(0), data(2))), 0)
    machine.receive(LeaveSession(), 0)
    assert machine.take_effects() == []
    assert invariants.abstract(machine) == ("OVER", 2, ())


def test_foreign_datagrams_are_counted_and_are_no_sign_of_life() -> None:
    machine = receiver()
    nak = lbtrm.encode(lbtrm.Nak(**NAMES, sqns=(1,)))
    strange = (b"?", data(0, session_id=9), data(0, nak_port=9), nak, ncf(1, form=Format.PARITY))
    assert hear(machine, *strange) == []
    found = machine.statistics
    assert (found.dgrams_dropped_size, found.dgrams_dropped_sid, found.dgrams_dropped_other) == (1, 2, 2)
    assert (found.msgs_rcved, found.bytes_rcved) == (5, sum(map(len, strange)))
    assert invariants.abstract(machine)[0] == "WAITING"


def test_artificial_loss_looks_like_loss() -> None:
    assert hear(receiver(ReceiverSettings(drop_permille=1000)), data(0)) == []
    machine = receiver(ReceiverSettings(drop_permille=500))
    hear(machine, *(data(number) for number in range(100)))
    found = machine.statistics
    assert found.dgrams_dropped_test + found.msgs_rcved == 100
    assert 30 < found.lost < 70


def test_a_datagram_names_its_session() -> None:
    datagrams = (data(0), data(0, session_id=9), data(0, nak_port=9), b"\0\0\0")
    ours, other, port, short = [memoryview(octets) for octets in datagrams]
    name = name_of(NAK_PORT, SESSION_ID)
    assert by_name([ours, ours]) == {name: [ours, ours]}
    sorted_out = by_name([ours, other, short, ours, port])
    assert sorted_out[name] == [ours, ours]
    assert sorted(map(len, sorted_out.values())) == [1, 1, 1, 2]


def test_a_series_is_taken_at_once_and_what_breaks_it_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair, a gap and a session message among data: effects and counters equal those of single datagrams."""
    datagrams = [data(0), data(1), data(2), data(4), data(3, again=True), standing(4), data(5), data(6, trail=2)]
    together, apart = receiver(), receiver()
    hear(together, datagrams[0])
    parsed: list[bytes] = []
    parse = LbtrmReceiver.parse

    def noted(self: LbtrmReceiver, octets: bytes) -> SourcePacket | OtherDatagram:
        parsed.append(octets)
        return parse(self, octets)

    monkeypatch.setattr(LbtrmReceiver, "parse", noted)
    effects = hear(together, *datagrams[1:])
    assert parsed == datagrams[3:], "the first of them continue the session"
    for octets in datagrams:
        hear(apart, octets)
    assert invariants.abstract(together) == invariants.abstract(apart) == ("ACTIVE", 6, ())
    assert together.statistics == apart.statistics
    assert together.session.gaps.trail == 2
    (received,) = [effect for effect in effects if isinstance(effect, Received)]
    assert sum(item.count for item in received.items if isinstance(item, Run)) == 6


def test_data_with_options_is_data_and_that_of_another_session_is_none_in_any_form() -> None:
    option = (lbtrm.Option(7, b"ab"),)
    with_options = lbtrm.encode(lbtrm.Data(**NAMES, sqn=0, trail=0, options=option, payload=block(7, 0, 1)))
    machine = receiver()
    began, received = hear(machine, with_options)
    assert (began, type(received)) == (Began(), Received)
    foreign = lbtrm.encode(lbtrm.SessionMessage(**{**NAMES, "session_id": 9}, sm_sqn=0, lead=0, trail=0))
    assert hear(machine, foreign) == []
    assert machine.statistics.dgrams_dropped_sid == 1
