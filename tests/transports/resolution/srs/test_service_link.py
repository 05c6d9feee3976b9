"""A context's connection to one service: its states, its timers, and malformed input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.srs.directory import Interest
from stablecast.transports.resolution.srs.events import Connect, Disconnect, SendBytes, ServiceChanged, SrsContextEffect
from stablecast.transports.resolution.srs.service_link import (
    LINK,
    LinkChart,
    LinkEvent,
    LinkState,
    LinkTimer,
    ServiceLink,
)
from stablecast.transports.resolution.srs.settings import ClientConfig
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind
from tests.transports.resolution.charts import agree

INSTANCE = b"instance"
ADDRESS = "srs:27000"
CONFIG = ClientConfig(
    keepalive_ns=5 * SECOND, lifetime_ns=15 * SECOND, retry_min_ns=100 * MILLISECOND, retry_max_ns=SECOND
)
ALL = srs.encode(srs.StreamRequest())


def payload(octets: bytes, stream: int = 3, metadata: bytes | None = None) -> bytes:
    return rsocket.encode(Frame(FrameKind.PAYLOAD, stream, FrameFlag.NEXT, metadata=metadata, payload=octets))


def registered(number: int | None, epoch: int = 7) -> bytes:
    answer = srs.encode(srs.RegistrationResponse(client_id=epoch << 32 | 1))
    return payload(answer, 1, None if number is None else srs.hello(number))


class Driven:
    def __init__(self) -> None:
        self.out: list[SrsContextEffect] = []
        self.link = ServiceLink(ADDRESS, INSTANCE, CONFIG, Seeded(1), self.out)

    def take(self) -> list[SrsContextEffect]:
        effects = self.out[:]
        self.out.clear()
        return effects

    def frames(self) -> list[Frame]:
        data = b"".join(effect.data for effect in self.take() if isinstance(effect, SendBytes))
        return rsocket.FrameDecoder().feed(data)

    def hear(self, data: bytes, now: int = 0) -> list[srs.Message]:
        return list(self.link.on_data(data, now))

    def current(self, number: int = 1, now: int = 0, epoch: int = 7) -> "Driven":
        self.link.handle_timeout(now, number)
        self.link.on_opened("10.0.0.1:41000", now)
        self.hear(registered(number, epoch), now)
        self.hear(payload(ALL), now)
        self.take()
        return self


@given(st.lists(st.sampled_from(list(LinkEvent)), max_size=12))
def test_the_rows_do_what_the_library_does(events: list[LinkEvent]) -> None:
    agree(LinkChart, LINK, LinkState.WAITING, list(events))


@pytest.mark.rows("T-402")
def test_a_connection_from_the_first_attempt_to_the_end_of_the_exchange() -> None:
    """SETUP, registration with a hello, and current once the service returns the request for the stream."""
    driven = Driven()
    link = driven.link
    assert link.handle_timeout(0, 1) == [LinkTimer.RETRY]
    assert driven.take() == [Connect(1, ADDRESS)]
    assert not link.told
    link.on_opened("10.0.0.1:41000", 0)
    setup, request = driven.frames()
    assert rsocket.parse_setup(setup) == rsocket.RsocketSetup(5000, 15_000)
    assert srs.parse_hello(request.metadata) == 1
    (message,) = srs.decode(request.payload)
    assert isinstance(message, srs.RegistrationRequest)
    assert (message.address, message.port, message.interest_mode) == ("10.0.0.1", 41000, srs.FILTER)
    assert message.host_id.to_bytes(4) + message.session_id.to_bytes(4) == INSTANCE
    assert len(driven.hear(registered(1))) == 1
    assert (link.state.name, link.told, link.numbered) == ("EXCHANGING", True, True)
    link.request_stream()
    (stream,) = driven.frames()
    assert (stream.kind, stream.stream, stream.number) == (FrameKind.REQUEST_STREAM, 3, rsocket.FOREVER)
    driven.hear(payload(ALL) + payload(ALL))
    assert driven.take() == [ServiceChanged(ADDRESS, up=True)]
    assert link.state.name == "CURRENT"


def test_input_of_another_connection_is_late() -> None:
    driven = Driven()
    assert not driven.link.is_on(0)
    driven.current(4)
    assert [driven.link.is_on(number) for number in (3, 4, 5)] == [False, True, False]
    driven.link.on_lost("gone", 0)
    assert not driven.link.is_on(4)


@pytest.mark.rows("T-407")
def test_attempts_never_end_and_their_waits_double_up_to_a_bound() -> None:
    """Each wait is shortened by up to a half; a series of failures is reported once."""
    driven = Driven()
    link, now, waits = driven.link, 0, []
    for number in range(1, 12):
        link.handle_timeout(now, number)
        link.on_lost("refused", now)
        due = link.timers.next()
        assert due is not None
        waits.append(due - now)
        now = due
    for wait, full in zip(waits, [100, 200, 400, 800, *[1000] * 7], strict=True):
        assert full * MILLISECOND // 2 <= wait <= full * MILLISECOND
    assert [effect for effect in driven.take() if isinstance(effect, ServiceChanged)] == [
        ServiceChanged(ADDRESS, up=False, reason="refused")
    ]
    driven.current(12, now)
    link.on_lost("broken", now)
    assert ServiceChanged(ADDRESS, up=False, reason="broken") in driven.take()
    assert link.wait_ns == 100 * MILLISECOND


@pytest.mark.rows("T-406")
def test_keepalives_go_out_and_are_answered() -> None:
    """U7."""
    driven = Driven().current()
    assert driven.link.timers.next() == 5 * SECOND
    driven.link.handle_timeout(5 * SECOND, 2)
    assert driven.frames() == [Frame(FrameKind.KEEPALIVE, flags=FrameFlag.RESPOND)]
    driven.hear(rsocket.encode(Frame(FrameKind.KEEPALIVE)))
    assert driven.frames() == []
    driven.hear(rsocket.encode(Frame(FrameKind.KEEPALIVE, flags=FrameFlag.RESPOND)))
    assert driven.frames() == [Frame(FrameKind.KEEPALIVE)]


@pytest.mark.parametrize("connected", [False, True])
def test_silence_ends_a_connection_and_an_attempt(connected: bool) -> None:
    """U7: three keepalives."""
    driven = Driven().current() if connected else Driven()
    if not connected:
        driven.link.handle_timeout(0, 1)
        driven.take()
    driven.link.handle_timeout(15 * SECOND, 2)
    cut, changed = driven.take()
    assert cut == Disconnect(1)
    assert changed == ServiceChanged(ADDRESS, up=False, reason="it was silent for 15000 ms")
    assert driven.link.state.name == "WAITING"


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff",
        registered(1),
        payload(b"\0\x63"),
        rsocket.encode(Frame(FrameKind.REQUEST_FNF, 2)),
        rsocket.encode(Frame(FrameKind.ERROR, number=0x202, payload=b"too many")),
    ],
)
def test_nonsense_ends_the_connection(data: bytes) -> None:
    driven = Driven().current()
    driven.hear(data)
    assert driven.take()[0] == Disconnect(1)
    assert driven.link.state.name == "WAITING"


def test_records_of_sources_are_handed_on() -> None:
    record = srs.SourceDelete(otid=bytes(32), topic="orders")
    assert Driven().current().hear(payload(srs.encode(record))) == [record]


def test_an_error_is_reported_with_its_text() -> None:
    driven = Driven().current()
    driven.hear(rsocket.encode(Frame(FrameKind.ERROR, number=0x202, payload=b"too many")))
    assert driven.take()[1] == ServiceChanged(ADDRESS, up=False, reason="the service refused: error 0x202 too many")


def test_a_frame_that_may_be_ignored_is_ignored() -> None:
    driven = Driven().current()
    assert driven.hear(rsocket.encode(Frame(FrameKind.EXT, flags=FrameFlag.IGNORE))) == []
    assert driven.link.state.name == "CURRENT"


def test_records_before_registration_end_the_connection() -> None:
    driven = Driven()
    driven.link.handle_timeout(0, 1)
    driven.link.on_opened("10.0.0.1:41000", 0)
    driven.hear(payload(ALL))
    assert driven.link.state.name == "WAITING"


def test_an_unasked_connection_is_the_callers_mistake() -> None:
    with pytest.raises(MisuseError):
        Driven().link.on_opened("10.0.0.1:41000", 0)


def test_records_share_requests_as_far_as_they_fit() -> None:
    driven = Driven().current()
    driven.link.tell([b"x" * 10_000] * 3)
    assert [(frame.stream, len(frame.payload)) for frame in driven.frames()] == [(3, 10_000), (5, 10_000), (7, 10_000)]
    driven.link.tell([b"x" * 5_000] * 4)
    assert [len(frame.payload) for frame in driven.frames()] == [15_000, 5_000]
    driven.link.tell([])
    assert driven.take() == []
    driven.link.stream = rsocket.FOREVER
    driven.link.tell([b"x"])
    assert [frame.stream for frame in driven.frames()] == [3]


def test_withdrawn_interest_is_late_until_every_withdrawal_is_answered() -> None:
    """Formal design, 7.10."""
    driven = Driven().current()
    orders, pattern = Interest("orders"), Interest("^o", pattern=True)
    answer = srs.encode(srs.ReceiverDelete(name="orders", instance=INSTANCE))
    driven.link.withdraw(orders, answer)
    driven.link.withdraw(orders, answer)
    driven.link.withdraw(pattern, srs.encode(srs.PatternDelete(name="^o", instance=INSTANCE)))
    assert driven.link.unanswered == {orders: 2, pattern: 1}
    driven.hear(payload(answer))
    assert driven.link.unanswered == {orders: 1, pattern: 1}
    driven.hear(payload(answer + srs.encode(srs.PatternDelete(name="^o", instance=INSTANCE)) + answer))
    assert driven.link.unanswered == {}


def test_a_service_that_knows_no_numbers_answers_no_withdrawal() -> None:
    driven = Driven()
    driven.link.handle_timeout(0, 1)
    driven.link.on_opened("10.0.0.1:41000", 0)
    driven.hear(registered(None))
    driven.link.withdraw(Interest("orders"), b"record")
    assert driven.link.unanswered == {}


@pytest.mark.rows("T-407", "T-418")
def test_a_restarted_service_takes_nothing_away_for_a_grace() -> None:
    """Its memory is younger than the context's."""
    driven = Driven().current(1)
    link = driven.link
    assert link.settled == link.epoch == 7
    link.on_lost("restarted", 0)
    driven.current(2, SECOND, epoch=8)
    assert (link.settled, link.epoch) == (7, 8)
    assert LinkTimer.SWEEP not in link.handle_timeout(SECOND + CONFIG.grace_ns - 1, 3)
    driven.current(4, 60 * SECOND, epoch=8)
    driven.hear(rsocket.encode(Frame(FrameKind.KEEPALIVE)), 60 * SECOND + CONFIG.grace_ns)
    assert LinkTimer.SWEEP in link.handle_timeout(60 * SECOND + CONFIG.grace_ns, 5)
    assert link.settled == 8


def test_flood_is_asked_for() -> None:
    driven = Driven()
    driven.link.config = ClientConfig(flood=True)
    driven.link.handle_timeout(0, 1)
    driven.link.on_opened("10.0.0.1:41000", 0)
    (message,) = srs.decode(driven.frames()[1].payload)
    assert isinstance(message, srs.RegistrationRequest)
    assert message.interest_mode == srs.FLOOD
