"""Captures judged on Spark: a file is a task, because sessions need the order of their packets."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from stablecast.evidence.capture.judge import CaptureFindings, judged
from stablecast.evidence.spark.arrow_task import arrow_task
from stablecast.evidence.spark.piece_judge import UNSEEN
from stablecast.evidence.spark.spark_jobs import NO_PROGRESS, job
from stablecast.text import plural
from stablecast.text.spark_table import sql_schema

COLUMNS: Final = {"place": pa.int64(), "outcome": pa.binary()}


def judge_on(
    spark: SparkSession,
    paths: Sequence[Path],
    told: Sequence[str] = (),
    show: Callable[[str], None] = NO_PROGRESS,
) -> list[CaptureFindings | str]:
    """Return the result of `judged` for each file.

    Args:
        spark: The session; its workers must have stablecast, and see the same files.
        paths: The files.
        told: What the caller knows of their ports.
        show: Called with a line about the progress, from another thread.

    Raises:
        SparkError: A worker was lost, or a task failed.
    """
    # Workers have other working directories.
    files, ports = [path.absolute() for path in paths], [*told]
    seen = {path for path in files if path.exists()}

    def rows_of(place: int) -> Iterator[list[dict[str, Any]]]:
        path = files[place]
        unseen = path in seen and not path.exists()
        outcome = f"{path} cannot be read: {UNSEEN}" if unseen else judged(path, ports)
        yield [{"place": place, "outcome": pickle.dumps(outcome)}]

    numbers = spark.range(0, len(files), 1, len(files))
    tasks = numbers.mapInArrow(arrow_task(rows_of, COLUMNS), sql_schema(COLUMNS))
    with job(spark, f"verify {plural(len(files), 'capture')}", show):
        outcomes = {row.place: pickle.loads(row.outcome) for row in tasks.collect()}  # noqa: S301 - of our own tasks
    return [outcomes[place] for place in range(len(files))]
