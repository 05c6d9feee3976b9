"""The messages of one source that a store keeps, in memory and on disk, and the release of excess ones.

    trail ....... mem_trail ....... lead          (P-911)
      on disk only      in memory

* **On disk** (P-103) a message is held in memory first, and written at once or after the write delay (P-576, P-579).
  Beyond the size threshold or the age the oldest leave the memory once they are synced; on disk they remain (P-116).
  Beyond the disk limit the oldest go for good (P-118).
* **In memory** (P-102), and with acknowledgement on reception (P-577), nothing is written and received messages count
  as synced. That promise is weaker: a store that ends forgets them. Beyond threshold or age the oldest go.
* The size limit refuses new messages (C-31). In a repository on disk only unsynced messages count, because the others
  can leave the memory (P-115, P-117).
* A receiver-paced repository never releases by size or age; its owner tracks consumption (P-012).
"""

from collections import deque

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects
from stablecast.core.protocol.effects import CacheMessages, Effect, PersistMessages
from stablecast.core.protocol.inputs import Data
from stablecast.core.store.extents import OVERHEAD_BYTES, Extent, Extents
from stablecast.core.store.retention_terms import MAX_NUMBERS, Terms
from stablecast.core.store.sync_tickets import SyncTickets


@attrs.define
class DelayedWrite:
    """[first, stop) is to be written at `due` (ns)."""

    due: int
    first: int
    stop: int


@attrs.define
class MessageWindow:
    """The kept messages of one source. `trail` is the oldest number that may be kept, `lead` the newest.

    `released`: the number below which a rule released messages for good. A store that never had older messages has a
    higher trail, which a refill lowers.
    """

    reg_id: int
    terms: Terms
    trail: int = 0
    released: int = 0
    held: RangeSet = attrs.field(factory=RangeSet)
    synced: RangeSet = attrs.field(factory=RangeSet)
    memory: Extents = attrs.field(factory=Extents)
    disk: Extents = attrs.field(factory=Extents)
    delayed: deque[DelayedWrite] = attrs.field(factory=deque)

    @property
    def lead(self) -> int:
        """The newest number kept; one below the trail when there is none."""
        ranges = self.held.ranges
        return ranges[-1][1] - 1 if ranges else self.trail - 1

    @property
    def kept(self) -> Extents:
        """All kept messages: those on disk or on their way there, or those in memory."""
        return self.disk if self.terms.written else self.memory

    @property
    def mem_trail(self) -> int:
        """The oldest number in memory; one above the lead when there is none."""
        return self.memory.oldest.first if self.memory else self.lead + 1

    def begin(self, number: int) -> None:
        """Begin without a message at the number with which a life resumes."""
        # A paced store did not release what it never had: other stores may have it. Half of the span is left for what
        # comes, because a number too far above the trail would be ambiguous (P-127).
        lowest = number - MAX_NUMBERS // 2 if self.terms.paced else number
        self.trail = max(min(self.trail, number), lowest)

    def sync(self, lost: RangeSet) -> tuple[int, int, int]:
        """Return the newest number synced, the newest given to the disk, and the last without a gap (P-914)."""
        complete = self.synced.ranges[-1][1] - 1 if self.synced else self.trail - 1
        initiated = self.lead if not self.delayed else max(complete, self.delayed[0].first - 1)
        return (complete, initiated, self.contiguous_from(self.trail, lost) - 1)

    def contiguous_from(self, number: int, lost: RangeSet) -> int:
        """Return the first number from `number` on that is neither synced nor lost."""
        if not lost.ranges:
            return self.synced.contiguous_from(number)
        while (stop := lost.contiguous_from(self.synced.contiguous_from(number))) != number:
            number = stop
        return number

    def bytes(self, extents: Extents) -> int:
        """Return the bytes that these extents count against a limit (P-128)."""
        return extents.payload_bytes + self.terms.overhead * extents.messages

    def free_bytes(self) -> int | None:
        """Return the bytes of payload that still find room, None without a limit."""
        terms = self.terms
        rooms = [terms.size_limit - self.bytes(self.memory)] if terms.size_limit else []
        if terms.disk_limit and terms.written:
            rooms.append(terms.disk_limit - self.bytes(self.disk))
        return min(rooms, default=None)

    def admits(self, data: Data, parts: list[tuple[int, int]], out: list[Effect]) -> bool:
        """Return whether these parts of a run may be kept; synced messages leave the memory for them."""
        terms = self.terms
        if not terms.size_limit and not terms.paced:
            return True
        messages = 0
        for low, high in parts:
            messages += high - low
        size = data.payload_bytes * messages // data.count + terms.overhead * messages
        if terms.size_limit and self.bytes(self.memory) + size > terms.size_limit:
            # Synced messages can leave the memory, so on disk only unsynced ones count (P-115, P-117).
            self._uncache(terms.size_limit - size, None, out)
            if self.bytes(self.memory) + size > terms.size_limit:
                return False
        # Only a paced repository refuses at the disk limit. Any other releases its oldest messages (P-118).
        return not (terms.paced and terms.written and 0 < terms.disk_limit < self.bytes(self.disk) + size)

    def fitting(self, data: Data, parts: list[tuple[int, int]], out: list[Effect]) -> list[tuple[int, int]]:
        """Return the oldest of these parts of a run for which there is room; it tries half as many each time."""
        while parts and not self.admits(data, parts, out):
            parts = _oldest(parts, sum(high - low for low, high in parts) // 2)
        return parts

    def store(
        self, data: Data, first: int, parts: list[tuple[int, int]], now: int, tickets: SyncTickets, out: list[Effect]
    ) -> None:
        """Keep these parts of a run that begins at `first`."""
        terms = self.terms
        for low, high in parts:
            size = data.payload_bytes * (high - low) // data.count
            done = high == parts[-1][1]
            self.held.add(low, high)
            self.memory.add(low, high, size, now)
            if not terms.written or terms.write_delay_ns:
                out.append(CacheMessages(self.reg_id, data.incarnation, data.token, low - first, high - low, low, done))
            else:
                ticket = tickets.draw_for(self.reg_id, data.incarnation, low, high)
                out.append(
                    PersistMessages(
                        ticket, self.reg_id, data.incarnation, data.token, low - first, high - low, low, done
                    )
                )
            # Nothing is written here, so a received message counts as synced. This promise is weaker (P-102, P-577).
            if not terms.written:
                self.synced.add(low, high)
                continue
            self.disk.add(low, high, size, 0)  # No age counts on disk, so neighbours are one run.
            if terms.write_delay_ns:
                self.delayed.append(DelayedWrite(now + terms.write_delay_ns, low, high))

    def write_delayed(self, life: int, now: int, tickets: SyncTickets, out: list[Effect]) -> None:
        """Write messages that have waited long enough, neighbours together."""
        while self.delayed and self.delayed[0].due <= now:
            first, stop = self.delayed[0].first, self.delayed.popleft().stop
            while self.delayed and self.delayed[0].due <= now and self.delayed[0].first == stop:
                stop = self.delayed.popleft().stop
            ticket = tickets.draw_for(self.reg_id, life, first, stop)
            out.append(effects.PersistCached(ticket, self.reg_id, first, stop - 1))

    def on_synced(self, first: int, stop: int) -> None:
        """Count held messages of [first, stop) as on disk."""
        for low, high in self.held.within(first, stop):
            self.synced.add(low, high)

    def shrink(self, reserve: int, now: int, out: list[Effect]) -> None:
        """Drop messages from memory down to the threshold, or until `reserve` bytes are free below its limit."""
        terms = self.terms
        most = terms.size_threshold or None
        if reserve and terms.size_limit:
            room = max(0, terms.size_limit - reserve)
            most = room if most is None else min(most, room)
        if most is not None or terms.age_ns:
            self._uncache(most, now - terms.age_ns if terms.age_ns else None, out)

    def overflow(self, now: int) -> int:
        """Return the number below which a source-paced repository must release: by size, age and span.

        Unwritten messages stay until they are on disk; otherwise they could never be acknowledged.
        """
        terms, number, ranges = self.terms, self.trail, self.held.ranges
        # A span of 2**31 numbers or more would be ambiguous on the wire (P-127).
        if ranges and ranges[-1][1] - MAX_NUMBERS > number:
            number = ranges[-1][1] - MAX_NUMBERS
        if terms.written:
            kept, limit, horizon = self.disk, terms.disk_limit, None
        else:
            kept, limit = self.memory, terms.size_threshold
            horizon = now - terms.age_ns if terms.age_ns else None
        excess = kept.payload_bytes + OVERHEAD_BYTES * kept.messages - limit if limit else 0
        if excess <= 0 and horizon is None:
            return number
        stop = kept.below(number, excess, OVERHEAD_BYTES, horizon)
        for low, high in self.held.ranges:
            reached = self.synced.contiguous_from(low)
            if reached < high:
                return max(number, min(stop, reached))
        return max(number, stop)

    def short_of(self, payload_bytes: int) -> int:
        """Return the number below which a paced repository must release to have this many bytes free."""
        limit = self.terms.disk_limit if self.terms.written else self.terms.size_limit
        missing = payload_bytes - (limit - self.kept.payload_bytes) if limit else 0
        return self.kept.below(self.trail, missing, 0)

    def unwritten(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of [start, stop) that are to be written and are not on disk."""
        return self.synced.missing(start, stop) if self.terms.written else []

    def let_go(self, number: int, tickets: SyncTickets, out: list[Effect]) -> None:
        """Release everything below `number` for good."""
        self.trail = self.released = number
        self.held.forget(number)
        self.synced.forget(number)
        self.memory.forget(number)
        self.disk.forget(number)
        if self.delayed:
            self._drop_delayed(number, None)
        out.append(effects.Reclaim(tickets.draw(), self.reg_id, number))

    def cut(self, number: int, tickets: SyncTickets, out: list[Effect]) -> None:
        """Drop everything from `number` on for good: the tail of a dead life.

        The life that follows uses these numbers again, and no rule has released a message of it.
        """
        stop = self.lead + 1
        self.released = min(self.released, number)
        for kept in (self.held, self.synced):
            kept.remove(number, stop)
        for extents in (self.memory, self.disk):
            extents.cut(number)
        self._drop_delayed(self.trail, number)
        # The life may return and send these numbers again before the old tickets are reported.
        tickets.drop(self.reg_id, number)
        out.append(effects.Cut(tickets.draw(), self.reg_id, number))

    def spoil(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Drop synced messages of [first, stop), which cannot be read."""
        spoilt = self.synced.remove(first, stop)
        for low, high in spoilt:
            self.held.remove(low, high)
            for extents in (self.memory, self.disk):
                extents.remove(low, high)
        return spoilt

    def restore(self, first: int, stop: int, payload_bytes: int) -> None:
        """Add [first, stop), found on disk at a restart: held and synced, and not in memory."""
        # Recovery found messages on disk, so the repository stays disk-backed, whatever its type (P-109).
        self.terms = self.terms.on_disk()
        for low, high in self.held.add(max(first, self.trail), stop):
            self.synced.add(low, high)
            self.disk.add(low, high, payload_bytes * (high - low) // (stop - first), 0)

    def next_timeout(self) -> int | None:
        """Return when a write is due, or a message gets too old (ns); None: neither."""
        due = self.delayed[0].due if self.delayed else None
        if self.terms.age_ns and self.memory and self._may_leave(self.memory.oldest):
            old = self.memory.oldest.at + self.terms.age_ns
            due = old if due is None else min(due, old)
        return due

    def _uncache(self, most: int | None, horizon: int | None, out: list[Effect]) -> None:
        """Drop written messages from memory, oldest first, down to `most` bytes, and those that came by `horizon`."""
        memory, overhead, number = self.memory, self.terms.overhead, None
        while memory.runs and self.terms.written:
            oldest, size = memory.runs[0], memory.payload_bytes + overhead * memory.messages
            if (most is None or size <= most) and (horizon is None or oldest.at > horizon):
                break
            if not self._may_leave(oldest):
                break
            number = oldest.stop
            memory.forget(number)
        if number is not None:
            out.append(effects.Uncache(self.reg_id, number))

    def _may_leave(self, run: Extent) -> bool:
        """Return whether a run may leave the memory by itself: it is on disk, or only its age counts."""
        if self.terms.written:
            return self.synced.contiguous_from(run.first) >= run.stop
        return not self.terms.paced

    def _drop_delayed(self, first: int, stop: int | None) -> None:
        """Cancel delayed writes outside [first, stop)."""
        end = self.lead + 1 if stop is None else stop
        self.delayed = deque(
            attrs.evolve(wait, first=max(wait.first, first), stop=min(wait.stop, end))
            for wait in self.delayed
            if wait.stop > first and wait.first < end
        )


def _oldest(parts: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Return the first `count` numbers of ascending parts."""
    found: list[tuple[int, int]] = []
    for low, high in parts:
        if count <= 0:
            break
        found.append((low, min(high, low + count)))
        count -= high - low
    return found
