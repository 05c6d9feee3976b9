"""One source session: datagrams, session messages, marks, and answers to NAKs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.reliable import source_session as module
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.high_water_marks import message
from stablecast.transports.reliable.inputs import Submit
from stablecast.transports.reliable.packets import Datagram, DatagramSeries, NakRefusal, SessionStatus, SourcePacket
from stablecast.transports.reliable.rates import RateLimiter
from stablecast.transports.reliable.settings import RateSettings, SourceSettings
from stablecast.transports.reliable.source_session import (
    SESSION,
    Addressed,
    SessionChart,
    SessionEvent,
    SessionState,
    SourceSession,
)
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.reliable_packets import Reason
from tests.transports.reliable import invariants
from tests.transports.reliable.network import block
from tests.transports.resolution.charts import agree

MS = MILLISECOND
HEADER = 20
UNLIMITED = RateSettings(10 * MS, 1 << 50, 1 << 50)
SINGLE = SourceSettings(batch_bytes=1)
"""Each message leaves at once, alone."""


class Driven:
    def __init__(self, settings: SourceSettings = SINGLE, rates: RateSettings = UNLIMITED) -> None:
        self.said: list[Addressed] = []
        self.limiter = RateLimiter(rates)
        self.session = SourceSession.of(1, settings, HEADER, self.limiter, self.said)
        self.next = 0

    def take(self) -> list[object]:
        said, self.said[:] = self.said[:], []
        return [packet for say in said for packet in one_by_one(say.packet)]

    def send(
        self, count: int = 1, now: int = 0, size: int = 20, topic: int = 7, mark: BatchMark = BatchMark.NONE
    ) -> list[object]:
        first, self.next = self.next, self.next + count
        self.session.submit(Submit(1, block(topic, first, count, size), mark), now)
        invariants.check(self.session)
        return self.take()

    def nak(self, *numbers: int, now: int = 0, to: str = "") -> list[object]:
        self.session.on_nak(numbers, to, now)
        return self.take()

    def play(self, until: int) -> list[tuple[int, object]]:
        """Return the packets that timers cause, with their instants in milliseconds."""
        found = []
        while (due := self.session.next_timeout()) is not None and due <= until:
            self.session.handle_timeout(due)
            found += [(due // MS, packet) for packet in self.take()]
            after = self.session.next_timeout()
            assert after is None or after > due
        return found


def one_by_one(packet: SourcePacket) -> list[SourcePacket]:
    """Return the datagrams of a series as single datagrams."""
    if not isinstance(packet, DatagramSeries):
        return [packet]
    first, trail = packet.number, packet.trail
    return [Datagram(serial.wire(first + n), trail, bytes(payload)) for n, payload in enumerate(packet.payloads)]


def numbers(packets: list[object], again: bool = False) -> list[int]:
    return [packet.number for packet in packets if isinstance(packet, Datagram) and packet.again is again]


@given(st.lists(st.sampled_from(list(SessionEvent)), max_size=6))
def test_the_rows_do_what_the_library_does(events: list[SessionEvent]) -> None:
    agree(SessionChart, SESSION, SessionState.OPEN, list(events))


def test_datagrams_that_leave_together_state_one_trail_at_or_below_all_of_them() -> None:
    """They equal datagrams that leave one by one. Those beyond the window leave it with the next series."""
    driven = Driven(SourceSettings(batch_bytes=1, window_bytes=100))
    for said in (4, 2):
        driven.session.submit(Submit(1, block(7, driven.next, said)), 0)
        driven.next += said
    first, second = (say.packet for say in driven.said)
    assert isinstance(first, DatagramSeries)
    assert isinstance(second, DatagramSeries)
    assert (first.number, first.trail, len(first.payloads)) == (0, 0, 4)
    assert (second.number, second.trail, len(second.payloads)) == (4, 3, 2)
    assert [bytes(payload) for payload in second.payloads] == [block(7, 4, 1), block(7, 5, 1)]
    assert driven.session.statistics.bytes_sent == 6 * (HEADER + 32)
    invariants.check(driven.session)


def test_messages_wait_in_a_batch_for_the_interval() -> None:
    driven = Driven(SourceSettings(sm_min_ns=SECOND))
    assert driven.send() == []
    assert driven.send(now=50 * MS, topic=8) == []
    ((at, packet),) = driven.play(900 * MS)
    assert (at, numbers([packet])) == (200, [0])
    assert driven.session.statistics.msgs_sent == 1
    assert driven.session.statistics.bytes_sent == HEADER + 2 * 32


def test_session_messages_grow_rare_and_only_data_starts_them_again() -> None:
    """6.14 as observed: none before the first data; 200 ms after it, then 400, 800 and so on; repairs do not count."""
    driven = Driven()
    assert driven.session.next_timeout() is None
    driven.send()
    assert driven.play(1000 * MS) == [(200, SessionStatus(0, 0, 0)), (600, SessionStatus(1, 0, 0))]
    assert numbers(driven.nak(0, now=SECOND), again=True) == [0]
    assert driven.play(1500 * MS) == [(1400, SessionStatus(2, 0, 0))]
    driven.send(now=1500 * MS)
    assert driven.play(2000 * MS) == [(1700, SessionStatus(3, 1, 0))]


@pytest.mark.rows("P-401")
def test_nak_is_answered_by_the_datagram_again() -> None:
    """With the current trail, ascending, and to the requester."""
    driven = Driven()
    for _ in range(4):
        driven.send()
    driven.session.on_nak((1, 3), "asker", 0)
    assert [(say.to, say.packet) for say in driven.said] == [
        ("asker", Datagram(1, 0, block(7, 1, 1), again=True)),
        ("asker", Datagram(3, 0, block(7, 3, 1), again=True)),
    ]
    found = driven.session.statistics
    assert (found.nak_pckts_rcved, found.naks_rcved, found.rxs_sent, found.rx_bytes_sent) == (1, 2, 2, 2 * 52)


def test_a_nak_within_the_ignore_interval_gets_one_ncf_and_then_silence() -> None:
    """T29: the NCF follows the retransmissions and lists all refused numbers."""
    driven = Driven()
    for _ in range(3):
        driven.send()
    driven.nak(0, 2)
    assert driven.nak(0, 1, 2, now=100 * MS) == [
        Datagram(1, 0, block(7, 1, 1), again=True),
        NakRefusal(0, Reason.IGNORED, (0, 2)),
    ]
    assert driven.nak(0, 2, now=200 * MS) == []
    assert driven.session.statistics.naks_ignored == 4
    assert numbers(driven.nak(0, now=500 * MS), again=True) == [0]
    assert driven.nak(0, now=999 * MS) == [NakRefusal(0, Reason.IGNORED, (0,))]


def test_old_datagrams_are_not_retransmitted() -> None:
    driven = Driven(SourceSettings(batch_bytes=1, window_age_ns=SECOND))
    driven.send()
    driven.send(now=SECOND // 2)
    assert numbers(driven.nak(0, 1, now=SECOND + 1), again=True) == [1]


def test_retransmissions_over_the_limit_wait_and_then_are_shed(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCFs with the reasons delayed and shed; each further NAK is refused, and the datagram waits once."""
    monkeypatch.setattr("stablecast.transports.reliable.rates.MAX_QUEUED_REPAIRS", 1)
    driven = Driven(rates=RateSettings(10 * MS, 1 << 50, repair_bits=60 * 8 * 100))
    for _ in range(3):
        driven.send()
    assert driven.nak(0, 1, 2) == [
        Datagram(0, 0, block(7, 0, 1), again=True),
        NakRefusal(0, Reason.DELAYED, (1,)),
        NakRefusal(0, Reason.SHED, (2,)),
    ]
    assert driven.nak(1, now=1) == [NakRefusal(0, Reason.DELAYED, (1,))]
    ((item,), _) = driven.limiter.release(10 * MS)
    driven.session.resend(item.number, item.to, 10 * MS)
    assert numbers(driven.take(), again=True) == [1]
    assert driven.nak(1, now=11 * MS) == [NakRefusal(0, Reason.IGNORED, (1,))]
    found = driven.session.statistics
    assert (found.naks_rx_delay_ignored, found.naks_shed, found.ncfs_sent) == (2, 1, 4)


def test_a_repair_that_left_the_window_while_it_waited_is_not_sent() -> None:
    driven = Driven(SourceSettings(batch_bytes=1, window_bytes=32), RateSettings(10 * MS, 1 << 50, repair_bits=800))
    driven.send()
    driven.limiter.repairs_left = 0
    driven.limiter.interval = 0
    assert driven.nak(0) == [NakRefusal(0, Reason.DELAYED, (0,))]
    driven.send()
    driven.session.resend(0, "", 10 * MS)
    assert driven.take() == []
    assert driven.session.answers[""].queued == {}


def test_an_ncf_fits_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NUMBERS", 2)
    driven = Driven()
    for _ in range(5):
        driven.send()
    driven.nak(*range(5))
    refused = driven.nak(*range(5), now=1)
    assert [packet.numbers for packet in refused if isinstance(packet, NakRefusal)] == [(0, 1), (2, 3), (4,)]


def test_the_rate_limit_queues_and_then_blocks() -> None:
    """A runner-up of the traps. Waiting datagrams are neither announced nor requested, and cause no session message."""
    driven = Driven(SourceSettings(batch_bytes=1, linger_ns=0, sm_min_ns=5 * MS), RateSettings(10 * MS, 60 * 8 * 100))
    assert numbers(driven.send(3)) == [0]
    assert invariants.abstract(driven.session) == ("OPEN", 0, 0, 2)
    with pytest.raises(MisuseError, match="Unblocked"):
        driven.send()
    assert driven.nak(1) == []
    assert driven.session.next_timeout() is None
    driven.session.close(True, 0)
    driven.session.handle_timeout(9 * SECOND)
    assert driven.take() == []
    assert invariants.abstract(driven.session) == ("LINGERING", 0, 0, 2)
    for now in (10 * MS, 20 * MS):
        for item in driven.limiter.release(now)[1]:
            driven.session.transmit(item.number, now)
    assert numbers(driven.take()) == [1, 2]
    assert driven.play(20 * MS) == []
    assert driven.session.state is SessionState.CLOSED


def test_marks_over_the_rate_limit_wait() -> None:
    driven = Driven(SourceSettings(datagram_max=500, sm_min_ns=50 * SECOND), RateSettings(10 * MS, 1 << 30))
    for topic in range(200):
        driven.send(topic=topic)
    driven.session.flush(0)
    driven.take()
    driven.limiter.settings = RateSettings(10 * MS, 8 * 100)
    driven.session.handle_timeout(5 * SECOND)
    assert len(driven.take()) == 1, "larger than an interval, it has one of its own"
    assert driven.limiter.blocked
    assert driven.session.next_timeout() is None


def test_a_closed_session_lingers_and_answers() -> None:
    """The duty to retransmit would end with the last source, so the session lingers, without marks."""
    driven = Driven(SourceSettings(linger_ns=6 * SECOND, sm_min_ns=9 * SECOND))
    driven.send(mark=BatchMark.BEGIN)
    driven.session.close(True, 0)
    assert numbers(driven.take()) == [0], "an explicit batch that was not ended leaves too"
    driven.session.close(True, 0)
    with pytest.raises(MisuseError, match="closed"):
        driven.send()
    assert numbers(driven.nak(0, now=SECOND), again=True) == [0]
    assert driven.play(60 * SECOND) == []
    assert driven.session.state is SessionState.CLOSED


def test_a_session_may_end_without_lingering_also_while_it_lingers() -> None:
    driven = Driven()
    driven.send()
    driven.session.close(True, 0)
    driven.session.close(False, SECOND)
    driven.play(SECOND)
    assert driven.session.state is SessionState.CLOSED


@pytest.mark.parametrize("size", [499, 65_536])
def test_a_datagram_maximum_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(MisuseError, match="datagram maximum"):
        Driven(SourceSettings(datagram_max=size))


def test_no_datagram_is_larger_than_udp_carries() -> None:
    """65,535 bytes may be set; a batch between the two would be dropped, with all of its retransmissions."""
    session = Driven(SourceSettings(datagram_max=65_535)).session
    pair = [
        lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, 7, at, (), bytes(size)))
        for at, size in ((0, 2000), (1, 63_480))
    ]
    assert [session.header + len(part) <= 65_507 for part in session.batcher.add(b"".join(pair), 0)] == [True, True]


def test_too_much_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SUBMITTED", 100)
    with pytest.raises(MisuseError, match="at once"):
        Driven().send(4)


def test_a_control_message_is_no_data_of_a_topic() -> None:
    driven = Driven()
    driven.session.submit(Submit(1, message([(7, 1)])), 0)
    assert numbers(driven.take()) == [0]
    assert driven.session.marks.topics == {}
