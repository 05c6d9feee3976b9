"""Arrivals: which life a run is of, what bursts and losses do, and where a life steps back."""

from typing import Any

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.serial import HALF, MODULUS, wire
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import SteppedBack, UnrecoverableLoss
from stablecast.core.protocol.inputs import Acknowledge, Consumed, Data, Lost
from stablecast.core.protocol.messages import LateJoinInfo, RetransmitRequest
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.settings import AckMode, Ordering, ReceiverConfig
from stablecast.core.receiver.arrival import Arrivals
from tests.core.drivers import code
from tests.core.samples import LIFE, OLDER_LIFE, drain, events, info, sends
from tests.support.invariants import check_invariants

TARGET = [Target("store:1", 50)]


class Shop:
    """Arrivals that have begun, unless `start` is None."""

    def __init__(self, start: int | None = 0, low: int = 0, high: int = -1, otr: bool = True, **changes: Any) -> None:
        self.machine = Arrivals.of(ReceiverConfig("topic", LIFE, "me:1", **changes))
        self.out: list[fx.Effect] = []
        self.machine.inform(info(low=low, high=wire(high)), self.out)
        if start is not None:
            self.machine.begin(start, otr, self.out)

    def data(self, first: int, count: int, life: int = LIFE, recovered: bool = False) -> bool:
        known = self.machine.on_data(Data(LIFE, life, wire(first), count, 0, recovered, first), self.out)
        check_invariants(self.machine.window)
        return known

    def lost(self, first: int, count: int, burst: bool = False) -> None:
        self.machine.on_lost(Lost(LIFE, wire(first), count, burst), 0, self.out)

    def delivered(self) -> list[int]:
        runs = [effect for effect in self.out if isinstance(effect, fx.Deliver)]
        return [run.first + n for run in runs for n in range(run.count)]

    def asked(self) -> list[tuple[int, int]]:
        drain(self.out)
        self.machine.recover(TARGET, 0, self.out)
        return [(m.first, m.last) for _, m in sends(self.out) if isinstance(m, RetransmitRequest)]


def test_numbers_belong_to_one_life() -> None:
    """This life resumed at 5: what is below is of older lives, what is above is not."""
    cases = [(5, 1, LIFE, True), (4, 2, LIFE, False), (3, 2, OLDER_LIFE, True), (4, 2, OLDER_LIFE, False)]
    for first, count, life, fits in cases:
        shop = Shop(start=0, low=5, high=9)
        assert not shop.data(first, count, life)
        assert code(events(shop.out)) == ([] if fits else ["dead-tail"])
        assert (fx.Discard(first) in shop.out) is not fits


def test_a_message_consumed_before_is_not_delivered_again() -> None:
    shop = Shop(low=5, high=5)
    shop.machine.lives.remember(OLDER_LIFE, 1, 3)
    assert shop.data(0, 5, OLDER_LIFE)
    assert not shop.data(5, 1)
    assert shop.delivered() == [0, 3, 4, 5]


def test_without_the_repair_a_number_is_handed_over_once() -> None:
    """Formal design, 7.4: the message that has it now is lost, and a straggler of a dead tail is taken."""
    shop = Shop(low=5, high=5, repairs=Repair.ALL & ~Repair.TELL_LIVES)
    shop.machine.lives.remember(OLDER_LIFE, 5, 6)
    shop.data(0, 5, OLDER_LIFE)
    shop.data(5, 1)
    shop.data(6, 1, OLDER_LIFE)
    assert shop.delivered() == [0, 1, 2, 3, 4, 6]


def test_a_life_that_steps_back_is_reported() -> None:
    """T20: at its first SRI."""
    machine, out = Arrivals.of(ReceiverConfig("topic", LIFE, "me:1")), list[fx.Effect]()
    machine.lives.remember(OLDER_LIFE, 0, 101)
    machine.inform(info(), out)
    assert events(drain(out)) == [SteppedBack(0, 100)]
    machine.inform(info(low=101, high=100), out)
    assert out == []


@pytest.mark.parametrize(
    ("known", "used", "high", "told"), [(9, 6, 6, [SteppedBack(0, 9)]), (9, 9, 9, []), (9, 12, 9, [])]
)
def test_an_acknowledgement_that_the_stream_has_not_shown_tells_what_exists(
    known: int, used: int, high: int, told: list[SteppedBack]
) -> None:
    """Another holder of the RegID was faster. Numbers that the source did not use will come again."""
    shop = Shop(start=None, high=3)
    shop.machine.on_unannounced(known, used, shop.out)
    assert (shop.machine.high, events(shop.out)) == (high, told)


def test_numbers_go_on_where_an_earlier_session_left_them() -> None:
    """An earlier session went over the wrap; 5 on the wire is far above it."""
    machine, out = Arrivals.of(ReceiverConfig("topic", LIFE, "me:1")), list[fx.Effect]()
    machine.lives.remember(OLDER_LIFE, 0, MODULUS + 5)
    machine.inform(info(low=5, high=4), out)
    assert (machine.resume_point, out) == (MODULUS + 5, [])


def test_a_burst_is_a_gap_of_as_many_numbers_as_the_limit() -> None:
    """T30: delivery goes on behind it, and nothing of it is asked for."""
    shop = Shop(burst=4)
    shop.data(3, 1)
    shop.data(7, 1)
    assert shop.asked() == [(0, 2), (4, 6)]
    shop.data(12, 1)
    assert events(shop.out) == [UnrecoverableLoss(0, 11, True)]
    assert shop.delivered() == [12]
    assert not shop.machine.requests


def test_recovered_messages_and_those_before_the_start_are_no_burst() -> None:
    for start, recovered in [(0, True), (None, False)]:
        shop = Shop(start=start, burst=2)
        shop.data(9, 1, recovered=recovered)
        assert events(shop.out) == []


def test_a_burst_of_the_transport_is_one_too() -> None:
    """T30."""
    shop = Shop()
    shop.data(0, 2)
    shop.lost(2, 3, burst=True)
    assert events(shop.out) == [UnrecoverableLoss(2, 4, True)]
    shop = Shop(start=None)
    shop.lost(2, 3, burst=True)
    assert (shop.out, shop.machine.high) == ([], 4)


@pytest.mark.rows("P-410")
def test_a_loss_is_recovered_at_once_where_that_is_wanted() -> None:
    """Though the gap is not old enough yet, and though nothing came behind it."""
    shop = Shop()
    shop.machine.requests.delay_ns = 1000
    shop.data(0, 2)
    assert shop.asked() == []
    shop.lost(2, 3)
    assert shop.asked() == [(2, 4)]


def test_a_loss_is_final_where_recovery_is_not_wanted() -> None:
    """But not of history, which does not come from the transport, nor of what may still come below it."""
    shop = Shop(high=3, otr=False)
    shop.lost(2, 4)
    assert shop.asked() == [(0, 3)]
    shop.data(0, 4, recovered=True)
    shop.lost(8, 1)
    assert events(shop.out) == [UnrecoverableLoss(4, 5)]
    shop.data(6, 2)
    assert events(drain(shop.out)) == [UnrecoverableLoss(4, 5), UnrecoverableLoss(8, 8)]
    shop = Shop(start=None)
    shop.lost(2, 4)
    assert (shop.out, shop.machine.high) == ([], 5)


def test_an_arrived_message_is_not_requested_again() -> None:
    shop = Shop(high=2)
    assert shop.asked() == [(0, 2)]
    shop.data(0, 3, recovered=True)
    assert not shop.machine.requests


def test_nothing_is_asked_for_that_would_only_wait_for_the_application() -> None:
    shop = Shop(proximity=10)
    shop.data(0, 11)
    shop.machine.window.learn(13)
    assert shop.asked() == []
    shop.machine.on_consumed(Consumed(0, 0))
    assert shop.asked() == [(11, 13)]


@pytest.mark.rows("P-349")
def test_a_message_requested_in_vain_is_lost() -> None:
    shop = Shop(high=2, retry_ns=10, give_up_ns=30)
    shop.asked()
    for now in range(10, 100, 10):
        shop.machine.handle_timeout(now, True, shop.out)
        shop.machine.recover(TARGET, now, shop.out)
    assert events(shop.out) == [UnrecoverableLoss(0, 2)]


@pytest.mark.parametrize("denied", [False, True])
def test_each_message_that_was_requested_in_vain_is_lost_whatever_came_between(denied: bool) -> None:
    shop = Shop(high=4, retry_ns=10, give_up_ns=10)
    shop.data(1, 1)
    shop.data(3, 1)
    shop.machine.recover(TARGET, 0, shop.out)
    for _, request in sends(drain(shop.out)):
        if denied and isinstance(request, RetransmitRequest):
            shop.machine.on_denied(LateJoinInfo(LIFE, request.request, wire(5), wire(4)), True, shop.out)
    shop.machine.handle_timeout(20, True, shop.out)
    assert events(shop.out) == [UnrecoverableLoss(number, number) for number in (0, 2, 4)]


@pytest.mark.rows("P-347")
@pytest.mark.parametrize("ordering", Ordering)
def test_only_what_was_delivered_can_be_consumed_or_acknowledged(ordering: Ordering) -> None:
    """In arrival order what came ahead may be; in order it is held."""
    shop = Shop(ordering=ordering, ack_mode=AckMode.EXPLICIT)
    shop.data(3, 3)
    if ordering is Ordering.ARRIVAL:
        shop.machine.on_consumed(Consumed(3, 5))
        shop.machine.on_acknowledged(Acknowledge(5))
    for number in (2, 6) if ordering is Ordering.ARRIVAL else (2, 4, 6):
        with pytest.raises(MisuseError, match=f"consumed {number}"):
            shop.machine.on_consumed(Consumed(number, number))
        with pytest.raises(MisuseError, match=f"acknowledged {number}"):
            shop.machine.on_acknowledged(Acknowledge(number))


@pytest.mark.rows("P-345")
def test_acknowledging_oneself_needs_the_mode_for_it() -> None:
    shop = Shop()
    shop.data(0, 1)
    with pytest.raises(MisuseError, match="choose EXPLICIT"):
        shop.machine.on_acknowledged(Acknowledge(0))


@pytest.mark.rows("P-422")
def test_a_late_join_starts_where_the_source_begins() -> None:
    """Or at the request maximum; the range may be long."""
    assert Shop(start=None, high=9).machine.join(LateJoinInfo(LIFE, 1, 4, 12)) == 4
    assert Shop(start=None, high=9, request_maximum=2).machine.join(LateJoinInfo(LIFE, 1, 4, 12)) == 10
    assert Shop(start=None, high=9).machine.join(LateJoinInfo(LIFE, 1, 10, 9)) == 10
    shop = Shop(start=None, high=HALF + 10)
    assert shop.machine.join(LateJoinInfo(LIFE, 1, 11, HALF + 10)) == 11


def test_a_late_join_begins_no_later_than_the_stream_has() -> None:
    """A source that lets go of everything at once says that it has nothing of what it has just sent."""
    shop = Shop(start=None)
    assert shop.machine.first_live == 0
    shop.data(0, 1)
    assert (shop.machine.first_live, shop.machine.join(LateJoinInfo(LIFE, 1, 1, 0))) == (0, 0)
    shop = Shop(start=None, high=3, request_maximum=1)
    shop.data(4, 5)
    assert shop.machine.join(LateJoinInfo(LIFE, 1, 0, 8)) == 4


@pytest.mark.rows("P-588")
def test_when_nobody_can_be_asked_what_is_missing_is_lost() -> None:
    """Messages of the stream are delivered, and those that it leaves out are for the transport to fill."""
    shop = Shop(high=3)
    shop.data(6, 2)
    shop.machine.abandon(shop.out)
    assert events(shop.out) == [UnrecoverableLoss(0, 5)]
    assert shop.delivered() == [6, 7]
    shop.data(9, 1)
    assert shop.asked() == []
    shop.lost(8, 1)
    assert shop.delivered() == [9]


def test_before_the_start_that_means_from_now_on() -> None:
    shop = Shop(start=None, high=3)
    shop.data(3, 1)
    shop.machine.abandon(shop.out)
    shop.data(4, 1)
    assert shop.delivered() == [4]


def test_what_was_given_up_is_not_requested_again() -> None:
    shop = Shop(high=3)
    assert shop.asked() == [(0, 3)]
    shop.machine.abandon(shop.out)
    assert shop.machine.requests.next() is None
    assert shop.asked() == []
