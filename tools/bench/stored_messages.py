"""Reading stored messages: a receiver that recovers, a reader, Spark, a store that is killed, and a search by time.

    python -m tools.bench.stored_messages --messages 1000000 --size 100 --spark

Three stores run as processes of the shipped command. Rates are messages a second; the ratio to the receiver's recovery
in the same run is what counts on a machine that others use.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import uvloop

from stablecast.client import Context
from tests.support.program import Program, store

TOPIC: Final = "orders"
RUN: Final = 10_000
"""Messages that are sent before the sender waits until they are stable."""

SEARCHES: Final = 200


def payload(number: int, size: int) -> bytes:
    """Return the content of a message, its number first."""
    return b"%020d" % number + bytes(size - 20)


async def fill(stores: list[str], messages: int, size: int) -> None:
    """Send the messages, and wait until they are stable."""
    async with Context(session_id=7) as context:
        source = await context.source(TOPIC, stores=stores, options={"ume_flight_size": 2 * RUN})
        for first in range(0, messages, RUN):
            stop = min(messages, first + RUN)
            await source.send_many([payload(number, size) for number in range(first, stop)])
            await source.wait_stable_through(stop - 1)


async def recover(stores: list[str], messages: int) -> float:
    """Return the rate of a receiver that recovers everything from the stores."""
    async with Context(session_id=7) as owner, Context(session_id=8) as context:
        source = await owner.source(TOPIC, stores=stores)
        options = {"retransmit_request_outstanding_maximum": 5000}
        receiver = context.receiver(TOPIC, source=source.config.transport, options=options)
        begun, count = 0.0, 0
        async for batch in receiver.batches():
            begun = begun or time.perf_counter()
            count += len(batch)
            if count >= messages:
                break
        return count / (time.perf_counter() - begun)


async def read(stores: list[str], messages: int, size: int, victim: Program | None = None) -> float:
    """Return the rate of a reader; kill `victim` in the middle. Raises AssertionError for a gap or a repetition."""
    begun, at = time.perf_counter(), 0
    async with Context() as context, context.reader(TOPIC, stores=stores, quorum=2) as reader:
        async for batch in reader.batches():
            assert batch.first == at, f"{batch.first} came after {at}"
            for number, content in enumerate(batch.payloads(), at):
                assert content[:20] == b"%020d" % number, number
            at += len(batch)
            if victim is not None and at > messages // 2:
                victim.process.kill()
                victim = None
        assert not reader.holes, reader.holes
    assert at == messages, at
    return messages / (time.perf_counter() - begun)


async def search(stores: list[str], begin: datetime, end: datetime) -> list[float]:
    """Return the seconds of searches for the first message since a time, the longest last."""
    found = []
    async with Context() as context:
        for turn in range(SEARCHES):
            at = begin + (end - begin) * (turn * 7919 % SEARCHES) / SEARCHES
            started = time.perf_counter()
            await context.reader(TOPIC, stores=stores, since=at).plan()
            found.append(time.perf_counter() - started)
    return sorted(found)


def count_on_spark(master: str, stores: list[str], messages: int) -> dict[str, float]:
    """Return the rate of a count on Spark, the second of two, and the processor seconds of its processes."""
    from stablecast.evidence.spark import connect  # noqa: PLC0415 - it needs Java
    from stablecast.spark import register  # noqa: PLC0415

    spark = connect(master)
    register(spark)
    table = spark.read.format("stablecast-messages").option("stores", ",".join(stores))
    rate = cpu = 0.0
    for _ in range(2):
        begun, used = time.perf_counter(), _children()
        assert table.load(TOPIC).count() == messages
        rate, cpu = messages / (time.perf_counter() - begun), _children() - used
    spark.stop()
    return {"per_s": rate, "cpu_s": cpu}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--spark", action="store_true", help="count on local[1] and local[2], too")
    asked = parser.parse_args()
    found: dict[str, Any] = {"messages": asked.messages, "size": asked.size, "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        running = []
        for name in "abc":
            place = Path(directory) / name
            place.mkdir()
            options = ("-o", "repository-disk-file-size-limit=8589934592")
            running.append(stack.enter_context(store(place, *options)))
        stores = [address for _, address in running]
        begin = datetime.now(UTC) - timedelta(seconds=1)
        uvloop.run(fill(stores, asked.messages, asked.size))
        end = datetime.now(UTC)
        found["reader_per_s"] = round(uvloop.run(read(stores, asked.messages, asked.size)))
        found["receiver_per_s"] = round(uvloop.run(recover(stores, asked.messages)))
        times = uvloop.run(search(stores, begin, end))
        found["search_ms"] = {"median": round(times[len(times) // 2] * 1e3, 2), "longest": round(times[-1] * 1e3, 2)}
        if asked.spark:
            for master in ("local[1]", "local[2]"):
                found[f"spark {master}"] = count_on_spark(master, stores, asked.messages)
        killed = uvloop.run(read(stores, asked.messages, asked.size, running[0][0]))
        found["reader_with_a_killed_store_per_s"] = round(killed)
        found["store_bytes"] = sum(file.stat().st_size for file in Path(directory).rglob("*.seg"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
