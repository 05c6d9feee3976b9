"""Synced records survive power cuts in a model, and processes that are killed.

The model of a power cut: a file keeps what was in it at its last sync and any part of what came later, with garbage or
holes at the end; a file that was never synced may be gone; a file that was removed is back unless the directory was
synced after that.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.store.journal import Disk, Journal
from stablecast.store.journal.disk import SHORT_NS
from stablecast.store.journal.lock import DirectoryLock
from stablecast.store.journal.record_format import HIGHEST, Block
from tests.adapters.store.journal.support import FAST_DIRECTORY, numbers, read, segments, start
from tests.support.machine import replace

STREAMS = 3
SEGMENT_BYTES = 400

Live = dict[tuple[int, int], int]
"""(stream, number) -> tag."""

Trails = dict[int, int]
"""The first number of each stream that was trimmed."""


class Drive:
    """Remembers what a power cut must leave."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.synced: dict[str, int] = {}
        self.removed: dict[str, bytes] = {}

    def sync(self, fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        self.synced[path.name] = path.stat().st_size

    def write(self, fd: int, buffers: Sequence[Block], offset: int) -> int:
        return os.pwritev(fd, buffers, offset)

    def sync_directory(self, _: Path) -> None:
        self.removed.clear()

    def remove(self, path: Path) -> None:
        data = path.read_bytes()
        path.unlink()
        self.removed[path.name] = data

    def crash(self, target: Path, rng: random.Random) -> None:
        """Fills `target` with what the power cut left."""
        for path in segments(self.directory):
            data = path.read_bytes()
            kept = self.synced.get(path.name)
            if kept is None and rng.random() < 0.5:
                continue
            kept = kept or 0
            end = rng.randint(kept, len(data))
            left = bytearray(data[:end])
            if end > kept and rng.random() < 0.5:
                hole = rng.randint(kept, end)
                left[hole : rng.randint(hole, end)] = b""[:0] if rng.random() < 0.3 else bytes(min(64, end - hole))
            if path == segments(self.directory)[-1] and rng.random() < 0.3:
                left += rng.randbytes(rng.randint(0, 80))
            (target / path.name).write_bytes(left)
        for path in self.directory.glob("*.sum"):  # They are never synced.
            if rng.random() < 0.8:
                data = path.read_bytes()
                (target / path.name).write_bytes(data if rng.random() < 0.7 else data[: rng.randint(0, len(data))])
        for name, data in self.removed.items():
            if rng.random() < 0.5:
                (target / name).write_bytes(data)


@attrs.define
class Twin:
    """The expected contents of the journal after each ticket."""

    ticket: int = 0
    live: Live = attrs.field(factory=dict)
    trails: Trails = attrs.field(factory=dict)
    states: list[bytes] = attrs.field(factory=list)
    history: list[tuple[Live, Trails, int]] = attrs.field(factory=lambda: [({}, {}, 0)])

    def step(self, journal: Journal, what: str, stream: int, at: int, count: int) -> None:
        self.ticket += 1
        match what:
            case "messages":
                journal.append_messages(stream, at, count, self.ticket, block_of(stream, at, self.ticket), self.ticket)
                self.live = self.live | {(stream, number): self.ticket for number in range(at, at + count)}
            case "cut":
                journal.cut(stream, at, self.ticket)
                self._kill(stream, range(at, HIGHEST))
                if stream in self.trails:
                    self.trails = self.trails | {stream: min(at, self.trails[stream])}
            case "trim":
                journal.trim(stream, at, self.ticket)
                self._kill(stream, range(at))
                self.trails = self.trails | {stream: at}
            case "forget":
                journal.forget(stream, self.ticket)
                self._kill(stream, range(HIGHEST))
                self.trails = {other: trail for other, trail in self.trails.items() if other != stream}
            case _:
                state = b'{"ticket":%d}' % self.ticket
                journal.append_state(state, self.ticket)
                self.states.append(state)
        self.history.append((self.live, self.trails, len(self.states)))

    def _kill(self, stream: int, numbers: range) -> None:
        self.live = {key: tag for key, tag in self.live.items() if key[0] != stream or key[1] not in numbers}


def block_of(stream: int, first: int, tag: int) -> bytes:
    return b"%d/%d/%d" % (stream, first, tag) + bytes(tag * 7 % 90)


def trails_of(journal: Journal) -> Trails:
    return {stream: trail for stream in range(STREAMS) if (trail := journal.trail(stream)) is not None}


def held(journal: Journal) -> Live:
    return {(stream, n): tag for stream in range(STREAMS) for n, tag in numbers(journal, stream).items()}


def check(directory: Path, twin: Twin, reported: int, *, verify: bool) -> None:
    """The journal holds the outcome of a prefix of the steps, at least up to the last one reported."""
    journal = Journal.open(directory, Disk(segment_bytes=SEGMENT_BYTES, verify=verify))
    found = held(journal)
    candidates = twin.history[reported:]
    trails = trails_of(journal)
    assert any(
        found == live and trails == trimmed and journal.recovered_states == twin.states[:states]
        for live, trimmed, states in candidates
    ), (found, trails, journal.recovered_states, candidates)
    for stream, number in found:
        hit = read(journal, stream, number)
        assert hit is not None
        first, count, tag, block = hit
        assert first <= number < first + count
        assert (tag, block) == (found[stream, number], block_of(stream, first, tag))
    assert not any("damaged" in report for report in journal.reports), journal.reports
    journal.abort()


STEP = st.tuples(
    st.sampled_from(["messages", "messages", "messages", "state", "cut", "forget", "trim", "wait"]),
    st.integers(0, STREAMS - 1),
    st.integers(0, 20),
    st.integers(1, 5),
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(lives=st.lists(st.lists(STEP, max_size=30), min_size=1, max_size=3), seed=st.integers(0, 2**32))
def test_power_cut(lives: list[list[tuple[str, int, int, int]]], seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=FAST_DIRECTORY) as root:
        directory = Path(root) / "0"
        directory.mkdir()
        base: Twin | None = None
        for life, steps in enumerate(lives):
            after = Path(root) / str(life + 1)
            after.mkdir()
            base = asyncio.run(live_and_crash(directory, after, steps, base, rng))
            directory = after


async def live_and_crash(
    directory: Path, after: Path, steps: list[tuple[str, int, int, int]], base: Twin | None, rng: random.Random
) -> Twin:
    """One life of a store: steps, a power cut, and the check of what is left; returns the twin of the next life."""
    disk = Drive(directory)
    twin = Twin() if base is None else base
    with (
        pytest.MonkeyPatch.context() as patch,
        mock.patch("stablecast.store.journal.writer.STEADY", 1),
    ):
        replace(patch, "files", remove=disk.remove)
        patch.setattr(DirectoryLock, "sync_names", lambda _: disk.sync_directory(directory))
        disk.synced = {path.name: path.stat().st_size for path in segments(directory)}
        owner = start(
            directory,
            states=lambda: twin.states,
            segment_bytes=SEGMENT_BYTES,
            sync=disk.sync,
            write=disk.write,
            short_ns=rng.choice([-1, SHORT_NS, 1 << 60]),
        )
        for what, stream, at, count in steps:
            if what == "wait":
                await owner.until(twin.ticket)
            else:
                twin.step(owner.journal, what, stream, at, count)
        if rng.random() < 0.2:
            await owner.journal.close()
        owner.journal.abort()
        disk.crash(after, rng)
    check(after, twin, owner.last, verify=rng.random() < 0.3)
    return reborn(after)


def reborn(directory: Path) -> Twin:
    """The twin of a journal that starts with what a crash left: tickets and tags begin again."""
    journal = Journal.open(directory, Disk(segment_bytes=SEGMENT_BYTES))
    live, trails, states = held(journal), trails_of(journal), list(journal.recovered_states)
    journal.abort()
    return Twin(live=live, trails=trails, states=states, history=[(live, trails, len(states))])


CHILD = """
import asyncio, os, sys
from pathlib import Path
from stablecast.store.journal import Disk, Journal

async def main():
    journal = Journal.open(Path(sys.argv[1]), Disk(segment_bytes=20_000))
    journal.set_checkpoint(list)
    changed = asyncio.Event()
    def synced(ticket):
        os.write(1, b"%d\\n" % ticket)
        changed.set()
    journal.on_synced = synced
    journal.start(asyncio.get_running_loop())
    ticket = 0
    while True:
        changed.clear()
        for _ in range(20):
            ticket += 1
            journal.append_messages(1, ticket, 1, 5, b"%d " % ticket * 50, ticket)
        journal.trim(1, ticket - 500, ticket)
        await changed.wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("reports", [1, 20, 100])
def test_killed_process(tmp_path: Path, reports: int) -> None:
    """The child is killed when it has said `reports` times what is synced, wherever it is by then."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", CHILD, tmp_path], stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(reports)]
        child.send_signal(signal.SIGKILL)
        said += child.stdout.readlines()
    whole = [int(line) for line in said if line.endswith(b"\n")]
    journal = Journal.open(tmp_path)
    found = numbers(journal, 1)
    kept = whole[-1] + 20 - 500  # what the child wrote since, and trimmed with it, may have been synced and not said
    assert set(range(max(1, kept), whole[-1] + 1)) <= set(found)
    for number in found:
        assert read(journal, 1, number) == (number, 1, 5, b"%d " % number * 50)
    journal.abort()


async def test_reopened_at_every_length(tmp_path: Path) -> None:
    """The newest segment is cut at each byte: what lies before the cut is there, the rest is gone without a trace."""
    owner = start(tmp_path)
    ends = {}
    for ticket in range(1, 5):
        owner.journal.append_messages(1, ticket, 1, ticket, block_of(1, ticket, ticket), ticket)
        await owner.until(ticket)
        ends[ticket] = segments(tmp_path)[0].stat().st_size
    await owner.journal.close()
    whole = segments(tmp_path)[0].read_bytes()
    copy = tmp_path / "copy"
    for length in range(len(whole) + 1):
        copy.mkdir()
        (copy / "00000001.seg").write_bytes(whole[:length])
        journal = Journal.open(copy, Disk(sync=lambda _: None))
        assert set(numbers(journal, 1)) == {ticket for ticket, end in ends.items() if end <= length}
        journal.abort()
        shutil.rmtree(copy)
