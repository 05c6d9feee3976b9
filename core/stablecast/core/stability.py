"""The source's window: what is in flight, what is stable and confirmed, and which copies may go.

Numbers are extended. A message is

* *stable* when the stores that hold it satisfy the group rule (P-023);
* *settled* when it is stable and `unique_confirmations` receivers have consumed it;
* *in flight* from sending until it is settled (P-307);
* *retained* until it is released: oldest first, settled, and more bytes retained than the threshold (P-319..P-321,
  T11). More than the limit forces the oldest out, settled or not (P-323, T12).

The unit is the run: the messages of one flush. Stability is counted message by message, bytes run by run: a run gives
its bytes back only when all of it is settled, so the byte limit is never exceeded, at worst used late.
"""

from collections import deque

import attrs

from stablecast.core.effects import Effect, Notify, Release
from stablecast.core.events import Confirmed, ConfirmFlag, Reclaimed, Stable, StableFlag
from stablecast.core.quorum import Group
from stablecast.core.ranges import RangeSet

OVERHEAD_BYTES = 12
"""What a retained message costs beside its payload: its header (P-319: the threshold counts payload and headers)."""

MAX_RECEIVERS = 10_000
"""Receivers whose confirmations a source keeps count of; later ones are not counted."""


@attrs.define
class Run:
    """Messages of one flush, [first, stop), and their payload bytes."""

    first: int
    stop: int
    payload_bytes: int

    @property
    def size(self) -> int:
        """Bytes that the run costs while it is retained."""
        return self.payload_bytes + OVERHEAD_BYTES * (self.stop - self.first)


@attrs.frozen
class Retention:
    """When copies go: above `threshold_bytes` if settled, above `limit_bytes` in any case."""

    threshold_bytes: int = 0
    limit_bytes: int = 25_165_824
    unique_confirmations: int = 0


@attrs.define
class StabilityWindow:
    """Sent messages from `trail` (oldest retained) to `next` (not yet sent).

    `kept` are the runs settled up to there but still retained, `runs` those behind them.
    """

    group: Group
    retention: Retention
    acked: list[RangeSet]
    next: int = 0
    trail: int = 0
    kept: deque[Run] = attrs.field(factory=deque)
    runs: deque[Run] = attrs.field(factory=deque)
    retained_bytes: int = 0
    unsettled_bytes: int = 0
    unsettled_messages: int = 0
    stable: RangeSet = attrs.field(factory=RangeSet)
    settled: RangeSet = attrs.field(factory=RangeSet)
    confirmed: dict[int, int] = attrs.field(factory=dict)

    def begin(self, number: int) -> None:
        """Start (again) at `number`, with nothing sent."""
        self.next = self.trail = number

    def sent(self, count: int, payload_bytes: int, out: list[Effect]) -> None:
        """Account for a run that starts at `next`."""
        run = Run(self.next, self.next + count, payload_bytes)
        self.runs.append(run)
        self.next += count
        self.unsettled_messages += count
        self.unsettled_bytes += payload_bytes
        self.retained_bytes += run.size
        self._release(out)

    def on_acked(self, store: int, start: int, stop: int, out: list[Effect]) -> None:
        """Store number `store` holds [start, stop)."""
        start, stop = max(start, self.trail), min(stop, self.next)
        news = self.acked[store].add(start, stop)
        if not news:
            return
        for first, end in news:
            out.append(Notify(Stable(first, end - 1, store, StableFlag.STORE)))
        for first, end in news:
            for low, high in self._newly_stable(first, end):
                group_flags = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE
                out.append(Notify(Stable(low, high - 1, store, group_flags)))
        self._settle(out)

    def on_confirmed(self, receiver: int, number: int, out: list[Effect]) -> None:
        """A receiver consumed everything up to `number`."""
        before = self.confirmed.get(receiver, self.trail - 1)
        number = min(number, self.next - 1)
        if number <= before or (receiver not in self.confirmed and len(self.confirmed) >= MAX_RECEIVERS):
            return
        unique_before = self._confirmed_stop()
        self.confirmed[receiver] = number
        unique = self.retention.unique_confirmations and self._confirmed_stop() > unique_before
        out.append(Notify(Confirmed(before + 1, number, receiver, ConfirmFlag.UNIQUE if unique else ConfirmFlag.NONE)))
        self._settle(out)

    def forget_store(self, store: int, stop: int) -> None:
        """The store came back and holds nothing from `stop` on: what it acknowledged there no longer counts."""
        self.acked[store].remove(stop, self.next)

    def retained(self, start: int, stop: int) -> tuple[int, int]:
        """The part of [start, stop) that is still retained, empty if none."""
        low, high = max(start, self.trail), min(stop, self.next)
        return (low, max(low, high))

    def _newly_stable(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Parts of [start, stop) that the group rule now calls stable and did not before."""
        pieces = [(start, stop, 0)]
        for store, held in enumerate(self.acked):
            pieces = [piece for low, high, mask in pieces for piece in _split(held, low, high, mask, 1 << store)]
        parts: list[tuple[int, int]] = []
        for low, high, mask in pieces:
            if self.group.stable(mask):
                parts += self.stable.add(low, high)
        return parts

    def _confirmed_stop(self) -> int:
        """The first number that fewer receivers than asked for have confirmed."""
        needed = self.retention.unique_confirmations
        if needed == 0:
            return self.next
        if len(self.confirmed) < needed:
            return self.trail
        return sorted(self.confirmed.values(), reverse=True)[needed - 1] + 1

    def _settle(self, out: list[Effect]) -> None:
        stop = self._confirmed_stop()
        for low, high in self.stable.within(self.trail, stop):
            for first, end in self.settled.add(low, high):
                self.unsettled_messages -= end - first
        self._release(out)

    def _release(self, out: list[Effect]) -> None:
        """Let go of what may go, oldest first, and of what must."""
        before = self.trail
        limit = self.retention.limit_bytes
        threshold = min(self.retention.threshold_bytes, limit)
        while True:
            self._keep_settled()
            first = self.trail
            if self.kept and self.retained_bytes > threshold:
                while self.kept and self.retained_bytes > threshold:
                    self._drop(self.kept.popleft())
                out.append(Notify(Reclaimed(first, self.trail - 1, forced=False)))
            elif self.runs and self.retained_bytes > limit:
                self._force(self.runs[0])
                self._drop(self.runs.popleft())
                out.append(Notify(Reclaimed(first, self.trail - 1, forced=True)))
            else:
                break
        if self.trail != before:
            self._trim(out)

    def _keep_settled(self) -> None:
        reached = self.settled.contiguous_from(self.kept[-1].stop if self.kept else self.trail)
        while self.runs and self.runs[0].stop <= reached:
            run = self.runs.popleft()
            self.unsettled_bytes -= run.payload_bytes
            self.kept.append(run)

    def _drop(self, run: Run) -> None:
        self.retained_bytes -= run.size
        self.trail = run.stop

    def _force(self, run: Run) -> None:
        """A run leaves although it is not settled: it no longer counts as in flight either (T12)."""
        done = sum(high - low for low, high in self.settled.within(run.first, run.stop))
        self.unsettled_messages -= run.stop - run.first - done
        self.unsettled_bytes -= run.payload_bytes

    def _trim(self, out: list[Effect]) -> None:
        """Nothing below the trail is remembered: windows are a few ranges, whatever was sent before."""
        for held in (self.stable, self.settled, *self.acked):
            held.forget(self.trail)
        out.append(Release(self.trail))

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        in_window = self.next - self.trail
        assert self.unsettled_messages == in_window - self.settled.total()
        assert self.retained_bytes == sum(run.size for run in (*self.kept, *self.runs))
        assert self.unsettled_bytes == sum(run.payload_bytes for run in self.runs)
        assert 0 <= self.unsettled_messages <= in_window

    def abstract(self) -> tuple[int, int, tuple[tuple[int, int], ...], tuple[tuple[tuple[int, int], ...], ...]]:
        """Trail, next, stable ranges and what each store acknowledged: what the stability model sees."""
        return (self.trail, self.next, tuple(self.stable), tuple(tuple(held) for held in self.acked))


def _split(held: RangeSet, low: int, high: int, mask: int, bit: int) -> list[tuple[int, int, int]]:
    """[low, high) cut where membership in `held` changes, with `bit` set in the mask where it is held."""
    inside = held.within(low, high)
    if inside == [(low, high)]:
        return [(low, high, mask | bit)]
    pieces: list[tuple[int, int, int]] = []
    at = low
    for first, stop in inside:
        if at < first:
            pieces.append((at, first, mask))
        pieces.append((first, stop, mask | bit))
        at = stop
    if at < high:
        pieces.append((at, high, mask))
    return pieces
