"""The reading of one source: it drives a `RangeProgress`, and delivers messages and holes to its reader in order."""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Coroutine, Iterator, Sequence
from heapq import heappop, heappush
from typing import Protocol

import attrs

from stablecast.client.batch import Batch
from stablecast.client.range_batch import RangeBatch, RangeOwner, assembled
from stablecast.client.range_contents import SourceContents, StableRule
from stablecast.client.range_inquiry import REPEAT_SECONDS, RangeRoutes, StoreAway
from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import RetransmitRequest, Role
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES
from stablecast.core.receiver.range_progress import Hole, RangeProgress, ReadRequest
from stablecast.runtime import machine
from stablecast.runtime.alarm import Alarm
from stablecast.transports import codec
from stablecast.transports.codec.chained_messages import ChainedPiece, pieces
from stablecast.transports.codec.fragments import MAX_PIECES, FragmentReassembly

RETRY_NS = SECOND
"""Time without progress after which a request goes to another store."""

ANSWER_BYTES = 4 << 20
"""Bytes of the answer to one request: half of what a store sends at most."""

WINDOW_BYTES = 32 << 20
"""Bytes that may be on the way or wait for the application."""

LEAST_WINDOW = 64
"""Messages that may be on the way, however large they are."""
MAX_TIMES_KEPT = 65_536
"""Times that are kept; those of consumed messages go."""

TaskKey = str | tuple[str, int]
"""A store that is asked what it holds, or a request whose times are asked for."""


class ReadingOwner(Protocol):
    def deliver(self, reading: "SourceReading", batch: Batch, numbers: int) -> None:
        """Hand a batch of `numbers` numbers to the application, now or later."""

    def missing(self, reading: "SourceReading", hole: Hole) -> None:
        """Report a range of numbers that will not come."""

    def finished(self, reading: "SourceReading") -> None:
        """Note that the range of the source is settled."""


@attrs.frozen
class Portion:
    """Messages [first, first + count) that came: plain ones as `contents`, others as `chained`."""

    first: int
    tag: int
    contents: Sequence[bytes] = ()
    chained: Sequence[ChainedPiece] = ()

    @property
    def stop(self) -> int:
        """Return the number after the last."""
        return self.first + len(self.contents) + len(self.chained)

    def part(self, low: int, high: int) -> "Portion":
        """Return the messages [low, high)."""
        if (low, high) == (self.first, self.stop):
            return self
        begin, end = low - self.first, high - self.first
        return Portion(low, self.tag, self.contents[begin:end], self.chained[begin:end])


@attrs.frozen
class ReadingTerms:
    """The limits of a reading.

    Attributes:
        window: Numbers on the way.
        patience_ns: Time for which stores that are away are waited for.
        times: Times are wanted.
        grows: Numbers that no store has may still come.
        rule: What is stable; None: what may be read is known.
    """

    window: int
    patience_ns: int
    times: bool = False
    grows: bool = False
    rule: StableRule | None = None


class SourceReading:
    """Reads [first, stop) of one source.

    Attributes:
        contents: The messages that the stores hold.
        waiting: Numbers that were delivered and that the application has not consumed.
    """

    def __init__(
        self,
        owner: ReadingOwner,
        routes: RangeRoutes,
        contents: SourceContents,
        bounds: tuple[int, int],
        terms: ReadingTerms,
    ) -> None:
        """Prepare the reading; `start` begins it."""
        first, stop = bounds
        self.contents = contents
        self.waiting = 0
        self._owner = owner
        self._routes = routes
        self._terms = terms
        self._begin = first
        self._portions: list[tuple[int, Portion]] = []
        self._steps: deque[list[Portion] | Hole] = deque()
        self._times: list[tuple[int, int | None]] = []
        self._timed = RangeSet()
        self._tasks: dict[TaskKey, asyncio.Task[None]] = {}
        self._lives: dict[int, None] = {}
        self._closed = False
        self._alarm = Alarm(self._ring)
        self._pieces = FragmentReassembly(floor=first)
        self._batches = RangeOwner(contents.topic, contents.session_id, self.came_at)
        self._set_sizes()
        self.machine = RangeProgress(first, stop, self._window, RETRY_NS, terms.patience_ns, terms.grows)

    def _set_sizes(self) -> None:
        kept = sum(stop - first for first, stop in self.contents.newest.ranges)
        average = max(1, self.contents.newest.stored_bytes // kept if kept else 1)
        self._most = max(1, min(MAX_REQUEST_MESSAGES, ANSWER_BYTES // average))
        self._window = max(LEAST_WINDOW, min(self._terms.window, WINDOW_BYTES // average))

    def start(self, asked_at: int, away: Sequence[str]) -> None:
        """Begin with the facts that `contents` has; stores in `away` cannot be reached."""
        for store in away:
            self.machine.lose(store)
            self._ask(store)
        self.learn(asked_at, 0)

    def learn(self, asked_at: int, first: int, stop: int | None = None, silent: Collection[str] = ()) -> None:
        """Use the facts in `contents` about numbers from `first` on; the range may end later now.

        The question was asked at `asked_at` (ns). Of `silent` stores only earlier answers are known.
        """
        for store, answer in self.contents.answers.items():
            known = self.machine.holdings.get(store)
            if store in silent and known is not None:
                # Its messages may belong to a history that others have replaced.
                self.machine.holdings[store] = self.contents.holding(answer, known.asked_at, known.first)
            elif known is None or known.asked_at < asked_at:
                self._learn(store, asked_at, first)
            self._listen(answer.incarnation)
        if stop is not None:
            self.machine.stop = max(self.machine.stop, stop)
        self.pump()

    def _learn(self, store: str, asked_at: int, first: int = 0) -> None:
        answer = self.contents.answers[store]
        if answer.readable:
            self.machine.learn(store, self.contents.holding(answer, asked_at, first))
        else:  # The store serves its messages once it knows where the next life resumes.
            self.machine.lose(store)
            self._ask(store)

    def _listen(self, incarnation: int) -> None:
        if incarnation not in self._lives:
            self._lives[incarnation] = None
            self._routes.readings.setdefault(incarnation, []).append(self)

    def close(self) -> list[asyncio.Task[None]]:
        """Request nothing any more; return the tasks that end now."""
        self._closed = True
        self._alarm.set(None)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for incarnation in self._lives:
            readings = self._routes.readings[incarnation]
            readings.remove(self)
            if not readings:
                del self._routes.readings[incarnation]
        self._lives.clear()
        return tasks

    def on_broken(self, store: str) -> None:
        """Note that the connection to a store is broken, and ask the store again until it answers."""
        if not self._closed and (store in self.machine.holdings or store in self.machine.away):
            self.machine.lose(store)
            self._ask(store)
            self.pump()

    def consumed(self, numbers: int) -> None:
        """Note that the application consumed a batch of so many numbers."""
        self.waiting -= numbers
        if not self._closed:
            self._issue(machine.clock.monotonic_ns())

    def came_at(self, number: int) -> int | None:
        """Return when a number came, in ns of the epoch; None: not known, or not asked for."""
        at = bisect_right(self._times, number, key=lambda time: time[0]) - 1
        return self._times[at][1] if at >= 0 else None

    # --------------------------------------------------------------------------------------------------------- messages

    def on_recovered(self, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        """Process messages that stores sent; those that were not requested are dropped."""
        if self._closed:
            return
        now = machine.clock.monotonic_ns()
        for portion in _portions(messages, self.machine.cursor):
            for low, high in self.machine.accept(portion.first, portion.stop):
                heappush(self._portions, (low, portion.part(low, high)))
            self.machine.progress(portion.first, portion.stop, now)
        self.pump()

    def pump(self) -> None:
        """Deliver what is settled, and request what has room."""
        if self._closed:
            return
        now = machine.clock.monotonic_ns()
        for step in self.machine.settle(now):
            self._steps.append(step if isinstance(step, Hole) else self._settled(step[1]))
        self._flush()
        self._issue(now)
        for store in self.machine.stale():
            self._ask(store)
        if self.machine.done and not self._steps:
            self._owner.finished(self)

    def _settled(self, stop: int) -> list[Portion]:
        portions = []
        while self._portions and self._portions[0][0] < stop:
            portions.append(heappop(self._portions)[1])
        return portions

    def _flush(self) -> None:
        while self._steps:
            step = self._steps[0]
            if isinstance(step, Hole):
                self._lose(step)
            else:
                first, stop = step[0].first, step[-1].stop
                if self._terms.times and self._timed.missing(first, stop):
                    return
                for portion in step:
                    if self._deliver(portion):
                        return
            self._steps.popleft()

    def _deliver(self, portion: Portion) -> bool:
        """Deliver a portion; return True if the reading had to go back instead, to the begin of a message."""
        if portion.contents:
            if self._pieces.partials:
                self._pieces.settle(portion.first, portion.stop)
                self._drop_useless()
            self._hand(RangeBatch(portion.contents, portion.first, portion.tag, self._batches), len(portion.contents))
            return False
        if self._goes_back(portion):
            return True
        wholes = []
        for number, piece in enumerate(portion.chained, portion.first):
            whole = self._pieces.add(number, piece, recovered=True)
            if whole is not None and whole.last >= self._begin:
                wholes.append(whole)
        self._drop_useless()
        if wholes:
            numbers = sum(whole.last + 1 - whole.first for whole in wholes)
            self._hand(assembled(wholes, portion.tag, self._batches), numbers)
        return False

    def _goes_back(self, portion: Portion) -> bool:
        """Read from the begin of the message whose pieces the range begins in; it is the first of the range."""
        fragment = portion.chained[0].fragment
        if portion.first != self._begin or self._pieces.floor < self._begin or fragment is None:
            return False
        first = serial.extend(fragment.first_sqn, portion.first)
        if not 0 < portion.first - first <= MAX_PIECES:
            return False
        before = self.machine
        self._pieces.floor = first
        self._portions.clear()
        self._steps.clear()
        self.machine = RangeProgress(
            first, before.stop, before.window, before.retry_ns, before.patience_ns, before.grows
        )
        self.machine.holdings, self.machine.away = before.holdings, before.away
        self.pump()
        return True

    def _hand(self, batch: Batch, numbers: int) -> None:
        self.waiting += numbers
        self._owner.deliver(self, batch, numbers)

    def _lose(self, hole: Hole) -> None:
        self._pieces.lose(hole.first, hole.stop)
        self._drop_useless()
        self._owner.missing(self, hole)

    def _drop_useless(self) -> None:
        """Forget the pieces that no message will come of: a hole that was reported has the others."""
        self._pieces.take_passed()

    # --------------------------------------------------------------------------------------------------------- requests

    def _issue(self, now: int) -> None:
        for request in self.machine.issue(now, self.waiting, self._most):
            message = RetransmitRequest(
                Role.RECEIVER,
                request.holding.incarnation,
                request.holding.reg_id,
                self.machine.turn & 0xFFFF_FFFF,
                serial.wire(request.start),
                serial.wire(request.stop - 1),
                self._routes.reply_to,
            )
            if self._terms.times:
                self._start((request.store, request.start), self._find_times(request))
            self._routes.send(request.store, codec.encode(message))
        self._alarm.set(self.machine.next())

    def _ring(self) -> None:
        self.machine.handle_timeout(machine.clock.monotonic_ns())
        self.pump()

    def _ask(self, store: str) -> None:
        """Ask a store what it holds from the cursor on, unless it is being asked."""
        if store not in self._tasks:
            self._start(store, self._refresh(store))

    def _start(self, key: TaskKey, work: Coroutine[None, None, None]) -> None:
        task = self._tasks[key] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda ended: self._tasks.pop(key, None) if self._tasks.get(key) is ended else None)

    async def _refresh(self, store: str) -> None:
        while True:
            known = self.contents.answers.get(store)
            asked_at, first = machine.clock.monotonic_ns(), self.machine.cursor
            try:
                found = await self._routes.ask(
                    store,
                    topic=self.contents.topic,
                    reg_id=0 if known is None or store in self.machine.away else known.reg_id,
                    first=first,
                )
            except StoreAway:
                await asyncio.sleep(REPEAT_SECONDS)
                continue
            answer = next((one for one in found if self.contents.goes_on(one)), None)
            if answer is None or answer.readable:
                break
            self.machine.lose(store)
            self.pump()
            await asyncio.sleep(REPEAT_SECONDS)
        self._tasks.pop(store, None)
        if answer is None:
            self.forget(store)
        else:
            self.contents.answers[store] = answer
            if self._terms.rule is not None and self.contents.unstable:
                self.contents.refuse(self._terms.rule, self.machine.away, first, self.contents.unstable.ranges[-1][1])
            self._learn(store, asked_at, first)
            self._listen(answer.incarnation)
        self.pump()

    def forget(self, store: str) -> None:
        """Note that a store answered, and does not know the source."""
        self.machine.forget(store)
        self.contents.forget(store)

    async def _find_times(self, request: ReadRequest) -> None:
        """Find out when the numbers of a request came."""
        at = request.start
        while at < request.stop:
            try:
                async with asyncio.timeout(REPEAT_SECONDS):
                    found = await self._routes.ask(
                        request.store,
                        topic=self.contents.topic,
                        reg_id=request.holding.reg_id,
                        first=at,
                        timed=request.stop,
                    )
            except (StoreAway, TimeoutError):
                break
            answer = next(iter(found), None)
            if answer is None:
                break
            for first, time in answer.times:
                self._note_time(first, time)
            reached = min(max(answer.reach, at + 1), request.stop)
            self._timed.add(at, reached)
            at = reached
        if at < request.stop:  # The store is away, or too old for times.
            self._note_time(at, None)
            self._timed.add(at, request.stop)
        self._flush()
        self.pump()

    def _note_time(self, first: int, time: int | None) -> None:
        if (
            len(self._times) > MAX_TIMES_KEPT
            and self._times[MAX_TIMES_KEPT // 2][0] < self.machine.cursor - self.waiting
        ):
            del self._times[: MAX_TIMES_KEPT // 2]
        place = bisect_right(self._times, first, key=lambda known: known[0])
        self._times.insert(place, (first, time))


def _portions(messages: list[codec.Recovered | codec.RecoveredRun], near: int) -> Iterator[Portion]:
    """Yield consecutive messages of one kind together; numbers are extended near to `near`."""
    pending: list[codec.Recovered] = []
    for message in messages:
        if isinstance(message, codec.RecoveredRun):
            if pending:
                yield _joined(pending, near)
                pending = []
            yield Portion(serial.extend(message.wire_number, near), message.incarnation, message.payloads)
            continue
        if pending and not (
            bool(pending[-1].headers) == bool(message.headers)
            and pending[-1].incarnation == message.incarnation
            and message.wire_number == serial.wire(pending[-1].wire_number + 1)
        ):
            yield _joined(pending, near)
            pending = []
        pending.append(message)
    if pending:
        yield _joined(pending, near)


def _joined(some: list[codec.Recovered], near: int) -> Portion:
    first = serial.extend(some[0].wire_number, near)
    if some[0].headers:
        return Portion(first, some[0].incarnation, (), [pieces(message.data, 0, 1)[0] for message in some])
    return Portion(first, some[0].incarnation, [message.payload for message in some])
