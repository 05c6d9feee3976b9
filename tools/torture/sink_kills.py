"""The sink of Spark while its tasks are killed, without Spark: attempts of a batch in any division, zombies, stores.

    python -m tools.torture.sink_kills --runs 200 --seed 1

A run writes some batches to a topic at three stores. Each attempt of a batch divides the rows anew, some of which are
equal, and a task is a process. Attempts but the last are given up at a random instant: `kill -9` hits their tasks, or
they go on as zombies while the next attempt begins; sometimes a store is killed and started again. Only tasks that
have looked at the topic become zombies, as the chapter says, unless `--late` is given. At the end, each row must be
there as often as in its batch. It prints one JSON object a run, and one for all, with the attempts that were refused:
one that sees another one at work is. The exit status is 0 if nothing is missing or repeated.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.client import Context
from stablecast.core.errors import StablecastError
from stablecast.spark.message_options import WriteTerms
from stablecast.spark.message_sink import Committed, SinkPlace, settle, sources_seen, written
from tests.support.program import Program, store

BATCHES: Final = 3
ROWS: Final = 3_000
ATTEMPTS: Final = 4
"""Batches of a run; rows of a batch and attempts of one, at most."""

CHUNK: Final = 200
"""Rows that a task gets at once; it pauses between them, so that it can be killed in the middle."""

LONGEST: Final = 1.5
"""Seconds until an attempt is given up, at most."""

BEGUN: Final = "begun"
"""The report of a task that gets its first row: it has looked at the topic."""

FORK: Final = multiprocessing.get_context("fork")


@attrs.define
class Task:
    """A task of an attempt: its process, and the pipe on which it reports."""

    process: Any
    report: Any

    def has_begun(self) -> bool:
        """Return whether the task has looked at the topic."""
        return bool(self.report.poll())


def rows_of(rows: Sequence[str], pause: float) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(rows), CHUNK):
        yield pa.RecordBatch.from_pydict({"payload": pa.array(rows[first : first + CHUNK], pa.string())})
        time.sleep(pause)


def work(terms: WriteTerms, place: SinkPlace, seen: Any, rows: Sequence[str], pause: float, report: Any) -> None:
    """Write a partition, and report when it has begun, and how it ended."""

    def begun() -> Iterator[pa.RecordBatch]:
        report.send(BEGUN)
        yield from rows_of(rows, pause)

    try:
        report.send(written(terms, place, seen, begun()))
    except StablecastError as error:
        report.send(f"{type(error).__name__}: {error}")


def last_report(task: Task) -> Any:
    found = "killed"
    while task.report.poll():
        try:
            found = task.report.recv()
        except EOFError:
            break
    return found


class SinkRun:
    """One run: a topic, its batches, and the stores of all runs."""

    def __init__(
        self, seed: int, stores: dict[str, Program], folders: dict[str, Path], stack: ExitStack, *, late: bool
    ) -> None:
        """Draw the run; `late`: tasks that have not begun may become zombies, too."""
        self.late = late
        self.draw = random.Random(seed)
        self.stores, self.folders, self._stack = stores, folders, stack
        self.topic = f"copies-{seed}"
        self.terms = WriteTerms.of({"path": self.topic, "stores": ",".join(stores), "sink": "one"})
        self.counts: Counter[str] = Counter()
        self.refused: list[str] = []
        self.zombies: list[Task] = []
        self.holes: list[str] = []

    def play(self) -> list[str]:
        """Write all batches; return what is wrong with the topic."""
        want: Counter[str] = Counter()
        epoch = 0
        for batch in range(BATCHES):
            size = self.draw.randint(1, ROWS)
            rows = [f"{batch}:{self.draw.randrange(max(1, size // 2))}" for _ in range(size)]
            want.update(rows)
            last = self.draw.randint(1, ATTEMPTS) - 1
            for attempt in range(ATTEMPTS * 3):
                epoch += 1
                if self.attempt(batch, f"epoch-{epoch}", self.divided(rows), ends=attempt >= last):
                    break
            else:
                self.refused.append(f"batch {batch} was never committed")
                break
        for task in self.zombies:
            task.process.join()
        there = Counter(asyncio.run(self.read()))
        if self.refused and self.refused[-1].endswith("was never committed"):
            return []
        lost, twice = (want - there).total(), (there - want).total()
        holes = self.holes if lost else []
        return [f"{lost} rows are lost"] * bool(lost) + holes + [f"{twice} rows are there too often"] * bool(twice)

    def divided(self, rows: list[str]) -> list[list[str]]:
        """Divide rows into some partitions, in another order each time."""
        shuffled = self.draw.sample(rows, len(rows))
        cuts = sorted(self.draw.randrange(len(rows) + 1) for _ in range(self.draw.randrange(4)))
        return [shuffled[first:stop] for first, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True)]

    def attempt(self, batch: int, epoch: str, division: list[list[str]], *, ends: bool) -> bool:
        """Make an attempt; return whether it committed. One that does not end is given up at some instant."""
        self.counts["attempts"] += 1
        seen, tasks = sources_seen(self.terms), []
        pause = 0.0 if ends else self.draw.uniform(0, 0.3)
        for partition, rows in enumerate(division):
            mine, its = FORK.Pipe()
            place = SinkPlace("one", batch, epoch, partition)
            process = FORK.Process(target=work, args=(self.terms, place, seen, rows, pause, its))
            process.start()
            tasks.append(Task(process, mine))
        if not ends:
            time.sleep(self.draw.uniform(0.2, LONGEST))
            self.give_up(tasks)
            return False
        if self.draw.random() < 0.1:
            self.restart_a_store()
        for task in tasks:
            task.process.join()
        found = [last_report(task) for task in tasks]
        wrong = [one for one in found if not isinstance(one, Committed)]
        if wrong:
            self.refused += wrong
            return False
        try:
            settle(self.terms, found)
        except StablecastError as error:
            self.refused.append(str(error))
            return False
        self.counts.update(withheld=sum(one.withheld.total() for one in found), sent=sum(one.sent for one in found))
        return True

    def give_up(self, tasks: list[Task]) -> None:
        """Kill the tasks of an attempt, or leave some of them as zombies that have begun."""
        for task in tasks:
            if self.draw.random() < 0.4 and (self.late or task.has_begun()):
                self.counts["zombies"] += task.process.is_alive()
                self.zombies.append(task)
            else:
                self.counts["killed"] += task.process.is_alive()
                task.process.kill()
                task.process.join()

    def restart_a_store(self) -> None:
        self.counts["stores killed"] += 1
        address = self.draw.choice(list(self.stores))
        self.stores[address].process.kill()
        self.stores[address].process.wait()
        again, _ = self._stack.enter_context(store(self.folders[address], listen=address))
        self.stores[address] = again

    async def read(self) -> list[str]:
        async with Context() as context, context.reader(self.topic, stores=list(self.stores), quorum=2) as reader:
            found = [message.payload.decode() async for message in reader]
            self.holes = [str(hole) for hole in reader.holes]
            return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", action="store_true", help="let tasks that have not begun become zombies, too")
    asked = parser.parse_args()
    totals: Counter[str] = Counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stores, folders = {}, {}
        for name in "abc":
            program, address = stack.enter_context(store(folder / name))
            stores[address], folders[address] = program, folder / name
        for seed in range(asked.seed, asked.seed + asked.runs):
            run = SinkRun(seed, stores, folders, stack, late=asked.late)
            wrong = run.play()
            if run.refused and run.refused[-1].endswith("was never committed"):
                totals["never committed"] += 1
            print(json.dumps({"seed": seed, **run.counts, "refused": run.refused, "wrong": wrong}), flush=True)
            totals.update(run.counts, runs=1, wrong=len(wrong), refused=len(run.refused))
    print(json.dumps(totals))
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
