"""The scrubber: every synced record in a period, at a bounded rate, after the fetcher's other jobs."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import attrs

from stablecast.store.journal import Disk, Journal, JournalError
from stablecast.store.journal.disk import MIN_SCRUB_BYTES, ScrubPace
from stablecast.store.journal.fetcher import Fetcher, Verified
from stablecast.store.journal.record_format import FILE_HEADER_BYTES, Block
from stablecast.store.journal.scrubber import BUSY_SECONDS, Scrubber
from stablecast.store.journal.segments import PIECE_BYTES, JournalSegment, RecordPlace, SegmentReader
from tests.adapters.store.journal.support import Owner, no_states, segments

PACE = ScrubPace(period_s=1000, most_bytes=1000)


@attrs.define
class Clock:
    """The timers of a loop, rung by hand."""

    now: float = 0.0
    timers: list[tuple[float, Callable[[], None]]] = attrs.field(factory=list)

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, then: Callable[[], None]) -> "Clock":
        self.timers = [(self.now + seconds, then)]
        return self

    def cancel(self) -> None:
        self.timers = []

    def ring(self) -> float:
        """Rings the timer; the seconds until it was due."""
        ((due, then),) = self.timers
        waited, self.now, self.timers = due - self.now, due, []
        then()
        return waited


@attrs.define
class Reads:
    """A fetcher that verifies when the test answers."""

    busy: bool = False
    asked: list[tuple[int, int, int]] = attrs.field(factory=list)
    done: list[Verified] = attrs.field(factory=list)

    def verify(self, segment: JournalSegment, offset: int, stop: int, done: Verified) -> None:
        self.asked.append((segment.number, offset, stop))
        self.done.append(done)


@attrs.define
class Bench:
    pace: ScrubPace = PACE
    verified: bool = True
    clock: Clock = attrs.field(factory=Clock)
    reads: Reads = attrs.field(factory=Reads)
    synced: dict[JournalSegment, int] = attrs.field(factory=dict)
    examined: list[int] = attrs.field(factory=list)
    scrubber: Scrubber = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        for number, stop in ((1, 1024), (2, 2024), (3, FILE_HEADER_BYTES)):
            self.synced[JournalSegment(number, 0, Path(f"{number}"))] = stop
        self.scrubber = Scrubber(
            self.pace,
            self.verified,
            cast("Fetcher", self.reads),
            lambda: self.synced,
            lambda segment: self.examined.append(segment.number),
        )
        self.scrubber.start(cast("asyncio.AbstractEventLoop", self.clock))


def test_every_segment_is_read_once_in_a_period_and_not_faster_than_allowed() -> None:
    bench = Bench()
    assert bench.clock.ring() == 1000  # The open verified everything.
    bench.reads.done[-1](524)
    assert bench.clock.ring() == 0.5
    bench.reads.done[-1](1024)
    bench.clock.ring()
    assert bench.reads.asked == [(1, 24, 1024), (1, 524, 1024), (2, 24, 2024)]
    bench.reads.done[-1](2024)
    assert bench.clock.ring() == 2
    assert (bench.scrubber.done.passes, bench.scrubber.done.verified) == (1, 3000)
    assert bench.scrubber.done.ended_ns > 0
    assert bench.clock.ring() == 1000 - 0.5 - 0.5 - 2
    assert bench.reads.asked[-1] == (1, 24, 1024)


def test_an_unverified_journal_is_read_at_once_and_a_period_of_0_reads_nothing() -> None:
    assert Bench(verified=False).clock.ring() == 0
    assert Bench(pace=ScrubPace(period_s=0)).clock.timers == []


def test_other_reads_come_first() -> None:
    bench = Bench(verified=False)
    bench.reads.busy = True
    bench.clock.ring()
    assert (bench.clock.ring(), bench.reads.asked) == (BUSY_SECONDS, [])
    bench.reads.busy = False
    bench.clock.ring()
    assert len(bench.reads.asked) == 1


def test_damage_is_examined_and_the_pass_goes_on() -> None:
    bench = Bench(verified=False)
    bench.clock.ring()
    bench.reads.done[-1](24)
    assert bench.examined == [1]
    bench.clock.ring()
    bench.reads.done[-1](JournalError("cannot read"))
    assert (bench.examined, bench.scrubber.done.verified) == ([1, 2], 0)
    bench.clock.ring()
    assert bench.scrubber.done.passes == 1


def test_deleted_segments_are_passed_over() -> None:
    bench = Bench(verified=False)
    bench.clock.ring()
    bench.reads.done[-1](1024)
    del bench.synced[list(bench.synced)[1]]
    bench.clock.ring()
    assert (len(bench.reads.asked), bench.scrubber.done.passes) == (1, 1)


def test_an_asked_for_pass_begins_anew_at_the_highest_rate() -> None:
    """Also when a piece is being read, and without a period."""
    bench = Bench(pace=ScrubPace(period_s=0, most_bytes=1000))
    bench.scrubber.hurry()
    bench.reads.done[-1](524)
    bench.clock.ring()
    bench.scrubber.hurry()
    bench.reads.done[-1](1024)
    assert bench.reads.asked == [(1, 24, 1024), (1, 524, 1024), (1, 24, 1024)]
    bench.reads.done[-1](600)
    bench.clock.ring()
    assert bench.reads.asked[3:] == [(1, 600, 1024)]
    bench.scrubber.stop()
    bench.reads.done[-1](700)
    assert bench.clock.timers == []
    bench.scrubber.hurry()
    assert len(bench.reads.asked) == 4


def test_the_pass_after_one_that_was_asked_for_has_its_own_rate() -> None:
    bench = Bench(pace=ScrubPace(period_s=1000, most_bytes=10 * MIN_SCRUB_BYTES))
    bench.scrubber.hurry()
    bench.reads.done[-1](524)
    assert bench.clock.ring() == 500 / (10 * MIN_SCRUB_BYTES)
    bench.reads.done[-1](1024)
    bench.clock.ring()
    bench.reads.done[-1](2024)
    bench.clock.ring()
    assert bench.scrubber.done.passes == 1
    bench.clock.ring()
    bench.reads.done[-1](524)
    assert bench.clock.ring() == 500 / MIN_SCRUB_BYTES


def test_a_small_journal_is_not_read_slower_than_the_least_rate() -> None:
    assert ScrubPace().rate(1000) == MIN_SCRUB_BYTES
    assert ScrubPace(period_s=100).rate(1 << 30) == 8 << 20
    assert ScrubPace(period_s=1000).rate(1 << 30) == (1 << 30) / 1000


async def test_records_longer_than_a_piece_are_verified_too(tmp_path: Path) -> None:
    owner = Owner(Journal.open(tmp_path, Disk(scrub=ScrubPace(0))), no_states)
    for number in range(3):
        owner.journal.append_messages(1, number, 1, 5, bytes(PIECE_BYTES + 1), number + 1)
    await owner.until(3)
    (segment,) = owner.journal._synced()
    reader = SegmentReader()

    def steps() -> list[int]:
        found = [FILE_HEADER_BYTES]
        while found[-1] < segment.end and (after := reader.verify(segment, found[-1], segment.end)) != found[-1]:
            found.append(after)
        return found

    assert steps()[-1] == segment.end
    assert len(steps()) == 5
    with segments(tmp_path)[0].open("r+b") as file:
        file.seek(segment.end - 1)
        file.write(b"x")
    assert len(steps()) == 4
    assert reader.verify(segment, segment.end - 20, segment.end) == segment.end - 20
    await owner.journal.close()


async def test_only_live_records_that_are_bad_are_reported(tmp_path: Path) -> None:
    """Records that are not synced yet are not read; other records of the segment stay."""
    writing = threading.Event()
    writing.set()

    def write(fd: int, parts: Sequence[Block], offset: int) -> int:
        writing.wait()
        return os.pwritev(fd, parts, offset)

    owner = Owner(Journal.open(tmp_path, Disk(write, scrub=ScrubPace(0), short_ns=-1)), no_states)
    for number in range(70):
        owner.journal.append_messages(1, number, 1, 5, b"message %03d" % number, number + 1)
    await owner.until(70)
    owner.journal.trim(1, 10, 71)
    await owner.until(71)
    (path,) = segments(tmp_path)
    data = path.read_bytes()
    for number in (5, 20, 40):
        data = data.replace(b"message %03d" % number, b"message xxx")
    path.write_bytes(data)
    bad: list[tuple[int, int]] = []
    told = asyncio.Event()

    def on_bad(stream: int, place: RecordPlace, _: JournalError) -> None:
        bad.append((stream, place.first))
        if len(bad) == 2:
            told.set()

    owner.journal.on_bad = on_bad
    writing.clear()
    owner.journal.append_messages(1, 70, 1, 5, b"late", 72)
    owner.journal.scrubber.hurry()
    await told.wait()
    writing.set()
    await owner.until(72)
    assert bad == [(1, 40), (1, 20)]
    assert owner.journal.segments == 2  # A new checkpoint, because the bad record might have been a state.
    await owner.journal.close()
