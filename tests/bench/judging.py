"""How fast traces are judged: `python -m tests.bench.judging DIRECTORY [MASTER]`, without a master in this process.

Prints records per second of the whole, and on Spark of the two halves: replay of every frame, and the rules in SQL.
`tests.bench.hot` makes the traces.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from stablecast.trace.names import find
from stablecast.trace.verify import verify_paths


def here(files: list[Path]) -> dict[str, Any]:
    """In this process, on one core."""
    began, busy = time.perf_counter(), time.process_time()
    summary = verify_paths(files)
    return {
        "records": summary.records,
        "clean": summary.clean,
        "per_s": round(summary.records / (time.perf_counter() - began)),
        "per_cpu_s": round(summary.records / (time.process_time() - busy)),
    }


def on_spark(files: list[Path], master: str) -> dict[str, Any]:
    """On Spark, its start apart; a first run over little warms it up."""
    from stablecast.spark import connect, job  # noqa: PLC0415 - an extra that the other half does without
    from stablecast.spark.pieces import SCHEMA, judge_with  # noqa: PLC0415
    from stablecast.spark.plan import plan  # noqa: PLC0415

    spark = connect(master)
    job.verify_on(spark, files[:1])
    pieces = plan(files)
    began = time.perf_counter()
    judged = spark.range(0, len(pieces), 1, job.tasks_for(pieces)).mapInArrow(judge_with(pieces), SCHEMA).persist()
    rows = judged.count()
    replayed = time.perf_counter()
    summary = job.summarize(spark, judged, files)
    ended = time.perf_counter()
    return {
        "records": summary.records,
        "clean": summary.clean,
        "rows": rows,
        "tasks": job.tasks_for(pieces),
        "replayed_per_s": round(summary.records / (replayed - began)),
        "rules_per_s": round(summary.records / (ended - replayed)),
        "per_s": round(summary.records / (ended - began)),
    }


if __name__ == "__main__":
    traces = find([Path(sys.argv[1])])
    print(json.dumps(on_spark(traces, sys.argv[2]) if len(sys.argv) > 2 else here(traces)))
