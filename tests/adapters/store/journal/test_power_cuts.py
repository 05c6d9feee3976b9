"""The power is cut at every operation of a journal's disk: what was reported synced is there, and nothing is damage.

The journal runs in a simulated world, whose disk knows what no sync has covered. Before each write, sync and change of
names, and at each report, the test copies the disk. Afterwards each copy loses its power in every way that matters:
names, records and summaries are kept or lost apart. A file may also keep its length and lose its contents.
"""

import asyncio
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

from stablecast.lab.world.disk import SimulatedDisk
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.inodes import FileInode
from stablecast.lab.world.patched_files import PatchedFiles
from stablecast.lab.world.world import World
from stablecast.store.journal import Disk, Journal
from tests.adapters.lab.world.support import Clock
from tests.adapters.store.journal.support import Owner
from tests.adapters.store.journal.test_crash import SEGMENT_BYTES, Twin, check, reborn

DIRECTORY = Path("/var/lib/store")
ASIDE = (".damaged", ".foreign")
HOST = "observer"
"""The host on which a world runs its main program."""


class Fate(Random):
    """The draws of a power cut that decide the same way each time."""

    def __init__(self, chosen: float, *numbers: bool) -> None:
        """Draw `chosen`, and from ranges the highest (True) or the lowest number; the last answer stays."""
        super().__init__(0)
        self._chosen = chosen
        self._numbers = numbers
        self._drawn = 0

    def random(self) -> float:
        return self._chosen

    def randint(self, a: int, b: int) -> int:
        highest = self._numbers[min(self._drawn, len(self._numbers) - 1)]
        self._drawn += 1
        return b if highest else a


def kept() -> Random:
    """Everything reached the disk by itself."""
    return Fate(0.3, True)


def lost() -> Random:
    """Nothing did."""
    return Fate(0.6, False)


def hollow() -> Random:
    """The files have their lengths, and zeros instead of what was not synced."""
    return Fate(0.9, True, False)


FATES = [
    *product([kept], [kept, lost, hollow], [kept]),
    *product([lost], [kept, lost, hollow], [kept]),
    (kept, kept, lost),
]
"""The fates of names, of segments, and of the other files."""


@attrs.frozen
class Cut:
    """The names and files at the moment of a power cut, and the last tickets that were reported and drawn by then."""

    image: bytes
    reported: int
    drawn: int

    def left(self, names: Random, segments: Random, others: Random) -> SimulatedDisk:
        clock = Clock()
        disk = SimulatedDisk(clock, Random(0), clock.wait)
        disk.root, disk.names = pickle.loads(self.image)
        disk.names.crash(names)
        for path, inode in disk._found(str(DIRECTORY)):
            if isinstance(inode, FileInode):
                inode.pages.crash(segments if path.endswith(".seg") else others)
        disk.crash(Random(0))
        return disk


class Recorder:
    """Copies the disk of a host before each of its operations."""

    def __init__(self, disk: SimulatedDisk, twin: Twin) -> None:
        self.cuts: list[Cut] = []
        self.reported = 0
        self._disk = disk
        self._twin = twin
        for name in ("before_change", "write", "resize", "sync_file", "sync_directory"):
            self._watch(name)

    def cut(self) -> None:
        cut = Cut(pickle.dumps((self._disk.root, self._disk.names)), self.reported, self._twin.ticket)
        if not self.cuts or cut != self.cuts[-1]:
            self.cuts.append(cut)

    def on_synced(self, ticket: int) -> None:
        self.reported = ticket
        self.cut()

    def _watch(self, name: str) -> None:
        operation = getattr(self._disk, name)

        def watched(*arguments: Any) -> Any:
            self.cut()
            return operation(*arguments)

        setattr(self._disk, name, watched)


Step = tuple[str, int, int, int] | None
"""A step of the twin; None waits until all before is reported."""


def life(seed: int) -> Iterator[Step]:
    """Segments that fill, are summarized, and go; also several in one turn of the loop, while a sync is under way."""
    rng = Random(seed)
    number = 0
    for round_ in range(4):
        for _ in range(rng.randint(1, 9)):
            count = rng.randint(1, 3)
            yield "messages", 1, number, count
            number += count
            if rng.random() < 0.3:
                yield rng.choice(["state", "messages"]), 2, rng.randint(0, 9), 2
            if rng.random() < 0.4:
                yield rng.choice([None, ("wait", 0, 0, 0)])
        yield None
        if round_ % 2:
            yield "trim", 1, number - rng.randint(1, 6), 0
            yield rng.choice([("cut", 1, number - 1, 0), ("forget", 2, 0, 0)])


async def use(owner: Owner, twin: Twin, seed: int) -> None:
    for step in life(seed):
        if step is None:
            await owner.until(twin.ticket)
        elif step[0] == "wait":
            await asyncio.sleep(0.0002)
        else:
            twin.step(owner.journal, *step)
    await owner.until(twin.ticket)


def run(seed: int, disk: Disk, twin: Twin, before: SimulatedDisk | None = None) -> list[Cut]:
    """Let a journal live on the disk that a power cut left, or on an empty one; return all moments for the next one."""
    world = World(seed)
    simulated = world.host(HOST).disk
    simulated.make_directories(str(DIRECTORY))
    if before is not None:
        simulated.restore(before.backup(str(DIRECTORY)), str(DIRECTORY))
    recorder = Recorder(simulated, twin)

    async def main() -> None:
        journal = Journal.open(DIRECTORY, disk)
        owner = Owner(journal, lambda: [*twin.states])
        told = journal.on_synced

        def on_synced(ticket: int) -> None:
            recorder.on_synced(ticket)
            told(ticket)

        journal.on_synced = on_synced
        await use(owner, twin, seed)
        await journal.close()

    world.run(main)
    recorder.cut()
    return recorder.cuts


@contextmanager
def on(disk: SimulatedDisk) -> Iterator[None]:
    """Let the shipped code see a disk."""
    system = FileSystem(disk)
    with PatchedFiles(lambda: system):
        yield


def judge(cuts: list[Cut], twin: Twin, *, verify: bool) -> int:
    """Check what each power cut leaves; return the number of different outcomes."""
    seen: set[object] = set()
    for cut in cuts:
        for fates in [*FATES, ()]:
            names, segments, others = [fate() for fate in fates] or [Random(len(seen) + at) for at in range(3)]
            disk = cut.left(names, segments, others)
            outcome = (cut.reported, cut.drawn, disk.backup(str(DIRECTORY)))
            if outcome in seen:
                continue
            seen.add(outcome)
            with on(disk):
                known = attrs.evolve(twin, history=twin.history[: cut.drawn + 1])
                check(DIRECTORY, known, cut.reported, verify=verify)
            assert not [name for name, *_ in disk.backup(str(DIRECTORY)).files if name.endswith(ASIDE)]
    return len(seen)


DISKS = {
    "thread": Disk(segment_bytes=SEGMENT_BYTES, short_ns=-1),
    "loop": Disk(segment_bytes=SEGMENT_BYTES, short_ns=1 << 60),
    "reserved": Disk(segment_bytes=SEGMENT_BYTES, short_ns=-1, preallocate=True, verify=False),
}
"""Journals whose syncs the writer's thread does, or the loop, and one that reserves its room."""


@pytest.mark.parametrize("kind", DISKS)
def test_what_was_reported_survives_every_power_cut(kind: str) -> None:
    twin = Twin()
    cuts = run(0, DISKS[kind], twin)
    assert judge(cuts, twin, verify=DISKS[kind].verify) > len(cuts)


@pytest.mark.parametrize("kind", DISKS)
def test_the_power_may_go_again_while_an_open_repairs_what_it_left(kind: str) -> None:
    """And in the life after that open."""
    twin = Twin()
    cuts = run(0, DISKS[kind], twin)
    cut = cuts[len(cuts) // 2]
    with on(cut.left(Random(1), Random(2), Random(3))):
        later = reborn(DIRECTORY)
    before = cut.left(Random(1), Random(2), Random(3))
    judge(run(1, DISKS[kind], later, before), later, verify=DISKS[kind].verify)
