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
from stablecast.client.range_contents import SourceContents, StableRule, counting, sources_of
from stablecast.client.range_inquiry import Answers, RangeRoutes, ask_all
from stablecast.client.range_replay import MAX_PAUSE_SECONDS, ReplayPace, paced
from stablecast.client.range_source import ReadingTerms, SourceReading
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.quorum import GroupRules, quorum_of
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
    """Too few stores answered, or know a source, to know what is stable. The text names them and the remedy."""


class TopicUnknown(ReadFailed):
    """No store that answered holds a source of the topic, and the reader was not told that the topic may be new."""


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
    groups: GroupRules = GroupRules()
    new: bool = False
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
        self._held_back: list[SourceContents] = []
        self._failure: BaseException | None = None
        self._open = self._closed = False

    async def __aenter__(self) -> Self:
        """Ask the stores what they hold, and begin to read.

        Raises:
            ReadFailed: Too few stores answered within the patience.
            TopicUnknown: No store holds the topic.
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
        """Return the sources and the ranges that a reader would read now, without reading.

        Raises ReadFailed, TopicUnknown.
        """
        found, answers, _ = await self._find()
        self._check_topic(found, answers)
        self._check_open_questions(found, answers)
        ranges = [(source, *self._range(source, answers, waits=True)) for source in found]
        return [
            (source, SourceRange(source.topic, source.session_id, source.incarnation, first, stop))
            for source, first, stop in ranges
        ]

    async def __aexit__(self, *_: object) -> None:
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
        source, reason = reading.contents, hole.reason
        if reason is HoleReason.NEVER_STORED and hole.first in source.unstable and source.holds(hole.first):
            reason = HoleReason.UNSTABLE
        names = (source.topic, source.session_id, source.incarnation)
        found = MissingRange(*names, hole.first, hole.stop - 1, reason)
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

    async def _find(self) -> tuple[list[SourceContents], Answers, int]:
        """Return the wanted sources, the answers of the stores, and when they were asked (ns). Raises ReadFailed."""
        asked_at = machine.clock.monotonic_ns()
        bounds = self._options.bounds
        answers = await self._ask(self._decided, since=bounds.time, until=bounds.stop_time)
        if not self._enough(answers):
            raise ReadFailed(_too_few(self.topic, self._options.stores, answers, self._least))
        return self._sources(answers), answers, asked_at

    async def _begin(self) -> None:
        found, answers, asked_at = await self._find()
        self._check_topic(found, answers)
        if not self._options.follow:
            self._check_open_questions(found, answers)
        for source in found:
            if self._waits(source, answers):
                self._held_back.append(source)
            else:
                self._add(source, asked_at, answers, len(found))
        if self._options.follow:
            self._follower = asyncio.get_running_loop().create_task(self._follow())
            self._follower.add_done_callback(self._on_follower_end)

    async def _ask(self, enough: Callable[[Answers], bool], **asked: object) -> Answers:
        options = self._options
        return await ask_all(self._routes, options.stores, options.patience, enough, topic=self.topic, **asked)

    def _sources(self, answers: Answers) -> list[SourceContents]:
        return [source for source in sources_of(answers) if self._wanted(source)]

    def _wanted(self, source: SourceContents) -> bool:
        wanted = self._options.sources
        return wanted is None or source.session_id in wanted or bool(source.names & wanted)

    @property
    def _least(self) -> int:
        """The stores that must answer, because the others may have sources of their own."""
        return self._options.quorum or (quorum_of(len(self._options.stores)) if self._knows else 1)

    @property
    def _knows(self) -> bool:
        """True if messages that are read are stable: then their history must be known, which one store may lack."""
        return self._options.stable or self._options.bounds.stop is not None

    def _rule(self, source: SourceContents) -> StableRule:
        options = self._options
        if options.quorum is not None:
            return counting(options.stores, options.quorum)
        return source.rule(options.stores, options.groups)

    def _enough(self, answers: Answers) -> bool:
        """Return whether the answers tell which sources there are."""
        if len(answers) >= self._least:
            return True
        if self._options.quorum is not None:
            return False
        rules = [(source, self._rule(source)) for source in self._sources(answers)]
        return bool(rules) and all(rule.whole and rule.met(rule.mask(source.answers)) for source, rule in rules)

    def _decided(self, answers: Answers) -> bool:
        """Return whether the answers also tell what is stable."""
        return self._enough(answers) and not any(self._is_open(source, answers) for source in self._sources(answers))

    def _silent(self, answers: Collection[str]) -> list[str]:
        return [store for store in self._options.stores if store not in answers]

    def _is_open(self, source: SourceContents, answers: Collection[str]) -> bool:
        """Return whether too few stores know a source to tell what is stable."""
        return self._knows and source.is_open(self._rule(source), self._silent(answers))

    def _waits(self, source: SourceContents, answers: Collection[str]) -> bool:
        """Return whether too little is known of a source to read it. A reader that follows learns its history soon."""
        return self._is_open(source, answers) or (self._options.follow and not source.is_announced)

    def _check_topic(self, found: Collection[SourceContents], answers: Collection[str]) -> None:
        """Raise TopicUnknown if there is nothing to read, unless the topic may be new."""
        if not found and not self._options.new:
            raise TopicUnknown(_nothing(self.topic, self._silent(answers), self._options.sources))

    def _check_open_questions(self, found: Collection[SourceContents], answers: Collection[str]) -> None:
        """Raise ReadFailed if what is stable of a source cannot be known."""
        for source in found:
            if self._is_open(source, answers):
                silent = self._silent(answers)
                raise ReadFailed(_too_few_know(source, self._rule(source), len(answers), silent))

    def _add(
        self, source: SourceContents, asked_at: int, answers: Collection[str], sources: int, *, new: bool = False
    ) -> None:
        options = self._options
        first, stop = self._range(source, answers, waits=options.follow, new=new)
        window = max(LEAST_MESSAGES, WINDOW_MESSAGES // max(1, sources))
        rule = self._rule(source) if options.stable else None
        terms = ReadingTerms(window, round(options.patience * SECOND), options.times, options.follow, rule)
        reading = SourceReading(self, self._routes, source, (first, stop), terms)
        self._readings[reading] = self._left[reading] = None
        self.sources.append(SourceRange(source.topic, source.session_id, source.incarnation, first, stop))
        reading.start(asked_at, self._silent(answers))

    def _stop(self, source: SourceContents, answers: Collection[str], waits: bool) -> int:
        """Return the end of what may be read of a source as of now; one who `waits` passes no number in doubt."""
        if not self._options.stable:
            newest = max((source.stop(answer) for answer in source.answers.values()), default=0)
            # A caller who names the end knows that the messages exist; a store that is behind must not hide them.
            return max(newest, self._options.bounds.stop or 0)
        if waits:
            return source.stable_stop(self._rule(source), source.first(), self._silent(answers))
        return source.refuse(self._rule(source), self._silent(answers))

    def _range(
        self, source: SourceContents, answered: Collection[str], *, waits: bool, new: bool = False
    ) -> tuple[int, int]:
        bounds = self._options.bounds
        answers = [answer for answer in source.answers.values() if answer.ranges]
        stop = self._stop(source, answered, waits)
        if bounds.stop is not None:
            stop = min(stop, bounds.stop)
        elif bounds.stop_time is not None:
            stop = min(stop, max((answer.until or 0 for answer in answers), default=0))
        first = source.first()
        if bounds.number is not None:
            first = max(bounds.number, source.begin())
        elif bounds.time is not None:
            first = min((answer.since for answer in answers if answer.since is not None), default=first)
        elif bounds.count is not None and not new:
            first = max(first, stop - bounds.count)
        elif bounds.latest and not new:
            first = stop
        return first, max(first, stop)

    # ----------------------------------------------------------------------------------------------------------- follow

    async def _follow(self) -> None:
        """Ask the stores again and again, and let the ranges grow; sources that are new are read from their begin."""
        while not self._closed:
            await asyncio.sleep(FOLLOW_SECONDS)
            asked_at = machine.clock.monotonic_ns()
            first = min((reading.machine.cursor for reading in self._readings), default=0)
            answers = await self._ask(lambda _: True, first=first)  # The next round asks those that are away.
            unknown = False
            for source in self._sources(answers):
                growing = [one for one in self._readings if one.contents.same(source)]
                for reading in growing:
                    self._grow(reading, source, answers, (asked_at, first))
                if not growing:
                    unknown |= not self._waits(source, answers)
            if unknown and self._enough(answers):
                with suppress(ReadFailed):
                    await self._begin_new()

    def _on_follower_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failure = failure
            self._arrived.set()

    async def _begin_new(self) -> None:
        """Begin with the sources that were not known before, or of which too little was known. Raises ReadFailed."""
        found, answers, asked_at = await self._find()
        for source in found:
            if self._waits(source, answers) or any(one.contents.same(source) for one in self._readings):
                continue
            new = not any(known.same(source) for known in self._held_back)
            self._add(source, asked_at, answers, len(self._readings) + 1, new=new)

    def _grow(self, reading: SourceReading, source: SourceContents, answers: Answers, asked: tuple[int, int]) -> None:
        contents = reading.contents
        told = {store: answer for store, answer in source.answers.items() if contents.goes_on(answer)}
        for store in [store for store in contents.answers if store in answers and store not in told]:
            reading.forget(store)
        contents.answers.update(told)
        silent = self._silent(answers)
        if self._options.stable:
            stop = contents.stable_stop(self._rule(contents), asked[1], silent, told)
        else:
            stop = self._stop(contents, answers, waits=True)
        bound = self._options.bounds.stop
        reading.learn(*asked, stop if bound is None else min(stop, bound), silent)


def _too_few(topic: str, stores: Sequence[str], answers: Collection[str], quorum: int) -> str:
    silent = ", ".join(store for store in stores if store not in answers)
    return (
        f"{len(answers)} of {len(stores)} stores of '{topic}' answered and {quorum} are needed to know what is stable: "
        f"start {silent}, correct the addresses, or lower the quorum"
    )


def _nothing(topic: str, silent: Sequence[str], wanted: Collection[int] | None) -> str:
    which = "a source" if wanted is None else f"source {' or '.join(map(str, sorted(wanted)))}"
    nobody = f"no store holds {which} of '{topic}'"
    if silent:
        nobody = f"no store that answered holds {which} of '{topic}', and {', '.join(silent)} did not answer"
    return f"{nobody}: `stablecast topics` shows what they hold; new=True (--new) is for a topic that may be new"


def _too_few_know(source: SourceContents, rule: StableRule, answered: int, silent: Sequence[str]) -> str:
    remedies = [f"start {', '.join(silent)}" if silent else "wait until other stores have its messages again"]
    if rule.unnamed:
        remedies.append(f"name all {sum(rule.quorums.rules.sizes)} stores of the source")
    name = f"source {source.session_id}" if source.session_id else f"life {source.incarnation:016x}"
    return (
        f"{answered} of {len(rule.stores)} stores of '{source.topic}' answered, {len(source.answers)} of them know "
        f"{name}, and {rule.quorums.needed} are needed to know what is stable: {', '.join(remedies)}, or lower the "
        "quorum"
    )
