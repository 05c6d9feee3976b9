"""A reader: messages of a range, read from the stores without registering (spec/stored_messages.md)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from typing import Self

import attrs

from stablecast.client.batch import Batch
from stablecast.client.range_batch import StoredMessage
from stablecast.client.range_bounds import ReadBounds
from stablecast.client.range_contents import SourceContents, sources_of
from stablecast.client.range_inquiry import RangeRoutes, StoreAway
from stablecast.client.range_replay import MAX_PAUSE_SECONDS, ReplayPace, paced
from stablecast.client.range_source import ReadingTerms, SourceReading
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.core.receiver.range_progress import Hole, HoleReason
from stablecast.runtime import machine

WINDOW_MESSAGES = 16_384
"""Messages of all sources that may be on the way or wait for the application; four of the largest requests."""

LEAST_MESSAGES = 256
"""Messages likewise of each source, however many there are."""

PATIENCE_SECONDS = 10.0
"""Time for which a reader waits for a store that is away."""

FOLLOW_SECONDS = 0.1
"""Time between two questions of a reader that goes on live."""

MAX_HOLES = 4096
"""Holes that a reader remembers; `on_hole` gets all."""


class ReadFailed(StablecastError):  # noqa: N818  # a state of affairs, like RegistrationFailed
    """Too few stores answered to know what is stable. The text names them and the remedy."""


@attrs.frozen
class MissingRange:
    """The messages `first` to `last` of a source are not among those that the reader returns.

    Attributes:
        topic: The topic.
        session_id: The session id of the source, 0 if it has none.
        incarnation: The newest life of the source.
        first: The first (extended) number.
        last: The last one.
        reason: Never stored, let go by a limit, or on a store that is away.
    """

    topic: str
    session_id: int
    incarnation: int
    first: int
    last: int
    reason: HoleReason

    def __str__(self) -> str:
        """Return the sentence for people."""
        return f"messages {self.first} to {self.last} of '{self.topic}' are missing: {self.reason.value}"


@attrs.frozen
class SourceRange:
    """The range of one source that a reader reads: numbers `first` to below `stop`."""

    topic: str
    session_id: int
    incarnation: int
    first: int
    stop: int


@attrs.frozen
class ReadOptions:
    """The options of a reader; see `Context.reader`."""

    bounds: ReadBounds
    stores: tuple[str, ...]
    sources: frozenset[int] | None = None
    follow: bool = False
    patience: float = PATIENCE_SECONDS
    quorum: int | None = None
    times: bool = False
    stable: bool = True
    on_hole: Callable[[MissingRange], None] | None = None

    def __attrs_post_init__(self) -> None:
        """Raise MisuseError for options that contradict each other."""
        if not self.stores:
            raise MisuseError("a reader has no stores to read from: give reader(stores=[...])")
        if self.quorum is not None and not 1 <= self.quorum <= len(self.stores):
            raise MisuseError(f"a quorum of {self.quorum} cannot be reached with {len(self.stores)} stores")
        if self.follow and self.bounds.stop_time is not None:
            raise MisuseError("a reader that follows ends at a number or never: leave out the time of until, or follow")


class RangeReader:
    """Messages of a range, from stores. Use it inside `async with`; iterate over it, or over `batches()`.

    Attributes:
        topic: The topic.
        holes: The ranges that are missing, in the order in which they were found; `MAX_HOLES` at most.
        missing_numbers: The count of all missing numbers.
        sources: The ranges that are read, one for each source.
    """

    def __init__(self, routes: RangeRoutes, topic: str, options: ReadOptions) -> None:
        """Prepare a reader; `Context.reader` makes one."""
        self.topic = topic
        self.holes: list[MissingRange] = []
        self.missing_numbers = 0
        self.sources: list[SourceRange] = []
        self._routes = routes
        self._options = options
        self._readings: dict[SourceReading, None] = {}
        self._left: dict[SourceReading, None] = {}
        self._queue: deque[tuple[SourceReading, Batch, int]] = deque()
        self._arrived = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._open = self._closed = False

    async def __aenter__(self) -> Self:
        """Ask the stores what they hold, and begin to read.

        Raises:
            ReadFailed: Too few stores answered within the patience.
            MisuseError: The reader is open already.
        """
        if self._open:
            raise MisuseError("the reader is open already: make another one with context.reader(...)")
        self._open = True
        self._routes.readers[self] = None
        try:
            await self._begin()
        except BaseException:
            await self.close()
            raise
        return self

    async def plan(self) -> list[tuple[SourceContents, SourceRange]]:
        """Return the sources and the ranges that a reader would read now, without reading. Raises ReadFailed."""
        found, answers, _ = await self._find()
        away = len(self._options.stores) - len(answers)
        ranges = [(source, *self._range(source, away)) for source in found]
        return [
            (source, SourceRange(source.topic, source.session_id, source.incarnation, first, stop))
            for source, first, stop in ranges
        ]

    async def __aexit__(self, *_: object) -> None:
        """Request nothing any more."""
        await self.close()

    async def close(self) -> None:
        """Request nothing any more; a loop that waits ends."""
        if self._closed:
            return
        self._closed = True
        tasks = [task for reading in self._readings for task in reading.close()]
        if self._follower is not None:
            self._follower.cancel()
            tasks.append(self._follower)
        self._routes.readers.pop(self, None)
        self._arrived.set()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aiter__(self) -> AsyncIterator[StoredMessage]:
        """Yield the messages, each source in the order of its numbers; end where the range ends.

        Raises:
            ReadFailed: The reader cannot go on.
        """
        async for batch in self.batches():
            for index, payload in enumerate(batch.payloads()):
                yield StoredMessage(payload, batch, index)

    async def replay(
        self, speed: float | None = 1.0, max_pause: float = MAX_PAUSE_SECONDS
    ) -> AsyncIterator[StoredMessage]:
        """Yield the messages at the pace at which they came, `speed` times as fast; None: as fast as possible.

        A pause is `max_pause` seconds at most. The reader must have `times`. Raises MisuseError, and as iteration does.
        """
        pace = ReplayPace(speed, max_pause)
        if not self._options.times:
            raise MisuseError("a replay needs the times of messages: use reader(..., times=True)")
        async for message in paced(self, pace):
            yield message

    async def batches(self) -> AsyncIterator[Batch]:
        """Yield the messages in batches of one source each; ends and raises as iteration over messages does."""
        if not self._open:
            raise MisuseError("the reader is not open: use it inside 'async with'")
        while True:
            while self._queue:
                reading, batch, numbers = self._queue.popleft()
                yield batch
                reading.consumed(numbers)
            if self._failure is not None:
                raise self._failure
            if self._closed or self._ended:
                return
            self._arrived.clear()
            await self._arrived.wait()

    @property
    def _ended(self) -> bool:
        """Return whether no message comes any more. A reader that goes on live waits for its first source."""
        if self._left:
            return False
        return not self._options.follow or (self._options.bounds.stop is not None and bool(self._readings))

    # ------------------------------------------------------------------------------------------------------------ owner

    def deliver(self, reading: SourceReading, batch: Batch, numbers: int) -> None:
        """Queue a batch for the application."""
        self._queue.append((reading, batch, numbers))
        self._arrived.set()

    def missing(self, reading: SourceReading, hole: Hole) -> None:
        """Note a hole, and report it."""
        source = reading.contents
        names = (source.topic, source.session_id, source.incarnation)
        found = MissingRange(*names, hole.first, hole.stop - 1, hole.reason)
        self.missing_numbers += hole.stop - hole.first
        if len(self.holes) < MAX_HOLES:
            self.holes.append(found)
        if self._options.on_hole is not None:
            self._options.on_hole(found)

    def finished(self, reading: SourceReading) -> None:
        """Note that the range of a source is settled."""
        if not self._options.follow or reading.machine.cursor >= (
            self._options.bounds.stop or reading.machine.stop + 1
        ):
            self._left.pop(reading, None)
            self._arrived.set()

    def on_broken(self, address: str) -> None:
        """Note that the connection to a store is broken."""
        if address in self._options.stores:
            for reading in tuple(self._readings):
                reading.on_broken(address)

    # ------------------------------------------------------------------------------------------------------------ rules

    async def _find(self) -> tuple[list[SourceContents], dict[str, list[StoredAnswer]], int]:
        """Return the wanted sources, the answers of the stores, and when they were asked (ns)."""
        asked_at = machine.clock.monotonic_ns()
        bounds = self._options.bounds
        answers = await ask_all(
            self._routes,
            self._options.stores,
            self._options.patience,
            topic=self.topic,
            since=bounds.time,
            until=bounds.stop_time,
        )
        quorum = self._options.quorum or (len(self._options.stores) // 2 + 1 if self._options.stable else 1)
        if len(answers) < quorum:
            raise ReadFailed(_too_few(self.topic, self._options.stores, answers, quorum))
        return [source for source in sources_of(answers) if self._wanted(source)], answers, asked_at

    async def _begin(self) -> None:
        found, answers, asked_at = await self._find()
        for source in found:
            self._add(source, asked_at, answers, len(found))
        if self._options.follow:
            self._follower = asyncio.get_running_loop().create_task(self._follow())
        if not self._left:
            self._arrived.set()

    def _wanted(self, source: SourceContents) -> bool:
        wanted = self._options.sources
        return wanted is None or source.session_id in wanted or bool(source.names & wanted)

    def _add(self, source: SourceContents, asked_at: int, answers: Collection[str], sources: int) -> None:
        away = [store for store in self._options.stores if store not in answers]
        first, stop = self._range(source, len(away))
        window = max(LEAST_MESSAGES, WINDOW_MESSAGES // max(1, sources))
        terms = ReadingTerms(window, round(self._options.patience * SECOND), self._options.times)
        reading = SourceReading(self, self._routes, source, (first, stop), terms)
        self._readings[reading] = self._left[reading] = None
        self.sources.append(SourceRange(source.topic, source.session_id, source.incarnation, first, stop))
        reading.start(asked_at, away)

    def _quorum(self, source: SourceContents, away: int) -> int:
        """Return the stores that must have synced a message: a majority of those that may know the source."""
        return min(self._options.quorum or (len(source.answers) + away) // 2 + 1, len(source.answers))

    def _stop(self, source: SourceContents, away: int) -> int:
        """Return the end of what may be read of a source as of now."""
        if self._options.stable:
            return source.stable_stop(self._quorum(source, away)) or 0
        newest = max(source.stop(answer) for answer in source.answers.values())
        # A caller who names the end knows that the messages exist; a store that is behind must not hide them.
        return max(newest, self._options.bounds.stop or 0)

    def _range(self, source: SourceContents, away: int) -> tuple[int, int]:
        bounds = self._options.bounds
        answers = [answer for answer in source.answers.values() if answer.ranges]
        stop = self._stop(source, away)
        if bounds.stop is not None:
            stop = min(stop, bounds.stop)
        elif bounds.stop_time is not None:
            stop = min(stop, max((answer.until or 0 for answer in answers), default=0))
        first = source.first()
        if bounds.number is not None:
            first = max(bounds.number, source.begin())
        elif bounds.time is not None:
            first = min((answer.since for answer in answers if answer.since is not None), default=first)
        elif bounds.count is not None:
            first = max(first, stop - bounds.count)
        elif bounds.latest:
            first = stop
        return first, max(first, stop)

    # ----------------------------------------------------------------------------------------------------------- follow

    async def _follow(self) -> None:
        """Ask the stores again and again, and let the ranges grow; sources that are new are read from their begin."""
        while not self._closed:
            await asyncio.sleep(FOLLOW_SECONDS)
            asked_at = machine.clock.monotonic_ns()
            first = min((reading.machine.cursor for reading in self._readings), default=1)
            answers = await ask_all(
                self._routes, self._options.stores, self._options.patience, topic=self.topic, first=max(1, first)
            )
            away = len(self._options.stores) - len(answers)
            known = list(self._readings)
            for source in filter(self._wanted, sources_of(answers)):
                reading = next((one for one in known if _is(one, source)), None)
                if reading is None:
                    self._add(source, asked_at, answers, len(known) + 1)
                    continue
                self._grow(reading, source, away, (asked_at, max(1, first)))

    def _grow(self, reading: SourceReading, source: SourceContents, away: int, asked: tuple[int, int]) -> None:
        reading.contents.answers.update(source.answers)
        stop, bound = self._stop(source, away), self._options.bounds.stop
        reading.learn(*asked, stop if bound is None else min(stop, bound))


def _is(reading: SourceReading, source: SourceContents) -> bool:
    return any(reading.contents.is_about(answer) for answer in source.answers.values())


@attrs.frozen
class StoredTopics:
    """The sources that `stores` hold."""

    stores: tuple[str, ...]
    sources: list[SourceContents]


async def stored(
    routes: RangeRoutes, topic: str, stores: Sequence[str], patience: float
) -> tuple[StoredTopics, list[str]]:
    """Return what stores hold of a topic, empty: of all, and the stores that do not answer."""
    answers = await ask_all(routes, stores, patience, topic=topic)
    silent = [store for store in stores if store not in answers]
    return StoredTopics(tuple(answers), sources_of(answers)), silent


async def ask_all(
    routes: RangeRoutes, stores: Sequence[str], patience: float, **asked: object
) -> dict[str, list[StoredAnswer]]:
    """Return the answers of the stores that answer within `patience` seconds.

    Once a majority of the stores has answered, the others have a tenth of the patience.
    """
    answers: dict[str, list[StoredAnswer]] = {}

    async def ask(store: str) -> None:
        with suppress(StoreAway):
            answers[store] = await routes.ask(store, **asked)

    tasks = [asyncio.get_running_loop().create_task(ask(store)) for store in stores]
    try:
        deadline = asyncio.get_running_loop().time() + patience
        left: set[asyncio.Task[None]] = set(tasks)
        while left and (wait := deadline - asyncio.get_running_loop().time()) > 0:
            done, left = await asyncio.wait(left, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if len(answers) > len(stores) // 2:
                deadline = min(deadline, asyncio.get_running_loop().time() + patience / 10)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {store: answers[store] for store in stores if store in answers}


def _too_few(topic: str, stores: Sequence[str], answers: Collection[str], quorum: int) -> str:
    silent = ", ".join(store for store in stores if store not in answers)
    return (
        f"{len(answers)} of {len(stores)} stores of '{topic}' answered and {quorum} are needed to know what is stable: "
        f"start {silent}, correct the addresses, or lower the quorum"
    )
