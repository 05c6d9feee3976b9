"""The request window: missing messages are requested, a bounded number at a time, from targets that may have them.

A receiver requests from its stores, a store from the source. Requests go to the targets in turn (P-429). A request
unanswered for the retry interval goes to the next target; a message requested in vain for the give-up time is lost
(P-433). Time counts against a message only while there are targets, and while this process runs: one that was stopped
for long has not asked all targets yet. The owner decides whether the targets suffice to give up.

A target may *deny* a request: from its first number up to another one it has nothing, and nothing is to come. Then the
next target is asked at once. What all targets deny is lost as a whole, however long it is: at once if the owner knows
that nobody else may have it, else in its time.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Effect, Send
from stablecast.core.protocol.messages import ANY_STORE, Address, Incarnation, RetransmitRequest, Role

CHUNK_MESSAGES = 64
"""Messages in one request, where the window is small."""

AT_ONCE = 4
"""Requests that share a large window, so that some are under way while others are answered."""

MAX_REQUEST_MESSAGES = 4096
"""Messages in one request at most. Receivers, readers and stores ask for no more, and a store refuses more."""

MAX_TRIES = 8
"""Tries of a request whose answers are still recognised as denials."""


@attrs.frozen
class Target:
    """A peer to request from: `source_reg_id` is the RegID of the source there."""

    address: Address
    source_reg_id: int


@attrs.define
class OpenRequest:
    """An outstanding request for [start, stop); `turn` selects the target.

    `since` is its first try, moved forward by the time that does not count. `tries` has the number of each of the last
    messages that asked, and whom. `denials`: by target, the number up to which it has nothing from `start` on.
    """

    start: int
    stop: int
    deadline: int
    since: int
    turn: int
    tries: tuple[tuple[int, Address], ...] = ()
    denials: tuple[tuple[Address, int], ...] = ()

    def denied(self, targets: list[Target]) -> int | None:
        """Return the number up to which none of the targets has anything from `start` on; None if one may have it."""
        known = dict(self.denials)
        stops = [known.get(target.address) for target in targets]
        return min([stop for stop in stops if stop is not None], default=None) if None not in stops else None


@attrs.define
class RequestWindow:
    """Missing messages, and the requests for them. Numbers are extended, spans in ns. `targets` were asked last.

    `store_index` is that of a store which asks others.
    """

    by: Role
    incarnation: Incarnation
    reply_to: Address
    window: int
    retry_ns: int
    give_up_ns: int
    wanted: RangeSet = attrs.field(factory=RangeSet)
    retrying: list[OpenRequest] = attrs.field(factory=list)
    asked: list[OpenRequest] = attrs.field(factory=list)
    outstanding: int = 0
    turn: int = 0
    requests: int = 0
    targets: list[Target] = attrs.field(factory=list)
    store_index: int = ANY_STORE

    def __bool__(self) -> bool:
        return bool(self.wanted or self.retrying or self.asked)

    def want(self, start: int, stop: int) -> None:
        """Record that [start, stop) is missing and not yet requested."""
        self.wanted.add(start, stop)

    def got(self, start: int, stop: int) -> None:
        """Record that [start, stop) is no longer missing."""
        # This runs for every run that arrives, and mostly nothing is missing.
        if not (self.asked or self.retrying or self.wanted.ranges):
            return
        self.wanted.remove(start, stop)
        self.retrying = _without(self.retrying, start, stop)
        self.asked = _without(self.asked, start, stop)
        self.outstanding = sum(request.stop - request.start for request in self.asked)

    def next(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        return min([request.deadline for request in self.asked]) if self.asked else None

    def handle_timeout(self, now: int, may_give_up: bool = True, whole: bool = False) -> list[tuple[int, int]]:
        """Schedule unanswered requests again; return the ranges that are given up for lost.

        Unless the owner `may_give_up`, nothing is lost and the time does not count. If nobody but the targets is asked,
        what all of them deny is lost as a `whole`.
        """
        lost: list[tuple[int, int]] = []
        kept: list[OpenRequest] = []
        for request in self.asked:
            if request.deadline > now:
                kept.append(request)
            elif not may_give_up:
                # Time without enough targets must not count, or a partition would turn into losses.
                self.retrying.append(attrs.evolve(request, since=now))
            elif request.deadline - request.since >= self.give_up_ns:
                denied = request.denied(self.targets) if whole else None
                lost.append((request.start, denied or request.stop))
            else:
                # From the deadline until now the process did not run.
                self.retrying.append(attrs.evolve(request, since=request.since + now - request.deadline))
        self.asked = kept
        self.outstanding = sum(request.stop - request.start for request in kept)
        return lost

    def begin_anew(self, now: int) -> None:
        """Count the time of all requests from now on."""
        self.asked = [attrs.evolve(request, since=now) for request in self.asked]
        self.retrying = [attrs.evolve(request, since=now) for request in self.retrying]

    def issue(self, targets: list[Target], now: int, out: list[Effect]) -> None:
        """Request as much as the window allows. Without targets everything waits."""
        if not targets:
            self._wait()
            return
        if targets != self.targets:
            # A store that came back may have got what it denied.
            self.targets = targets
            for known in (*self.asked, *self.retrying):
                known.denials = ()
        while self.outstanding < self.window:
            request = self._pick(self.window - self.outstanding, now)
            if request is None:
                break
            target = self._target(request)
            self.requests += 1
            request.tries = (*request.tries[1 - MAX_TRIES :], (self.requests % serial.MODULUS, target.address))
            self.asked.append(request)
            self.outstanding += request.stop - request.start
            out.append(Send(target.address, self._message(request, target)))

    def deny(self, number: int, wire_low: int, of_store: bool = True) -> list[tuple[int, int]]:
        """Process a denial of the request `number`; return what all targets deny. The next target is due at once.

        Only a store speaks for a target that is one (`of_store`), and only the source for itself.
        """
        if any(bool(target.source_reg_id) is not of_store for target in self.targets):
            return []
        asked, self.asked = self.asked, []
        void: list[tuple[int, int]] = []
        for request in asked:
            target = dict(request.tries).get(number)
            low = serial.extend(wire_low, request.start)
            if target is None or low <= request.start:
                self.asked.append(request)
                continue
            others = tuple(one for one in request.denials if one[0] != target)
            if low < request.stop:  # The rest was sent.
                self.asked.append(attrs.evolve(request, start=low, denials=others))
            denied = attrs.evolve(request, stop=min(low, request.stop), denials=(*others, (target, low)))
            if (stop := denied.denied(self.targets)) is not None:
                void.append((request.start, stop))
                self.asked.append(denied)
            else:
                self.retrying.append(denied)
        self.outstanding = sum(request.stop - request.start for request in self.asked)
        return void

    def _target(self, request: OpenRequest) -> Target:
        """Return whose turn it is; a target that denied the request only if all did."""
        if request.denials:
            known = dict(request.denials)
            for _ in self.targets:
                if self.targets[request.turn % len(self.targets)].address not in known:
                    break
                request.turn += 1
        return self.targets[request.turn % len(self.targets)]

    def _wait(self) -> None:
        # Nobody can answer, so the requests start from the beginning when a target appears.
        for request in (*self.asked, *self.retrying):
            self.wanted.add(request.start, request.stop)
        self.asked, self.retrying, self.outstanding = [], [], 0

    def _pick(self, room: int, now: int) -> OpenRequest | None:
        size = min(room, MAX_REQUEST_MESSAGES, max(CHUNK_MESSAGES, self.window // AT_ONCE))
        if self.retrying:
            first = self.retrying.pop(0)
            if first.stop - first.start > size:
                self.retrying.insert(0, attrs.evolve(first, start=first.start + size))
            stop = min(first.stop, first.start + size)
            turn, deadline = first.turn + 1, now + self.retry_ns
            return OpenRequest(first.start, stop, deadline, first.since, turn, first.tries, first.denials)
        start = self.wanted.first
        if start is None:
            return None
        stop = self.wanted.within(start, start + size)[0][1]
        self.wanted.remove(start, stop)
        self.turn += 1
        return OpenRequest(start, stop, now + self.retry_ns, now, self.turn)

    def _message(self, request: OpenRequest, target: Target) -> RetransmitRequest:
        return RetransmitRequest(
            self.by,
            self.incarnation,
            target.source_reg_id,
            self.requests % serial.MODULUS,
            serial.wire(request.start),
            serial.wire(request.stop - 1),
            self.reply_to,
            self.store_index,
        )

    def abstract(self) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
        """Return the ranges to be requested and the ranges that were."""
        waiting = self.wanted.copy()
        for request in self.retrying:
            waiting.add(request.start, request.stop)
        return (tuple(waiting), tuple(sorted((request.start, request.stop) for request in self.asked)))


def _without(requests: list[OpenRequest], start: int, stop: int) -> list[OpenRequest]:
    """Return the requests without [start, stop)."""
    kept: list[OpenRequest] = []
    for request in requests:
        if request.stop <= start or stop <= request.start:
            kept.append(request)
            continue
        if request.start < start:
            kept.append(attrs.evolve(request, stop=start))
        if stop < request.stop:
            kept.append(attrs.evolve(request, start=stop))
    return kept
