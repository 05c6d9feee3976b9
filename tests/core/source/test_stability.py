"""The source's window against a twin that thinks message by message."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    Confirmed,
    ConfirmFlag,
    Event,
    NotStable,
    NotStableFlag,
    Reclaimed,
    Stable,
    StableFlag,
)
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup, Quorums
from stablecast.core.protocol.settings import Retention
from stablecast.core.source.stability import Notices, StabilityWindow
from tests.core.samples import drain, events
from tests.core.source.stability_twin import STEPS, Twin, play
from tests.support.abstract_states import abstract
from tests.support.invariants import check_invariants

GROUP_FLAGS = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE
ACROSS = StableFlag.INTERGROUP | StableFlag.STABLE


def window(size: int = 3, start: int = 0, **retention: Any) -> StabilityWindow:
    """One group of so many stores, all of them registered."""
    return grouped([0] * size, GroupRules((size,)), start, **retention)


def grouped(groups: list[int], rules: GroupRules, start: int = 0, **retention: Any) -> StabilityWindow:
    machine = StabilityWindow.create(Quorums.of(rules, groups), Retention(**retention), len(groups))
    machine.begin(start)
    machine.on_stores((1 << len(groups)) - 1, False, [])
    return machine


def numbers(ranges: RangeSet) -> set[int]:
    return {n for first, stop in ranges for n in range(first, stop)}


RULES = st.builds(
    lambda intra, inter, groups: (GroupRules(tuple(map(len, groups)), intra, inter), groups),
    st.sampled_from(Intragroup),
    st.sampled_from(Intergroup),
    st.sampled_from([[[0]], [[0, 1, 2]], [[0, 1, 2, 3, 4]], [[0], [1]], [[0, 2, 3], [1, 4]]]),
)


@pytest.mark.rows("P-021", "P-023", "P-307", "P-313", "P-319", "P-320", "P-323", "P-329", "P-515")
@given(
    rules=RULES,
    threshold=st.sampled_from([0, 100, 1000]),
    limit=st.sampled_from([50, 300, 100_000]),
    unique=st.integers(0, 3),
    age=st.sampled_from([0, 20]),
    steps=STEPS,
)
@settings(max_examples=200)
def test_the_window_agrees_with_its_twin(
    rules: tuple[GroupRules, list[list[int]]], threshold: int, limit: int, unique: int, age: int, steps: list[Any]
) -> None:
    """In flight, stable, retained as defined."""
    of_store = {store: group for group, stores in enumerate(rules[1]) for store in stores}
    stores = len(of_store)
    quorums = Quorums.of(rules[0], [of_store[store] for store in range(stores)])
    machine = StabilityWindow.create(quorums, Retention(threshold, limit, unique, age), stores)
    machine.on_stores((1 << stores) - 1, False, [])
    twin, reported = Twin(quorums, machine.retention, (1 << stores) - 1), Counter[int]()
    for step in steps:
        told = play(step, machine, twin, stores)
        reported.update(
            n
            for event in told
            if isinstance(event, Stable) and StableFlag.STABLE in event.flags
            for n in range(event.first, event.last + 1)
        )
        assert numbers(machine.stable) == {n for n in twin.stable if n >= twin.trail}
        assert set(reported) == twin.stable
        assert set(reported.values()) <= {1}
        assert (machine.trail, machine.next) == (twin.trail, twin.next)
        assert (machine.unsettled_messages, machine.unsettled_bytes) == (twin.in_flight, twin.bytes_in_flight)
        assert machine.retained_bytes == twin.retained


def test_a_timeout_forces_out_nothing_behind_the_last_unsettled_message() -> None:
    """Number 1 is stable: giving up number 0 must not let it go as forced."""
    machine, out = window(threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(1, 10, out)
    machine.sent(1, 10, out)
    machine.on_acked(0, 1, 2, out)
    machine.on_acked(2, 1, 2, out)
    out.clear()
    machine.give_up(0, out)
    assert [event for event in events(drain(out)) if isinstance(event, Reclaimed)] == [Reclaimed(0, 0, forced=True)]
    assert (machine.trail, numbers(machine.stable), machine.unsettled_bytes) == (1, {1}, 0)
    check_invariants(machine)


@pytest.mark.rows("P-331", "P-517")
def test_every_store_is_told_of_and_the_group_once() -> None:
    """U17."""
    machine, out = window(threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_acked(0, 0, 4, out)
    assert events(drain(out)) == [Stable(0, 3, 0, StableFlag.STORE)]
    machine.on_acked(2, 1, 3, out)
    assert events(drain(out)) == [Stable(1, 2, 2, StableFlag.STORE), Stable(1, 2, 2, GROUP_FLAGS)]
    machine.on_acked(2, 1, 3, out)
    assert out == []
    machine.on_acked(1, 0, 4, out)
    assert events(drain(out)) == [
        Stable(0, 3, 1, StableFlag.STORE),
        Stable(0, 0, 1, GROUP_FLAGS),
        Stable(3, 3, 1, GROUP_FLAGS),
    ]


@pytest.mark.rows("P-023")
def test_an_ack_that_is_news_in_part_makes_that_part_stable() -> None:
    machine, out = window(threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_acked(0, 2, 4, drain(out))
    machine.on_acked(1, 0, 4, drain(out))
    assert list(machine.stable) == [(2, 4)]


@pytest.mark.rows("P-331", "P-515", "P-517")
def test_groups_are_told_of_before_the_rules_between_them_are_met() -> None:
    """Each group once, when the acknowledgement of one of its stores completed it."""
    machine = grouped([0, 0, 0, 1], GroupRules((3, 1), intergroup=Intergroup.ALL), threshold_bytes=10_000)
    out: list[fx.Effect] = []
    machine.sent(4, 40, out)
    machine.on_acked(0, 0, 4, out)
    drain(out)
    machine.on_acked(1, 0, 4, out)
    assert events(drain(out)) == [Stable(0, 3, 1, StableFlag.STORE), Stable(0, 3, 1, StableFlag.INTRAGROUP)]
    assert machine.unsettled_messages == 4
    machine.on_acked(3, 1, 3, out)
    assert events(drain(out)) == [Stable(1, 2, 3, StableFlag.STORE), Stable(1, 2, 3, GROUP_FLAGS)]
    machine.on_acked(2, 0, 4, out)
    assert events(drain(out)) == [Stable(0, 3, 2, StableFlag.STORE)]


@pytest.mark.rows("P-521", "P-524")
def test_a_store_that_falls_silent_can_make_messages_stable() -> None:
    """All-active asks for every store that is there, and no longer for one that is away."""
    machine = grouped([0, 0, 0], GroupRules((3,), Intragroup.ALL_ACTIVE), threshold_bytes=10_000)
    out: list[fx.Effect] = []
    machine.sent(4, 40, out)
    machine.on_acked(0, 0, 4, out)
    machine.on_acked(1, 0, 3, out)
    assert not machine.stable
    drain(out)
    machine.on_stores(0b011, False, out)
    assert events(drain(out)) == [Stable(0, 2, -1, GROUP_FLAGS)]
    machine.on_stores(0b011, False, out)
    assert out == []


@pytest.mark.rows("P-521", "P-523")
def test_a_group_that_falls_silent_no_longer_counts() -> None:
    """All-active between groups; what the other group holds is stable then."""
    rules = GroupRules((1, 1), intergroup=Intergroup.ALL_ACTIVE)
    machine, out = grouped([0, 1], rules, threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_acked(0, 0, 4, out)
    assert events(drain(out))[1:] == [Stable(0, 3, 0, StableFlag.INTRAGROUP)]
    machine.on_stores(0b01, False, out)
    assert events(drain(out)) == [Stable(0, 3, -1, ACROSS)]


@pytest.mark.rows("P-321")
def test_without_stores_that_acknowledge_confirmations_release() -> None:
    machine, out = window(size=1, unique_confirmations=1), list[fx.Effect]()
    machine.on_stores(0, True, out)
    machine.sent(4, 40, out)
    assert machine.unsettled_messages == 4
    machine.on_confirmed(7, 1, out)
    assert (machine.unsettled_messages, machine.trail) == (2, 0)
    machine.on_confirmed(7, 3, out)
    assert (machine.unsettled_messages, machine.trail) == (0, 4)
    assert not [event for event in events(out) if isinstance(event, Stable)]


def test_messages_are_settled_at_once_without_rules() -> None:
    machine, out = StabilityWindow.create(Quorums(GroupRules(), ()), Retention(), 0), list[fx.Effect]()
    machine.sent(4, 40, out)
    assert (machine.unsettled_messages, machine.trail) == (0, 4)


@pytest.mark.rows("P-328", "P-655")
@pytest.mark.parametrize(
    ("notices", "expected"),
    [
        (Notices(False, False), []),
        (Notices(True, False), [Stable(1, 3, 0, StableFlag.STORE), Stable(1, 3, 0, GROUP_FLAGS)]),
        (Notices(False, True), [Stable(1, 1, -1, GROUP_FLAGS | StableFlag.WHOLE_MESSAGE)]),
        (
            Notices(True, True),
            [
                Stable(1, 3, 0, StableFlag.STORE),
                Stable(1, 3, 0, GROUP_FLAGS),
                Stable(1, 1, -1, GROUP_FLAGS | StableFlag.WHOLE_MESSAGE),
            ],
        ),
    ],
)
def test_numbers_or_whole_messages_or_both_are_told(notices: Notices, expected: list[Event]) -> None:
    """U1: 2 to 4 are one message. Told or not, retention is freed by stability."""
    machine, out = window(size=1), list[fx.Effect]()
    machine.stable_notices = notices
    machine.sent(6, 60, out)
    machine.large.add(2, 4)
    machine.on_acked(0, 1, 4, out)
    assert events(drain(out)) == expected
    machine.on_acked(0, 4, 5, out)
    whole = [event for event in events(drain(out)) if isinstance(event, Stable) and event.store_index == -1]
    assert whole == ([Stable(2, 4, -1, GROUP_FLAGS | StableFlag.WHOLE_MESSAGE)] if notices.messages else [])
    machine.on_acked(0, 5, 6, out)
    machine.on_acked(0, 0, 1, out)
    assert machine.trail == 6


@pytest.mark.rows("P-330", "P-657")
@pytest.mark.parametrize("notices", [Notices(n, m) for n in (False, True) for m in (False, True)])
def test_confirmations_of_numbers_or_whole_messages_or_both_are_told(notices: Notices) -> None:
    machine, out = window(size=1), list[fx.Effect]()
    machine.confirmed_notices = notices
    machine.sent(6, 60, out)
    machine.large.add(2, 4)
    drain(out)
    machine.on_confirmed(7, 3, out, ConfirmFlag.EXPLICIT)
    machine.on_confirmed(7, 3, out, ConfirmFlag.EXPLICIT)
    both = ConfirmFlag.EXPLICIT | ConfirmFlag.WHOLE_MESSAGE
    by_number, whole = [Confirmed(0, 3, 7, ConfirmFlag.EXPLICIT)], [Confirmed(0, 1, 7, both)]
    assert events(drain(out)) == notices.numbers * by_number + notices.messages * whole
    machine.on_confirmed(8, 0, out)
    machine.on_confirmed(7, 5, out)
    told = [event for event in events(out) if isinstance(event, Confirmed) and event.receiver_reg_id == 7]
    expected = [Confirmed(4, 5, 7, ConfirmFlag.NONE)] * notices.numbers
    assert told == expected + [Confirmed(2, 5, 7, ConfirmFlag.WHOLE_MESSAGE)] * notices.messages


@pytest.mark.rows("P-020", "P-657")
def test_a_released_message_can_still_be_confirmed() -> None:
    """Stability alone let it go."""
    machine, out = window(size=1, start=5), list[fx.Effect]()
    machine.sent(3, 30, out)
    machine.on_acked(0, 5, 8, out)
    drain(out)
    machine.on_confirmed(7, 6, out)
    assert events(out) == [Confirmed(5, 6, 7, ConfirmFlag.NONE)]


def test_a_part_of_a_large_message_is_not_told_of_as_a_whole() -> None:
    machine, out = window(size=1), list[fx.Effect]()
    machine.stable_notices = machine.confirmed_notices = Notices(False, True)
    machine.sent(6, 60, out)
    machine.large.add(0, 4)
    machine.on_confirmed(7, 3, out)
    machine.on_acked(0, 1, 3, out)
    assert events(out) == []


@pytest.mark.rows("P-441")
def test_a_loss_at_a_store_is_reported_once_and_may_still_come() -> None:
    """T16: the store says that it is lost there; a later acknowledgement counts all the same."""
    machine, out = window(threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_nacked(1, 1, 3, out)
    machine.on_nacked(1, 1, 3, out)
    assert events(drain(out)) == [NotStable(1, 2, 1, NotStableFlag.STORE | NotStableFlag.LOSS)]
    assert machine.unacknowledged(0, 4) == [(0, 0, 4), (1, 0, 1), (1, 3, 4), (2, 0, 4)]
    machine.on_acked(1, 0, 2, out)
    assert machine.unacknowledged(0, 4) == [(0, 0, 4), (1, 3, 4), (2, 0, 4)]
    drain(out)
    machine.on_nacked(1, 1, 3, out)
    assert events(drain(out)) == [NotStable(1, 1, 1, NotStableFlag.STORE | NotStableFlag.LOSS)], "it is lost again"
    machine.on_acked(1, 1, 2, out)
    machine.on_stores(0b011, False, out)
    machine.forget_store(1, 0)
    assert machine.unacknowledged(0, 4) == [(0, 0, 4), (1, 0, 4)]


@pytest.mark.rows("P-324", "P-325", "P-438", "P-656", "P-659")
def test_an_unstable_message_is_given_up_in_time() -> None:
    """C-36: told what was not stable, reclaimed by force, in flight no more.

    What was settled and retained before it goes first, and not by force.
    """
    machine, out = window(size=1, threshold_bytes=10_000), list[fx.Effect]()
    for now in (10, 20, 30, 40):
        machine.now = now
        machine.sent(2, 20, out)
    machine.on_acked(0, 0, 3, out)
    drain(out)
    machine.give_up(9, out)
    machine.give_up(19, out)
    assert out == []
    machine.give_up(30, out)
    assert events(out) == [
        Reclaimed(0, 1, forced=False),
        NotStable(3, 5, -1, NotStableFlag.TIMEOUT),
        Reclaimed(2, 5, forced=True),
    ]
    assert fx.Release(6) in out
    assert (machine.unsettled_messages, machine.unsettled_bytes, machine.trail) == (2, 20, 6)


@pytest.mark.rows("P-319")
def test_young_messages_are_not_released_yet() -> None:
    """Age is one of the conditions, the size limit overrides it."""
    machine, out = window(size=1, age_ns=100, limit_bytes=200), list[fx.Effect]()
    machine.sent(1, 40, out)
    machine.on_acked(0, 0, 1, out)
    machine.now = 99
    machine.review(out)
    assert machine.trail == 0
    machine.now = 100
    machine.review(out)
    assert machine.trail == 1
    for _ in range(3):
        machine.sent(1, 40, out)
    machine.on_acked(0, 1, 4, drain(out))
    machine.sent(1, 40, out)
    assert events(out) == [Reclaimed(1, 1, forced=False)]


def test_messages_of_a_wiped_store_no_longer_count() -> None:
    machine, out = window(threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_acked(0, 0, 4, out)
    machine.forget_store(0, 2)
    machine.on_acked(1, 0, 4, drain(out))
    assert abstract(machine) == (0, 4, ((0, 2),), (((0, 2),), ((0, 4),), ()))


def test_confirmations_name_what_is_new() -> None:
    machine, out = window(size=1, threshold_bytes=10_000, unique_confirmations=2), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_acked(0, 0, 4, out)
    drain(out)
    machine.on_confirmed(7, 1, out)
    machine.on_confirmed(7, 1, out)
    machine.on_confirmed(8, 99, out)
    machine.on_confirmed(7, 2, out)
    assert events(drain(out)) == [
        Confirmed(0, 1, 7, ConfirmFlag.NONE),
        Confirmed(0, 1, 8, ConfirmFlag.UNIQUE),
        Confirmed(2, 3, 8, ConfirmFlag.NONE),
        Confirmed(2, 2, 7, ConfirmFlag.UNIQUE),
    ]
    assert machine.unsettled_messages == 1


@pytest.mark.rows("P-307", "P-349")
def test_messages_lost_to_a_receiver_are_neither_confirmed_nor_let_go() -> None:
    """0 to 2 were lost, 3 to 5 consumed; what is let go first was given up by force."""
    machine, out = window(size=1, unique_confirmations=1), list[fx.Effect]()
    machine.confirmed_notices = Notices(True, True)
    machine.sent(6, 60, out)
    machine.on_acked(0, 0, 6, out)
    drain(out)
    machine.on_confirmed(7, 5, out, first=3)
    assert events(drain(out)) == [
        Confirmed(3, 5, 7, ConfirmFlag.UNIQUE),
        Confirmed(3, 5, 7, ConfirmFlag.UNIQUE | ConfirmFlag.WHOLE_MESSAGE),
    ]
    assert (machine.trail, machine.unsettled_messages) == (0, 3)
    machine.give_up(machine.now, out)
    assert events(out) == [Reclaimed(0, 5, forced=True)]


@pytest.mark.rows("P-334", "P-349")
def test_a_message_that_lost_a_piece_is_not_confirmed_as_a_whole() -> None:
    """1 to 3 are one message, 2 was lost."""
    machine, out = window(size=1), list[fx.Effect]()
    machine.confirmed_notices = Notices(False, True)
    machine.sent(5, 50, out)
    machine.large.add(1, 3)
    drain(out)
    machine.on_confirmed(7, 1, out, first=0)
    machine.on_confirmed(7, 4, out, first=3)
    assert events(out) == [
        Confirmed(0, 0, 7, ConfirmFlag.WHOLE_MESSAGE),
        Confirmed(4, 4, 7, ConfirmFlag.WHOLE_MESSAGE),
    ]


def test_retained_messages_can_be_sent_again() -> None:
    machine, out = window(size=1, start=5), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.sent(4, 40, out)
    machine.on_acked(0, 5, 9, out)
    assert fx.Release(9) in out
    assert machine.retained(0, 99) == (9, 13)
    assert machine.retained(10, 11) == (10, 11)
    assert machine.retained(0, 5) == (9, 9)


def test_a_limit_below_the_threshold_is_a_limit() -> None:
    machine, out = window(size=1, threshold_bytes=1000, limit_bytes=50), list[fx.Effect]()
    machine.sent(1, 30, out)
    machine.on_acked(0, 0, 1, out)
    drain(out)
    machine.sent(1, 30, out)
    assert events(out) == [Reclaimed(0, 0, forced=False)]
    assert machine.unsettled_messages == 1


def test_a_message_settled_behind_a_forced_one_is_not_forced() -> None:
    machine, out = window(size=1, limit_bytes=100), list[fx.Effect]()
    machine.sent(1, 30, out)
    machine.sent(1, 30, out)
    machine.on_acked(0, 1, 2, out)
    drain(out)
    machine.sent(1, 60, out)
    assert events(out) == [Reclaimed(0, 0, forced=True), Reclaimed(1, 1, forced=False)]
