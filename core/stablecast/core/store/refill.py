"""Refill: a store gets back from its peers what it lacks of one source.

A store lacks messages that the source announced, that no rule released here, and that it does not hold: it was away
(AWAY), it lost its disk (EMPTY), a record is damaged (DAMAGED), or there was no room (NO_ROOM). The source itself
retains only the newest messages (`gap_filling`), so the store asks the other stores of the source, as a receiver
would.

* The SRI of the source names the peers and the RegID of the source at each. A peer answers only for the life that is
  current there, so an answer is never older than the question.
* The newest numbers are asked for first, a slice at a time. Memory stays bounded, and a limit of the repository that
  would release the oldest messages at once ends the refill.
* A number belongs to one life. A message of another life is refused, so nothing that was cut comes back. Nothing below
  `released` is asked for, because a rule let it go.
* A peer denies what it does not have. What all of them deny is done with in one step, however long it is.
* Each round ends. Numbers that no peer sent stay on record, with the cause. They are asked for again when another store
  registers, and a few more times, ever more rarely.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Effect, Notify
from stablecast.core.protocol.events import LackCause, NotRefilled, Refilled, RefillStarted
from stablecast.core.protocol.history import FORGOTTEN, owner
from stablecast.core.protocol.messages import Address, Incarnation, LateJoinInfo, Life, Role, StoreEntry
from stablecast.core.protocol.request_window import RequestWindow, Target
from stablecast.core.protocol.settings import StoreConfig

SLICE_MESSAGES = 16_384
"""Numbers that one source requests at a time."""

MAX_SLICE_MESSAGES = 262_144
"""The same where peers hold nothing: slices without any answer double up to this, so that long voids end soon."""

TRIES = 2
"""Requests to each peer before a number counts as not to be had in this round."""

AGAIN_NS = 30 * SECOND
"""The wait before the second round, in ns. It doubles with each round."""

ROUNDS = 6
"""Rounds without a change of the peers; the last is half an hour after the first."""

YIELD_NS = SECOND
"""The time in ns for which a refill keeps nothing after a live message found no room: the source sends it again."""

MAX_RANGES = 4096
"""Separate ranges of lacking numbers that are kept. Beyond that only the newest ones are."""


@attrs.define
class SourceRefill:
    """The lacking numbers of one source. Numbers are extended.

    Attributes:
        requests: The slice that is under way.
        named: The other stores as the source named them.
        peers: The same as targets of requests.
        lacking: The numbers below their replication, by cause; no number has two.
        waiting: The part of them that this round has still to ask for.
        unsynced: The numbers that came back and are not on disk yet.
        seen: The count of numbers that gap filling gave up, when they were last looked at.
        since: When the first of the lacking numbers was missed (ns).
        answered: The numbers that came in this slice. `size` is the length of the next slice.
        rounds: Rounds that ended without these peers' help; `again_at` (ns) is when the next one begins.
        gained: Messages that came back since the start.
        yields_until: Until then (ns) live messages get all room.
    """

    reg_id: int
    requests: RequestWindow
    named: tuple[StoreEntry, ...] = ()
    peers: list[Target] = attrs.field(factory=list)
    lacking: dict[int, RangeSet] = attrs.field(factory=dict)
    waiting: RangeSet = attrs.field(factory=RangeSet)
    unsynced: RangeSet = attrs.field(factory=RangeSet)
    seen: int = 0
    since: int | None = None
    answered: int = 0
    size: int = SLICE_MESSAGES
    rounds: int = 0
    again_at: int | None = None
    gained: int = 0
    gained_before: int = 0
    yields_until: int = 0

    @classmethod
    def create(cls, config: StoreConfig, reg_id: int, incarnation: Incarnation) -> "SourceRefill":
        """Return a refill that lacks nothing."""
        return cls(reg_id, _requests(config.address, incarnation, config.retry_ns))

    # Facts.

    def __bool__(self) -> bool:
        """Return whether anything is lacking, or not on disk yet."""
        return bool(self.lacking or self.unsynced)

    @property
    def total(self) -> int:
        """Messages below their replication."""
        return self.unsynced.total() + sum(ranges.total() for ranges in self.lacking.values())

    @property
    def active(self) -> bool:
        """True while requests are to be sent or answered."""
        return bool(self.peers and (self.waiting or self.requests))

    @property
    def hungry(self) -> bool:
        """True while more could be requested at once."""
        requests = self.requests
        more = self.waiting and not requests.asked
        return bool(self.peers and (more or requests.wanted or requests.retrying))

    def asks(self, address: Address) -> bool:
        """Return whether a request from this address is of another store of the source."""
        return any(one.address == address for one in self.peers)

    def awaited(self, first: int, stop: int) -> int:
        """Return the first number of [first, stop) that this round may still bring; `stop` if there is none."""
        if not self.active:
            return stop
        parts = [*self.waiting.within(first, stop), *self.requests.wanted.within(first, stop)]
        under_way = (*self.requests.asked, *self.requests.retrying)
        parts += [(max(first, one.start), stop) for one in under_way if one.start < stop and first < one.stop]
        return min([low for low, _ in parts], default=stop)

    def lacks(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Return the lacking parts of [first, stop), ascending."""
        parts = [part for ranges in self.lacking.values() for part in ranges.within(first, stop)]
        return parts if len(parts) < 2 else sorted(parts)

    # A source's life.

    def begin_life(self, incarnation: Incarnation) -> None:
        """End all requests of an older life, because its peers answer no more. The announcement of this one follows."""
        if self.requests.incarnation != incarnation:
            self.requests = _requests(self.requests.reply_to, incarnation, self.requests.retry_ns)
            self.waiting, self.named, self.peers, self.again_at = RangeSet(), (), [], None

    def on_peers(self, stores: Iterable[StoreEntry], own: tuple[int, Address]) -> None:
        """Process the stores that the source named; `own` is the index and the address of this one.

        If they changed, a store came or registered the source again, and may have what the others did not.
        """
        named = tuple(one for one in stores if one.index != own[0] and one.address != own[1])
        if named != self.named:
            self.named = named
            self.peers = [Target(one.address, one.source_reg_id) for one in named]
            self.requests.store_index = own[0]
            self.requests.give_up_ns = TRIES * max(1, len(named)) * self.requests.retry_ns - 1
            self.rounds = 0
            self._begin_round()

    # Numbers.

    def lack(self, ranges: Iterable[tuple[int, int]], cause: LackCause, now: int, out: list[Effect]) -> None:
        """Record that these numbers are lacking; those on record keep their cause."""
        new = 0
        for first, stop in ranges:
            for low, high in _without(first, stop, self.lacks(first, stop)):
                self.lacking.setdefault(int(cause), RangeSet()).add(low, high)
                self.waiting.add(low, high)
                new += high - low
        if not new:
            return
        self.rounds, self.again_at = 0, None
        if self.since is None:
            self.since = now
            out.append(Notify(RefillStarted(self.reg_id, new, cause)))
        self._bound(out)

    def got(self, first: int, stop: int, *, written: bool) -> None:
        """Record that [first, stop) came back; if it is `written`, it counts once it is synced."""
        if written:
            self.unsynced.update(self.lacks(first, stop))
        found = self._drop(first, stop)
        self.gained += found
        self.answered += found

    def yields(self, now: int) -> bool:
        """Return whether messages that came back take room until they are synced. If so, keep no more for a while."""
        if not self.unsynced:
            return False
        self.yields_until = now + YIELD_NS
        return True

    def on_synced(self, first: int, stop: int) -> None:
        """Record that [first, stop) is on disk."""
        self.unsynced.remove(first, stop)

    def forget(self, first: int, stop: int) -> None:
        """Record that [first, stop) is not wanted any more: a rule released it, or a cut removed it."""
        self.unsynced.remove(first, stop)
        if self.lacking:
            self._drop(first, stop)

    def owned(self, first: int, stop: int, writer: Incarnation, history: Sequence[Life]) -> list[tuple[int, int]]:
        """Return the parts of [first, stop) that this life may have written, by the history of the source."""
        bounds = sorted({first, stop, *(number for _, number in history if first < number < stop)})
        # The lives of a forgotten number have no name. Its peer showed that it shares the newer ones.
        own = (writer, FORGOTTEN)
        return [part for part in pairwise(bounds) if owner(history, part[0]) in own]

    # Requests.

    def issue(self, room: int, most: int, now: int, out: list[Effect]) -> None:
        """Send requests for at most `room` messages that are not under way yet; `most` of them find room at a time."""
        if not self.peers:
            return
        if not self.requests and self.waiting:
            self._next_slice(min(most, SLICE_MESSAGES))
        self.requests.window = min(self.size, self.requests.outstanding + room)
        self.requests.issue(self.peers, now, out)

    def on_denied(self, answer: LateJoinInfo) -> None:
        """Process the denial of a request: what all peers deny is not asked for again in this round."""
        for start, stop in self.requests.deny(answer.request, answer.low):
            self.waiting.remove(start, stop)
            self.requests.got(start, stop)

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        """Repeat requests; end the round if everything was asked for, and begin another one in time."""
        self.requests.handle_timeout(now)  # Numbers that it gives up are still lacking.
        if self.again_at is not None and now >= self.again_at:
            self._begin_round()
        if self.lacking and self.peers and not self.requests and not self.waiting and self.again_at is None:
            self._end_round(now, out)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        return self.requests.next() if self.requests.asked else self.again_at

    def settle(self, out: list[Effect]) -> None:
        """Report the end of a refill once nothing is lacking."""
        if self.since is not None and not self:
            out.append(Notify(Refilled(self.reg_id, self.gained - self.gained_before)))
            self.gained_before, self.since, self.rounds, self.again_at = self.gained, None, 0, None

    def _begin_round(self) -> None:
        self.again_at, self.size = None, SLICE_MESSAGES
        for ranges in self.lacking.values():
            self.waiting.update(ranges)
        for one in (*self.requests.asked, *self.requests.retrying):
            self.waiting.remove(one.start, one.stop)
        for low, high in self.requests.wanted:
            self.waiting.remove(low, high)

    def _end_round(self, now: int, out: list[Effect]) -> None:
        self.rounds += 1
        if self.rounds < ROUNDS:
            self.again_at = now + AGAIN_NS * 2 ** (self.rounds - 1)
        else:
            self.again_at = _NEVER
        for cause, ranges in sorted(self.lacking.items()):
            first, last = ranges.ranges[0][0], ranges.ranges[-1][1] - 1
            final = self.rounds == ROUNDS
            out.append(Notify(NotRefilled(self.reg_id, ranges.total(), first, last, LackCause(cause), final)))

    def _next_slice(self, least: int) -> None:
        """Request the newest numbers that wait.

        A slice is asked for in order, lowest first. So a small memory takes small ones, until one brings nothing: what
        all peers deny then ends in one step.
        """
        void = not self.answered and self.requests.requests
        self.size = max(SLICE_MESSAGES, min(2 * self.size, MAX_SLICE_MESSAGES)) if void else least
        self.answered, room = 0, self.size
        while self.waiting and room:
            first, stop = self.waiting.ranges[-1]
            first = max(first, stop - room)
            self.waiting.remove(first, stop)
            self.requests.want(first, stop)
            room -= stop - first

    def _drop(self, first: int, stop: int) -> int:
        found = 0
        for cause, ranges in list(self.lacking.items()):
            found += sum(high - low for low, high in ranges.remove(first, stop))
            if not ranges:
                del self.lacking[cause]
        if found:
            self.waiting.remove(first, stop)
            self.requests.got(first, stop)
        return found

    def _bound(self, out: list[Effect]) -> None:
        """Keep the newest ranges only, and report the others, so that a shredded repository costs no more memory."""
        for cause, ranges in list(self.lacking.items()):
            excess = ranges.ranges[:-MAX_RANGES]
            if excess:
                first, stop = excess[0][0], excess[-1][1]
                messages = sum(high - low for low, high in excess)
                self._drop(first, stop)
                out.append(Notify(NotRefilled(self.reg_id, messages, first, stop - 1, LackCause(cause), final=True)))


_NEVER = 2**63
"""A time (ns) that no clock shows."""


def _requests(reply_to: Address, incarnation: Incarnation, retry_ns: int) -> RequestWindow:
    """Return requests as a receiver would send them: stores of earlier releases answer these, too."""
    return RequestWindow(Role.RECEIVER, incarnation, reply_to, SLICE_MESSAGES, retry_ns, TRIES * retry_ns - 1)


def _without(first: int, stop: int, known: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return [first, stop) without the known parts, which are ascending."""
    parts: list[tuple[int, int]] = []
    for low, high in known:
        if first < low:
            parts.append((first, low))
        first = high
    return [*parts, (first, stop)] if first < stop else parts
