"""The refills of all sources of a store, and their budget.

Refill comes after everything else: live messages never wait for it, and it requests no more than its budget allows. A
few sources are refilled at a time, the others wait for their turn.
"""

from collections import deque

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store.deadline_queue import DeadlineQueue
from stablecast.core.store.refill import MAX_SLICE_MESSAGES, SourceRefill
from stablecast.core.store.repository import Repository

MAX_BUSY = 64
"""Sources that are refilled at one time."""

PACE_NS = 5 * MILLISECOND
"""Interval at which a refill that is under way sends requests, in ns."""

BURST_NS = SECOND // 4
"""Credit that an idle refill saves, in ns of its rates."""

FIRST_BYTES = 256
"""The assumed size of a message before the first one came."""


@attrs.define
class RefillBudget:
    """The limit of refill over all sources of a store, in messages and bytes a second; 0: no limit.

    Credit is in message-ns and byte-ns. Messages are charged when they come. A debt is paid before the next request.
    """

    rate: int
    byte_rate: int
    credit: int = 0
    byte_credit: int = 0
    filled_at: int | None = None
    messages: int = 0
    payload_bytes: int = 0

    def room(self, now: int) -> int:
        """Return how many more messages may be requested now."""
        self._fill(now)
        room = MAX_SLICE_MESSAGES
        if self.rate:
            room = min(room, self.credit // SECOND)
        if self.byte_rate:
            room = min(room, -(-self.byte_credit // (SECOND * self.size)))
        return max(0, room)

    @property
    def size(self) -> int:
        """The assumed bytes of payload of a message: each has the size of those that came so far."""
        return self.payload_bytes // self.messages + 1 if self.messages else FIRST_BYTES

    def charge(self, messages: int, payload_bytes: int) -> None:
        """Charge messages that came, which may leave a debt."""
        self.messages += messages
        self.payload_bytes += payload_bytes
        if self.rate:
            self.credit -= messages * SECOND
        if self.byte_rate:
            self.byte_credit -= payload_bytes * SECOND

    def _fill(self, now: int) -> None:
        passed = BURST_NS if self.filled_at is None else max(0, now - self.filled_at)
        self.credit = min(max(SECOND, self.rate * BURST_NS), self.credit + self.rate * passed)
        self.byte_credit = min(max(SECOND, self.byte_rate * BURST_NS), self.byte_credit + self.byte_rate * passed)
        self.filled_at = now


@attrs.define
class RefillService:
    """`busy` and `queued` have the RegIDs of sources that lack something, `later` those that wait for another round.

    `due`: when `run` has something to do (ns).
    """

    budget: RefillBudget
    busy: list[int] = attrs.field(factory=list)
    queued: deque[int] = attrs.field(factory=deque)
    later: DeadlineQueue = attrs.field(factory=DeadlineQueue)
    due: int | None = None

    @classmethod
    def create(cls, config: StoreConfig) -> "RefillService":
        return cls(RefillBudget(config.refill_rate, config.refill_byte_rate))

    def wake(self, reg_id: int, now: int) -> None:
        """Look at this source at the next opportunity."""
        if reg_id not in self.busy and reg_id not in self.queued:
            self.queued.append(reg_id)
        self.due = now if self.due is None else min(self.due, now)

    def on_gained(self, messages: int, payload_bytes: int, now: int) -> None:
        """Charge messages that came back, and go on if there is room for more."""
        self.budget.charge(messages, payload_bytes)
        if not self.budget.rate and not self.budget.byte_rate:
            self.due = now

    def run(self, repositories: dict[int, Repository], now: int, out: list[Effect]) -> None:
        """Send what is due, within the budget."""
        if self.due is None or now < self.due:
            return
        for reg_id in self.later.due(now):
            if reg_id not in self.busy and reg_id not in self.queued:
                self.queued.append(reg_id)
        while self.queued and len(self.busy) < MAX_BUSY:
            self.busy.append(self.queued.popleft())
        # One source after the other goes first, so that each gets its part of a small budget.
        turn = self.busy[1:] + self.busy[:1]
        self.busy = []
        there = [repositories[reg_id] for reg_id in turn if reg_id in repositories]
        refills = [(one, one.refill) for one in there if one.refill is not None]
        room, timeouts = self.budget.room(now), list[int]()
        for _, refill in refills:
            refill.handle_timeout(now, out)
            room -= refill.requests.outstanding
        for one, refill in refills:
            most = self._memory(one)
            free = 0 if now < refill.yields_until else most - refill.requests.outstanding - refill.unsynced.total()
            if free > 0 and refill.hungry:
                # Older messages come back. Until they are synced, no newer one that is can leave the memory for them.
                one.window.shrink(one.terms.size_limit // 2, now, out)
            room -= self._visit(refill, min(room, free), most, now, timeouts, out)
        self.due = min([time for time in (*timeouts, self.later.next()) if time is not None], default=None)
        if self.queued and self.due is None:
            self.due = now + PACE_NS

    def _memory(self, repository: Repository) -> int:
        """Return how many messages find room beside live ones, which get half of a limited memory."""
        terms = repository.window.terms
        if not terms.size_limit:
            return MAX_SLICE_MESSAGES
        return max(1, terms.size_limit // (2 * (self.budget.size + terms.overhead)))

    def _visit(self, one: SourceRefill, room: int, most: int, now: int, timeouts: list[int], out: list[Effect]) -> int:
        """Go on with one source; return how many more messages of it are under way."""
        before = one.requests.outstanding
        if room > 0:
            one.issue(room, most, now, out)
        due = one.next_timeout()
        if one.active:
            self.busy.append(one.reg_id)
            timeouts.append(now + PACE_NS if due is None or one.hungry else due)
        else:
            self.later.wake(one.reg_id, due)
        return one.requests.outstanding - before
