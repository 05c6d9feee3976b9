"""The speed of trace verification: all measurements with one command, in about a quarter of an hour on an idle machine.

    python -m tools.bench.trace_verification --records 10000000 --stream 5000000 --processes 100000

This command writes traces of four sessions, traces of a single stream, and traces of real processes that send 100000
messages and are idle then (`tools.bench.process_traces`), unless `--directory` has them already. It verifies all of
them in a Python process ("here"), on `local[1]` and on `local[2]`. Each run is a process and prints a line of JSON:

| key | meaning |
|---|---|
| started_s | time of Spark's start and of a first small run, which every job pays once |
| replay_per_s, rules_per_s | records per second of the two halves. On Spark: the replay of every frame with the rules \
of one trace, and the rules across traces in one task. Here, by processor time: reading, replaying, comparing \
effects and digests, and the rules of one trace with the facts for the rules across traces |
| per_s, per_cpu_s | records per second of the whole; here also per second of processor time |
| slowest_per_cpu_s | here: the same for the trace with the slowest records |
| stages_us | here: processor time per record by stage (µs) |
| task_mib | on Spark: the largest memory of a Python worker (MiB) |

    python -m tools.bench.trace_verification --rules TRACES 10000000

This command measures the rules across traces alone on `local[1]`. It copies the verdicts on the traces under other
names until they cover 10000000 records.

The last lines are a table of the goals and the results, with the ratios of `local[2]` to `local[1]`.
"""

import argparse
import json
import math
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frame_judge import RecordWatch
from stablecast.evidence.trace.frame_replay import Answering
from stablecast.evidence.trace.reports import FrameVerdict
from stablecast.evidence.trace.trace_judge import EndedTrace, judge_paths, summarize
from tools.bench import command_line, process_traces, synthetic_traces
from tools.bench.roles import BenchError

PROGRAM: Final = "trace_verification"
HERE: Final = "here"
MASTERS: Final = (HERE, "local[1]", "local[2]")
SESSIONS: Final = {"sessions": 4, "stream": 1}
"""Directories with synthetic traces, and their numbers of sessions."""

PROCESSES: Final = "processes"
"""The directory with traces of real processes."""

RULES: Final = "rules and facts"
STEPS: Final = {"replay": (Answering, "to"), RULES: (RecordWatch, "judge")}
"""The separately timed steps of the judge."""

REPLAY_PER_S, RULES_PER_S, RATIO, TASK_MIB = 100_000, 1_000_000, 1.7, 256
"""Goals: records per second and core, the gain of a second core, and memory of a task."""

SHARE: Final = 0.7
"""Goal for traces of real processes: records per second, as a share of those of the first traces in the same run."""


def here(files: list[Path]) -> dict[str, Any]:
    """Verify traces in this process, on one core; return the measurements."""
    stages: dict[str, float] = {}
    for name, (kind, step) in STEPS.items():
        _timed(name, kind, step, stages)
    began, busy = time.perf_counter(), time.process_time()
    judges, slowest = list[EndedTrace](), math.inf
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
    """Wrap a step of the judge so that `stages` collects its processor time."""
    inner = getattr(kind, step)
    stages[name] = 0.0

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        result = inner(*arguments)
        stages[name] += time.process_time() - began
        return result

    setattr(kind, step, timed)


def on_spark(files: list[Path], master: str) -> dict[str, Any]:
    """Verify traces on Spark; return the measurements. Its start and a first small run are measured apart."""
    from stablecast.evidence.spark import connect, verification_job  # noqa: PLC0415 - an extra that the other half does without
    from stablecast.evidence.spark.piece_judge import plan  # noqa: PLC0415
    from stablecast.evidence.spark.spark_session import cores_of  # noqa: PLC0415

    starting = time.perf_counter()
    spark = connect(master)
    pieces = plan(files)
    verification_job.judged(spark, pieces[: 2 * cores_of(master)]).count()  # enough to start a worker on each core
    verification_job.verify_on(spark, files[:1])
    began = time.perf_counter()
    judged = verification_job.judged(spark, pieces).persist()
    rows = judged.count()
    replayed = time.perf_counter()
    summary, _ = verification_job.joined(judged, files)
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
    """Measure the rules across traces alone, on copies of the verdicts on these traces that cover `wanted` records."""
    from stablecast.evidence.spark import connect, verification_job  # noqa: PLC0415 - an extra that the other half does without
    from stablecast.evidence.spark.piece_judge import SCHEMA, plan  # noqa: PLC0415

    spark = connect(master)
    once = verification_job.judged(spark, plan(files)).persist()
    copies = -(-wanted // verification_job.joined(once, files)[0].records)
    told = once.mapInArrow(partial(_copied, copies), SCHEMA).persist()
    rows, every = told.count(), [Path(f"/{number}{path}") for number in range(copies) for path in files]
    verification_job.joined(told, every)  # the first time starts what the second one uses
    began = time.perf_counter()
    summary, _ = verification_job.joined(told, every)
    took = time.perf_counter() - began
    rate = round(summary.records / took)
    return {"records": summary.records, "clean": summary.clean, "rows": rows, "rules_s": round(took, 2), "per_s": rate}


def _copied(copies: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield rows of other worlds: each has its own paths, addresses and lives."""
    import pyarrow as pa  # type: ignore[import-untyped] # noqa: PLC0415 - in the worker

    for batch in batches:
        for number in range(copies):
            rows = batch.to_pylist()
            for row in rows:
                row["path"] = f"/{number}{row['path']}"
                row["outcome"] = pickle.dumps(_renamed(pickle.loads(row["outcome"]), number))
            yield pa.RecordBatch.from_pylist(rows, schema=batch.schema)


def _renamed(one: FrameVerdict, number: int) -> FrameVerdict:
    def other(life: int) -> int:
        return life and life * 1000 + number

    witness = attrs.evolve(one.witness, address=f"/{number}{one.witness.address}", life=other(one.witness.life))
    facts = [
        attrs.evolve(fact, peer=fact.peer and f"/{number}{fact.peer}", life=other(fact.life)) for fact in one.facts
    ]
    return attrs.evolve(one, path=Path(f"/{number}{one.path}"), witness=witness, facts=facts)


def _peak(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the largest memory of this worker, in MiB."""
    import pyarrow as pa  # noqa: PLC0415 - in the worker

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"mib": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10]})


def measure(directory: Path, records: dict[str, int]) -> None:
    """Write the missing traces and verify all traces everywhere. Raises BenchError, OSError, TraceError."""
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
            table += _goals(name, rates) if name in SESSIONS else _goals_of_processes(first, rates)
    print(f"\n{'':42}{'result':>12}{'goal':>14}")
    for what, found, goal, met in table:
        print(f"{what:42}{found:>12,}{goal:>14}  {'met' if met else 'MISSED'}")


def _write(folder: Path, name: str, wanted: int) -> int:
    """Write traces beside their folder and rename them when they are complete, so that a stopped run leaves none."""
    beside = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        if name == PROCESSES:
            written = process_traces.write(beside, wanted)
        else:
            written = synthetic_traces.write(beside, wanted, SESSIONS[name])
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return written


def _goals(name: str, rates: dict[str, dict[str, Any]]) -> Iterator[tuple[str, float, str, bool]]:
    """Yield the goals for synthetic traces: the name, the result, the limit, and whether it is met."""
    alone, one, two = (rates[master] for master in MASTERS)
    for what, found, least in (
        ("replay here, records/s", alone["replay_per_s"], REPLAY_PER_S),
        ("replay and rules here, records/s", alone["per_s"], REPLAY_PER_S),
        ("replay on local[1], records/s", one["replay_per_s"], REPLAY_PER_S),
        ("rules across traces on local[1], records/s", one["rules_per_s"], RULES_PER_S),
        ("local[2] / local[1], all of it", round(two["per_s"] / one["per_s"], 2), RATIO),
    ):
        yield f"{name}: {what}", found, f">= {least:,}", found >= least
    memory = max(one["task_mib"], two["task_mib"])
    yield f"{name}: memory of a task, MiB", memory, f"<= {TASK_MIB}", memory <= TASK_MIB


def _goals_of_processes(
    first: dict[str, dict[str, Any]], rates: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, float, str, bool]]:
    """Yield the goals for traces of real processes, relative to the `first` traces of this run."""
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
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    place = "read or keep the traces in this directory; default: delete them afterwards"
    parser.add_argument("--records", type=int, default=10_000_000, help="records of four sessions; 0: none")
    parser.add_argument("--stream", type=int, default=5_000_000, help="records of one session; 0: none")
    parser.add_argument("--processes", type=int, default=100_000, help="messages of real processes; 0: none")
    parser.add_argument("--directory", type=Path, help=place)
    parser.add_argument("--rules", nargs=2, metavar=("TRACES", "RECORDS"), help="measure only the rules across traces")
    parser.add_argument("--one", nargs=2, metavar=("TRACES", "MASTER"), help="measure one run only")
    given = parser.parse_args(arguments)
    if not (given.one or given.rules or given.records or given.stream or given.processes):
        parser.error("there is nothing to measure: give --records, --stream or --processes")
    with command_line.short_errors(PROGRAM):
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
