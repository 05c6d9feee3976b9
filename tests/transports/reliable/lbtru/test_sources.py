"""The LBT-RU sources of a context: clients, and datagrams for each of them."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.reliable.effects import (
    ClientJoined,
    ClientLeft,
    SendDatagrams,
    SourceClosed,
    SourceEffect,
    Unblocked,
)
from stablecast.transports.reliable.inputs import (
    CloseSession,
    DatagramsReceived,
    Flush,
    ForgetTopic,
    OpenSession,
    Submit,
)
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.lbtru import sources as sources_module
from stablecast.transports.reliable.settings import LBTRU_RATES, RateSettings, SourceSettings
from stablecast.transports.wire import lbtru
from stablecast.transports.wire.reliable_packets import Format, Reason
from tests.transports.reliable import invariants
from tests.transports.reliable.network import SESSION_ID, SOURCE, block

MS = MILLISECOND
SINGLE = SourceSettings(batch_bytes=1, linger_ns=SECOND)
SID = (lbtru.SessionId(session_id=SESSION_ID),)
A, B = "10.0.1.1:14360", "10.0.1.2:14360"
REQUEST = lbtru.Request(options=SID)


def opened(*clients: str, rates: RateSettings = LBTRU_RATES, session_id: int = SESSION_ID) -> LbtruSources:
    machine = LbtruSources(rates)
    machine.receive(OpenSession(1, SOURCE, session_id, 0, SINGLE), 0)
    for client in clients:
        hear(machine, client, lbtru.Request(options=SID if session_id else ()))
    return machine


def hear(machine: LbtruSources, client: str, packet: lbtru.Packet, now: int = 0) -> list[SourceEffect]:
    machine.receive(DatagramsReceived(1, ((lbtru.encode(packet), client),)), now)
    return machine.take_effects()


def submit(machine: LbtruSources, first: int, count: int = 1, now: int = 0) -> list[SourceEffect]:
    machine.receive(Submit(1, block(7, first, count)), now)
    invariants.check(machine)
    return machine.take_effects()


def packets(effects: list[SourceEffect]) -> list[tuple[str, lbtru.Packet]]:
    sent = [effect for effect in effects if isinstance(effect, SendDatagrams)]
    return [(effect.to, lbtru.decode(octets)) for effect in sent for octets in effect.datagrams]


def data(number: int, flags: int = 0) -> lbtru.Data:
    return lbtru.Data(flags=flags, sqn=number, trail=0, options=SID, payload=block(7, number, 1))


def test_a_request_is_answered_by_a_session_message_that_opens_the_session() -> None:
    """A repeated request is answered again, and makes no second client."""
    machine = opened()
    syn = lbtru.SessionMessage(flags=lbtru.SessionMessage.SYN, sm_sqn=0, lead=0xFFFF_FFFF, trail=0, options=SID)
    joined, answer = hear(machine, A, REQUEST)
    assert joined == ClientJoined(1, A)
    assert packets([answer]) == [(A, syn)]
    (again,) = packets(hear(machine, A, REQUEST))
    assert again[0] == A
    assert machine.statistics(1)["num_clients"] == 1


def test_answers_go_each_to_its_own() -> None:
    machine = opened()
    request = lbtru.encode(REQUEST)
    machine.receive(DatagramsReceived(1, ((request, A), (request, B))), 0)
    assert [client for client, _ in packets(machine.take_effects())] == [A, B]


def test_each_client_gets_each_datagram() -> None:
    machine = opened(A, B)
    assert packets(submit(machine, 0, 2)) == [(A, data(0)), (A, data(1)), (B, data(0)), (B, data(1))]
    machine.handle_timeout(200 * MS)
    told = packets(machine.take_effects())
    assert [(client, type(packet)) for client, packet in told] == [
        (A, lbtru.SessionMessage),
        (B, lbtru.SessionMessage),
    ]


@pytest.mark.rows("P-401")
def test_a_repair_goes_to_the_one_that_asked_and_an_ncf_too() -> None:
    """U21: each requester has an ignore interval of its own."""
    machine = opened(A, B)
    submit(machine, 0)
    nak = lbtru.Nak(sqns=(0,), options=SID)
    again = data(0, lbtru.Data.RETRANSMISSION)
    assert packets(hear(machine, A, nak)) == [(A, again)]
    assert packets(hear(machine, B, nak)) == [(B, again)]
    assert packets(hear(machine, A, nak, now=1)) == [
        (A, lbtru.Ncf(trail=0, reason=Reason.IGNORED, sqns=(0,), options=SID))
    ]
    assert packets(hear(machine, A, lbtru.Nak(sqns=(0,), format=Format.PARITY, options=SID))) == []


def test_a_sender_that_is_no_client_is_reset() -> None:
    machine = opened()
    for packet in (lbtru.Ack(sqn=0, options=SID), lbtru.Nak(sqns=(0,), options=SID)):
        assert packets(hear(machine, A, packet)) == [(A, lbtru.Reset())]


def test_a_client_too_many_is_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "MAX_CLIENTS", 1)
    assert packets(hear(opened(A), B, REQUEST)) == [(B, lbtru.Reset())]


def test_a_silent_client_is_dropped_with_what_waits_for_it() -> None:
    machine = opened(A, B, rates=RateSettings(10 * MS, 1 << 40, repair_bits=60 * 8 * 100))
    submit(machine, 0, 2)
    nak = lbtru.Nak(sqns=(0, 1), options=SID)
    hear(machine, A, nak)
    assert len(machine.limiter.repairs) == 1
    hear(machine, B, lbtru.Ack(sqn=1, options=SID), now=5 * SECOND)
    assert machine.next_timeout() == 10 * MS
    machine.limiter.interval += 10_000
    machine.handle_timeout(10 * SECOND)
    assert ClientLeft(1, A) in machine.take_effects()
    assert not machine.limiter.repairs
    assert (machine.get(1).copies, list(machine.get(1).answers)) == (1, [])
    assert {client for client, _ in packets(submit(machine, 2, now=11 * SECOND))} == {B}


def test_a_wrong_session_and_what_a_client_does_not_say_are_dropped_and_counted() -> None:
    """The client of an earlier life gets no answer and times out."""
    machine = opened()
    wrong = lbtru.Request(options=(lbtru.SessionId(session_id=9),))
    for packet in (wrong, lbtru.Request(), lbtru.Reset(), data(0)):
        assert hear(machine, A, packet) == []
    machine.receive(DatagramsReceived(1, ((b"?", A),)), 0)
    assert machine.statistics(1)["dgrams_dropped"] == 5


def test_a_session_may_have_no_id() -> None:
    machine = opened(A, session_id=0)
    ((_, packet),) = packets(submit(machine, 0))
    assert lbtru.session_of(packet) is None


def test_a_session_that_ends_resets_its_clients() -> None:
    machine = opened(A)
    machine.receive(CloseSession(1), 0)
    machine.handle_timeout(SECOND)
    effects = machine.take_effects()
    assert packets(effects) == [(A, lbtru.Reset())]
    assert effects[-2:] == [ClientLeft(1, A), SourceClosed(1)]
    assert machine.next_timeout() is None
    with pytest.raises(MisuseError, match="no session"):
        machine.statistics(1)


def test_at_the_rate_limit_the_context_is_blocked_and_copies_count() -> None:
    machine = opened(A, B, rates=RateSettings(100 * MS, 110 * 8 * 10))
    assert len(packets(submit(machine, 0, 2))) == 2
    assert machine.blocked
    machine.handle_timeout(100 * MS)
    assert Unblocked() in machine.take_effects()


def test_flushes_and_topics_that_are_gone() -> None:
    machine = LbtruSources()
    machine.receive(OpenSession(1, SOURCE, SESSION_ID), 0)
    hear(machine, A, REQUEST)
    assert submit(machine, 0) == []
    machine.receive(ForgetTopic(1, 7), 0)
    machine.receive(Flush(1), 0)
    assert len(packets(machine.take_effects())) == 1
    assert machine.get(1).marks.topics == {}
