"""Gaps in the topics of a session, and their age."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.transports.reliable import topics as module
from stablecast.transports.reliable.effects import ReceiverEffect, TopicLost
from stablecast.transports.reliable.topics import Topics


def topics(check: int = SECOND) -> Topics:
    return Topics(10 * SECOND, check)


def looked(found: Topics, now: int) -> list[tuple[int, int, int]]:
    out: list[ReceiverEffect] = []
    found.look(now, out)
    return [(loss.topic_index, loss.first, loss.count) for loss in out if isinstance(loss, TopicLost)]


def test_a_topic_begins_with_its_first_message() -> None:
    found = topics()
    assert found.on_run(7, 50, 3, 0)
    found.on_run(7, 53, 1, 0)
    found.on_mark(8, 99, 0)
    found.on_run(8, 101, 1, 0)
    assert [(gap.topic, gap.first, gap.stop) for gap in found.gaps] == [(8, 100, 101)]


def test_a_gap_is_lost_when_it_is_as_old_as_the_generation_interval() -> None:
    found = topics()
    found.on_run(7, 0, 1, 0)
    found.on_run(7, 5, 1, 2 * SECOND)
    found.on_run(7, 2, 2, 3 * SECOND)
    assert looked(found, 12 * SECOND - 1) == []
    assert looked(found, 12 * SECOND) == [(7, 1, 1), (7, 4, 1)]
    found.on_run(7, 1, 1, 13 * SECOND)
    assert not found.topics[7].missing


def test_gaps_of_one_topic_do_not_concern_another() -> None:
    found = topics()
    found.on_run(7, 0, 1, 0)
    found.on_run(8, 0, 1, 0)
    found.on_run(7, 2, 1, 0)
    found.on_run(8, 1, 1, 0)
    assert looked(found, 10 * SECOND) == [(7, 1, 1)]


def test_a_high_water_mark_reveals_a_lost_tail() -> None:
    """A runner-up of the traps: lost at 0, announced at 5 s, lost for good at 15 s; without a mark never."""
    found = topics()
    found.on_run(7, 0, 1, 0)
    assert found.look_at is None
    for now in (5, 10, 15):
        found.on_mark(7, 1, now * SECOND)
    assert looked(found, 15 * SECOND - 1) == []
    assert looked(found, 15 * SECOND) == [(7, 1, 1)]
    found.on_mark(7, 0, 15 * SECOND)
    assert not found.gaps


def test_it_is_looked_at_every_check_interval_while_there_are_gaps() -> None:
    """delivery_control_loss_check_interval."""
    found = topics()
    found.on_run(7, 0, 1, 0)
    found.on_run(7, 2, 1, 0)
    found.on_run(7, 4, 1, 0)
    assert found.look_at == SECOND
    looked(found, SECOND)
    assert found.look_at == 2 * SECOND
    assert looked(found, 12 * SECOND) == [(7, 1, 1), (7, 3, 1)]
    assert found.look_at is None


def test_without_a_check_interval_only_what_arrives_makes_it_look() -> None:
    found = topics(check=0)
    found.on_run(7, 0, 1, 0)
    found.on_run(7, 2, 1, 0)
    assert found.look_at is None
    assert looked(found, 10 * SECOND) == [(7, 1, 1)]


def test_with_the_session_every_gap_is_lost() -> None:
    found = topics()
    found.on_run(7, 0, 1, 0)
    found.on_run(7, 2, 1, 0)
    out: list[ReceiverEffect] = []
    found.end(out)
    assert out == [TopicLost(7, 1, 1)]
    assert (found.look_at, len(found.gaps)) == (None, 0)


def test_numbers_wrap() -> None:
    found = topics()
    found.on_run(7, serial.MODULUS - 2, 1, 0)
    found.on_run(7, 3, 1, 0)
    found.on_run(7, 0, 1, 0)
    assert looked(found, 10 * SECOND) == [(7, serial.MODULUS - 1, 1), (7, 1, 2)]


def test_topics_and_gaps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOPICS", 1)
    monkeypatch.setattr(module, "MAX_TOPIC_GAPS", 2)
    found = topics()
    assert found.on_run(7, 0, 1, 0)
    assert not found.on_run(8, 0, 1, 0)
    found.on_mark(9, 0, 0)
    assert list(found.topics) == [7]
    for number in (2, 4, 6):
        found.on_run(7, number, 1, 0)
    assert looked(found, 1) == [(7, 1, 1)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(0, 3)), max_size=40))
def test_lost_is_what_was_left_out_for_too_long(steps: list[tuple[int, int, int]]) -> None:
    """Compared with a set of numbers and the times of their detection."""
    found = topics()
    found.on_run(7, 0, 1, 0)
    high, now, missing = 0, 0, dict[int, int]()
    for first, count, wait in steps:
        now += wait * SECOND
        found.on_run(7, first, count, now)
        missing |= dict.fromkeys(range(high + 1, first), now)
        for number in range(first, first + count):
            missing.pop(number, None)
        high = max(high, first + count - 1)
        old = sorted(number for number, at in missing.items() if at + 10 * SECOND <= now)
        lost = [number for _, start, length in looked(found, now) for number in range(start, start + length)]
        assert sorted(lost) == old
        for number in old:
            del missing[number]
