"""Reading a range of one source from its stores: which numbers to request where next, what is missing, where it ends.

A reader is no client of a store. It asks each store what it holds (`stored_contents`), and then requests numbers as a
receiver does, each from a store that holds it. The numbers are settled in order: each is delivered once, or belongs to
a hole, whose reason is named exactly.

* A request that makes no progress for the retry time goes to another store that holds the numbers. The store that did
  not serve them is asked what it still holds.
* A number that no store holds is a hole only if every store that can be reached was asked again since. If a store is
  away, the reader waits for it as long as its patience allows.
* Numbers on the way and numbers that wait for the application share one window.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import Address, Incarnation
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES


class HoleReason(StrEnum):
    """The reason why numbers are missing."""

    NEVER_STORED = "never stored"
    LET_GO = "let go by a limit"
    AWAY = "on a store that is away"
    UNSTABLE = "at too few stores to be stable"


@attrs.frozen
class Hole:
    """The numbers [first, stop) are missing."""

    first: int
    stop: int
    reason: HoleReason


@attrs.frozen
class Holding:
    """One store holds these numbers of the source.

    Attributes:
        incarnation: The life that the store counts as current; requests name it.
        held: The synced numbers, complete from `first` up to `reach`.
        stop: One above the newest number that the store has.
        trail: Lower numbers went by a limit.
        asked_at: When the question was asked, in ns.
        since: The first number of the current life: lower ones come from nobody any more.
    """

    reg_id: int
    incarnation: Incarnation
    held: RangeSet
    first: int
    reach: int
    stop: int
    trail: int
    asked_at: int
    since: int = 0


@attrs.define
class ReadRequest:
    """[start, stop) was requested from `store`; its `deadline` (ns) moves with each message that comes."""

    start: int
    stop: int
    store: Address
    holding: Holding
    deadline: int


@attrs.define
class RangeProgress:
    """The progress of one source. Numbers are extended, times in ns.

    Attributes:
        cursor: The first number that is not settled.
        stop: The end of the range, exclusive; it may rise.
        window: Numbers that may be on the way or wait to be settled.
        retry_ns: Time without progress after which a request goes to another store.
        patience_ns: Time for which stores that are away are waited for.
        grows: Numbers that no store has may still come, for they were sent just now. They are waited for as well.
        away: Stores that cannot be reached.
        arrived: Numbers from the cursor on that came.
        failed: Numbers that a store did not serve in time, by store.
        fruitless: How often a request for the number at the cursor made no progress in time.
        missing_since: When the number at the cursor was found to be missing, None: it is not.
    """

    cursor: int
    stop: int
    window: int
    retry_ns: int
    patience_ns: int
    grows: bool = False
    holdings: dict[Address, Holding] = attrs.field(factory=dict)
    away: dict[Address, None] = attrs.field(factory=dict)
    arrived: RangeSet = attrs.field(factory=RangeSet)
    asked: list[ReadRequest] = attrs.field(factory=list)
    failed: dict[Address, RangeSet] = attrs.field(factory=dict)
    fruitless: int = 0
    missing_since: int | None = None
    turn: int = 0

    @property
    def done(self) -> bool:
        """Return whether every number of the range is settled."""
        return self.cursor >= self.stop

    @property
    def outstanding(self) -> int:
        """Return the count of numbers that are on the way."""
        return sum(request.stop - request.start for request in self.asked)

    # Facts about stores.

    def learn(self, store: Address, holding: Holding) -> None:
        """Replace what is known of a store; it is not away."""
        before = self.holdings.get(store)
        self.holdings[store] = holding
        self.away.pop(store, None)
        self.failed.pop(store, None)
        if before is not None and before.incarnation != holding.incarnation:
            self._withdraw(store)  # It serves nothing for a life that ended.

    def lose(self, store: Address) -> None:
        """Note that a store cannot be reached; others are asked for what it was asked for."""
        self.away[store] = None
        self._withdraw(store)

    def forget(self, store: Address) -> None:
        """Note that a store answered, and holds nothing of the source."""
        self.away.pop(store, None)
        self.holdings.pop(store, None)
        self._withdraw(store)

    def stale(self) -> list[Address]:
        """Return the stores to ask what they hold.

        A store whose ranges did not fit into one answer is asked again when half of them are settled.
        """
        end = min(self.stop, self.cursor + self.window)
        return [
            store
            for store, holding in self.holdings.items()
            if store not in self.away
            and (
                self._unsure(store)
                or (holding.reach < min(end, holding.stop) and 2 * self.cursor >= holding.first + holding.reach)
            )
        ]

    def _unsure(self, store: Address) -> bool:
        """Return whether a store must be asked before the number at the cursor can count as missing."""
        holding, since = self.holdings[store], self.missing_since
        return (
            store in self.failed
            or holding.reach <= self.cursor < holding.stop
            or (since is not None and holding.asked_at <= since)
        )

    # Messages.

    def accept(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Note that [first, stop) came; return the parts that were requested and are new."""
        new = self.arrived.missing(max(first, self.cursor), min(stop, self.stop))
        wanted = [part for low, high in new for part in self._requested(low, high)]
        for low, high in wanted:
            self.arrived.add(low, high)
        return wanted

    def progress(self, first: int, stop: int, now: int) -> None:
        """Remove [first, stop) from the requests, and give the others of the same answers more time."""
        kept: list[ReadRequest] = []
        for request in self.asked:
            if request.stop <= first or stop <= request.start:
                kept.append(request)
                continue
            for low, high in ((request.start, min(first, request.stop)), (max(stop, request.start), request.stop)):
                if low < high:
                    kept.append(attrs.evolve(request, start=low, stop=high, deadline=now + self.retry_ns))
        self.asked = kept

    def settle(self, now: int) -> list[tuple[int, int] | Hole]:
        """Advance the cursor; return the ranges that came and the holes, in the order of their numbers."""
        steps: list[tuple[int, int] | Hole] = []
        while self.cursor < self.stop:
            reached = min(self.arrived.contiguous_from(self.cursor), self.stop)
            if reached > self.cursor:
                steps.append((self.cursor, reached))
                self._pass(reached)
                continue
            hole = self._hole(now)
            if hole is None:
                break
            steps.append(hole)
            self._pass(hole.stop)
        return steps

    # Requests.

    def issue(self, now: int, waiting: int = 0, most: int = MAX_REQUEST_MESSAGES) -> list[ReadRequest]:
        """Return the requests to send now.

        Args:
            now: In ns.
            waiting: Numbers that were settled and that the application has not consumed.
            most: Numbers in one request.
        """
        room = self.window - waiting - self.outstanding - self.arrived.total()
        issued: list[ReadRequest] = []
        if room <= 0 or (waiting and room < min(most, self.window // 4)):
            return issued
        for low, high in self._wanted():
            at = low
            while at < high and room > 0:
                request = self._request(at, min(high, at + room, at + most), now)
                if request is None:
                    at = self._next_held(at, high)
                    continue
                issued.append(request)
                self.asked.append(request)
                room -= request.stop - request.start
                at = request.stop
        return issued

    def handle_timeout(self, now: int) -> None:
        """Take requests without progress back from their stores."""
        for request in [request for request in self.asked if request.deadline <= now]:
            self.asked.remove(request)
            self.fruitless += request.start <= self.cursor < request.stop
            self.failed.setdefault(request.store, RangeSet()).add(request.start, request.stop)

    def next(self) -> int | None:
        """Return when something is due (ns), or None."""
        due = [request.deadline for request in self.asked]
        if self.missing_since is not None and (self.away or self.grows):
            due.append(self.missing_since + self.patience_ns)
        return min(due, default=None)

    # Rules.

    def _wanted(self) -> list[tuple[int, int]]:
        """Return the numbers in the window that neither came nor were requested."""
        taken = self.arrived.copy()
        for request in self.asked:
            taken.add(request.start, request.stop)
        return taken.missing(self.cursor, min(self.stop, self.cursor + self.window))

    def _request(self, start: int, stop: int, now: int) -> ReadRequest | None:
        holders = [store for store in self.holdings if self._holds(store, start)]
        if not holders:
            return None
        self.turn += 1
        store = holders[self.turn % len(holders)]
        holding = self.holdings[store]
        stop = min(stop, holding.held.contiguous_from(start))
        failed = self.failed.get(store)
        if failed is not None:
            stop = failed.missing(start, stop)[0][1]
        return ReadRequest(start, stop, store, holding, now + self.retry_ns)

    def _holds(self, store: Address, number: int) -> bool:
        """Return whether a request for the number may go to the store."""
        failed = self.failed.get(store)
        return (
            store not in self.away and number in self.holdings[store].held and (failed is None or number not in failed)
        )

    def _next_held(self, number: int, stop: int) -> int:
        """Return the first number above, up to `stop`, that may be requested from a store."""
        for store in self.holdings:
            if store in self.away:
                continue
            for low, high in self.holdings[store].held.within(number, stop):
                failed = self.failed.get(store)
                parts = [(low, high)] if failed is None else failed.missing(low, high)
                if parts:
                    stop = min(stop, parts[0][0])
                    break
        return stop

    def _requested(self, low: int, high: int) -> Iterable[tuple[int, int]]:
        asked = RangeSet()
        for request in self.asked:
            asked.add(max(low, request.start), min(high, request.stop))
        return asked.ranges

    def _hole(self, now: int) -> Hole | None:
        """Return the hole at the cursor; None while a store may still deliver the number."""
        at = self.cursor
        asked = any(request.start <= at < request.stop for request in self.asked)
        if not asked and self.fruitless * self.retry_ns >= self.patience_ns and self._may_come(at):
            return Hole(at, at + 1, HoleReason.AWAY)  # Its stores say that they hold it, and never send it.
        if asked or self._may_come(at):
            self.missing_since = None
            return None
        if self.missing_since is None:
            self.missing_since = now
        reachable = [store for store in self.holdings if store not in self.away]
        if any(self._unsure(store) for store in reachable):
            return None
        trail = max((holding.trail for holding in self.holdings.values()), default=at)
        grows = self.grows and trail <= at
        over = min((self.holdings[store].since for store in reachable), default=0)  # By what every store knows.
        if (self.away or (grows and over <= at)) and now - self.missing_since < self.patience_ns:
            return None
        known = [self.holdings[store].reach for store in reachable if self.holdings[store].reach > at]
        stop = self._next_held(at, min([self.stop, *known]))
        if grows and at < over:
            stop = min(stop, over)
        if self.away:
            return Hole(at, stop, HoleReason.AWAY)
        if at < trail:
            return Hole(at, min(stop, trail), HoleReason.LET_GO)
        return Hole(at, stop, HoleReason.NEVER_STORED)

    def _may_come(self, number: int) -> bool:
        return any(store not in self.away and number in holding.held for store, holding in self.holdings.items())

    def _withdraw(self, store: Address) -> None:
        self.asked = [request for request in self.asked if request.store != store]

    def _pass(self, number: int) -> None:
        self.cursor = number
        self.arrived.forget(number)
        self.fruitless = 0
        self.missing_since = None


@attrs.frozen
class StoredNumbers:
    """The numbers of a source at one store: it holds `held`, and let go those below `trail`."""

    held: RangeSet = attrs.field(factory=RangeSet)
    trail: int = 0


def stable_numbers(
    stores: Sequence[StoredNumbers], first: int, quorums: Quorums, active: int, silent: int
) -> tuple[RangeSet, int]:
    """Return the numbers from `first` on that are stable, and the first one of which that is in doubt.

    Args:
        stores: What each store has, in the order of the bits of `quorums`. One that let a number go had it.
        first: A number; lower ones are not judged.
        quorums: The rule of the source over its configured stores.
        active: The mask of the stores at which the source is registered, as far as is known.
        silent: The mask of the configured stores of which nothing is known.

    A number is in doubt if a store holds it and too few had it, or if the silent stores alone could make it stable.
    Other numbers that no store holds are not: a reader names them as missing.

    >>> from stablecast.core.protocol.quorum import GroupRules
    >>> three = Quorums.of(GroupRules((3,)), [0, 0, 0])
    >>> some = [StoredNumbers(RangeSet([(0, 9)])), StoredNumbers(RangeSet([(0, 4), (6, 8)]))]
    >>> stable_numbers(some, 0, three, 0b11, 0b100)
    (RangeSet(ranges=[(0, 4), (6, 8)]), 4)
    """
    edges = [(edge, bit) for bit, store in enumerate(stores) for pair in store.held for edge in pair]
    trails = sorted((store.trail, bit) for bit, store in enumerate(stores))
    stable, doubt, at, holding = RangeSet(), None, first, 0
    open_to = quorums.stable(silent, active | silent)
    for number, bit in sorted([*edges, *((trail, -1) for trail, _ in trails)]):
        if number > at:
            had = holding | sum(1 << one for trail, one in trails if trail > at)
            if quorums.stable(had, active):
                stable.add(at, number)
            elif doubt is None and (holding or open_to):
                doubt = at
            at = number
        if bit >= 0:
            holding ^= 1 << bit
    return stable, at if doubt is None else doubt
