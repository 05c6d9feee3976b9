"""The deadlines of a service against a naive twin: every key once, never too early, in order."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.srs.service import DueItem, Matter

ITEMS: list[DueItem] = [(Matter.SILENCE, 1), (Matter.SILENCE, 2), (Matter.LIFETIME, b"a"), (Matter.LEAVE, b"a")]
STEPS = st.tuples(st.sampled_from(["arm", "stop", "pop"]), st.sampled_from(ITEMS), st.integers(0, 9))


@given(st.lists(STEPS, max_size=40))
def test_it_does_what_a_plain_table_does(steps: list[tuple[str, DueItem, int]]) -> None:
    agenda, table = KeyedDeadlines[DueItem](), dict[DueItem, int]()
    for step, item, at in steps:
        if step == "arm":
            agenda.arm(item, at)
            table[item] = min(at, table.get(item, at))
        elif step == "stop":
            agenda.stop(item)
            table.pop(item, None)
        else:
            found = agenda.pop(at)
            due = [deadline for deadline in table.values() if deadline <= at]
            assert (found is not None) == bool(due)
            if found is not None:
                assert table.pop(found) == min(due)
        assert agenda.next() == min(table.values(), default=None)
    while (found := agenda.pop(9)) is not None:
        del table[found]
    assert table == {}


def test_an_entry_that_was_stopped_is_passed_over() -> None:
    agenda = KeyedDeadlines[DueItem]()
    agenda.arm(ITEMS[0], 1)
    agenda.arm(ITEMS[1], 2)
    agenda.stop(ITEMS[0])
    assert agenda.pop(5) == ITEMS[1]
    assert agenda.pop(5) is None
