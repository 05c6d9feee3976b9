"""A wildcard receiver of very many topics over sockets: time, datagrams, memory and descriptors.

    python -m tools.bench.wildcard [--over relay] [--topics 1000] [--change 100] [--transport tcp]

The relay or the service, the store and the sources are processes of their own. The sources exist first. Then a context
makes a receiver of their pattern. Some topics go and others come. At the end the receiver deregisters and closes.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import attrs
import uvloop

from stablecast.client import Context, Source, WildcardReceiver, resolution
from stablecast.config.option_kinds import Value
from tests.support.program import lbmrd, running, store
from tools.bench import processes
from tools.bench.scenario import Figures

OVER: Final = ("relay", "multicast", "service")
PATTERN: Final = r"^market[.]equity[.]\d+$"
AT_A_TIME: Final = 64
"""Number of sources that register at the same time."""

WITHIN_SECONDS: Final = 120.0
"""Time limit of each step."""

PAUSE_SECONDS: Final = 0.005
"""Time between two looks at a state that no event reports."""


@attrs.frozen
class Size:
    """The kind of resolution, the numbers of topics and of topics that are replaced, and the transport."""

    over: str = "relay"
    topics: int = 1_000
    change: int = 100
    transport: str = "tcp"


@attrs.frozen
class Place:
    over: str
    resolver: str
    store: str
    transport: str

    def context(self, session_id: int) -> Context:
        if self.over == "service":
            return Context(resolver_service=[self.resolver], session_id=session_id)
        if self.over == "relay":
            return Context(resolver=[self.resolver], session_id=session_id)
        group: dict[str, Value] = {"resolver_multicast_interface": "127.0.0.1", "resolver_multicast_ttl": 0}
        return Context(resolution=resolution(options=group), session_id=session_id)


def topic(number: int) -> str:
    return f"market.equity.{number}"


async def _sources(place: Place, wire: Connection) -> None:
    """Follow the commands of the parent: make, close or use the sources of a range; answer when it is done."""
    loop = asyncio.get_running_loop()
    sources: dict[int, Source] = {}
    places = asyncio.Semaphore(AT_A_TIME)

    async def make(context: Context, number: int) -> None:
        async with places:
            options = {"transport": place.transport}
            source = await context.source(topic(number), stores=[place.store], wait=False, options=options)
            await source.registered(WITHIN_SECONDS)
            sources[number] = source

    async with place.context(1) as context:
        while True:
            command, first, stop = await loop.run_in_executor(None, wire.recv)
            async with asyncio.TaskGroup() as group:
                for number in range(first, stop):
                    if command == "make":
                        group.create_task(make(context, number))
                    elif command == "close":
                        group.create_task(sources.pop(number).close())
                    else:
                        group.create_task(sources[number].send(b"%d" % number))  # It may wait for the rate limit.
            wire.send(None)


def _play(place: Place, wire: Connection) -> None:
    uvloop.run(_sources(place, wire))


async def _until(condition: Callable[[], bool]) -> float:
    """Wait for a condition; return the seconds."""
    began = time.monotonic()
    async with asyncio.timeout(WITHIN_SECONDS):
        while not condition():  # noqa: ASYNC110  # no event reports it
            await asyncio.sleep(PAUSE_SECONDS)
    return time.monotonic() - began


async def _read(receiver: WildcardReceiver, count: int) -> float:
    """Receive the first message of this number of topics; return the seconds."""
    began, found = time.monotonic(), set()
    async with asyncio.timeout(WITHIN_SECONDS):
        async for message in receiver:
            found.add(message.topic)
            if len(found) == count:
                message.consumed()  # A topic whose message is in hand is not left.
                break
    return time.monotonic() - began


def _datagrams(context: Context) -> int:
    """Return the datagrams of resolution, or the records of a service, that the context sent and received."""
    assert context._resolver is not None
    counted: list[dict[str, int]] = [kind.statistics() for kind in context._resolver._kinds]  # type: ignore[attr-defined]
    return sum(each.get("sent", 0) + each.get("received", 0) + each.get("told", 0) for each in counted)


def _descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len(tuple(Path("/proc/self/fd").iterdir()))


async def _receive(size: Size, place: Place, command: Callable[[str, int, int], Any]) -> Figures:
    loop, pid, stop = asyncio.get_running_loop(), os.getpid(), size.topics
    await loop.run_in_executor(None, command, "make", 0, stop)
    figures: dict[str, float] = {}
    async with place.context(2) as context:
        idle, descriptors, spent = (
            processes.resident(pid),
            _descriptors(),
            time.process_time(),
        )
        receiver = context.receiver(pattern=PATTERN)
        figures["found s"] = await _until(lambda: len(receiver.topics) == stop)
        registered = time.monotonic()
        await _until(lambda: len(context.lives) == stop)
        figures["sessions with all s"] = figures["found s"] + time.monotonic() - registered
        await loop.run_in_executor(None, command, "send", 0, stop)
        figures["first message of all s"] = await _read(receiver, stop)
        figures["processor s"] = time.process_time() - spent
        figures["datagrams or records"] = _datagrams(context)
        figures["KiB a topic"] = (processes.resident(pid) - idle) / stop / processes.KIB
        figures["descriptors a topic"] = (_descriptors() - descriptors) / stop
        before, spent, began = _datagrams(context), time.process_time(), time.monotonic()
        await asyncio.sleep(5)
        figures["datagrams or records a second later on"] = (_datagrams(context) - before) / 5
        figures["processor % later on"] = 100 * (time.process_time() - spent) / (time.monotonic() - began)
        await loop.run_in_executor(None, command, "make", stop, stop + size.change)
        figures["new topics found s"] = await _until(lambda: len(receiver.topics) == stop + size.change)
        await loop.run_in_executor(None, command, "close", 0, size.change)
        figures["old topics left s"] = await _until(lambda: len(receiver.topics) == stop)
        began = time.monotonic()
        async with asyncio.timeout(WITHIN_SECONDS):
            await receiver.deregister()
        figures["deregistered s"] = time.monotonic() - began
        began = time.monotonic()
        await receiver.close()
        figures["closed s"] = time.monotonic() - began
    return figures


def measured(size: Size, directory: Path) -> Figures:
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        resolver = ""
        if size.over == "relay":
            _, resolver = stack.enter_context(lbmrd())
        elif size.over == "service":
            service = stack.enter_context(running("srs", "--interface", "127.0.0.1", "--port", "0", "--json"))
            resolver = service.json_line()["address"]
        _, address = stack.enter_context(store(directory / "journal"))
        ours, theirs = spawn.Pipe()
        place = Place(size.over, resolver, address, size.transport)
        crowd = spawn.Process(target=_play, args=(place, theirs), daemon=True)
        crowd.start()
        stack.callback(crowd.join)
        stack.callback(crowd.kill)

        def command(*what: Any) -> None:
            ours.send(what)
            ours.recv()

        return uvloop.run(_receive(size, place, command))


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--over", choices=OVER, default="relay")
    for field in attrs.fields(Size)[1:]:
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    size = Size(**vars(parser.parse_args(arguments)))
    with tempfile.TemporaryDirectory() as folder:
        figures = {name: round(figure, 3) for name, figure in measured(size, Path(folder)).items()}
        print(json.dumps({**attrs.asdict(size), **figures}, indent=2))


if __name__ == "__main__":
    main()
