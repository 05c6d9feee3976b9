"""Messages through Spark while processes are killed: a topic, a streaming query, another topic, and what comes out.

    python -m tools.torture.spark_kills --runs 50 --messages 200000 --seed 1

Each run has three stores, an application that sends numbered messages, and a driver that copies the topic. `kill -9`
hits the application, a store, the driver, its planner, and a Python worker or a whole executor, each at a random
instant. What was killed is started again, as a supervisor would. Each driver divides the batches otherwise: the one
that it repeats, too. Half of the runs write in `foreachBatch`. At the end, both topics are read. Each number must be
there once, and each source's numbers must ascend in the first topic. It prints one JSON object a run, and one for all.
The exit status is 0 if nothing is missing, repeated or out of order.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, cast

import attrs

from stablecast.client import Context, RegistrationFailed
from stablecast.client.range_batch import RangeOwner
from tests.support.processes import children, until
from tests.support.program import Program, store

TOPIC: Final = "orders"
COPY: Final = "copies"
SESSION: Final = 7

BURST: Final = 500
"""Messages that the application sends at once."""

BATCH_ROWS: Final = 20_000
"""Messages of a batch of the query."""

PIECES: Final = (2_500, 4_000, 6_000, 11_000, 20_000)
"""Messages of a task; a driver draws one of them."""

SPREAD: Final = 10_000
"""Messages a second."""

PAUSE_SECONDS: Final = 5.0
"""Longest time between two kills."""

FAILED: Final = "failed:"
"""The begin of a line of the driver's log about a query that failed, and is started again."""

RUN_SECONDS: Final = 600.0
"""A run that takes longer hangs."""

KINDS: Final = ("sender", "store", "driver", "planner", "executor", "executor")
"""The victims of a run, in an order that the seed draws."""

MASTERS: Final = ("local[2]", "local[1]", "local[3]", "local-cluster[1,2,1024]")
"""The masters that a driver draws. Only the last one has executors that are processes of their own."""


@attrs.define
class Life:
    """A process that is started again whenever it ends with a failure.

    Attributes:
        arguments: Its arguments after the interpreter.
        lives: How often it was started.
        ended: Whether it ended by itself with status 0.
        failures: The ends of lives that nobody killed.
    """

    arguments: list[str]
    log: Path
    lives: int = 0
    killed: int = 0
    failures: list[str] = attrs.field(factory=list)
    process: "subprocess.Popen[bytes] | None" = None
    ended: Event = attrs.field(factory=Event)
    stopped: bool = False

    def keep(self) -> None:
        """Run it until it ends well."""
        while not self.stopped:
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tools.torture.spark_kills", *self.arguments], stdout=log, stderr=log
                )
            self.lives += 1
            status = self.process.wait()
            if status == 0:
                self.ended.set()
                return
            if status != -signal.SIGKILL:
                self.failures.append(f"life {self.lives} ended with status {status}")

    def kill(self) -> int | None:
        process = self.process
        if process is None or process.poll() is not None:
            return None
        self.killed += 1
        process.kill()
        return process.pid

    def stop(self) -> None:
        self.stopped = True
        self.kill()


def command_line(process: int) -> str:
    """Return the arguments of a process, empty if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def below(process: int) -> Iterator[int]:
    """Yield all processes that descend from one."""
    for child in children(process):
        yield child
        yield from below(child)


def workers(driver: int) -> list[int]:
    """Return the processes that run tasks: workers of Python, and executors of Java."""
    found = []
    for process in below(driver):
        text = command_line(process)
        if "CoarseGrainedExecutorBackend" in text and "java" in text.partition(" ")[0]:
            found.append(process)
        elif "pyspark.daemon" in text:
            found += children(process)
    return found


def planners(driver: int) -> list[int]:
    """Return the processes of the driver that plan the batches of the query."""
    return [one for one in below(driver) if "python_streaming_source_runner" in command_line(one)]


def kill(found: list[int], draw: random.Random) -> int | None:
    """Kill one of the processes; return its id, None if there is none."""
    while found:
        process = found.pop(draw.randrange(len(found)))
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
        return process
    return None


# --------------------------------------------------------------------------------------------------------- applications


async def send(stores: list[str], messages: int, seconds: float, started: Path) -> None:
    """Send the numbers that the stores do not have yet, spread over a time; end when all are stable.

    After the first burst it waits for the file `started`: until then the query has not begun.
    """
    while True:
        try:
            async with Context(session_id=SESSION) as context:
                source = await context.source(TOPIC, stores=stores)
                while (number := source.next_number) < messages:
                    stop = min(messages, number + BURST)
                    await source.send_many([b"%d" % one for one in range(number, stop)])
                    await asyncio.to_thread(until, started.exists, RUN_SECONDS)
                    await asyncio.sleep(seconds * BURST / messages)
                await source.wait_stable_through(messages - 1)
                return
        except RegistrationFailed as error:
            print(error, file=sys.stderr)


def drive(stores: str, master: str, seed: int, folder: Path) -> None:
    """Copy the topic until the file `sent` is there and all is copied; divide its batches as a draw tells."""
    life = len(list(folder.glob("life-*")))
    (folder / f"life-{life}").touch()
    draw = random.Random(f"{seed} {life}")
    piece, master = draw.choice(PIECES), master or draw.choice(MASTERS)
    print(f"life {life}: {master}, {piece} messages a task", flush=True)
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - an extra

    from stablecast.evidence.spark import connect  # noqa: PLC0415 - an extra, too
    from stablecast.spark import register  # noqa: PLC0415

    spark = connect(master)
    register(spark)
    found = (
        spark.readStream.format("stablecast-messages")
        .option("stores", stores)
        .option("maxRowsPerBatch", BATCH_ROWS)
        .option("partitionMessages", piece)
        .load(TOPIC)
    )

    def write(table: Any, batch: int) -> None:
        topic = table.repartition(draw.randint(1, 4)).write.format("stablecast-messages").option("stores", stores)
        topic.option("sink", COPY).option("batch", batch).mode("append").save(COPY)

    writer = found.select("payload").writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    if seed % 2:
        writer = writer.foreachBatch(write)
    else:
        writer = writer.format("stablecast-messages").option("stores", stores).option("topic", COPY)
    sent = False
    while not sent:
        try:
            query = writer.start()
            while not (folder / "sent").exists():
                query.awaitTermination(1)
            query.processAllAvailable()
            query.stop()
            writer.trigger(availableNow=True).start().awaitTermination()
            sent = True
        except StreamingQueryException as error:
            print(FAILED, str(error).partition("\n")[0], flush=True)
    spark.stop()


# ------------------------------------------------------------------------------------------------------------------ run


@attrs.frozen
class Found:
    """The messages of a topic: the payloads of each source in order, and the ranges that are missing."""

    numbers: dict[int, list[int]]
    holes: list[str]


async def read(stores: list[str], topic: str) -> Found:
    numbers: dict[int, list[int]] = {}
    async with Context() as context, context.reader(topic, stores=stores, quorum=2) as reader:
        async for batch in reader.batches():
            numbers.setdefault(cast("RangeOwner", batch.owner).session_id, []).extend(map(int, batch.payloads()))
        return Found(numbers, [str(hole) for hole in reader.holes])


def faults(found: Found, messages: int, *, ordered: bool = True) -> list[str]:
    """Return what is wrong with the messages of a topic, each in a sentence. Rows divided anew are not `ordered`.

    >>> faults(Found({1: [0, 2, 1], 2: [1]}, []), 4)
    ['source 1 has 1 after 2', '1 came 2 times', '1 of 4 numbers are missing, first 3']
    """
    wrong = list(found.holes)
    counts: Counter[int] = Counter()
    for source, numbers in found.numbers.items():
        backward = [(one, other) for one, other in pairwise(numbers) if ordered and other <= one]
        wrong += [f"source {source} has {other} after {one}" for one, other in backward[:5]]
        counts.update(numbers)
    wrong += [f"{number} came {count} times" for number, count in counts.items() if count > 1][:5]
    lost = [number for number in range(messages) if number not in counts]
    if lost:
        wrong.append(f"{len(lost)} of {messages} numbers are missing, first {lost[0]}")
    foreign = [number for number in counts if not 0 <= number < messages]
    return wrong + [f"{number} was never sent" for number in foreign[:5]]


class Run:
    """One run with its processes.

    Attributes:
        kills: The kind and the second of each kill.
    """

    def __init__(self, seed: int, messages: int, folder: Path, stack: ExitStack, master: str = "") -> None:
        """Start the stores, the application and the driver."""
        self.seed, self.messages, self.folder = seed, messages, folder
        self.kills: list[tuple[str, float]] = []
        self.master = master
        self._draw = random.Random(seed)
        self._stack = stack
        self._stores: dict[str, Program] = {}
        for name in "abc":
            program, address = stack.enter_context(store(folder / name))
            self._stores[address] = program
        self._folders = dict(zip(self._stores, "abc", strict=True))
        addresses = ",".join(self._stores)
        self.sender = self._life("send", addresses, str(messages), str(messages / SPREAD), str(folder / "started"))
        self.driver = self._life("drive", addresses, self.master, str(seed), str(folder))

    def _life(self, *arguments: str) -> Life:
        life = Life(list(arguments), self.folder / f"{arguments[0]}.log")
        thread = Thread(target=life.keep, daemon=True)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(life.stop)
        return life

    def play(self) -> dict[str, Any]:
        """Kill, wait for the end, and return the result."""
        begun = time.monotonic()
        victims = list(KINDS)
        self._draw.shuffle(victims)
        copying = Thread(target=self._note_sent, daemon=True)
        copying.start()
        self._wait((self.folder / "checkpoint" / "commits").exists)
        (self.folder / "started").touch()
        first = time.monotonic()
        for kind in victims:
            time.sleep(self._draw.uniform(0, PAUSE_SECONDS))
            if not self._wait(lambda kind=kind: self._kill(kind)):  # type: ignore[misc]
                break
            if kind != "sender" or not self.sender.ended.is_set():
                self.kills.append((kind, round(time.monotonic() - first, 2)))
        ended = self.driver.ended.wait(max(0.0, begun + RUN_SECONDS - time.monotonic()))
        stores = list(self._stores)
        log = self.driver.log.read_text(errors="replace")
        failed = [line for line in log.splitlines() if line.startswith(FAILED)]
        wrong = [] if ended else [f"the query did not end within {RUN_SECONDS:g} s"]
        for topic in (TOPIC, COPY):
            wrong += [
                f"{topic}: {text}"
                for text in faults(asyncio.run(read(stores, topic)), self.messages, ordered=topic == TOPIC)
            ]
        return {
            "seed": self.seed,
            "divisions": [line for line in log.splitlines() if line.startswith("life ")],
            "messages": self.messages,
            "seconds": round(time.monotonic() - begun, 1),
            "kills": self.kills,
            "sender_lives": self.sender.lives,
            "driver_lives": self.driver.lives,
            "failures": self.sender.failures + self.driver.failures + failed,
            "wrong": wrong,
        }

    def _note_sent(self) -> None:
        if self.sender.ended.wait(RUN_SECONDS):
            (self.folder / "sent").touch()

    def _wait(self, holds: Callable[[], Any]) -> bool:
        """Wait until a condition holds or the query has ended; return whether it holds."""
        ends = time.monotonic() + RUN_SECONDS
        while not holds():
            if self.driver.ended.wait(0.05) or time.monotonic() > ends:
                return False
        return True

    def _kill(self, kind: str) -> bool:
        driver = self.driver.process
        match kind:
            case "sender":
                # A sender that has ended is not started again: its time is over.
                return self.sender.ended.is_set() or self.sender.kill() is not None
            case "store":
                self._kill_store()
                return True
            case "driver":
                orphans = list(below(driver.pid)) if driver is not None else []
                if self.driver.kill() is None:
                    return False
                kill_all(orphans)
                return True
            case "planner":
                return driver is not None and kill(planners(driver.pid), self._draw) is not None
            case _:
                return driver is not None and kill(workers(driver.pid), self._draw) is not None

    def _kill_store(self) -> None:
        address = self._draw.choice(list(self._stores))
        program = self._stores[address]
        program.process.kill()
        program.process.wait()
        time.sleep(self._draw.uniform(0, 2))
        again, _ = self._stack.enter_context(store(self.folder / self._folders[address], listen=address))
        self._stores[address] = again


def kill_all(processes: list[int]) -> None:
    """Kill the Java and the workers of a driver that was killed: they would go on alone for a while."""
    for process in processes:
        kill([process], random.Random(0))


@contextmanager
def started(seed: int, messages: int, keep: Path | None, master: str = "") -> Iterator[Run]:
    """Yield a run; its files are kept in a folder if one is named."""
    with ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            folder = keep / f"run-{seed}"
            folder.mkdir(parents=True)
        yield Run(seed, messages, folder, stack, master)


def main() -> int:
    if sys.argv[1:2] == ["send"]:
        asyncio.run(send(sys.argv[2].split(","), int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5])))
        return 0
    if sys.argv[1:2] == ["drive"]:
        drive(sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--master", default="", help="instead of those that drivers draw")
    parser.add_argument("--keep", type=Path, help="a folder for the files of all runs")
    asked = parser.parse_args()
    totals: Counter[str] = Counter()
    for seed in range(asked.seed, asked.seed + asked.runs):
        with started(seed, asked.messages, asked.keep, asked.master) as run:
            found = run.play()
        print(json.dumps(found), flush=True)
        totals.update(runs=1, messages=asked.messages, wrong=len(found["wrong"]), failures=len(found["failures"]))
        totals.update(f"killed_{kind}" for kind, _ in found["kills"])
    print(json.dumps(totals))
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
