"""The source's window: what is in flight, stable and confirmed, and which copies may go.

Numbers are extended. A message is

* *stable* when the stores that hold it satisfy the rules of the groups (P-023, P-515). A stable message stays stable.
  The rules that depend on active stores are applied anew when a store falls silent or returns: then messages may become
  stable without an acknowledgement, because an absent store does not impede stability (P-521, P-523, P-524);
* *settled* when it is stable and `unique_confirmations` receivers have consumed it. Where no store acknowledges
  (`unruled`: none is configured, or all registered ones keep no messages) confirmations alone settle (P-321);
* *in flight* from sending until it is settled (P-307);
* *retained* until it is released. Settled copies older than `age_ns` go, oldest first, while more bytes are retained
  than the threshold (P-319..P-321, T11). Above the limit the oldest go, settled or not (P-323, T12), and so they do
  after the stability lifetime (P-324, P-438). A message forced out is not in flight either (C-36).

The unit is the run: the messages of one flush. Stability is counted by number, flight by message (P-313), bytes by run.
A message that was cut is in flight until its last piece is settled; a run returns its bytes only when all of it is. So
no limit is exceeded, at worst room is used late.

The application gets one event for each store, one for each group that an acknowledgement completed, and one when all
rules are met (P-331, P-517, U17): for numbers, for whole messages, for both or for none (U1).
"""

from collections import deque

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import events
from stablecast.core.protocol.effects import Effect, Notify, Release
from stablecast.core.protocol.messages import ANY_STORE
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.protocol.settings import Retention
from stablecast.core.source.confirmations import Confirmations
from stablecast.core.source.large_messages import LargeMessages

OVERHEAD_BYTES = 12
"""Bytes that a retained message costs beside its payload: its header (P-319: the threshold counts both)."""

_ACROSS = events.StableFlag.INTERGROUP | events.StableFlag.STABLE
_ALL_RULES = events.StableFlag.INTRAGROUP | _ACROSS


@attrs.define
class SentRun:
    """Messages of one flush, [first, stop), with their payload bytes and the time of sending (ns)."""

    first: int
    stop: int
    payload_bytes: int
    sent_at: int

    @property
    def size(self) -> int:
        """Bytes that the run costs while it is retained."""
        return self.payload_bytes + OVERHEAD_BYTES * (self.stop - self.first)


@attrs.frozen
class Notices:
    """The events that the application wants: for numbers, for whole messages."""

    numbers: bool = True
    messages: bool = False


def _sets(count: int) -> list[RangeSet]:
    return [RangeSet() for _ in range(count)]


@attrs.define
class StabilityWindow:
    """Sent messages from `trail` (oldest retained) to `next` (not yet sent).

    Attributes:
        now: Time of the current input (ns), set by the owner.
        kept: Runs that are settled and still retained; `runs` follow them.
        registered: Mask of the stores that are active and acknowledge.
        unruled: No store acknowledges.
        acked: By store, the numbers it acknowledged; `lost`: those it lost.
        grouped: By group, the numbers that are stable in it.
    """

    quorums: Quorums
    retention: Retention
    acked: list[RangeSet]
    next: int = 0
    trail: int = 0
    now: int = 0
    kept: deque[SentRun] = attrs.field(factory=deque)
    runs: deque[SentRun] = attrs.field(factory=deque)
    retained_bytes: int = 0
    unsettled_bytes: int = 0
    unsettled_messages: int = 0
    stable: RangeSet = attrs.field(factory=RangeSet)
    settled: RangeSet = attrs.field(factory=RangeSet)
    registered: int = 0
    unruled: bool = False
    lost: list[RangeSet] = attrs.field(default=attrs.Factory(lambda self: _sets(len(self.acked)), takes_self=True))
    grouped: list[RangeSet] = attrs.field(
        default=attrs.Factory(lambda self: _sets(len(self.quorums.members)), takes_self=True)
    )
    confirmations: Confirmations = attrs.field(
        default=attrs.Factory(lambda self: Confirmations(self.retention.unique_confirmations), takes_self=True)
    )
    large: LargeMessages = attrs.field(factory=LargeMessages)
    stable_notices: Notices = Notices()
    confirmed_notices: Notices = Notices()

    @classmethod
    def create(cls, quorums: Quorums, retention: Retention, stores: int) -> "StabilityWindow":
        """Return an empty window; without stores nothing needs to be stable."""
        return cls(quorums, retention, _sets(stores), unruled=stores == 0)

    def begin(self, number: int) -> None:
        """Start (again) at `number`, with nothing sent."""
        self.next = self.trail = number
        self.large.forget(number)  # A source without stores and late join begins again with each run.
        self.confirmations.begin(number)

    def sent(self, count: int, payload_bytes: int, out: list[Effect]) -> None:
        """Add a run that starts at `next`; its large messages are in `large` already."""
        run = SentRun(self.next, self.next + count, payload_bytes, self.now)
        self.runs.append(run)
        self.next += count
        self.unsettled_messages += self.large.count(run.first, run.stop)
        self.unsettled_bytes += payload_bytes
        self.retained_bytes += payload_bytes + OVERHEAD_BYTES * count
        if self.unruled:
            self._settle(out)
        elif self.kept or self.retained_bytes > self.retention.limit_bytes:
            self._release(out)

    def on_acked(self, store: int, start: int, stop: int, out: list[Effect]) -> None:
        """Count that store number `store` holds [start, stop)."""
        if stop <= self.trail:
            return
        # A peer may acknowledge numbers that were released or never sent.
        if start < self.trail or stop > self.next:
            start, stop = self.retained(start, stop)
        news = self.acked[store].add(start, stop)
        if not news:
            return
        # The store got a message after it had given it up, so it is not lost there any more.
        if self.lost[store].ranges:
            self.lost[store].remove(start, stop)
        if self.stable_notices.numbers:
            for first, end in news:
                out.append(Notify(events.Stable(first, end - 1, store, events.StableFlag.STORE)))
        for first, end in news:
            self._judge(first, end, store, out)
        self._settle(out)

    def on_nacked(self, store: int, start: int, stop: int, out: list[Effect]) -> None:
        """Count that a store lost [start, stop) for good (P-441, T16)."""
        for first, end in self.lost[store].add(max(start, self.trail), min(stop, self.next)):
            flags = events.NotStableFlag.STORE | events.NotStableFlag.LOSS
            out.append(Notify(events.NotStable(first, end - 1, store, flags)))

    def on_confirmed(
        self,
        receiver: int,
        number: int,
        out: list[Effect],
        flags: events.ConfirmFlag = events.ConfirmFlag.NONE,
        session_id: int = 0,
        first: int | None = None,
    ) -> None:
        """Count that a receiver consumed `first`..`number`, or without `first` everything up to `number`.

        The session id identifies the receiver if it has one, else the RegID does.
        """
        # A negated session id equals no RegID. It is the same at all stores, so a receiver counts once (P-329).
        who, confirmations = -session_id or receiver, self.confirmations
        start = confirmations.first if first is None else first
        news, enough = confirmations.on_confirmed(who, start, min(number + 1, self.next))
        if not news:
            return
        if self.confirmed_notices.numbers:
            _report_confirmed(news, enough, (receiver, session_id), flags, out)
        if self.confirmed_notices.messages:
            whole = self.large.whole(news, confirmations.confirmed[who].numbers)
            unique = self.large.whole(enough, confirmations.counted[-1]) if enough else []
            _report_confirmed(whole, unique, (receiver, session_id), flags | events.ConfirmFlag.WHOLE_MESSAGE, out)
        if enough:
            self._settle(out)

    def on_stores(self, registered: int, unruled: bool, out: list[Effect]) -> None:
        """Judge unstable messages again, because the set of present stores changed."""
        if (registered, unruled) == (self.registered, self.unruled):
            return
        self.registered, self.unruled = registered, unruled
        # An absent store does not impede stability, so messages may be stable now without an acknowledgement (P-521).
        for first, stop in self.stable.missing(self.trail, self.next):
            self._judge(first, stop, ANY_STORE, out)
        self._settle(out)

    def forget_store(self, store: int, stop: int) -> None:
        """Forget a store's acknowledgements from `stop` on, which the returned store does not hold."""
        self.acked[store].remove(stop, self.next)
        self.lost[store].remove(stop, self.next)

    def forget_acks(self) -> None:
        """Forget all acknowledgements of messages that are not stable yet; stores will repeat them."""
        for store in range(len(self.acked)):
            self.forget_store(store, self.trail)

    def give_up(self, before: int, out: list[Effect]) -> None:
        """Force out messages sent up to instant `before` (ns) and not settled yet (P-324, P-438)."""
        if not self.runs or self.runs[0].sent_at > before:
            return
        # Settled copies are older than all `runs`, and copies are released oldest first (P-319).
        self._reclaim(len(self.kept), out)
        first = self.trail
        for _ in range(self._expired(before)):
            self._force(self.runs[0])
            self._drop(self.runs.popleft())
        for low, high in self.stable.missing(first, self.trail):
            out.append(Notify(events.NotStable(low, high - 1, ANY_STORE, events.NotStableFlag.TIMEOUT)))
        out.append(Notify(events.Reclaimed(first, self.trail - 1, forced=True)))
        self._trim(out)
        if self.settled.ranges:
            self._keep_settled()

    def _expired(self, before: int) -> int:
        count = 0
        for index, run in enumerate(self.runs):
            if run.sent_at > before:
                break
            if self.settled.missing(run.first, run.stop):
                count = index + 1
        return count

    def review(self, out: list[Effect]) -> None:
        """Release what is old enough by now."""
        self._release(out)

    def retained(self, start: int, stop: int) -> tuple[int, int]:
        """Return the part of [start, stop) that is still retained, empty if none."""
        low, high = max(start, self.trail), min(stop, self.next)
        return (low, max(low, high))

    def unacknowledged(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Return (store, first, stop) for parts of [start, stop) that a present store neither acknowledged nor lost."""
        return [
            (store, low, high)
            for store, held in enumerate(self.acked)
            if self.registered >> store & 1
            for first, end in held.missing(start, stop)
            for low, high in self.lost[store].missing(first, end)
        ]

    def _judge(self, start: int, stop: int, store: int, out: list[Effect]) -> None:
        """Apply the rules to [start, stop), which a store acknowledged, or whose stores changed (`ANY_STORE`)."""
        quorums, registered = self.quorums, self.registered
        groups = range(len(self.grouped)) if store == ANY_STORE else (quorums.group_of(store),)
        for low, high, held in self._pieces(start, stop, store):
            met, stable = quorums.judge(held, registered)
            across = self.stable.add(low, high) if stable else []
            for group in groups:
                inside = self.grouped[group].add(low, high) if met[group] else []
                # One event instead of two where both rules are met at once, the usual case.
                if inside and inside == across:
                    self._report(across, store, _ALL_RULES, out)
                    across = []
                elif inside:
                    self._report(inside, store, events.StableFlag.INTRAGROUP, out)
            if across:
                self._report(across, store, _ACROSS, out)

    def _report(self, parts: list[tuple[int, int]], store: int, flags: events.StableFlag, out: list[Effect]) -> None:
        if self.stable_notices.numbers:
            for first, stop in parts:
                out.append(Notify(events.Stable(first, stop - 1, store, flags)))
        if self.stable_notices.messages and flags & events.StableFlag.STABLE:
            for first, stop in self.large.whole(parts, self.stable):
                out.append(
                    Notify(events.Stable(first, stop - 1, ANY_STORE, _ALL_RULES | events.StableFlag.WHOLE_MESSAGE))
                )

    def _pieces(self, start: int, stop: int, holder: int) -> list[tuple[int, int, int]]:
        """Return [start, stop), which `holder` holds, cut where its holders change: (first, stop, mask)."""
        whole, mask = [(start, stop)], 0
        for store, held in enumerate(self.acked):
            inside = whole if store == holder else held.within(start, stop)
            # A store mostly holds all of a piece or nothing, so no cut is needed.
            if inside == whole:
                mask |= 1 << store
            elif inside:
                return self._cut(start, stop)
        return [(start, stop, mask)]

    def _cut(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        pieces = [(start, stop, 0)]
        for store, held in enumerate(self.acked):
            pieces = [piece for low, high, mask in pieces for piece in _split(held, low, high, mask, 1 << store)]
        return pieces

    def _settle(self, out: list[Effect]) -> None:
        stable = [(self.trail, self.next)] if self.unruled else self.stable.within(self.trail, self.next)
        for start, stop in stable:
            for low, high in self.confirmations.enough(start, stop):
                for first, end in self.large.whole(self.settled.add(low, high), self.settled):
                    self.unsettled_messages -= self.large.count(first, end)
        self._release(out)

    def _release(self, out: list[Effect]) -> None:
        """Release what may go, oldest first, and what must go."""
        before = self.trail
        while True:
            if self.runs and self.settled.ranges:
                self._keep_settled()
            if self.kept:
                self._reclaim(0, out)
            if not self.runs or self.retained_bytes <= self.retention.limit_bytes:
                break
            first = self.trail
            self._force(self.runs[0])
            self._drop(self.runs.popleft())
            out.append(Notify(events.Reclaimed(first, self.trail - 1, forced=True)))
        if self.trail != before:
            self._trim(out)

    def _keep_settled(self) -> None:
        reached = self.settled.contiguous_from(self.kept[-1].stop if self.kept else self.trail)
        while self.runs and self.runs[0].stop <= reached:
            run = self.runs.popleft()
            self.unsettled_bytes -= run.payload_bytes
            self.kept.append(run)

    def _reclaim(self, runs: int, out: list[Effect]) -> None:
        """Drop the oldest `runs` settled runs, and those that the limits release."""
        first, rules = self.trail, self.retention
        limit, threshold, old = rules.limit_bytes, rules.threshold_bytes, self.now - rules.age_ns
        while self.kept and (
            runs > 0 or self.retained_bytes > limit or (self.retained_bytes > threshold and self.kept[0].sent_at <= old)
        ):
            runs -= 1
            self._drop(self.kept.popleft())
        if self.trail != first:
            out.append(Notify(events.Reclaimed(first, self.trail - 1, forced=False)))

    def _drop(self, run: SentRun) -> None:
        self.retained_bytes -= run.size
        self.trail = run.stop

    def _force(self, run: SentRun) -> None:
        # The run leaves unsettled, so it must not count as in flight any more (T12).
        whole = self.large.whole(self.settled.within(run.first, run.stop), self.settled)
        done = sum(self.large.count(low, high) for low, high in whole)
        self.unsettled_messages -= self.large.count(run.first, run.stop) - done
        self.unsettled_bytes -= run.payload_bytes

    def _trim(self, out: list[Effect]) -> None:
        trail = self.trail
        for held in (self.stable, self.settled, *self.acked, *self.lost, *self.grouped):
            if held.ranges and held.ranges[0][0] < trail:
                held.forget(trail)
        if self.large.firsts:
            self.large.forget(trail)
        out.append(Release(trail))


def _report_confirmed(
    parts: list[tuple[int, int]],
    unique: list[tuple[int, int]],
    receiver: tuple[int, int],
    flags: events.ConfirmFlag,
    out: list[Effect],
) -> None:
    """Report confirmed ranges, cut where enough receivers have confirmed. `receiver`: its RegID and session id."""
    enough = RangeSet(unique)
    for start, stop in parts:
        cut = [(part, flags | events.ConfirmFlag.UNIQUE) for part in enough.within(start, stop)]
        cut += [(part, flags) for part in enough.missing(start, stop)]
        for (first, end), flag in sorted(cut):
            out.append(Notify(events.Confirmed(first, end - 1, receiver[0], flag, receiver[1])))


def _split(held: RangeSet, low: int, high: int, mask: int, bit: int) -> list[tuple[int, int, int]]:
    """Return [low, high) cut where membership in `held` changes, with `bit` in the mask where it is held."""
    inside = held.within(low, high)
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
