"""Print what stores hold, for `stablecast read` and `stablecast topics`."""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from stablecast.cli.interrupts import until_interrupted
from stablecast.client import Context, RangeReader
from stablecast.client.range_batch import StoredMessage, moment
from stablecast.client.range_bounds import parse_bound
from stablecast.client.range_contents import SourceContents
from stablecast.client.range_inquiry import StoredTopics
from stablecast.client.range_reader import MissingRange
from stablecast.client.range_replay import ReplayPace
from stablecast.config import client_files
from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.runtime.event_loop import run_loop
from stablecast.runtime.interfaces import choose, facing
from stablecast.text.console import note, printer, say, show
from stablecast.text.exit_status import FAILED


class SameTopic(StablecastError):  # noqa: N818  # a state of affairs
    """A topic cannot be replayed into itself."""


@attrs.frozen
class Place:
    """Hold the stores to ask, and how."""

    stores: Sequence[str]
    interface: str
    files: Sequence[Path]
    patience: float
    quorum: int | None = None

    def context(self, resolvers: Sequence[str] = ()) -> Context:
        """Return a new context. Raises AddressError, ConfigError, ConfigFileError, InterfaceError, OSError."""
        configuration = client_files.load(self.files, "", "")
        interface = choose(self.interface) if self.interface else facing(self.stores)
        return Context(resolver=resolvers, interface=interface, configuration=configuration)


@attrs.frozen
class ReadJob:
    topic: str
    place: Place
    since: str
    until: str
    sources: Sequence[int] | None
    follow: bool
    count: int
    as_json: bool
    new: bool = False


def read(job: ReadJob) -> int:
    """Print the messages of a range; return the exit status."""
    return run_loop(_read(job))


async def _read(job: ReadJob) -> int:
    missing = await _reading(
        job, lambda _, reader: _print(reader, job), follow=job.follow, times=job.as_json, new=job.new
    )
    return FAILED if missing else 0


async def _reading(
    job: ReadJob,
    use: Callable[[Context, RangeReader], Awaitable[None]],
    resolvers: Sequence[str] = (),
    **how: bool,
) -> int:
    """Use a reader of the range until its end or a signal; return how many numbers were missing."""
    now, place = machine.clock.wall_ns(), job.place
    async with place.context(resolvers) as context:
        reader = context.reader(
            job.topic,
            stores=place.stores,
            sources=job.sources,
            since=parse_bound(job.since, now),
            until=parse_bound(job.until, now),
            patience=place.patience,
            quorum=place.quorum,
            on_hole=lambda hole: _report(hole, job.as_json),
            **how,
        )
        with until_interrupted():
            async with reader:
                await use(context, reader)
    return reader.missing_numbers


async def _print(reader: RangeReader, job: ReadJob) -> None:
    left = job.count
    async for message in reader:
        _show(message, job.as_json)
        left -= 1
        if left == 0:
            return


def _show(message: StoredMessage, as_json: bool) -> None:
    if not as_json:
        output = machine.process.output().buffer
        output.write(message.payload + b"\n")
        output.flush()
        return
    say(
        {
            "source": message.session_id,
            "life": f"{message.incarnation:016x}",
            "number": message.number,
            "came_at": None if message.came_at is None else message.came_at.isoformat(),
            "payload": message.payload.decode("utf-8", "backslashreplace"),
            **({"properties": _plain(message.properties)} if message.properties else {}),
        }
    )


def _plain(properties: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(properties, default=str))
    return found


def _report(hole: MissingRange, as_json: bool) -> None:
    if as_json:
        missing = {"source": hole.session_id, "first": hole.first, "last": hole.last, "reason": hole.reason.value}
        say({"missing": missing})
    else:
        note(f"stablecast: {hole}")


@attrs.frozen
class ReplayJob:
    """Hold the arguments of `stablecast replay`; `into` is empty to print, `speed` None for no pauses."""

    read: ReadJob
    into: str
    targets: Sequence[str]
    speed: float | None
    max_pause: float
    resolvers: Sequence[str]
    session_id: int


def replay(job: ReplayJob) -> int:
    """Send the messages of a range again; return the exit status."""
    ReplayPace(job.speed, job.max_pause)
    if job.into == job.read.topic:
        raise SameTopic(f"'{job.into}' is the topic that is read: name another one with --into")
    return run_loop(_replay(job))


async def _replay(job: ReplayJob) -> int:
    sent = 0

    async def use(context: Context, reader: RangeReader) -> None:
        nonlocal sent
        sent = await _send_again(context, reader, job)

    missing = await _reading(job.read, use, job.resolvers, times=True)
    if job.into:
        summary = {"topic": job.into, "sent": sent, "missing": missing}
        show(summary, [f"{sent:,} messages sent to '{job.into}', all stable"], job.read.as_json)
    return FAILED if missing else 0


async def _send_again(context: Context, reader: RangeReader, job: ReplayJob) -> int:
    messages = reader.replay(job.speed, job.max_pause)
    if not job.into:
        async for message in messages:
            _show(message, job.read.as_json)
        return 0
    source = await context.source(job.into, stores=job.targets, session_id=job.session_id)
    count = 0
    async for message in messages:
        await source.send(message.payload, message.properties or None)
        count += 1
    if count:
        await source.wait_stable_through(source.next_number - 1)
    return count


def topics(topic: str, place: Place, as_json: bool) -> int:
    """Print what the stores hold; return the exit status."""
    return run_loop(_topics(topic, place, as_json))


async def _topics(topic: str, place: Place, as_json: bool) -> int:
    async with place.context() as context:
        found, silent = await context.stored(topic, stores=place.stores, patience=place.patience)
    for store in silent:
        note(f"stablecast: store {store} does not answer: start it, or correct the address")
    if as_json:
        for source in found.sources:
            say(_summary(found, source))
    elif found.sources:
        _table(found)
    else:
        note(f"no store holds {'a source of ' + repr(topic) if topic else 'a topic'}")
    return FAILED if silent else 0


def _summary(found: StoredTopics, source: SourceContents) -> dict[str, Any]:
    ranges = source.ranges
    times = _times(source)
    stable = found.stable_stop(source)
    return {
        "topic": source.topic,
        "source": source.session_id,
        "life": f"{source.incarnation:016x}",
        "lives": [[f"{life:016x}", first] for life, first in source.lives],
        "ranges": [[first, stop - 1] for first, stop in ranges],
        "stable": None if stable is None else stable - 1,
        "messages": sum(stop - first for first, stop in ranges),
        "oldest": times[0],
        "newest": times[1],
        "bytes": max(answer.stored_bytes for answer in source.answers.values()),
        "stores": {
            store: {"first": answer.trail, "last": source.stop(answer) - 1, "bytes": answer.stored_bytes}
            for store, answer in source.answers.items()
        },
        "asked": len(found.asked),
    }


def _times(source: SourceContents) -> tuple[str | None, str | None]:
    oldest = min((answer.oldest for answer in source.answers.values() if answer.oldest is not None), default=None)
    newest = max((answer.newest for answer in source.answers.values() if answer.newest is not None), default=None)
    first, last = moment(oldest), moment(newest)
    return (first.isoformat() if first else None, last.isoformat() if last else None)


def _stable(newest: int | None, first: int) -> str:
    if newest is None:
        return "?"
    return f"to {newest}" if newest >= first else "none"


def _table(found: StoredTopics) -> None:
    from rich.table import Table  # noqa: PLC0415 - slow to import, and JSON needs none

    columns = ("topic", "source", "lives", "numbers", "stable", "messages", "oldest", "newest", "bytes", "stores")
    table = Table(*columns, box=None)
    for row in _rows(found):
        table.add_row(*row)
    printer().print(table)


def _rows(found: StoredTopics) -> Iterator[tuple[str, ...]]:
    for source in found.sources:
        summary = _summary(found, source)
        ranges = [f"{first}-{last}" for first, last in summary["ranges"]]
        shown = ", ".join(ranges[:3]) + (f" and {len(ranges) - 3} more" if len(ranges) > 3 else "")
        yield (
            source.topic,
            str(source.session_id or f"life {summary['life']}"),
            str(len(source.lives)),
            shown or "none",
            _stable(summary["stable"], source.first()),
            str(summary["messages"]),
            (summary["oldest"] or "-")[:19],
            (summary["newest"] or "-")[:19],
            str(summary["bytes"]),
            f"{len(source.answers)} of {len(found.asked)}",
        )
