"""A receiver's session with one LBT-RU source: connection, signs of life, loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.reliable.effects import (
    Began,
    Received,
    ReceiverEffect,
    SendDatagrams,
    SessionEnded,
    TopicLost,
)
from stablecast.transports.reliable.inputs import LeaveSession, SessionDatagrams
from stablecast.transports.reliable.lbtru import LbtruReceiver
from stablecast.transports.reliable.lbtru.receiver import CONNECTION, ConnectionChart, ConnectionEvent, ConnectionState
from stablecast.transports.reliable.settings import LBTRU_RECEIVER, ReceiverSettings
from stablecast.transports.wire import lbtru
from stablecast.transports.wire.reliable_packets import Format
from tests.transports.reliable import invariants
from tests.transports.reliable.network import SESSION_ID, SOURCE, block
from tests.transports.resolution.charts import agree

MS = MILLISECOND
SID = (lbtru.SessionId(session_id=SESSION_ID),)
SYN = lbtru.SessionMessage(flags=lbtru.SessionMessage.SYN, sm_sqn=0, lead=0xFFFF_FFFF, trail=0, options=SID)


def data(number: int, flags: int = 0, options: tuple[lbtru.Option, ...] = SID) -> lbtru.Data:
    return lbtru.Data(flags=flags, sqn=number, trail=0, options=options, payload=block(7, number, 1))


def receiver(settings: ReceiverSettings = LBTRU_RECEIVER, session_id: int = SESSION_ID) -> LbtruReceiver:
    return LbtruReceiver(SOURCE, session_id, 1, 0, settings)


def hear(machine: LbtruReceiver, *packets: lbtru.Packet, now: int = 0) -> list[ReceiverEffect]:
    machine.receive(SessionDatagrams(tuple(map(lbtru.encode, packets))), now)
    invariants.check(machine)
    return machine.take_effects()


def connected(settings: ReceiverSettings = LBTRU_RECEIVER) -> LbtruReceiver:
    machine = receiver(settings)
    assert hear(machine, SYN) == [Began()]
    return machine


def said(effects: list[ReceiverEffect]) -> list[lbtru.Packet]:
    sent = [effect for effect in effects if isinstance(effect, SendDatagrams)]
    assert all(effect.to == SOURCE for effect in sent)
    return [lbtru.decode(octets) for effect in sent for octets in effect.datagrams]


def played(machine: LbtruReceiver, until: int) -> list[tuple[int, ReceiverEffect]]:
    found = []
    while (due := machine.next_timeout()) is not None and due <= until:
        machine.handle_timeout(due)
        found += [(due // MS, effect) for effect in machine.take_effects()]
    return found


@given(st.lists(st.sampled_from(list(ConnectionEvent)), max_size=8))
def test_the_rows_do_what_the_library_does(events: list[ConnectionEvent]) -> None:
    agree(ConnectionChart, CONNECTION, ConnectionState.CONNECTING, list(events))


def test_requests_are_repeated_until_there_were_too_many() -> None:
    """Each 100 ms, 600 at most: then the session is dropped with EOS."""
    machine = receiver()
    effects = played(machine, 100 * SECOND)
    requests = [(at, packet) for at, effect in effects for packet in said([effect])]
    assert requests == [(at, lbtru.Request(options=SID)) for at in range(0, 60_000, 100)]
    at, ended = effects[-1]
    assert (at, invariants.abstract(machine)[0]) == (60_000, "OVER")
    assert isinstance(ended, SessionEnded)
    assert "600" in ended.reason


def test_a_connected_client_sends_signs_of_life() -> None:
    """Each 500 ms, with the number up to which nothing is missing."""
    machine = connected()
    assert invariants.abstract(machine) == ("CONNECTED", -1, ())
    hear(machine, data(0), data(2))
    hear(machine, lbtru.Ncf(trail=0, reason=1, sqns=(1,), options=SID))
    acks = [(at, packet) for at, effect in played(machine, 900 * MS) for packet in said([effect])]
    assert acks == [(500, lbtru.Ack(sqn=0, options=SID))]
    hear(machine, data(1, lbtru.Data.RETRANSMISSION), now=900 * MS)
    assert said([effect for _, effect in played(machine, SECOND)]) == [lbtru.Ack(sqn=2, options=SID)]


@pytest.mark.rows("P-401")
def test_it_asks_at_once_for_what_is_missing() -> None:
    """The initial backoff is 0, because no other receiver can have lost the same datagram."""
    machine = connected()
    assert said(hear(machine, data(0), data(2))) == [lbtru.Nak(sqns=(1,), options=SID)]
    assert said(hear(machine, data(3), now=1)) == []


def test_a_datagram_lost_right_after_the_answer_is_requested() -> None:
    machine = connected()
    assert said(hear(machine, data(1))) == [lbtru.Nak(sqns=(0,), options=SID)]


def test_anything_of_the_session_is_an_answer() -> None:
    machine = receiver()
    began, received = hear(machine, data(5))
    assert (began, type(received)) == (Began(), Received)
    other = receiver()
    hear(other, lbtru.Ncf(trail=0, reason=1, sqns=(1,), options=SID))
    assert said([effect for _, effect in played(other, 500 * MS)]) == [lbtru.Ack(sqn=0xFFFF_FFFF, options=SID)]


def test_a_reset_ends_the_session_after_what_came_before_it() -> None:
    """EOS at once."""
    machine = connected()
    hear(machine, data(0), data(2))
    received, lost, ended = hear(machine, data(3), lbtru.Reset(), data(4), now=1)
    assert isinstance(received, Received)
    assert lost == TopicLost(7, 1, 1)
    assert isinstance(ended, SessionEnded)
    assert machine.next_timeout() is None
    assert hear(machine, data(5), now=2) == []
    machine.handle_timeout(SECOND)
    machine.receive(LeaveSession(), SECOND)
    assert machine.take_effects() == []


def test_a_source_that_falls_silent_ends_the_session() -> None:
    machine = connected(ReceiverSettings(activity_ns=3 * SECOND))
    hear(machine, data(0), now=2 * SECOND)
    at, ended = played(machine, 60 * SECOND)[-1]
    assert at == 5000
    assert isinstance(ended, SessionEnded)


def test_a_receiver_that_leaves_gets_no_more_effects() -> None:
    machine = connected()
    machine.receive(SessionDatagrams((lbtru.encode(data(0)),)), 0)
    machine.receive(LeaveSession(), 0)
    assert machine.take_effects() == []
    assert machine.next_timeout() is None


def test_foreign_datagrams_are_counted_and_are_no_sign_of_life() -> None:
    machine = receiver()
    machine.receive(SessionDatagrams((b"?",)), 0)
    wrong = (lbtru.SessionId(session_id=9),)
    parity = lbtru.Ncf(trail=0, reason=1, sqns=(1,), format=Format.PARITY, options=SID)
    assert hear(machine, data(0, options=wrong), data(0, options=()), lbtru.Ack(sqn=0, options=SID), parity) == []
    found = machine.statistics
    assert (found.dgrams_dropped_size, found.dgrams_dropped_sid, found.dgrams_dropped_other) == (1, 2, 2)
    assert invariants.abstract(machine)[0] == "CONNECTING"


@pytest.mark.parametrize("options", [SID, ()])
def test_without_a_session_id_every_datagram_is_taken(options: tuple[lbtru.Option, ...]) -> None:
    machine = receiver(session_id=0)
    assert hear(machine, data(0, options=options))[0] == Began()


def test_artificial_loss_looks_like_loss() -> None:
    machine = connected(ReceiverSettings(drop_permille=0))
    machine.session.settings = ReceiverSettings(drop_permille=500)
    hear(machine, *(data(number) for number in range(100)))
    assert 30 < machine.statistics.lost < 70
