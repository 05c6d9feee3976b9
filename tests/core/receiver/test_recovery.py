"""Recovery: history at once, gaps of the stream when they are old enough, nothing twice."""

from typing import Any

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import RetransmitRequest
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.settings import OtrTimes, ReceiverConfig
from stablecast.core.receiver.recovery import Recovery
from tests.core.samples import LIFE, drain, sends
from tests.support.abstract_states import abstract

TARGET = [Target("store:1", 50)]
DELAY_NS = 100


def recovery(origin: int = 10, otr: bool = True, delay_ns: int = DELAY_NS, **changes: Any) -> Recovery:
    config = ReceiverConfig("topic", LIFE, "me:1", retry_ns=20, give_up_ns=50, otr=OtrTimes(delay_ns, 90), **changes)
    machine = Recovery.of(config)
    machine.begin(origin, otr)
    return machine


def issued(machine: Recovery, now: int) -> list[tuple[int, int]]:
    out: list[fx.Effect] = []
    machine.issue(TARGET, now, out)
    return [(m.first, m.last) for _, m in sends(drain(out)) if isinstance(m, RetransmitRequest)]


@pytest.mark.rows("P-410", "M-002")
def test_history_is_asked_for_at_once_and_gaps_when_they_are_old() -> None:
    machine = recovery()
    machine.look([(5, 12), (14, 16)], 0)
    assert issued(machine, 0) == [(5, 9)]
    assert machine.next() == 20, "the request is asked again before the gaps are old"
    machine.got(5, 10)
    assert machine.next() == DELAY_NS
    machine.look([(10, 12), (14, 16), (20, 21)], 50)
    assert machine.handle_timeout(DELAY_NS, True) == []
    assert issued(machine, DELAY_NS) == [(10, 11), (14, 15)]
    assert abstract(machine) == (((), ()), ((), ((10, 12), (14, 16))), ((20, 21),))


def test_a_gap_that_the_transport_fills_is_not_asked_for() -> None:
    machine = recovery()
    machine.look([(10, 16)], 0)
    machine.got(10, 16)
    assert not machine
    machine.handle_timeout(DELAY_NS, True)
    assert issued(machine, DELAY_NS) == []
    assert machine.next() is None
    machine.got(10, 16)


def test_a_gap_that_the_transport_gives_up_is_asked_for_at_once() -> None:
    machine = recovery()
    machine.look([(10, 16)], 0)
    machine.hurry(11, 13)
    assert issued(machine, 0) == [(11, 12)]
    assert abstract(machine)[2] == ((10, 11), (13, 16))


def test_only_what_is_missing_is_asked_for_when_the_transport_gives_up() -> None:
    """It gives up a range in which some messages came another way."""
    machine = recovery()
    machine.look([(10, 12), (14, 16)], 0)
    machine.hurry(10, 16)
    assert issued(machine, 0) == [(10, 11), (14, 15)]


def test_without_a_delay_gaps_do_not_wait() -> None:
    machine = recovery(delay_ns=0)
    machine.look([(12, 14)], 0)
    assert issued(machine, 0) == [(12, 13)]


@pytest.mark.rows("P-401", "M-002")
def test_without_off_transport_recovery_gaps_are_left_to_the_transport() -> None:
    machine = recovery(otr=False)
    machine.look([(5, 12), (14, 16)], 0)
    assert issued(machine, 0) == [(5, 9)]
    machine.got(5, 10)
    assert not machine


@pytest.mark.rows("P-432", "P-433")
def test_history_and_gaps_have_windows_and_give_up_times_of_their_own() -> None:
    machine = recovery(delay_ns=0, window=3)
    machine.look([(0, 8), (10, 20)], 0)
    assert issued(machine, 0) == [(0, 2), (10, 12)]
    lost = []
    for now in range(20, 140, 20):
        lost += [(now, gap) for gap in machine.handle_timeout(now, True)]
        issued(machine, now)
    assert lost[:2] == [(60, (0, 3)), (100, (10, 13))]
    assert 0 not in machine.cared


def test_an_answer_to_a_request_for_history_is_none_to_a_request_for_gaps() -> None:
    machine, out = recovery(delay_ns=0), list[fx.Effect]()
    machine.look([(5, 12)], 0)
    machine.issue(TARGET, 0, out)
    asked = [m for _, m in sends(out) if isinstance(m, RetransmitRequest)]
    assert [(m.first, m.last) for m in asked] == [(5, 9), (10, 11)]
    assert len({m.request for m in asked}) == 2


def test_nothing_is_given_up_unless_it_may_be() -> None:
    machine = recovery()
    machine.look([(0, 3)], 0)
    for now in range(0, 400, 20):
        issued(machine, now)
        assert machine.handle_timeout(now, False) == []


def test_gaps_of_every_age_are_hurried_filled_asked_for_and_given_up() -> None:
    machine = recovery()
    for now, start in enumerate((10, 14, 20)):
        machine.look([(start, start + 2)], now)
    machine.hurry(11, 15)
    assert issued(machine, 2) == [(11, 11), (14, 14)]
    for number in (11, 14, 15):
        machine.got(number, number + 1)
    assert abstract(machine)[2] == ((10, 11), (20, 22))
    assert machine.handle_timeout(DELAY_NS + 2, True) == []
    assert issued(machine, DELAY_NS + 2) == [(10, 10), (20, 21)]
    lost = []
    for now in range(2 * DELAY_NS, 4 * DELAY_NS, 20):
        lost += machine.handle_timeout(now, True)
        issued(machine, now)
    assert (lost, bool(machine)) == ([(10, 11), (20, 22)], False)
