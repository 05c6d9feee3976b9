"""A search by time among very many messages: the first message since a time, by a reader, from a store of that size.

    python -m tools.bench.time_search --messages 100000000

A source sends some messages to a store, which ends. Its journal then grows to the wanted size: the code of the store
appends runs of messages under the next numbers, each record with its time. The store starts on it, and a
reader finds the first message since each of many times, over the network and with the message itself. The bytes of
times are those of the records, which no other index accompanies.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import uvloop

from stablecast.client import Context
from stablecast.store.journal import Journal
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import build
from tests.support.program import store

TOPIC: Final = "orders"
SENT: Final = 20_000
SEARCHES: Final = 200
RUN: Final = 200
"""Messages of a record. A source that is not in a hurry has fewer, a fast one more."""

TIME_BYTES: Final = 8
"""Bytes of a record that hold its time."""

FLUSHED: Final = 64
"""Records that are appended between two looks at the queue of the writer."""


async def send(address: str, size: int) -> None:
    """Send the first messages, and wait until they are stable."""
    async with Context(session_id=7) as context:
        source = await context.source(TOPIC, stores=[address])
        await source.send_many([bytes(size)] * SENT)
        await source.wait_stable_through(SENT - 1)


async def grow(directory: Path, messages: int, size: int) -> tuple[dict[str, int], float]:
    """Append runs until the journal has so many messages; return counts, and when the last one came."""
    journal = Journal.open(directory)
    states = [bytes(state) for state in journal.recovered_states]
    journal.set_checkpoint(lambda: states)
    synced = asyncio.Event()
    journal.on_synced = lambda _: synced.set()
    journal.start(asyncio.get_running_loop())
    [stream] = streams(journal)
    first, count, _ = journal.extents(stream)[-1]
    at = first + count
    tag, contents = journal.extents(stream)[-1][2], [bytes(size)] * RUN
    topic_index = codec.split(tag)[1]
    records = 0
    while at < messages:
        journal.append_messages(stream, at, RUN, tag, build(topic_index, at, contents), records + 1)
        at, records = at + RUN, records + 1
        if records % FLUSHED == 0:
            while journal.pressure:
                synced.clear()
                await synced.wait()
    end = time.time()
    found = {"messages": at, "records": records, "run": RUN, "segments": journal.segments}
    await journal.close()
    return found, end


def streams(journal: Journal) -> list[int]:
    """Return the streams of a journal: the RegIDs in the states of its store."""
    found = (json.loads(state) for state in journal.recovered_states)
    numbers = [value for state in found for name, value in walk(state) if name == "reg_id"]
    return [number for number in dict.fromkeys(numbers) if journal.extents(number)]


def walk(state: Any) -> Iterator[tuple[str, Any]]:
    """Yield all names and values of a state."""
    if isinstance(state, dict):
        for name, value in state.items():
            yield name, value
            yield from walk(value)


async def search(address: str, begin: float, end: float) -> dict[str, float]:
    """Return the milliseconds until a reader has the first message since a time: median and longest."""
    seconds = []
    async with Context() as context:
        for turn in range(SEARCHES):
            at = datetime.fromtimestamp(begin + (end - begin) * (turn * 7919 % SEARCHES) / SEARCHES, UTC)
            started = time.perf_counter()
            [(_, found)] = await context.reader(TOPIC, stores=[address], since=at).plan()
            until = found.first + 1  # More would only measure how fast the store sends.
            async with context.reader(TOPIC, stores=[address], since=found.first, until=until) as reader:
                [message] = [message async for message in reader]
            seconds.append(time.perf_counter() - started)
            assert message.number == found.first
    seconds.sort()
    return {
        "median": round(seconds[len(seconds) // 2] * 1e3, 2),
        "95 %": round(seconds[len(seconds) * 95 // 100] * 1e3, 2),
        "longest": round(seconds[-1] * 1e3, 2),
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000_000)
    parser.add_argument("--size", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "a"
        limit = ("-o", "repository-disk-file-size-limit=64000000000")
        with store(place, *limit) as (_, address):
            uvloop.run(send(address, asked.size))
        begin = time.time()
        grown, end = uvloop.run(grow(place, asked.messages, asked.size))
        grown["bytes"] = sum(file.stat().st_size for file in place.rglob("*.seg"))
        started = time.perf_counter()
        with store(place, *limit) as (_, address):
            opened = time.perf_counter() - started
            found = uvloop.run(search(address, begin, end))
    times = round(TIME_BYTES * grown["records"] / grown["messages"], 4)
    load = round(os.getloadavg()[0], 1)
    result = {**grown, "load": load, "open_s": round(opened, 1), "time_bytes_a_message": times, "search_ms": found}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
