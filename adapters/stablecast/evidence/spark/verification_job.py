"""The verification job: tasks judge every frame, and one more judges the joints between frames and between traces.

That task has a few hundred bytes for each frame, however many records there are. It uses the judge that judges traces
in process, so the outcome is the same summary. Only verdicts return to the driver, and they are bounded for each file,
so a flood of violations does no harm.
"""

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from stablecast.evidence.spark.piece_judge import PIECE_BYTES, SCHEMA, TracePiece, judge_with, plan
from stablecast.evidence.spark.spark_jobs import NO_PROGRESS, job
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import traces_of
from stablecast.evidence.trace.report_page import Point, points_of
from stablecast.evidence.trace.reports import FrameVerdict, VerificationSummary, table_of
from stablecast.evidence.trace.trace_judge import EndedTrace, TraceJudge, summarize
from stablecast.text import plural

LEAST_TASKS: Final = 8
"""Tasks that share even a little work: more than most local sessions have cores."""

MAX_UNTOLD: Final = 1000
"""Undecided questions in the outcome, at most."""


@attrs.frozen
class VerificationOutcome:
    """The results of the job, for people and programs: `violations` has the columns of `TABLE`."""

    summary: VerificationSummary
    violations: DataFrame
    points: list[Point]


def verify_on(
    spark: SparkSession,
    paths: Iterable[Path],
    *,
    piece_bytes: int = PIECE_BYTES,
    timeline: bool = False,
    show: Callable[[str], None] = NO_PROGRESS,
) -> VerificationOutcome:
    """Judge traces on Spark.

    Args:
        spark: The session; its workers must have stablecast, and see the same files.
        paths: The files.
        piece_bytes: Compressed bytes that one task judges, at least one frame.
        timeline: Whether to collect what a report draws.
        show: Called with a line about the progress, from another thread.

    Raises:
        SparkError: A worker was lost, or a task failed. Then nothing is known of the traces.
    """
    # Workers have other working directories.
    files = [path for parts in traces_of(path.absolute() for path in paths) for path in parts]
    summary, points = VerificationSummary(), list[Point]()
    if pieces := plan(files, piece_bytes):
        with job(spark, f"verify {plural(len(files), 'trace')}", show):
            summary, points = joined(judged(spark, pieces), files, timeline=timeline)
    return VerificationOutcome(summary, spark.createDataFrame(table_of(summary)), points)


def judged(spark: SparkSession, pieces: list[TracePiece]) -> DataFrame:
    """Return the rows of all pieces (`stablecast.evidence.spark.piece_judge`)."""
    return spark.range(0, len(pieces), 1, tasks_for(pieces)).mapInArrow(judge_with(pieces), SCHEMA)


def joined(rows: DataFrame, files: list[Path], *, timeline: bool = False) -> tuple[VerificationSummary, list[Point]]:
    """Judge these rows in one task; return the summary, and what a report draws."""
    (row,) = rows.repartition(1).mapInArrow(_join_with(files, timeline), "outcome binary").collect()
    found: tuple[VerificationSummary, list[Point]] = pickle.loads(row.outcome)  # noqa: S301 - of our own task
    return found


def _join_with(files: list[Path], timeline: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that gets all rows and returns the outcome."""

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for batch in batches:
            for path, offset, outcome in zip(*batch.to_pydict().values(), strict=True):
                rows[path].append((offset, outcome))
        traces = [_trace(parts, rows) for parts in traces_of(files)]
        summary = summarize(traces)
        del summary.untold[MAX_UNTOLD:]
        told = (one for trace in traces for one in trace.told)
        points = points_of(told, summary.files) if timeline else []
        yield pa.RecordBatch.from_pydict({"outcome": [pickle.dumps((summary, points))]})

    return join


def _trace(parts: list[Path], rows: dict[str, list[tuple[int, bytes]]]) -> EndedTrace:
    trace = EndedTrace.of(parts)
    for path in parts:
        trace.follow(path, _in_order(trace.judge, rows[str(path)]))
    return trace


def _in_order(judge: TraceJudge, rows: list[tuple[int, bytes]]) -> Iterator[FrameVerdict]:
    """Yield the verdicts on the frames of a file. Raise TraceError where it could not be read further."""
    for _, outcome in sorted(rows):
        one: Any = pickle.loads(outcome)  # noqa: S301 - of our own tasks
        if isinstance(one, TraceError):
            raise one
        judge.take(one)
        yield one


def tasks_for(pieces: list[TracePiece]) -> int:
    """Return the number of tasks: one for each `PIECE_BYTES`, some more for little work, at most one a piece.

    >>> tasks_for([]), tasks_for([TracePiece("a", 0, 9)]), tasks_for([TracePiece("a", 0, 1 << 20)] * 99)
    (1, 1, 99)
    """
    size = sum(min(piece.stop - piece.start, PIECE_BYTES) for piece in pieces)
    return max(1, min(len(pieces), max(LEAST_TASKS, size // PIECE_BYTES)))
