# ruff: noqa: S608 - the queries are put together from constants of this package
"""The verification job: tasks replay every frame, and SQL judges the joints between frames and between traces.

The pieces are judged once and the rows are kept; all other steps are small queries on them. The rows that return to the
driver are bounded for each file, so a flood of violations does no harm. The outcome is the same summary as that of the
judge in process.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from stablecast.evidence.spark import cross_rules_sql
from stablecast.evidence.spark.piece_judge import PIECE_BYTES, SCHEMA, TracePiece, judge_with, loads, plan
from stablecast.evidence.spark.spark_jobs import NO_PROGRESS, job
from stablecast.evidence.trace.cross_rules import BOUNDED, SMALL, Ground, Suspect, Told, Witness, by_kind, untold
from stablecast.evidence.trace.facts import Fact
from stablecast.evidence.trace.file_names import traces_of
from stablecast.evidence.trace.frames import ROLES
from stablecast.evidence.trace.report_page import DRAWN, MAX_POINTS, Point
from stablecast.evidence.trace.reports import MAX_VIOLATIONS, FileReport, TraceViolation, VerificationSummary, table_of
from stablecast.evidence.trace.trace_judge import FrameLink, broken_beginning, violation
from stablecast.text import plural

ARROW: Final = {"string": pa.string(), "bigint": pa.int64()}
"""Types of columns by their names, in SQL and in tables of violations."""

FEW: Final = 200_000
"""Rows below which it costs more to compile queries than to run them."""

LIGHT: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings of a session while it works on few rows."""

LEAST_TASKS: Final = 8
"""Tasks that share even a little work: more than most local sessions have cores."""

MAX_UNTOLD: Final = 1000
"""Undecided questions in the outcome, at most."""


def _of(kinds: Iterable[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)


_ERRORS: Final = """
    SELECT path, min(offset) AS stop, min_by(text, offset) AS text, min_by(truncated, offset) AS truncated
    FROM judged WHERE what = 'error' GROUP BY path"""

_USABLE: Final = """
    SELECT j.* FROM judged j LEFT JOIN damage d ON j.path = d.path WHERE d.stop IS NULL OR j.offset <= d.stop"""

_TOLD: Final = "SELECT trace, path, offset, kind, record, time, life, peer, first, last FROM usable WHERE what = 'fact'"

_SMALL: Final = f"""
    SELECT * FROM told WHERE kind IN ({_of(SMALL)})
    UNION ALL SELECT trace, min(path) AS path, min(offset) AS offset, kind, min(record) AS record, min(time) AS time,
                     life, peer, min(first) AS first, max(last) AS last
              FROM told WHERE kind IN ({_of(BOUNDED)}) GROUP BY trace, kind, life, peer"""

_FRAMES: Final = """
    SELECT *, lag(frame) OVER following AS frame_before, lag(record) OVER following AS record_before,
           lag(count) OVER following AS count_before, lag(ended) OVER following AS ended_before,
           lag(ended_as) OVER following AS ended_as_before, lag(role) OVER following AS role_before,
           lag(endpoint) OVER following AS endpoint_before
    FROM usable WHERE what = 'frame' WINDOW following AS (PARTITION BY trace ORDER BY part, offset)"""

_LINKS: Final = """
    SELECT *, CASE WHEN frame_before IS NULL THEN part = 0 AND (frame <> 0 OR record <> gap)
                   ELSE frame <> frame_before + 1 OR record <> record_before + count_before + gap
                        OR role <> role_before OR endpoint <> endpoint_before
                        OR (gap = 0 AND started_as <> ended_as_before) END AS parted,
           frame_before IS NOT NULL AND time < ended_before AS turned
    FROM frames"""

_WITNESS: Final = """
    SELECT l.trace, max_by(l.role, struct(l.part, l.offset)) AS role,
           max_by(l.address, struct(l.part, l.offset)) AS address, max_by(l.life, struct(l.part, l.offset)) AS life,
           min(l.part) = 0 AND max_by(l.closed, struct(l.part, l.offset)) AND NOT bool_or(l.gap > 0 OR l.parted)
               AND NOT coalesce(bool_or(b.trace IS NOT NULL), false) AS complete,
           max_by(l.ended, struct(l.part, l.offset)) AS ended, max_by(l.patience, struct(l.part, l.offset)) AS patience
    FROM links l LEFT JOIN (
        SELECT DISTINCT trace FROM judged
        WHERE what = 'error' OR (what = 'violation' AND rule IN ('numbering', 'schema'))) b ON l.trace = b.trace
    GROUP BY l.trace"""

_FILES: Final = """
    SELECT path, max_by(role, offset) AS role, max_by(endpoint, offset) AS endpoint, count(*) AS frames,
           sum(count) AS records, sum(gap) AS gaps, max_by(closed, offset) AS closed,
           sum(CASE WHEN frame_before IS NULL AND part > 0 THEN record - gap ELSE 0 END) AS missing
    FROM frames GROUP BY path"""

_POINTS: Final = f"""
    SELECT f.trace, l.role, l.endpoint, f.kind, f.life, f.time, f.last FROM (
        SELECT *, row_number() OVER (PARTITION BY trace, kind, life ORDER BY part, offset, record) AS place,
               count(*) OVER (PARTITION BY trace, kind, life) AS points
        FROM usable WHERE what = 'fact' AND kind IN ({_of(DRAWN)})) f
    JOIN (SELECT trace, max_by(role, offset) AS role, max_by(endpoint, offset) AS endpoint FROM frames GROUP BY trace) l
         ON f.trace = l.trace
    WHERE f.place = f.points OR f.place % (1 + points DIV {MAX_POINTS}) = 0
    ORDER BY f.trace, f.kind, f.life, f.time"""


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
    files = [path for parts in traces_of(paths) for path in parts]
    pieces = plan(files, piece_bytes)
    tasks, own = tasks_for(pieces), own_session(spark)
    with job(spark, f"verify {plural(len(files), 'trace')}", show):
        judged = own.range(0, len(pieces), 1, tasks).mapInArrow(judge_with(pieces), SCHEMA).persist()
        try:
            with at_ease(judged) as rows:
                summary = summarize(own, rows, files)
                points = [_point(row) for row in own.sql(_POINTS).collect()] if timeline else []
        finally:
            judged.unpersist()
    return VerificationOutcome(summary, spark.createDataFrame(table_of(summary)), points)


def own_session(spark: SparkSession) -> SparkSession:
    """Return a session with views and settings of its own: those of the user's session stay as they are."""
    try:
        return spark.newSession()
    except (PySparkException, NotImplementedError):  # Spark Connect may have one session for each connection.
        return spark


@contextmanager
def at_ease(judged: DataFrame) -> Iterator[DataFrame]:
    """Yield the judged rows and set the session for fast queries: few rows become one partition.

    A partition is a task in every scan of every query, and replay leaves many; one partition needs no shuffle either.
    """
    few = judged.count() < FEW
    with tuned(judged.sparkSession, LIGHT if few else {}):
        yield judged.coalesce(1) if few else judged


@contextmanager
def tuned(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Apply settings of the session, and restore the old ones afterwards."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def tasks_for(pieces: list[TracePiece]) -> int:
    """Return the number of tasks: one for each `PIECE_BYTES`, some more for little work, at most one a piece.

    >>> tasks_for([]), tasks_for([TracePiece("a", 0, 9)]), tasks_for([TracePiece("a", 0, 1 << 20)] * 99)
    (1, 1, 99)
    """
    size = sum(min(piece.stop - piece.start, PIECE_BYTES) for piece in pieces)
    return max(1, min(len(pieces), max(LEAST_TASKS, size // PIECE_BYTES)))


def prepare(judged: DataFrame) -> list[Suspect]:
    """Create the views of all queries; return the suspects that small facts alone show."""
    spark = judged.sparkSession
    judged.createOrReplaceTempView("judged")
    damaged = spark.sql(_ERRORS).collect()
    _view(spark, "damage", "path string, stop bigint", [(row.path, row.stop) for row in damaged])
    spark.sql(_USABLE if damaged else "SELECT * FROM judged").createOrReplaceTempView("usable")
    for name, query in {"frames": _FRAMES, "links": _LINKS, "told": _TOLD}.items():
        spark.sql(query).createOrReplaceTempView(name)
    witnesses = [_witness(row) for row in spark.sql(_WITNESS).collect()]
    ground = Ground(witnesses, by_kind(_told(row) for row in spark.sql(_SMALL).collect()))
    for name, rows in small_views(ground).items():
        _view(spark, name, cross_rules_sql.SMALL[name], rows)
    for name, query in cross_rules_sql.VIEWS.items():
        spark.sql(query).createOrReplaceTempView(name)
    return [*ground.proxies(), *ground.messages()]


def small_views(ground: Ground) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the small views (`stablecast.evidence.spark.cross_rules_sql`)."""
    needs, enough = ground.needs()
    known = [
        *(("S1", f"{life:#x}") for life in enough),
        *(("P6", address) for address in ground.stores()),
        *(("D1", f"{life:#x}") for life in ground.sources()),
        *(("H1", f"{life:#x}") for life in ground.sources()),
        *(("A3", f"{life:#x} {peer}") for life, peer in ground.readers()),
    ]
    return {
        "known": known,
        "part": [
            (f"{need.life:#x}", need.group, index, address)
            for need in needs
            for index, store in enumerate(need.stores)
            for address in store
        ],
        "need": [(f"{need.life:#x}", need.group, need.needed) for need in needs],
        "enough": [(f"{life:#x}", count) for life, count in enough.items()],
        "kin": [(f"{life:#x}", f"{other:#x}") for life, other in ground.kin()],
        "lost": [(f"{life:#x}", number) for life, number in ground.lost().items()],
    }


def _view(spark: SparkSession, name: str, schema: str, rows: list[tuple[Any, ...]]) -> None:
    """Create a view of a few rows that the planner knows to be small."""
    columns = [column.split(" ") for column in schema.split(", ")]
    arrays = [pa.array([row[at] for row in rows], ARROW[kind]) for at, (_, kind) in enumerate(columns)]
    table = pa.Table.from_arrays(arrays, names=[column for column, _ in columns])
    spark.createDataFrame(table).createOrReplaceTempView(name)


def _witness(row: Row) -> Witness:
    return Witness(row.trace, ROLES[row.role], row.address, int(row.life, 16), row.complete, row.ended, row.patience)


def _told(row: Row) -> Told:
    fact = Fact(row.kind, row.record, row.time, int(row.life, 16), row.peer, row.first, row.last)
    return Told(row.trace, row.path, row.offset, fact)


def summarize(spark: SparkSession, judged: DataFrame, files: list[Path]) -> VerificationSummary:
    """Judge the joints between frames and between traces, and join all findings."""
    proxies = prepare(judged)
    reports = {str(path): FileReport(path) for path in files}
    for row in spark.sql(_FILES).collect():
        report = reports[row.path]
        report.role, report.endpoint, report.closed = row.role, row.endpoint, row.closed
        report.frames, report.records, report.gaps = row.frames, row.records, row.gaps
        report.missing = row.missing
    for row in spark.sql(_ERRORS).collect():
        reports[row.path].error, reports[row.path].truncated = row.text, row.truncated
    for parts in traces_of(files):
        for path in parts[:-1]:
            reports[str(path)].closed = True
    found = [_own(row) for row in _bounded(spark, "usable WHERE what = 'violation'")]
    found += [one for row in _bounded(spark, "links WHERE parted OR turned") for one in _between(row)]
    suspects = [_suspect(row) for row in _bounded(spark, f"({cross_rules_sql.SUSPECTS})")] + proxies
    summary = VerificationSummary([reports[str(path)] for path in files], _untold(spark))
    summary.add(found)
    summary.add(violation(one) for one in sorted(suspects))
    return summary


def _bounded(spark: SparkSession, source: str) -> list[Row]:
    """Return the first rows of each file."""
    query = f"SELECT *, row_number() OVER (PARTITION BY path ORDER BY record) AS place FROM {source}"
    return spark.sql(f"SELECT * FROM ({query}) WHERE place <= {MAX_VIOLATIONS} ORDER BY path, place").collect()


def _own(row: Row) -> TraceViolation:
    return TraceViolation(
        Path(row.path), row.record, row.rule, row.text, loads(row.expected), loads(row.found), row.time
    )


def _between(row: Row) -> list[TraceViolation]:
    begin = FrameLink(row.frame, row.record, row.started_as, row.time, row.role, row.endpoint)
    if row.frame_before is None:
        broken = broken_beginning(begin, row.gap)
    else:
        next_record = row.record_before + row.count_before
        before = (row.ended_as_before, row.ended_before, row.role_before, row.endpoint_before)
        broken = FrameLink(row.frame_before + 1, next_record, *before).broken_by(begin, row.gap)
    return [TraceViolation(Path(row.path), *one, row.time) for one in broken]


def _suspect(row: Row) -> Suspect:
    return Suspect(row.path, row.record, row.rule, row.number, row.kind, int(row.life, 16), row.peer, row.offset)


def _untold(spark: SparkSession) -> list[str]:
    rows = spark.sql(
        f"SELECT * FROM ({cross_rules_sql.UNTOLD}) ORDER BY rule, kind, life, peer LIMIT {MAX_UNTOLD}"
    ).collect()
    return sorted(untold(row.rule, row.kind, int(row.life, 16), row.peer) for row in rows)


def _point(row: Row) -> Point:
    return Point(row.trace, row.role, row.endpoint, row.kind, int(row.life, 16), row.time, row.last)
