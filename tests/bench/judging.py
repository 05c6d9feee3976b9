"""How fast traces are judged: everything with one command, on a quiet machine, in about a quarter of an hour.

    python -m tests.bench.judging --records 10000000 --stream 5000000 --processes 100000

writes traces of four sessions, one of a single stream, and those of real processes (`tests.bench.recorded`) that send
so many messages and are idle then, unless `--directory` has them already. It judges all of them here, on `local[1]` and
on `local[2]`. Each run is a process of its own and prints a line of JSON:

| key | is |
|---|---|
| started_s | Spark's start and a first small run: what every job pays once |
| replay_per_s, rules_per_s | records per second of the halves. On Spark: replay of every frame with the rules of one \
trace, and the rules across traces in SQL. Here, by processor time: reading, replaying and comparing effects and \
digests, and the rules of one trace with the facts for those across |
| per_s, per_cpu_s | records per second of the whole; here also per second of processor time |
| slowest_per_cpu_s | here: the same of the trace that takes the longest for a record |
| stages_us | here: processor time of a record, in microseconds, by what it goes into |
| task_mib | on Spark: the most memory that a Python worker had, all of it, in MiB |

    python -m tests.bench.judging --rules TRACES 10000000

judges the rules alone on `local[1]`: what is told of the traces is told again of others until it is of so many records.

The last lines are a table of what was asked for and what was found, with the ratios of `local[2]` to `local[1]`.
"""

import argparse
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frame_replay import Answering
from stablecast.evidence.trace.trace_judge import TraceJudge, judge_paths, summarize
from stablecast.evidence.trace.watch import RecordWatch
from tests.bench import asking, hot, recorded
from tests.bench.roles import BenchError

HERE: Final = "here"
MASTERS: Final = (HERE, "local[1]", "local[2]")
SESSIONS: Final = {"sessions": 4, "stream": 1}
"""Directories with traces of machines alone, and how many sessions they are of."""

PROCESSES: Final = "processes"
"""The directory with traces of real processes."""

RULES: Final = "rules and facts"
STEPS: Final = {"replay": (Answering, "to"), RULES: (RecordWatch, "judge")}
"""The steps of the judge that are timed apart."""

REPLAY_PER_S, RULES_PER_S, RATIO, TASK_MIB = 100_000, 1_000_000, 1.7, 256
"""What is asked for: records per second and core, the gain of a second core, and memory of a task."""

SHARE: Final = 0.7
"""What is asked for of traces of real processes: records per second, by that of the first traces in the same run."""


def here(files: list[Path]) -> dict[str, Any]:
    """In this process, on one core."""
    stages: dict[str, float] = {}
    for name, (kind, step) in STEPS.items():
        _timed(name, kind, step, stages)
    began, busy = time.perf_counter(), time.process_time()
    judges, slowest = list[TraceJudge](), math.inf
    for parts in traces_of(files):
        before = time.process_time()
        judges += judge_paths(parts)
        spent, records = time.process_time() - before, sum(report.records for report in judges[-1].reports)
        slowest = min(slowest, records / spent)
    summary = summarize(judges)
    cpu = time.process_time() - busy
    stages["the rest"] = cpu - sum(stages.values())
    rules = stages[RULES]
    return {
        "records": summary.records,
        "clean": summary.clean,
        "replay_per_s": round(summary.records / (cpu - rules)),
        "rules_per_s": round(summary.records / rules),
        "per_s": round(summary.records / (time.perf_counter() - began)),
        "per_cpu_s": round(summary.records / cpu),
        "slowest_per_cpu_s": round(slowest),
        "stages_us": {name: round(spent / summary.records * 1e6, 2) for name, spent in stages.items()},
    }


def _timed(name: str, kind: type, step: str, stages: dict[str, float]) -> None:
    """Has a step of the judge tell the time it takes."""
    inner = getattr(kind, step)
    stages[name] = 0.0

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        result = inner(*arguments)
        stages[name] += time.process_time() - began
        return result

    setattr(kind, step, timed)


def on_spark(files: list[Path], master: str) -> dict[str, Any]:
    """On Spark, its start apart; a first run over little warms it up."""
    from stablecast.evidence.spark import connect, verification_job  # noqa: PLC0415 - an extra that the other half does without
    from stablecast.evidence.spark.piece_judge import SCHEMA, judge_with  # noqa: PLC0415
    from stablecast.evidence.spark.piece_plan import plan  # noqa: PLC0415
    from stablecast.evidence.spark.spark_session import cores_of  # noqa: PLC0415

    starting = time.perf_counter()
    spark = connect(master)
    pieces = plan(files)
    first = pieces[: 2 * cores_of(master)]  # so that each core has a worker that runs
    spark.range(0, len(first), 1, len(first)).mapInArrow(judge_with(first), SCHEMA).count()
    verification_job.verify_on(spark, files[:1])
    began = time.perf_counter()
    judged = (
        spark.range(0, len(pieces), 1, verification_job.tasks_for(pieces))
        .mapInArrow(judge_with(pieces), SCHEMA)
        .persist()
    )
    rows = judged.count()
    replayed = time.perf_counter()
    with verification_job.at_ease(judged) as few:
        summary = verification_job.summarize(spark, few, files)
    ended = time.perf_counter()
    return {
        "records": summary.records,
        "clean": summary.clean,
        "rows": rows,
        "tasks": verification_job.tasks_for(pieces),
        "task_mib": max(row.mib for row in spark.range(0, 8, 1, 8).mapInArrow(_peak, "mib bigint").collect()),
        "started_s": round(began - starting, 1),
        "replay_s": round(replayed - began, 2),
        "rules_s": round(ended - replayed, 2),
        "replay_per_s": round(summary.records / (replayed - began)),
        "rules_per_s": round(summary.records / (ended - replayed)),
        "per_s": round(summary.records / (ended - began)),
    }


def rules_on(files: list[Path], master: str, wanted: int) -> dict[str, Any]:
    """The rules in SQL alone: what replay says of these traces, told again of others until it is of so many records."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra that the other half does without

    from stablecast.evidence.spark import connect, verification_job  # noqa: PLC0415
    from stablecast.evidence.spark.piece_judge import SCHEMA, judge_with  # noqa: PLC0415
    from stablecast.evidence.spark.piece_plan import plan  # noqa: PLC0415

    spark = connect(master)
    pieces = plan(files)
    once = (
        spark.range(0, len(pieces), 1, verification_job.tasks_for(pieces))
        .mapInArrow(judge_with(pieces), SCHEMA)
        .persist()
    )
    copies = -(-wanted // once.agg(f.sum("count")).head()[0])  # type: ignore[index] # one row
    copy = f.format_string("/%d", "copy")
    others = {name: f.concat(copy, f.col(name)) for name in ("trace", "path", "address")}
    others["peer"] = f.when(f.col("peer") != "", f.concat(copy, f.col("peer"))).otherwise("")
    others["life"] = f.when(f.col("life") != "0x0", f.format_string("%s%04x", "life", "copy")).otherwise("0x0")
    told = (
        once.crossJoin(spark.range(copies).withColumnRenamed("id", "copy")).withColumns(others).drop("copy").persist()
    )
    rows, every = told.count(), [Path(f"/{number}{path}") for number in range(copies) for path in files]
    with verification_job.at_ease(told) as few:
        verification_job.summarize(spark, few, every)  # the first time compiles what the second runs
        began = time.perf_counter()
        summary = verification_job.summarize(spark, few, every)
        took = time.perf_counter() - began
    rate = round(summary.records / took)
    return {"records": summary.records, "clean": summary.clean, "rows": rows, "rules_s": round(took, 2), "per_s": rate}


def _peak(batches: Iterator[Any]) -> Iterator[Any]:
    """The most memory that this worker had, in MiB."""
    import pyarrow as pa  # type: ignore[import-untyped] # noqa: PLC0415 - in the worker

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"mib": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10]})


def measure(directory: Path, records: dict[str, int]) -> None:
    """Writes what is missing, and judges all of it everywhere. Raises BenchError, OSError, TraceError."""
    table: list[tuple[str, float, str, bool]] = []
    first: dict[str, dict[str, Any]] = {}
    for name, wanted in records.items():
        folder, rates = directory / name, {}
        if wanted and not folder.exists():
            began = time.perf_counter()
            written = _write(folder, name, wanted)
            seconds = round(time.perf_counter() - began)
            print(json.dumps({"writing": name, "records": written, "seconds": seconds}), flush=True)
        for master in MASTERS if wanted else ():
            command = [sys.executable, "-m", __spec__.name, "--one", str(folder), master]
            done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
            if done.returncode:
                raise BenchError(f"the run over {folder}, {master}, ended with status {done.returncode}")
            rates[master] = found = json.loads(done.stdout)
            print(json.dumps({"traces": name, "master": master, **found}), flush=True)
        if rates:
            first = first or rates
            table += _asked(name, rates) if name in SESSIONS else _asked_of_processes(first, rates)
    print(f"\n{'':42}{'found':>12}{'asked for':>14}")
    for what, found, asked, met in table:
        print(f"{what:42}{found:>12,}{asked:>14}  {'met' if met else 'MISSED'}")


def _write(folder: Path, name: str, wanted: int) -> int:
    """Writes traces beside their place and puts them there whole: a run that was stopped leaves none to be judged."""
    beside = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        with asking.room(folder.parent):
            written = recorded.write(beside, wanted) if name == PROCESSES else hot.write(beside, wanted, SESSIONS[name])
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return written


def _asked(name: str, rates: dict[str, dict[str, Any]]) -> Iterator[tuple[str, float, str, bool]]:
    """What is asked for of these traces: what, what was found, what should be, and whether it is."""
    alone, one, two = (rates[master] for master in MASTERS)
    for what, found, least in (
        ("replay here, records/s", alone["replay_per_s"], REPLAY_PER_S),
        ("replay and rules here, records/s", alone["per_s"], REPLAY_PER_S),
        ("replay on local[1], records/s", one["replay_per_s"], REPLAY_PER_S),
        ("rules in SQL on local[1], records/s", one["rules_per_s"], RULES_PER_S),
        ("local[2] / local[1], all of it", round(two["per_s"] / one["per_s"], 2), RATIO),
    ):
        yield f"{name}: {what}", found, f">= {least:,}", found >= least
    memory = max(one["task_mib"], two["task_mib"])
    yield f"{name}: memory of a task, MiB", memory, f"<= {TASK_MIB}", memory <= TASK_MIB


def _asked_of_processes(
    first: dict[str, dict[str, Any]], rates: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, float, str, bool]]:
    """The same of real processes, by what was found of the `first` traces of this run."""
    for what, master, key, base in (
        ("all traces here", HERE, "per_cpu_s", "per_cpu_s"),
        ("the slowest here", HERE, "slowest_per_cpu_s", "per_cpu_s"),
        ("replay on local[1]", MASTERS[1], "replay_per_s", "replay_per_s"),
    ):
        share = round(rates[master][key] / first[master][base], 2)
        yield f"{PROCESSES}: {what}, share", share, f">= {SHARE:,}", share >= SHARE
    memory = max(rates[master]["task_mib"] for master in MASTERS[1:])
    yield f"{PROCESSES}: memory of a task, MiB", memory, f"<= {TASK_MIB}", memory <= TASK_MIB


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = asking.Parser(
        prog="judging", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    number, stay = asking.number(0), "where traces are, or go and stay; else they go afterwards"
    parser.add_argument("--records", type=number, default=10_000_000, help="of four sessions; 0: none")
    parser.add_argument("--stream", type=number, default=5_000_000, help="of one session; 0: none")
    parser.add_argument("--processes", type=number, default=100_000, help="messages of real processes; 0: none")
    parser.add_argument("--directory", type=asking.folder, help=stay)
    parser.add_argument("--rules", nargs=2, metavar=("TRACES", "RECORDS"), help="the rules in SQL alone, on local[1]")
    parser.add_argument("--one", nargs=2, metavar=("TRACES", "MASTER"), help="one run alone")
    given = parser.parse_args(arguments)
    if not (given.one or given.rules or given.records or given.stream or given.processes):
        parser.error("nothing is asked for: give --records, --stream or --processes")
    for traces, _ in filter(None, (given.one, given.rules)):
        if not Path(traces).is_dir():
            parser.error(f"there is no directory {traces}: name one with traces")
    if given.rules and not (given.rules[1].isdecimal() and int(given.rules[1])):
        parser.error(f"argument --rules: {given.rules[1]!r} is no number of records: give at least 1")
    with asking.told("judging"):
        _perform(given)


def _perform(given: argparse.Namespace) -> None:
    if given.one:
        folder, master = given.one
        files = find([Path(folder)])
        print(json.dumps(here(files) if master == HERE else on_spark(files, master)))
        return
    if given.rules:
        print(json.dumps(rules_on(find([Path(given.rules[0]).resolve()]), "local[1]", int(given.rules[1]))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        wanted = {"sessions": given.records, "stream": given.stream, PROCESSES: given.processes}
        measure(given.directory or Path(scratch), wanted)


if __name__ == "__main__":
    main()
