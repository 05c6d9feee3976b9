"""Captures judged on Spark: a file is a task, for sessions need the order of their packets."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from stablecast.evidence.capture.judge import CaptureFindings, judged
from stablecast.runtime import garbage_collection

SCHEMA: Final = "place bigint, outcome binary"
_ARROW: Final = pa.schema([("place", pa.int64()), ("outcome", pa.binary())])


def judge_on(spark: SparkSession, paths: Sequence[Path], told: Sequence[str] = ()) -> list[CaptureFindings | str]:
    """What `judged` says of each file.

    Args:
        spark: The session; its workers must have stablecast, and see the same files.
        paths: The files.
        told: What the caller knows of their ports.
    """
    tasks = spark.range(0, len(paths), 1, len(paths)).mapInArrow(_judge_with([*paths], [*told]), SCHEMA)
    outcomes = {row.place: pickle.loads(row.outcome) for row in tasks.collect()}  # noqa: S301 - of our own tasks
    return [outcomes[place] for place in range(len(paths))]


def _judge_with(paths: list[Path], told: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What `mapInArrow` calls: it is given places of paths."""

    def judge(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        garbage_collection.keep_worker()
        for batch in numbers:
            for place in batch.column(0).to_pylist():
                row = {"place": place, "outcome": pickle.dumps(judged(paths[place], told))}
                yield pa.RecordBatch.from_pylist([row], schema=_ARROW)

    return judge
