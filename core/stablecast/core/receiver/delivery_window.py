"""The receiver's window: the order of delivery, and what the application has consumed.

Numbers are extended. `next` is the first number that is neither delivered nor passed over; None until the session knows
where to start. Two kinds of numbers are passed over: those lost for good (reported), and those that the application
consumed in an earlier session (silently).

* **In order** a run that continues at `next` is delivered at once. A run further ahead is held if it is near enough
  (retransmit_message_caching_proximity), else dropped and recovered later. Losses are reported in their turn.
* **In arrival order** every run is delivered at once, less what was delivered before. Gaps stay open until they are
  filled or lost, and losses are reported at once. `have` has the numbers settled ahead of `next`.
* **Burst** (T30). When more messages are missing at once than the application wants to wait for, everything from `next`
  on is lost, with one event. Held parts of it are dropped, and late repairs are duplicates.

Acknowledgements cover contiguous prefixes only, whatever the order of consumption (T4; formal design 7.7). So the
highest acknowledgement of all stores is the right place to resume. `leap` is the documented rule beside it: it
acknowledges the highest number whatever is missing below (P-431).
"""

from bisect import bisect_left

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Deliver, Discard, Effect, Notify
from stablecast.core.protocol.events import UnrecoverableLoss

MAX_MISSED = 1_000
"""Separate ranges that were acknowledged and not confirmed, as a session remembers them; numbers below the oldest are
not confirmed again."""

MAX_GAPS = 10_000
"""Gaps that arrival order keeps open; a run that would open one more is dropped and recovered later."""


@attrs.define
class HeldRun:
    """[first, stop) of run `token`, whose first message is number `origin`."""

    first: int
    stop: int
    token: int
    origin: int
    recovered: bool


@attrs.define
class DeliveryWindow:
    """Ordering and consumption of one session's messages.

    Attributes:
        start: The number where delivery began.
        origin: The first number that was not sent by then. A recovered message from here on fills a gap of the stream
            (P-427).
        claimed: Numbers that the application acknowledged itself (P-346).
        missed: Numbers from `known_from` on that were lost for good, or are for other shares; they are never confirmed
            to a source (P-349).
        confirmed_before: Numbers that earlier sessions of the run confirmed to this life.
    """

    proximity: int
    in_order: bool = True
    next: int | None = None
    high: int | None = None
    start: int = 0
    origin: int = 0
    held: list[HeldRun] = attrs.field(factory=list)
    have: RangeSet = attrs.field(factory=RangeSet)
    users: dict[int, int] = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    known: RangeSet = attrs.field(factory=RangeSet)
    consumed: RangeSet = attrs.field(factory=RangeSet)
    claimed: RangeSet = attrs.field(factory=RangeSet)
    skipped: RangeSet = attrs.field(factory=RangeSet)
    acked: int = -1
    missed: RangeSet = attrs.field(factory=RangeSet)
    confirmed_before: RangeSet = attrs.field(factory=RangeSet)
    known_from: int = 0

    def begin(self, low: int, out: list[Effect]) -> None:
        """Deliver from `low` on; drop what is held below."""
        self.next = self.start = self.known_from = low
        # Messages that were sent before the start are history; their recovery is not OTR (P-427).
        self.origin = low if self.high is None else max(low, self.high + 1)
        self.acked = low - 1
        self.known.forget(low)
        self._drop_held(low, out)
        self._drain(out)

    def learn(self, high: int) -> None:
        """Record that numbers up to `high` exist."""
        self.high = high if self.high is None else max(self.high, high)

    def on_run(self, first: int, stop: int, token: int, recovered: bool, out: list[Effect]) -> None:
        """Deliver, hold or discard a run that arrived."""
        self.learn(stop - 1)
        at = self.next
        # The usual run continues the stream, and nothing is held: no set is touched.
        if at is not None and first <= at < stop and not self.have and not self.known:
            out.append(Deliver(token, at - first, stop - at, at, recovered, True, recovered and at >= self.origin))
            self.next = stop
            if self.lost:
                self.lost.remove(first, stop)
                self._drain(out)
            return
        # A run too far ahead would fill the memory. It is dropped and recovered later (U6).
        if not self._near(stop):
            out.append(Discard(token))
            return
        self.lost.remove(first, stop)
        start = first if at is None else max(first, at)
        parts = [part for low, high in self.known.missing(start, stop) for part in self.have.missing(low, high)]
        if not parts:
            out.append(Discard(token))
            return
        for low, high in parts:
            self._keep(HeldRun(low, high, token, first, recovered))
        self._drain(out)

    def lose(self, start: int, stop: int, out: list[Effect]) -> None:
        """Give up the missing parts of [start, stop). Only after `begin`."""
        for low, high in self._unsettled(start, stop):
            if self.in_order:
                self.lost.add(low, high)
            else:
                self.have.add(low, high)
                self._skip(low, high, False, out)
        self._drain(out)

    def burst(self, start: int, stop: int, out: list[Effect]) -> None:
        """Give up [start, stop), because too much of it is missing to wait (T30). Only after `begin`."""
        assert self.next is not None
        if not self.in_order:
            for low, high in self._unsettled(start, stop):
                self.have.add(low, high)
                self._skip(low, high, True, out)
        elif self.next < stop:
            self._drop_held(stop, out)
            known = self.known.within(self.next, stop)
            confirmed = [part for low, high in known for part in self.missed.missing(low, high)]
            self._skip(self.next, stop, True, out)
            # The application consumed these numbers in an earlier session, so they are not lost.
            for low, high in known:
                self.skipped.remove(low, high)
                self.on_consumed(low, high)
            for low, high in confirmed:
                self.missed.remove(low, high)
            for settled in (self.known, self.lost):
                settled.forget(stop)
            self.next = stop
        self._drain(out)

    def know(self, start: int, stop: int, out: list[Effect]) -> None:
        """Record that [start, stop) was consumed in an earlier session."""
        start = start if self.next is None else max(start, self.next)
        for low, high in self.have.missing(start, stop):
            self.known.add(low, high)
        self._drain(out)

    def missing(self) -> list[tuple[int, int]]:
        """Return the missing ranges from `next` on, as far as their messages could be held on arrival."""
        if self.next is None or self.high is None:
            return []
        stop = self.high + 1
        return self._unsettled(self.next, min(stop, self.next + self.proximity) if self.in_order else stop)

    def delivered(self, start: int, stop: int) -> bool:
        """Return whether [start, stop) was delivered, except for numbers passed over."""
        if self.next is None:
            return False
        return stop <= self.next or (not self.in_order and not self.have.missing(max(start, self.next), stop))

    @property
    def behind(self) -> bool:
        """True if something is missing."""
        return self.next is not None and self.high is not None and self.next <= self.high

    @property
    def unconsumed(self) -> int:
        """Delivered messages from the first unconsumed one on. Only after `begin`."""
        assert self.next is not None
        return self.next - self.skipped.contiguous_from(self.consumed.contiguous_from(self.acked + 1))

    def on_consumed(self, start: int, stop: int) -> None:
        """Record that the application finished [start, stop)."""
        self.consumed.add(start if start > self.acked else self.acked + 1, stop)

    def pass_over(self, start: int, stop: int) -> None:
        """Give up [start, stop), delivered or not: acknowledgements pass over it, confirmations leave it out."""
        self.skipped.add(max(start, self.acked + 1), stop)
        self.leave_out(start, stop)

    def leave_out(self, start: int, stop: int) -> None:
        """Confirm nothing of [start, stop), whether it is acknowledged or not."""
        self.missed.add(start, stop)
        # Numbers below the oldest remembered range may be in another one, so they are not confirmed again (P-349).
        # Those above the last acknowledgement are still to be confirmed for the first time.
        if len(self.missed) > MAX_MISSED:
            _, oldest = self.missed.ranges[len(self.missed) - MAX_MISSED - 1]
            self.known_from = max(self.known_from, min(oldest, self.acked + 1))
            self.missed.forget(self.known_from)

    def claim(self, first: int, number: int) -> None:
        """Record the application's acknowledgement up to `number` (P-347); it was handed `first` to `number` last.

        In order that is everything delivered. Otherwise messages below `first` may have come later and still wait for
        the application, or for other pieces of a message. Of these only consumed ones count.
        """
        assert self.next is not None
        if self.in_order:
            self.claimed.add(self.acked + 1, min(number + 1, self.next))
            return
        for start, stop in self.consumed.within(self.acked + 1, number + 1):
            self.claimed.add(start, stop)
        first = max(first, self.acked + 1)
        self.claimed.add(first, min(number + 1, self.next))
        for start, stop in self.have.within(max(first, self.next), number + 1):
            self.claimed.add(start, stop)

    def acknowledge(self, explicit: bool = False) -> int | None:
        """Return the end of the consumed (or claimed) prefix if it grew, else None."""
        return self._acknowledged(self.grown(explicit))

    def grown(self, explicit: bool = False) -> int | None:
        """Return the end of the consumed (or claimed) prefix if it is above the last acknowledgement, else None.

        Lost messages do not hold the prefix up and are never its end (T3, P-349).
        """
        done = self.claimed if explicit else self.consumed
        at = self.acked + 1
        end = None
        while True:
            stop = done.contiguous_from(at)
            if stop > at:
                end = stop - 1
            at = self.skipped.contiguous_from(stop)
            if at == stop:
                return end

    def leap(self, explicit: bool = False) -> int | None:
        """Return the highest number consumed (or claimed) if it grew, whatever is missing below it (P-431)."""
        return self._acknowledged((self.claimed if explicit else self.consumed).last)

    def confirmed(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts [first, stop) of an acknowledged range that were not lost, for confirmations."""
        return self.missed.missing(max(start, self.known_from), stop)

    def on_confirmed(self, start: int, stop: int) -> None:
        """Record that an earlier session confirmed [start, stop); the oldest of more than `MAX_MISSED` ranges goes."""
        self.confirmed_before.add(start, stop)
        if len(self.confirmed_before) > MAX_MISSED:
            self.confirmed_before.forget(self.confirmed_before.ranges[0][1])

    @property
    def confirmable(self) -> list[tuple[int, int]]:
        """The ranges that this session and those before it confirmed, or may confirm."""
        found = self.confirmed_before.copy()
        if self.next is not None and self.acked >= self.start:
            found.update(self.confirmed(self.start, self.acked + 1))
        return list(found)

    def _acknowledged(self, end: int | None) -> int | None:
        if end is not None:
            self.acked = end
            for done in (self.consumed, self.claimed, self.skipped):
                done.forget(end + 1)
        return end

    def _near(self, stop: int) -> bool:
        if self.next is None:
            # Before the start only nearness to the oldest held run bounds the memory.
            base = self.held[0].first if self.held else stop
            return stop - base <= self.proximity
        return stop - self.next <= self.proximity if self.in_order else len(self.have) < MAX_GAPS

    def _unsettled(self, start: int, stop: int) -> list[tuple[int, int]]:
        assert self.next is not None
        gaps = self.have.missing(max(start, self.next), stop)
        for passed in (self.lost, self.known):
            gaps = [gap for low, high in gaps for gap in passed.missing(low, high)]
        return gaps

    def _skip(self, start: int, stop: int, burst: bool, out: list[Effect]) -> None:
        self.pass_over(start, stop)
        out.append(Notify(UnrecoverableLoss(start, stop - 1, burst)))

    def _keep(self, part: HeldRun) -> None:
        self.have.add(part.first, part.stop)
        self.users[part.token] = self.users.get(part.token, 0) + 1
        at = bisect_left(self.held, part.first, key=lambda held: held.first)
        self.held.insert(at, part)

    def _drop_held(self, low: int, out: list[Effect]) -> None:
        """Drop what is held below `low`."""
        while self.held and self.held[0].first < low:
            old = self.held.pop(0)
            self.have.remove(old.first, old.stop)
            # The rest is kept first. Otherwise the last use of the token would end, and the run be discarded.
            if old.stop > low:
                self._keep(attrs.evolve(old, first=low))
            if self._last_use(old.token):
                out.append(Discard(old.token))

    def _last_use(self, token: int) -> bool:
        left = self.users[token] - 1
        if left:
            self.users[token] = left
            return False
        del self.users[token]
        return True

    def _drain(self, out: list[Effect]) -> None:
        """Deliver or pass over what continues at `next`; in arrival order deliver everything."""
        if self.next is None:
            return
        if self.held and not self.in_order:
            self._deliver_below(self.held[-1].stop, out)
        while True:
            at = self.next
            if at in self.have:
                self.next = self.have.contiguous_from(at)
                self.have.remove(at, self.next)
                self._deliver_below(self.next, out)
            elif at in self.known:
                self.next = self.known.contiguous_from(at)
                self.known.remove(at, self.next)
                self.on_consumed(at, self.next)
            elif at in self.lost:
                self.next = self.lost.contiguous_from(at)
                self.lost.remove(at, self.next)
                self._skip(at, self.next, False, out)
            else:
                return

    def _deliver_below(self, stop: int, out: list[Effect]) -> None:
        count = bisect_left(self.held, stop, key=lambda held: held.first)
        ready, self.held = self.held[:count], self.held[count:]
        for part in ready:
            skip, length = part.first - part.origin, part.stop - part.first
            otr = part.recovered and part.first >= self.origin
            done = self._last_use(part.token)
            out.append(Deliver(part.token, skip, length, part.first, part.recovered, done, otr))
