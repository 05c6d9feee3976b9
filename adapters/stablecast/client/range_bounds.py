"""Where a reader begins and ends, or a receiver that no store knows begins: a number, a time, the last messages.

A store that knows a receiver by its session id remembers how far it is, and then the bound does not count. It counts
once for each source: a later life of the source goes on where the receiver is.
"""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Protocol

import attrs

from stablecast.client.range_inquiry import RangeRoutes, StoreAway
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.messages import SourceInfo, StoreEntry

EARLIEST = "earliest"
LATEST = "latest"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([a-z]+) ago")
_LAST = re.compile(r"last[ :](\d{1,12})")
_UNITS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400,
          "day": 86_400, "w": 604_800, "week": 604_800}  # fmt: skip


class BoundError(StablecastError):
    """A text is no bound of a range. The text names the forms that are."""


@attrs.frozen
class Last:
    """The last `count` numbers of each source; see `last`."""

    count: int


def last(count: int) -> Last:
    """Return the bound of the last `count` messages of each source; each piece of a large message counts as one.

    Raises MisuseError.
    """
    if count < 1:
        raise MisuseError(f"last({count}) is no message: ask for at least one")
    return Last(count)


Bound = int | datetime | Last | str | None


@attrs.frozen
class ReadBounds:
    """The bounds of a reader as it asks stores: numbers, or times in ns of the epoch.

    Attributes:
        number, time, count: Where to begin: a number, a time, or so many before the end; None of them: the earliest.
        latest: Begin at the end.
        stop, stop_time: Where to end, exclusive; neither: the stable end as of now.
    """

    number: int | None = None
    time: int | None = None
    count: int | None = None
    latest: bool = False
    stop: int | None = None
    stop_time: int | None = None

    @classmethod
    def of(cls, since: Bound, until: Bound) -> "ReadBounds":
        """Return the bounds of a reader. Raises MisuseError for a bound that makes no sense."""
        stop, stop_time = _end(until)
        match since:
            case None | "earliest":
                bounds = cls(stop=stop, stop_time=stop_time)
            case "latest":
                bounds = cls(latest=True, stop=stop, stop_time=stop_time)
            case Last():
                bounds = cls(count=since.count, stop=stop, stop_time=stop_time)
            case datetime():
                bounds = cls(time=nanoseconds(since), stop=stop, stop_time=stop_time)
            case int() if since >= 0:
                bounds = cls(number=since, stop=stop, stop_time=stop_time)
            case _:
                raise MisuseError(
                    f"a reader cannot begin at {since!r}: give a number from 0 on, a datetime, last(100), 'earliest' "
                    "or 'latest'"
                )
        bounds.check()
        return bounds

    def check(self) -> None:
        """Raise MisuseError if nothing can lie between the bounds."""
        if self.number is not None and self.stop is not None and self.number >= self.stop:
            raise MisuseError(f"a reader from {self.number} until {self.stop} has no number: until is exclusive")
        if self.time is not None and self.stop_time is not None and self.time >= self.stop_time:
            raise MisuseError("a reader whose since is not before its until has no message: exchange them")


def _end(until: Bound) -> tuple[int | None, int | None]:
    match until:
        case None | "latest":
            return None, None
        case datetime():
            return None, nanoseconds(until)
        case int() if until > 0:
            return until, None
    raise MisuseError(
        f"a reader cannot end at {until!r}: give a number from 1 on, a datetime, or None for the stable end"
    )


def nanoseconds(moment: datetime) -> int:
    """Return a moment in ns of the epoch; one without a zone is in the local zone."""
    elapsed = moment.astimezone(UTC) - _EPOCH
    return elapsed // timedelta(microseconds=1) * 1000


def parse_bound(text: str, now_ns: int) -> Bound:
    """Return the bound that a user wrote; None for an empty text. `now_ns` is the time in ns of the epoch.

    A time without a zone is in UTC. Raises BoundError.

    >>> parse_bound("17", 0), parse_bound("last 100", 0), parse_bound("10 min ago", 3600 * 10**9).isoformat()
    (17, Last(count=100), '1970-01-01T00:50:00+00:00')
    """
    wanted = text.strip().lower()
    if wanted in ("", EARLIEST, LATEST):
        return wanted or None
    if re.fullmatch(r"\d{1,18}", wanted):
        return int(wanted)
    if (found := _LAST.fullmatch(wanted)) is not None and int(found[1]):
        return Last(int(found[1]))
    if (found := _AGO.fullmatch(wanted)) is not None:
        unit = _UNITS.get(found[2], _UNITS.get(found[2].removesuffix("s")))
        if unit is not None:
            return _EPOCH + timedelta(microseconds=now_ns // 1000) - timedelta(seconds=float(found[1]) * unit)
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BoundError(
            f"'{text}' is no place in a topic: write a number, '10 min ago', 2026-01-31T12:00:00Z, 'last 100', "
            "earliest or latest"
        ) from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


PATIENCE_SECONDS = 5.0
"""Time to wait for the stores' answers about a time; without any, the receiver begins at the earliest message."""


class StartingSession(Protocol):
    """A session of a receiver, as it chooses its first number."""

    @property
    def info(self) -> SourceInfo | None:
        """Return the newest announcement of the source."""

    @property
    def returning(self) -> bool:
        """Return whether a store knows how far the receiver is."""

    def choose(self, question: AskLow, low: int) -> None: ...


@attrs.define(eq=False)
class ReceiverStart:
    """Answers where the sessions of one receiver begin.

    Attributes:
        bounds: The bound, as a reader has it.
        routes: The way to ask stores.
    """

    _bounds: ReadBounds
    _routes: RangeRoutes
    _tasks: dict[asyncio.Task[None], None] = attrs.field(factory=dict)

    def number(self, question: AskLow, session: StartingSession) -> int | None:
        """Return the first number to deliver; None if the session is told later, when the stores have answered."""
        bounds, info = self._bounds, session.info
        if session.returning or info is None:
            return question.low
        if bounds.number is not None:
            return bounds.number
        if bounds.count is not None:
            return max(question.low, question.high + 1 - bounds.count)
        if bounds.latest:
            return question.high + 1
        if bounds.time is None or not info.stores:
            return question.low
        task = asyncio.get_running_loop().create_task(self._find(question, session, info, bounds.time))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return None

    def close(self) -> None:
        """End the questions to stores that are under way."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _find(self, question: AskLow, session: StartingSession, info: SourceInfo, time: int) -> None:
        """Ask the stores of the source for the first number since a time, and begin at the lowest.

        A store may lack messages, so fewer stores than a majority do not tell where the first one is.
        """

        async def ask(entry: StoreEntry) -> list[int | None]:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    found = await self._routes.ask(
                        entry.address, topic=info.topic, reg_id=entry.source_reg_id, since=time, first=1
                    )
            except (StoreAway, TimeoutError):
                return []
            # A store that does not know this life yet may name a number that the life uses again.
            return [one.since for one in found if one.readable and one.incarnation == info.incarnation]

        found = await asyncio.gather(*map(ask, info.stores))
        enough = sum(map(bool, found)) > sum(info.group_sizes) // 2
        numbers = [number for its in found for number in its if number is not None] if enough else []
        session.choose(question, max(question.low, min(numbers, default=question.low)))
