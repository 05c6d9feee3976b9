"""The flight: credit, who waits for it, and what never fits."""

import pytest

from stablecast.core.errors import OversizeError
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, FlightSize, Wakeup
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.core.protocol.settings import Retention
from stablecast.core.source.flight import UNLIMITED, Flight
from stablecast.core.source.stability import StabilityWindow
from tests.core.samples import drain, events


class Sender:
    """A flight and the window of one store that it looks at."""

    def __init__(self, messages: int = 0, payload_bytes: int = 0, notify: bool = False) -> None:
        self.machine = Flight(messages, payload_bytes, notify)
        self.window = StabilityWindow.create(Quorums.of(GroupRules((1,)), [0]), Retention(), 1)
        self.window.on_stores(1, False, [])
        self.out: list[fx.Effect] = []

    def send(self, count: int, payload_bytes: int, cut: bool = False) -> list[Event]:
        if cut:
            self.window.large.add(self.window.next, self.window.next + count - 1)
        self.window.sent(count, payload_bytes, [])
        self.machine.review(self.window, self.out)
        return events(drain(self.out))

    def ack(self, start: int, stop: int) -> list[Event]:
        self.window.on_acked(0, start, stop, [])
        self.machine.review(self.window, self.out)
        return events(drain(self.out))

    def block(self, payload_bytes: int = 0, count: int = 1) -> list[Event]:
        self.machine.on_blocked(count, payload_bytes, self.window, self.out)
        return events(drain(self.out))

    def credit(self) -> tuple[int, int | None]:
        return (self.machine.credit_messages(self.window), self.machine.credit_bytes(self.window))


@pytest.mark.rows("P-306", "P-314")
def test_credit_is_what_is_left() -> None:
    """Payload only."""
    sender = Sender(5, 100)
    assert sender.credit() == (5, 100)
    sender.send(3, 80)
    assert sender.credit() == (2, 20)
    sender.send(4, 80)
    assert sender.credit() == (0, 0)


@pytest.mark.rows("P-024")
def test_no_limit_is_no_limit() -> None:
    sender = Sender()
    sender.send(10_000, 10_000_000)
    assert sender.credit() == (UNLIMITED, None)


@pytest.mark.rows("P-308", "P-310", "P-661")
@pytest.mark.parametrize(("count", "size", "over"), [(3, 30, False), (4, 30, True), (3, 31, True), (4, 31, True)])
def test_whichever_limit_is_exceeded_first(count: int, size: int, over: bool) -> None:
    """C-02: four rows; P-310, P-661: told once, and once when it is over."""
    sender = Sender(3, 30, notify=True)
    assert sender.send(count, size) == ([FlightSize(True)] if over else [])
    assert sender.ack(0, count) == ([FlightSize(False)] if over else [])
    assert sender.ack(0, count) == []


@pytest.mark.rows("P-310")
@pytest.mark.parametrize("limits", [(3, 0), (0, 30)])
def test_a_full_flight_is_neither_exceeded_nor_below_its_limit(limits: tuple[int, int]) -> None:
    """A send that exceeds the limit is notified; so is the number in flight that falls below it."""
    sender = Sender(*limits, notify=True)
    assert [sender.send(1, 10) for _ in range(4)] == [[], [], [], [FlightSize(True)]]
    assert [sender.ack(at, at + 1) for at in range(3)] == [[], [FlightSize(False)], []]
    assert [sender.send(1, 10) for _ in range(3)] == [[], [], [FlightSize(True)]]


@pytest.mark.rows("P-309")
def test_a_blocked_send_is_woken_once() -> None:
    """T13."""
    sender = Sender(2)
    assert sender.send(2, 0) == []
    assert sender.block() == []
    assert sender.block() == []
    assert sender.ack(0, 1) == [Wakeup()]
    assert sender.ack(1, 2) == []


def test_a_send_that_blocked_too_late_is_woken_at_once() -> None:
    """T13: the acknowledgement came between the refusal and the report."""
    sender = Sender(2)
    sender.send(2, 0)
    assert sender.ack(0, 1) == []
    assert sender.block() == [Wakeup()]


def test_a_message_waits_for_room_for_all_of_it() -> None:
    sender = Sender(10, 100)
    sender.send(8, 80)
    assert sender.block(payload_bytes=50) == []
    assert sender.block(payload_bytes=30, count=3) == []
    assert sender.ack(0, 7) == []
    assert sender.ack(7, 8) == [Wakeup()]


@pytest.mark.rows("P-313")
def test_a_message_that_was_cut_counts_once() -> None:
    """U4: it is in flight until its last piece is settled."""
    sender = Sender(3)
    sender.send(8, 80, cut=True)
    sender.send(1, 10)
    assert sender.credit() == (1, None)
    sender.ack(8, 9)
    assert sender.credit() == (2, None)
    for start, stop in ((4, 8), (0, 3)):
        sender.ack(start, stop)
        assert sender.credit() == (2, None)
    sender.ack(3, 4)
    assert sender.credit() == (3, None)


@pytest.mark.rows("P-313")
def test_a_message_that_was_cut_and_is_forced_out_leaves_the_flight() -> None:
    """T12."""
    sender = Sender(3)
    sender.send(8, 80, cut=True)
    sender.ack(0, 3)
    sender.send(1, 10)
    sender.window.give_up(0, [])
    assert (sender.credit(), sender.window.trail) == ((3, None), 9)


def test_the_one_that_needs_least_wakes_all() -> None:
    sender = Sender(4)
    sender.send(4, 0)
    sender.block(count=3)
    sender.block(count=1)
    sender.block(count=2)
    assert sender.machine.waiting == [(1, 0)]
    assert sender.ack(0, 1) == [Wakeup()]


def test_needs_of_which_none_includes_the_other_wait_both() -> None:
    """One needs more bytes, the other more messages: whichever fits first wakes both."""
    for oldest, newest in (((1, 60), (3, 40)), ((3, 40), (1, 60))):
        sender = Sender(4, 100)
        sender.send(*oldest)
        sender.send(*newest)
        assert sender.block(payload_bytes=60) == sender.block(payload_bytes=10, count=3) == []
        assert sender.ack(0, oldest[0]) == [Wakeup()]


def test_no_send_waits_in_behaviour_notify() -> None:
    sender = Sender(1, notify=True)
    sender.send(2, 0)
    assert sender.block() == [Wakeup()]


def test_a_message_that_never_fits_is_misuse() -> None:
    """T14: at once, with nothing in flight; never wait for it."""
    machine = Sender(4, 1000).machine
    machine.check_size(1000)
    with pytest.raises(OversizeError, match="2000 bytes exceeds the flight of 1000"):
        machine.check_size(2000)
    Sender(4, 1000, notify=True).machine.check_size(2000)
    Sender().machine.check_size(10**9)
