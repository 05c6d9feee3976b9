"""The job on Spark says what the judge in process says: of clean worlds, of every fault, of files that cannot be read.

Spark is asked once about many worlds, each of a universe of its own, for asking costs seconds.
"""

import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

from stablecast.evidence.spark.piece_judge import judge_with, plan
from stablecast.evidence.spark.verification_job import verify_on
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.report_page import render
from stablecast.evidence.trace.reports import TABLE, FileReport, VerificationSummary
from stablecast.evidence.trace.trace_judge import verify_paths
from tests.adapters.evidence.trace.cross_faults import CROSS_FAULTS, put_world_together, take_world_apart
from tests.adapters.evidence.trace.test_trace_judge import CORRUPTIONS
from tests.adapters.evidence.trace.traced import TracedWorld, play, put_together, take_apart, tapping

Blame = tuple[str, int, str]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[Blame]]:
    """Return worlds with a fault each, and the expected file, record and rule."""
    directory, blamed = tmp_path_factory.mktemp("faulty"), set()
    clean = tmp_path_factory.mktemp("clean")
    play(TracedWorld(wrap=tapping(clean)))
    number = 0
    for role, faults in CORRUPTIONS.items():
        original = min(clean.glob(f"{role}-*"), key=lambda path: int(path.stem.rpartition("-")[2]))
        for name, corrupt in faults.items():
            number += 1
            frames = take_apart(original)
            path = directory / f"{role}-{name}-1-{number}.sct"
            blamed.add((path.name, *corrupt(frames)))
            put_together(path, frames)
    for universe, fault in enumerate(CROSS_FAULTS, 1):
        home = tmp_path_factory.mktemp("universe")
        play(TracedWorld(universe=universe, wrap=tapping(home, kill=False)))
        world = take_world_apart(home)
        name, record, rule = fault(world)
        renamed = {f"{fault.__name__}-{one}": frames for one, frames in world.items()}
        put_world_together(directory, renamed)
        path = next(directory.glob(f"{fault.__name__}-{name}-*"))
        blamed.add((path.name, record, rule))
    return directory, blamed


def seen(summary: VerificationSummary) -> set[tuple[str, str, int]]:
    """Return the first record of each file that breaks a rule."""
    first: dict[tuple[str, str], int] = {}
    for one in summary.violations:
        key = one.path.name, one.rule
        first[key] = min(first.get(key, one.record), one.record)
    return {(*key, record) for key, record in first.items()}


def test_both_judges_blame_the_same_records_for_every_fault(
    spark: SparkSession, faulty: tuple[Path, set[Blame]]
) -> None:
    directory, blamed = faulty
    assert len(blamed) >= 30
    here, there = verify_paths(find([directory])), verify_on(spark, find([directory]), piece_bytes=1).summary
    assert seen(there) == seen(here)
    assert blamed <= {(one.path.name, one.record, one.rule) for one in there.violations}
    assert there.untold == here.untold
    for mine, theirs in zip(here.files, there.files, strict=True):
        assert (theirs.path, theirs.role, theirs.endpoint) == (mine.path, mine.role, mine.endpoint)
        assert (theirs.frames, theirs.records, theirs.gaps) == (mine.frames, mine.records, mine.gaps)
        assert (theirs.closed, theirs.error, theirs.truncated) == (mine.closed, mine.error, mine.truncated)


def test_clean_traces_files_that_cannot_be_read_and_lost_parts(
    spark: SparkSession, whole_world: Path, tmp_path: Path
) -> None:
    """Truncated, damaged, foreign, empty, of another version: one sentence each; the rest is judged all the same."""
    for path in whole_world.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    play(TracedWorld(universe=1, wrap=tapping(tmp_path, torn=True)))
    store = max(whole_world.glob("store-*"), key=lambda path: path.stat().st_size)
    whole = store.read_bytes()
    (tmp_path / "truncated.sct").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "damaged.sct").write_bytes(whole[:-9] + b"x" + whole[-8:])
    (tmp_path / "foreign.sct").write_bytes(b"# a configuration\n")
    (tmp_path / "empty.sct").write_bytes(b"")
    frames = take_apart(store)
    frames[1][0]["version"] = 1
    put_together(tmp_path / "older.sct", frames)
    put_together(tmp_path / "gap.1.sct", take_apart(store)[2:4])
    put_together(tmp_path / "gap.2.sct", take_apart(store)[4:])
    paths = [*find([tmp_path]), tmp_path / "missing.sct"]
    outcome = verify_on(spark, paths, timeline=True)
    here = verify_paths(paths)
    assert outcome.summary.as_json() == here.as_json()
    assert [one.truncated for one in outcome.summary.files] == [one.truncated for one in here.files]
    assert sum(one.error is not None for one in here.files) == 6
    assert here.violations == []
    assert "<svg" in render(outcome.summary, outcome.points)
    assert outcome.violations.columns == list(TABLE)
    assert outcome.violations.count() == 0


def test_nothing_to_judge_is_clean(spark: SparkSession) -> None:
    outcome = verify_on(spark, [])
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None
    assert outcome.summary == VerificationSummary([], [])
    assert outcome.points == []


def test_a_file_that_is_named_twice_counts_once(spark: SparkSession, whole_world: Path) -> None:
    (path, *_) = find([whole_world])
    assert [report.path for report in verify_on(spark, [path, path]).summary.files] == [FileReport(path).path]


def test_a_worker_does_not_look_through_its_modules_behind_each_task(spark: SparkSession, whole_world: Path) -> None:
    judge = judge_with(plan(find([whole_world]))[:1])

    def watched(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batch = next(numbers)
        for _ in range(2):  # the first time makes what all others use
            assert list(judge(iter([batch])))
        yield pa.RecordBatch.from_pydict({"objects": [len(gc.get_objects())]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(watched, "objects bigint").collect()
    assert row.objects < 10_000
