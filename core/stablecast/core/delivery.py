"""The receiver's window: in what order runs of messages reach the application, and what it has consumed.

Numbers are extended. `next` is the next number to deliver; None until the session knows where to start. A run that
continues there goes straight through; one further ahead is held if it is near enough
(retransmit_message_caching_proximity) and dropped otherwise, to be recovered later. Two kinds of numbers are passed
over: those lost for good (reported, in order) and those the application consumed in an earlier session (silently).

Acknowledgements speak for contiguous prefixes only, whatever order the application consumes in (T4; formal design 7.7):
that is what makes the highest acknowledgement of all stores the right place to resume.
"""

from bisect import bisect_left

import attrs

from stablecast.core.effects import Deliver, Discard, Effect, Notify
from stablecast.core.events import UnrecoverableLoss
from stablecast.core.ranges import RangeSet


@attrs.define
class Held:
    """[first, stop) of run `token`, whose first message is number `origin`."""

    first: int
    stop: int
    token: int
    origin: int
    recovered: bool


@attrs.define
class DeliveryWindow:
    """Ordering and consumption of one session's messages."""

    proximity: int
    next: int | None = None
    high: int | None = None
    held: list[Held] = attrs.field(factory=list)
    have: RangeSet = attrs.field(factory=RangeSet)
    users: dict[int, int] = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    known: RangeSet = attrs.field(factory=RangeSet)
    consumed: RangeSet = attrs.field(factory=RangeSet)
    skipped: RangeSet = attrs.field(factory=RangeSet)
    acked: int = -1

    def begin(self, low: int, out: list[Effect]) -> None:
        """Deliver from `low` on; what is held below it goes."""
        self.next = low
        self.acked = low - 1
        for passed in (self.known, self.lost):
            passed.forget(low)
        while self.held and self.held[0].first < low:
            old = self.held.pop(0)
            self.have.remove(old.first, old.stop)
            if old.stop > low:
                self._keep(attrs.evolve(old, first=low))
            self._unuse(old.token, out)
        self._drain(out)

    def learn(self, high: int) -> None:
        """Numbers up to `high` exist."""
        self.high = high if self.high is None else max(self.high, high)

    def on_run(self, first: int, stop: int, token: int, recovered: bool, out: list[Effect]) -> None:
        """A run arrived: deliver, hold or discard it."""
        self.learn(stop - 1)
        if self.next is not None and first <= self.next < stop and not self.have and not self.known:
            out.append(Deliver(token, self.next - first, stop - self.next, self.next, recovered, True))
            self.next = stop
            if self.lost:
                self.lost.remove(first, stop)
                self._drain(out)
            return
        if not self._near(stop):
            out.append(Discard(token))
            return
        self.lost.remove(first, stop)
        start = first if self.next is None else max(first, self.next)
        parts = [part for low, high in self.known.missing(start, stop) for part in self.have.missing(low, high)]
        if not parts:
            out.append(Discard(token))
            return
        for low, high in parts:
            self._keep(Held(low, high, token, first, recovered))
        self._drain(out)

    def lose(self, start: int, stop: int, out: list[Effect]) -> None:
        """[start, stop) cannot be had from anybody."""
        self.lost.add(start, stop)
        self._drain(out)

    def know(self, start: int, stop: int, out: list[Effect]) -> None:
        """[start, stop) was consumed in an earlier session."""
        start = start if self.next is None else max(start, self.next)
        for low, high in self.have.missing(start, stop):
            self.known.add(low, high)
        self._drain(out)

    def missing(self) -> list[tuple[int, int]]:
        """What stands between `next` and the newest number, as far as it may be held when it comes."""
        if self.next is None or self.high is None:
            return []
        stop = min(self.high + 1, self.next + self.proximity)
        gaps = self.have.missing(self.next, stop)
        for passed in (self.lost, self.known):
            gaps = [gap for low, high in gaps for gap in passed.missing(low, high)]
        return gaps

    @property
    def unconsumed(self) -> int:
        """Messages delivered that the application is not done with, counted from the first such."""
        if self.next is None:
            return 0
        return self.next - self.skipped.contiguous_from(self.consumed.contiguous_from(self.acked + 1))

    def on_consumed(self, start: int, stop: int) -> None:
        """The application is done with [start, stop)."""
        self.consumed.add(max(start, self.acked + 1), stop)

    def acknowledge(self) -> int | None:
        """The number to acknowledge now: the end of the consumed prefix if it grew, else None.

        Lost messages do not hold the prefix up and are never its end (T3, P-349).
        """
        at = self.acked + 1
        end = None
        while True:
            stop = self.consumed.contiguous_from(at)
            if stop > at:
                end = stop - 1
            at = self.skipped.contiguous_from(stop)
            if at == stop:
                break
        if end is None:
            return None
        self.acked = end
        for done in (self.consumed, self.skipped):
            done.forget(end + 1)
        return end

    def _near(self, stop: int) -> bool:
        if self.next is not None:
            return stop - self.next <= self.proximity
        base = self.held[0].first if self.held else stop
        return stop - base <= self.proximity

    def _keep(self, part: Held) -> None:
        self.have.add(part.first, part.stop)
        self.users[part.token] = self.users.get(part.token, 0) + 1
        at = bisect_left(self.held, part.first, key=lambda held: held.first)
        self.held.insert(at, part)

    def _unuse(self, token: int, out: list[Effect]) -> None:
        if self._last_use(token):
            out.append(Discard(token))

    def _last_use(self, token: int) -> bool:
        left = self.users[token] - 1
        if left:
            self.users[token] = left
            return False
        del self.users[token]
        return True

    def _drain(self, out: list[Effect]) -> None:
        """Deliver or pass over what now continues at `next`."""
        while self.next is not None:
            if self.held and self.held[0].first == self.next:
                part = self.held.pop(0)
                self.have.remove(part.first, part.stop)
                skip, count = part.first - part.origin, part.stop - part.first
                done = self._last_use(part.token)
                out.append(Deliver(part.token, skip, count, part.first, part.recovered, done))
                self.next = part.stop
            elif self.next in self.known:
                stop = self.known.contiguous_from(self.next)
                self.known.remove(self.next, stop)
                self.on_consumed(self.next, stop)
                self.next = stop
            elif self.next in self.lost:
                stop = self.lost.contiguous_from(self.next)
                self.lost.remove(self.next, stop)
                self.skipped.add(self.next, stop)
                out.append(Notify(UnrecoverableLoss(self.next, stop - 1)))
                self.next = stop
            else:
                return

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        spans = [(held.first, held.stop) for held in self.held]
        assert spans == sorted(spans)
        assert all(first < stop for first, stop in spans)
        assert sum(stop - first for first, stop in spans) == self.have.total()
        assert self.next is None or all(first > self.next for first, _ in spans)
        assert sum(self.users.values()) == len(self.held)

    def abstract(self) -> tuple[int | None, int | None, tuple[tuple[int, int], ...], int]:
        """Next, newest known, held ranges, last acknowledged: what the recovery model sees."""
        return (self.next, self.high, tuple(self.have), self.acked)
