"""The deadline queue against a twin that keeps a dict: no key comes too late or too early."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.store.deadline_queue import DeadlineQueue


def test_deadlines_move_up_and_not_back() -> None:
    agenda = DeadlineQueue()
    for deadline in (20, 10, 30, None):
        agenda.wake(1, deadline)
    assert agenda.next() == 10
    assert agenda.due(9) == []
    assert agenda.due(10) == [1]
    assert agenda.due(30) == []
    assert agenda.next() is None


def test_a_dropped_key_is_not_due() -> None:
    agenda = DeadlineQueue()
    agenda.wake(1, 10)
    agenda.drop(1)
    agenda.drop(2)
    assert agenda.due(99) == []


@pytest.mark.rows("P-835")
@given(st.lists(st.tuples(st.sampled_from(["wake", "drop", "due"]), st.integers(0, 5), st.integers(0, 9)), max_size=40))
def test_the_agenda_agrees_with_its_twin(steps: list[Any]) -> None:
    """A check costs what is due."""
    agenda, twin, now = DeadlineQueue(), dict[int, int](), 0
    for step, key, span in steps:
        match step:
            case "wake":
                agenda.wake(key, now + span)
                twin[key] = min(twin.get(key, now + span), now + span)
            case "drop":
                agenda.drop(key)
                twin.pop(key, None)
            case _:
                now += span
                due = sorted((deadline, key) for key, deadline in twin.items() if deadline <= now)
                assert agenda.due(now) == [key for _, key in due]
                twin = {key: deadline for key, deadline in twin.items() if deadline > now}
        assert agenda.deadlines == twin
        following = agenda.next()
        assert not twin or (following is not None and following <= min(twin.values()))
