"""The retransmission service of a store, with one rate over all topics (P-407, P-816).

Requests go through a queue of four times the rate (P-408), and leave it as tokens of a bucket allow; live data never
waits for them (P-406). A request that finds the queue full is dropped: receivers ask again, and another store.

Receivers repeat a request that a slow service has not answered yet. If the repetition were queued, the service would
send the same messages again and again, and others too late. So a message waits once for each receiver.

A request for messages that are not held goes on to the source, which answers the receiver directly, if the repository
forwards (P-404, P-405). If it does not, nobody here can serve it, and that is counted. A range counts by its messages.
A receiver that asks from such a number on is told from where on there is something (`void_from`). So one that was
overtaken by the limits of its stores passes over what is gone in one step.

Other stores ask for what they lack (`refill`). They have a queue of their own, which is served when no receiver waits.
A store asks the source itself, so its requests never go on to the source.

Rates are the counters since the last reset divided by its age (P-409, P-905).
"""

from collections import deque

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.effects import Effect, Notify, Send, SendStored
from stablecast.core.protocol.events import Oddity, RequestsDropped
from stablecast.core.protocol.messages import (
    ANY_STORE,
    Address,
    Incarnation,
    LateJoinInfo,
    LateJoinRequest,
    RetransmitRequest,
    Role,
)
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES
from stablecast.core.store.repository import Repository

QUEUE_RATES = 4
"""Length of the queue in seconds' worth of messages."""

BURST_NS = 100 * MILLISECOND
"""Credit that an idle service saves, in ns of its rate."""

PACE_NS = 5 * MILLISECOND
"""Interval at which a service with a queue wakes, in ns."""


Stream = tuple[Address, Incarnation, int]
"""A receiver's address, a life of a source, and the source's RegID: the messages of one queue entry."""


@attrs.define
class QueuedRequest:
    """[first, stop) of a stream."""

    stream: Stream
    first: int
    stop: int


@attrs.define
class RetransmissionService:
    """The queue, the bucket and the counters (of messages). `rate` in messages a second, `credit` in message-ns.

    `waiting` has the `queued` numbers by stream, each once. `refills` and `refills_queued` are the queue of stores.
    """

    rate: int
    credit: int = 0
    filled_at: int | None = None
    queue: deque[QueuedRequest] = attrs.field(factory=deque)
    queued: int = 0
    refills: deque[QueuedRequest] = attrs.field(factory=deque)
    refills_queued: int = 0
    waiting: dict[Stream, RangeSet] = attrs.field(factory=dict)
    received: int = 0
    served: int = 0
    dropped: int = 0
    unserved: int = 0
    dropped_since_start: int = 0
    reset_at: int = 0

    def on_request(
        self, request: RetransmitRequest, repository: Repository, out: list[Effect], *, refill: bool = False
    ) -> None:
        """Queue the request of a receiver, or for a `refill` of a store, for messages of this repository."""
        first = serial.extend(request.first, repository.newest)
        stop = serial.extend(request.last, first) + 1
        # A hostile range of 2**32 messages must not occupy the queue.
        if not 0 < stop - first <= MAX_REQUEST_MESSAGES:
            out.append(Notify(Oddity("wild-request", f"retransmission request for {first}..{stop - 1}")))
            return
        self.received += stop - first
        dropped, at = 0, first
        for low, high in (*repository.available(first, stop), (stop, stop)):
            if not refill:
                self._pass_on(request, at, low, repository, out)
            if low < high:
                stream = request.reply_to, request.incarnation, repository.reg_id
                dropped += self._enqueue(stream, low, high, refill=refill)
            at = high
        if dropped:
            out.append(Notify(RequestsDropped(dropped)))
        # Stores of earlier releases name no index, and take such an answer for the source's.
        if not refill or request.store_index != ANY_STORE:
            self._deny(request, first, repository, out, refill=refill)

    def serve(self, repositories: dict[int, Repository], now: int, out: list[Effect]) -> None:
        """Send what the rate allows, in order; released messages, and those of ended lives, are passed over."""
        if not (self.queue or self.refills):
            return
        self._fill(now)
        while (queue := self.queue or self.refills) and (tokens := self.credit // SECOND) > 0:
            wanted = queue[0]
            count = min(tokens, wanted.stop - wanted.first)
            first, wanted.first = wanted.first, wanted.first + count
            if wanted.first == wanted.stop:
                queue.popleft()
            to, session, source_reg_id = wanted.stream
            self._leave(wanted.stream, first, first + count)
            self._count(-count, refill=queue is self.refills)
            self.credit -= count * SECOND
            repository = repositories.get(source_reg_id)
            # The source, or its life, may have gone since the request was queued.
            if repository is None or repository.incarnation != session:
                continue
            for low, high in repository.available(first, first + count):
                self.served += high - low
                out.append(SendStored(to, session, source_reg_id, low, high - 1))

    def next(self) -> int | None:
        """Return when `serve` has something to send (ns); None with an empty queue."""
        queued = self.queued + self.refills_queued
        if not queued or self.filled_at is None:
            return None
        worthwhile = max(SECOND, min(queued * SECOND, self.rate * PACE_NS))
        return self.filled_at + max(0, -(-(worthwhile - self.credit) // self.rate))

    def rates(self, now: int, started_at: int = 0) -> tuple[float, float, float]:
        """Return the messages a second received, served and dropped since the reset or the start (P-409, P-905)."""
        age = max(1, now - max(self.reset_at, started_at))
        return (self.received * SECOND / age, self.served * SECOND / age, self.dropped * SECOND / age)

    def reset(self, now: int) -> None:
        """Count anew (P-906); the drops since the start stay."""
        self.received = self.served = self.dropped = self.unserved = 0
        self.reset_at = now

    def _enqueue(self, stream: Stream, first: int, stop: int, *, refill: bool) -> int:
        """Queue what does not wait already; return how many of its messages found no room."""
        waiting = self.waiting.get(stream)
        if waiting is None:
            waiting = self.waiting[stream] = RangeSet()
        left = 0
        queue = self.refills if refill else self.queue
        for low, high in waiting.add(first, stop):
            queued = self.refills_queued if refill else self.queued
            end = low + max(0, min(high - low, QUEUE_RATES * self.rate - queued))
            if low < end:
                queue.append(QueuedRequest(stream, low, end))
                self._count(end - low, refill=refill)
            if end < high:
                waiting.remove(end, high)
                left += high - end
        if not waiting:
            del self.waiting[stream]
        self.dropped += left
        self.dropped_since_start += left
        return left

    def _leave(self, stream: Stream, first: int, stop: int) -> None:
        waiting = self.waiting[stream]
        waiting.remove(first, stop)
        if not waiting:
            del self.waiting[stream]

    def _count(self, messages: int, *, refill: bool) -> None:
        if refill:
            self.refills_queued += messages
        else:
            self.queued += messages

    def _pass_on(
        self, request: RetransmitRequest, first: int, stop: int, repository: Repository, out: list[Effect]
    ) -> None:
        if first < stop and repository.terms.forwarding:
            forwarded = attrs.evolve(
                request, by=Role.STORE, source_reg_id=0, first=serial.wire(first), last=serial.wire(stop - 1)
            )
            out.append(Send(repository.acks.source, forwarded))
        elif first < stop:
            self.unserved += stop - first

    def _deny(
        self, request: RetransmitRequest, first: int, repository: Repository, out: list[Effect], *, refill: bool
    ) -> None:
        stop, filling = void_from(repository, first), repository.filling
        if stop is not None and repository.terms.forwarding and not refill:
            # The source may have it. What it retains no more is denied when the receiver asks again.
            question = LateJoinRequest(request.incarnation, repository.reg_id, filling.requests.reply_to)
            out.append(Send(repository.acks.source, question))
            stop = min(stop, filling.retained)
        if stop is not None and first < stop:
            low, high = serial.wire(stop), serial.wire(repository.newest)
            names = request.incarnation, request.request
            out.append(Send(request.reply_to, LateJoinInfo(*names, low, high, repository.acks.store_index)))

    def _fill(self, now: int) -> None:
        full = max(SECOND, self.rate * BURST_NS)
        gained = full if self.filled_at is None else self.rate * max(0, now - self.filled_at)
        self.credit = min(full, self.credit + gained)
        self.filled_at = now


def void_from(repository: Repository, first: int) -> int | None:
    """Return the next number from `first` on that is held or may come; None if `first` is one.

    Holes that the source may fill are to come, and what this round of a refill still asks other stores for.
    """
    filling, held, resumed = repository.filling, repository.held, repository.resume_point
    stop = max(filling.high or 0, repository.newest) + 1
    if resumed is None or not repository.terms.keeps or first in held or first >= stop:
        return None
    stop = held.missing(first, stop)[0][1]
    holes = filling.lost.missing(max(first, resumed, repository.trail), stop)
    stop = holes[0][0] if holes else stop
    stop = stop if repository.refill is None else repository.refill.awaited(first, stop)
    return stop if first < stop else None
