"""A twin of the source's window that thinks message by message, and the steps that both are put through."""

from typing import Any

import attrs
from hypothesis import strategies as st

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.protocol.settings import Retention
from stablecast.core.source.stability import OVERHEAD_BYTES, StabilityWindow
from tests.core.samples import events
from tests.support.invariants import check_invariants


@attrs.define
class Twin:
    """Message by message: who holds it, who confirmed it, when its run was sent."""

    quorums: Quorums
    retention: Retention
    registered: int
    unruled: bool = False
    runs: list[tuple[range, int, int]] = attrs.field(factory=list)
    acks: set[tuple[int, int]] = attrs.field(factory=set)
    confirmed: dict[int, set[int]] = attrs.field(factory=dict)
    stable: set[int] = attrs.field(factory=set)
    settled: set[int] = attrs.field(factory=set)
    message_of: dict[int, int] = attrs.field(factory=dict)
    trail: int = 0
    next: int = 0
    now: int = 0

    def sent(self, count: int, payload_bytes: int) -> None:
        self.runs.append((range(self.next, self.next + count), payload_bytes, self.now))
        self.next += count
        self.review()

    def cut(self, count: int, payload_bytes: int) -> None:
        """Send one message in `count` pieces, between two plain ones."""
        self.message_of |= dict.fromkeys(range(self.next + 1, self.next + 1 + count), self.next + 1)
        self.sent(count + 2, payload_bytes)

    def acked(self, store: int, start: int, stop: int) -> None:
        self.acks |= {(store, n) for n in range(max(start, self.trail), min(stop, self.next))}
        self.review()

    def forget(self, store: int, stop: int) -> None:
        self.acks -= {(store, n) for n in range(stop, self.next)}

    def confirm(self, receiver: int, first: int, number: int) -> None:
        self.confirmed.setdefault(receiver, set()).update(range(first, min(number + 1, self.next)))
        self.review()

    def stores(self, registered: int, unruled: bool) -> None:
        self.registered, self.unruled = registered, unruled
        self.review()

    def give_up(self, before: int) -> None:
        expired = [run for run in self.runs if run[2] <= before and not set(run[0]) <= self.settled]
        if expired:
            self.trail = expired[-1][0].stop
            self.runs = [run for run in self.runs if run[0].start >= self.trail]

    def review(self) -> None:
        for n in range(self.trail, self.next):
            held = sum(1 << store for store, number in self.acks if number == n)
            if self.quorums.stable(held, self.registered):
                self.stable.add(n)
        ready = range(self.trail, self.next) if self.unruled else self.stable
        wanted = self.retention.unique_confirmations
        self.settled |= {n for n in ready if sum(n in consumed for consumed in self.confirmed.values()) >= wanted}
        while self.runs:
            numbers, _, sent_at = self.runs[0]
            done = all(n in self.settled for n in numbers)
            old = sent_at + self.retention.age_ns <= self.now
            limit = self.retention.limit_bytes
            if self.retained <= (min(self.retention.threshold_bytes, limit) if done and old else limit):
                break
            self.runs.pop(0)
            self.trail = numbers.stop

    @property
    def retained(self) -> int:
        return sum(payload + OVERHEAD_BYTES * len(numbers) for numbers, payload, _ in self.runs)

    @property
    def in_flight(self) -> int:
        return len({self.message_of.get(n, n) for n in range(self.trail, self.next) if n not in self.settled})

    @property
    def bytes_in_flight(self) -> int:
        reached = next((n for n in range(self.trail, self.next) if n not in self.settled), self.next)
        return sum(payload for numbers, payload, _ in self.runs if numbers.stop > reached)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sent"), st.integers(1, 6), st.integers(0, 60)),
        st.tuples(st.just("cut"), st.integers(2, 6), st.integers(0, 60)),
        st.tuples(st.just("acked"), st.integers(0, 4), st.integers(0, 40), st.integers(0, 12)),
        st.tuples(st.just("acked"), st.integers(0, 4), st.integers(0, 40), st.integers(0, 12)),
        st.tuples(st.just("confirmed"), st.integers(0, 3), st.just(0) | st.integers(0, 40), st.integers(-1, 40)),
        st.tuples(st.just("forgot"), st.integers(0, 4), st.integers(0, 40)),
        st.tuples(st.just("stores"), st.integers(0, 31), st.booleans()),
        st.tuples(st.just("passed"), st.integers(1, 30)),
        st.tuples(st.just("gave up"), st.integers(0, 60)),
    ),
    max_size=30,
)


def play(step: Any, machine: StabilityWindow, twin: Twin, stores: int) -> list[Event]:
    out: list[fx.Effect] = []
    match step:
        case ("sent", count, payload):
            machine.sent(count, payload, out)
            twin.sent(count, payload)
        case ("cut", count, payload):
            machine.large.add(machine.next + 1, machine.next + count)
            machine.sent(count + 2, payload, out)
            twin.cut(count, payload)
        case ("acked", store, start, count):
            machine.on_acked(store % stores, start, start + count, out)
            twin.acked(store % stores, start, start + count)
        case ("confirmed", receiver, first, number):
            machine.on_confirmed(receiver, number, out, first=first or None)
            twin.confirm(receiver, first, number)
        case ("stores", mask, unruled):
            machine.on_stores(mask & (1 << stores) - 1, unruled, out)
            twin.stores(mask & (1 << stores) - 1, unruled)
        case ("passed", span):
            machine.now = twin.now = twin.now + span
            machine.review(out)
            twin.review()
        case ("gave up", age):
            machine.give_up(machine.now - age, out)
            twin.give_up(twin.now - age)
        case (_, store, stop):
            machine.forget_store(store % stores, max(stop, machine.trail))
            twin.forget(store % stores, max(stop, twin.trail))
    check_invariants(machine)
    return events(out)
