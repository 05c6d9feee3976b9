"""The source's window against a twin that thinks message by message."""

from collections import Counter
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core import effects as fx
from stablecast.core import stability
from stablecast.core.events import Confirmed, ConfirmFlag, Reclaimed, Stable, StableFlag
from stablecast.core.quorum import Group, Intragroup
from stablecast.core.ranges import RangeSet
from stablecast.core.stability import OVERHEAD_BYTES, Retention, StabilityWindow
from tests.core.samples import drain, events

GROUP_FLAGS = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE


def window(size: int = 3, start: int = 0, **retention: Any) -> StabilityWindow:
    machine = StabilityWindow(Group(size), Retention(**retention), [RangeSet() for _ in range(size)])
    machine.begin(start)
    return machine


@attrs.define
class Twin:
    """Message by message: who holds it, who confirmed it."""

    group: Group
    retention: Retention
    runs: list[tuple[range, int]] = attrs.field(factory=list)
    acks: set[tuple[int, int]] = attrs.field(factory=set)
    confirmed: dict[int, int] = attrs.field(factory=dict)
    stable: set[int] = attrs.field(factory=set)
    settled: set[int] = attrs.field(factory=set)
    trail: int = 0
    next: int = 0

    def sent(self, count: int, payload_bytes: int) -> None:
        self.runs.append((range(self.next, self.next + count), payload_bytes))
        self.next += count
        self.review()

    def acked(self, store: int, start: int, stop: int) -> None:
        self.acks |= {(store, n) for n in range(max(start, self.trail), min(stop, self.next))}
        self.review()

    def forget(self, store: int, stop: int) -> None:
        self.acks -= {(store, n) for n in range(stop, self.next)}

    def confirm(self, receiver: int, number: int) -> None:
        self.confirmed[receiver] = max(self.confirmed.get(receiver, -1), min(number, self.next - 1))
        self.review()

    def review(self) -> None:
        holders = Counter(n for _, n in self.acks)
        self.stable |= {n for n in range(self.trail, self.next) if holders[n] >= self.group.needed}
        wanted = self.retention.unique_confirmations
        self.settled |= {n for n in self.stable if sum(n <= upto for upto in self.confirmed.values()) >= wanted}
        while self.runs:
            numbers, _ = self.runs[0]
            done = all(n in self.settled for n in numbers)
            limit = self.retention.limit_bytes
            if self.retained <= (min(self.retention.threshold_bytes, limit) if done else limit):
                break
            self.runs.pop(0)
            self.trail = numbers.stop

    @property
    def retained(self) -> int:
        return sum(payload + OVERHEAD_BYTES * len(numbers) for numbers, payload in self.runs)

    @property
    def in_flight(self) -> int:
        return sum(n not in self.settled for n in range(self.trail, self.next))

    @property
    def bytes_in_flight(self) -> int:
        reached = next((n for n in range(self.trail, self.next) if n not in self.settled), self.next)
        return sum(payload for numbers, payload in self.runs if numbers.stop > reached)


def numbers(ranges: RangeSet) -> set[int]:
    return {n for first, stop in ranges for n in range(first, stop)}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sent"), st.integers(1, 6), st.integers(0, 60)),
        st.tuples(st.just("acked"), st.integers(0, 4), st.integers(0, 40), st.integers(0, 12)),
        st.tuples(st.just("acked"), st.integers(0, 4), st.integers(0, 40), st.integers(0, 12)),
        st.tuples(st.just("confirmed"), st.integers(0, 3), st.integers(-1, 40)),
        st.tuples(st.just("forgot"), st.integers(0, 4), st.integers(0, 40)),
    ),
    max_size=30,
)


@given(
    size=st.integers(1, 5),
    rule=st.sampled_from(Intragroup),
    threshold=st.sampled_from([0, 100, 1000]),
    limit=st.sampled_from([50, 300, 100_000]),
    unique=st.integers(0, 3),
    steps=STEPS,
)
@settings(max_examples=100)
def test_the_window_agrees_with_its_twin(
    size: int, rule: Intragroup, threshold: int, limit: int, unique: int, steps: list[Any]
) -> None:
    group, retention = Group(size, rule), Retention(threshold, limit, unique)
    machine = StabilityWindow(group, retention, [RangeSet() for _ in range(size)])
    twin, out, reported = Twin(group, retention), list[fx.Effect](), Counter[int]()
    for step in steps:
        match step:
            case ("sent", count, payload):
                machine.sent(count, payload, out)
                twin.sent(count, payload)
            case ("acked", store, start, count):
                machine.on_acked(store % size, start, start + count, out)
                twin.acked(store % size, start, start + count)
            case ("confirmed", receiver, number):
                machine.on_confirmed(receiver, number, out)
                twin.confirm(receiver, number)
            case (_, store, stop):
                machine.forget_store(store % size, max(stop, machine.trail))
                twin.forget(store % size, max(stop, twin.trail))
        machine.check_invariants()
        told = events(drain(out))
        reported.update(
            n for e in told if isinstance(e, Stable) and e.flags == GROUP_FLAGS for n in range(e.first, e.last + 1)
        )
        assert numbers(machine.stable) == {n for n in twin.stable if n >= twin.trail}
        assert set(reported) == twin.stable
        assert set(reported.values()) <= {1}
        assert (machine.trail, machine.next) == (twin.trail, twin.next)
        assert (machine.unsettled_messages, machine.unsettled_bytes) == (twin.in_flight, twin.bytes_in_flight)
        assert machine.retained_bytes == twin.retained


def test_every_store_is_told_of_and_the_group_once() -> None:
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


def test_an_ack_that_is_news_in_part_makes_that_part_stable() -> None:
    machine, out = window(threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_acked(0, 2, 4, drain(out))
    machine.on_acked(1, 0, 4, drain(out))
    assert list(machine.stable) == [(2, 4)]


def test_what_a_wiped_store_held_no_longer_counts() -> None:
    machine, out = window(threshold_bytes=10_000), list[fx.Effect]()
    machine.sent(4, 40, out)
    machine.on_acked(0, 0, 4, out)
    machine.forget_store(0, 2)
    machine.on_acked(1, 0, 4, drain(out))
    assert machine.abstract() == (0, 4, ((0, 2),), (((0, 2),), ((0, 4),), ()))


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
        Confirmed(0, 3, 8, ConfirmFlag.UNIQUE),
        Confirmed(2, 2, 7, ConfirmFlag.UNIQUE),
    ]
    assert machine.unsettled_messages == 1


def test_receivers_beyond_the_bound_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "MAX_RECEIVERS", 1)
    machine, out = window(size=1, unique_confirmations=1), list[fx.Effect]()
    machine.sent(4, 40, out)
    for receiver in (7, 8):
        machine.on_confirmed(receiver, 1, out)
    assert [event for event in events(out) if isinstance(event, Confirmed)] == [Confirmed(0, 1, 7, ConfirmFlag.UNIQUE)]


def test_what_is_retained_can_be_sent_again() -> None:
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


def test_what_was_settled_behind_a_forced_message_is_not_called_forced() -> None:
    machine, out = window(size=1, limit_bytes=100), list[fx.Effect]()
    machine.sent(1, 30, out)
    machine.sent(1, 30, out)
    machine.on_acked(0, 1, 2, out)
    drain(out)
    machine.sent(1, 60, out)
    assert events(out) == [Reclaimed(0, 0, forced=True), Reclaimed(1, 1, forced=False)]
