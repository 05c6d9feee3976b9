"""The benchmarks run, and check the work that they measure. No test asserts a figure that depends on the machine."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.network import until
from tools.bench import (
    bounded_memory,
    core_costs,
    latency,
    memory,
    peers,
    pipeline,
    process_cleanup,
    stages,
    throughput,
)
from tools.bench.__main__ import SCENARIOS, main
from tools.bench.goals import Goal, ratio
from tools.bench.roles import BenchError, Role, Wire, Work, run
from tools.bench.scenario import Options, Outcome, Scenario, digits

FEW = ["--messages", "2000", "--flight", "300", "--rounds", "1"]


def test_a_run_prints_json_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "bench.json"
    main([*FEW, "throughput", "--trace", "--json", "--directory", str(tmp_path), "--output", str(output)])
    printed = capsys.readouterr().out
    assert printed == output.read_text(encoding="utf-8")
    found = json.loads(printed)["scenarios"]["throughput"]
    assert list(found["rounds"]) == ["baseline", "stablecast", "one by one", "traced"]
    assert "stablecast / baseline, stable" in found["ratios"]
    assert found["durability"] == throughput.SYNCED


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in ("throughput", "latency")])
def test_a_run_prints_tables_for_people(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*FEW, name, "--directory", str(tmp_path), "--output", str(tmp_path / "bench.json")])
    printed = capsys.readouterr().out
    assert f"{name}:" in printed
    assert "median" in printed


def test_latency_is_measured_for_every_message(tmp_path: Path) -> None:
    """The run has no pause, so its time depends on the number of messages only."""
    found = latency.measured(latency.ROLES, 0.0, Options(messages=1000), tmp_path)
    assert 0 < found["delivered_p50"] <= found["delivered_p99"]
    assert 0 < found["stable_p50"] <= found["stable_p99"]


def test_an_unknown_scenario_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["thoughput"])
    assert "there is no scenario thoughput" in capsys.readouterr().err


def test_ratios_compare_figures_of_the_same_round() -> None:
    scenario = Scenario("s", "", "", {}, {"rate": "1/s"}, [("ours", "theirs", "rate")])
    outcome = Outcome(scenario, {"ours": [{"rate": 2.0}, {"rate": 10.0}], "theirs": [{"rate": 4.0}, {"rate": 5.0}]})
    ratio = outcome.ratio("ours", "theirs", "rate")
    assert (ratio.low, ratio.median, ratio.high) == (0.5, 1.25, 2.0)
    assert outcome.spread("ours", "other") is None


def test_numbers_have_three_significant_digits() -> None:
    assert [digits(value) for value in (0.123, 1.234, 12.34, 1234.5)] == ["0.12", "1.23", "12.3", "1,234"]


def test_a_stored_message_takes_less_than_32_bytes_of_memory(tmp_path: Path) -> None:
    """The limit holds even if every message arrives in a run of its own. The test counts bytes, not time."""
    for run_messages in (1, 64):
        assert sum(memory.measured(run_messages, Options(), tmp_path).values()) <= 32


async def test_messages_beyond_the_limits_of_a_repository_take_no_memory(tmp_path: Path) -> None:
    """The short form of the run with 100 million messages counts allocated blocks after the limits are reached."""
    used = await bounded_memory.through(800_000, 16, tmp_path, 4, sys.getallocatedblocks)
    assert max(used[1:]) <= 1.02 * used[0]


def test_the_costs_of_the_core_can_be_measured() -> None:
    """There are more runs than the flight, so that every part of the cycle is executed."""
    assert all(cost(2 * core_costs.FLIGHT_RUNS) > 0 for cost in core_costs.COSTS.values())


def _careless_source(work: Work, wire: Wire) -> None:
    """Send messages that are one byte short."""
    pipeline.source(Work(work.messages, work.size - 1, work.flight, work.directory), wire)


def _absent_source(work: Work, wire: Wire) -> None:
    raise SystemExit(1)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [(_careless_source, "the receiver failed"), (_absent_source, "the source died before it was ready")],
)
def test_a_wrong_run_has_no_result(source: Role, complaint: str, tmp_path: Path) -> None:
    roles: Mapping[str, Role] = {**pipeline.ROLES, "source": source}
    with pytest.raises(BenchError, match=complaint):
        run(roles, Work(100, 50, 300, tmp_path))


def test_a_goal_is_judged_by_the_median_of_the_rounds() -> None:
    rounds = {"ours": [{"rate": 2.0}, {"rate": 10.0}], "theirs": [{"rate": 4.0}, {"rate": 5.0}]}
    most = Goal("ours to theirs", ratio("ours", "theirs", "rate"), 1.3).verdict(rounds)
    least = Goal("ours to theirs", ratio("ours", "theirs", "rate"), 1.3, least=True).verdict(rounds)
    assert most is not None
    assert least is not None
    assert (most.text(), least.text()) == (
        "reached: ours to theirs ≤ 1.30: 1.25 (0.50–2.00)",
        "missed: ours to theirs ≥ 1.30: 1.25 (0.50–2.00)",
    )
    assert most.as_json()["reached"]
    assert Goal("another figure", ratio("ours", "theirs", "cost"), 1.0).verdict(rounds) is None


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_processes_of_a_benchmark_end_with_it(end: signal.Signals) -> None:
    """A child and its child end, whatever ends the benchmark."""
    sleeper = f"{sys.executable!r}, '-c', 'import time; time.sleep(600)'"
    inner = f"import subprocess; subprocess.run([{sleeper}])"
    program = (
        "import os, subprocess, sys\n"
        "from tools.bench.process_cleanup import MARK, reaped\n"
        "with reaped():\n"
        "    print(os.environ[MARK], flush=True)\n"
        f"    subprocess.run([sys.executable, '-c', {inner!r}])\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdout is not None
        mark = bench.stdout.readline().strip()
        asyncio.run(until(lambda: len(process_cleanup.marked(mark)) == 2))
        bench.send_signal(end)
        asyncio.run(until(lambda: not process_cleanup.marked(mark)))


def test_a_process_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    monkeypatch.setenv(process_cleanup.MARK, "deaf")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        process_cleanup.reap("deaf", patience_s=0.0)
        assert deaf.wait() == -signal.SIGKILL


HARNESS = """
import json, sys
rows = [
    {"system": "a broker", "acks": "fsynced", "kind": "throughput", "mode": "sync", "size": 100, "acked_per_s": 5.0,
     "delivered_per_s": 6.0, "from_call": {"p50_us": 130.0, "p99_us": 990.0}},
    {"system": "a slower one", "acks": "written", "kind": "latency", "mode": "rate", "size": 100,
     "from_call": {"p50_us": 260.0, "p99_us": 1980.0}},
    {"system": "another", "error": "Traceback\\nFileNotFoundError: not installed"},
]
document = {"meta": {"versions": {"a broker": "1.2"}}, "peers": rows}
open(sys.argv[sys.argv.index("--out") + 1], "w").write(json.dumps(document))
"""
RAW = 'print(\'{"stable_per_s": 7.0, "delivered_per_s": 8.0}\')'


def test_peers_are_measured_by_their_own_harness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harness = tmp_path / "harness"
    (harness / "peers").mkdir(parents=True)
    (harness / "peers" / "run_all.py").write_text(HARNESS, encoding="utf-8")
    (harness / "raw_parallel.py").write_text(RAW, encoding="utf-8")
    output = tmp_path / "bench.json"
    main([*FEW, "start", "--fast", "--peers", str(harness), "--output", str(output)])
    printed = capsys.readouterr().out
    assert "peers, as measured by their harness" in printed
    found = json.loads(output.read_text(encoding="utf-8"))
    assert [row["system"] for row in found["peers"]["rows"]] == [
        "raw_parallel.py",
        "a broker",
        "a slower one",
        "another",
    ]
    assert found["peers"]["versions"] == {"a broker": "1.2"}
    assert found["rounds"] == 1
    assert found["peers"]["goals"] == [], "neither throughput nor latency was measured"


def test_goals_beside_peers_compare_with_the_best_of_each_kind() -> None:
    def row(acks: str, per_s: float, us: float) -> dict[str, Any]:
        delivery = {"p50_us": us, "p99_us": 2 * us}
        return {"acks": acks, "kind": "latency", "acked_per_s": per_s, "delivered_per_s": per_s, "from_call": delivery}

    raw = {"acks": peers.SYNCED, "kind": "throughput", "acked_per_s": 1e6, "delivered_per_s": 2e6}
    theirs = [
        row("fsynced", 5e4, 200),
        row("fsynced, delayed", 2e5, 150),
        row("none", 9e6, 10),
        {"error": "", "acks": ""},
    ]
    ours = [
        Outcome(throughput.throughput(Options()), {throughput.SYSTEM: [{"stable": 600.0}]}),
        Outcome(latency.latency(Options()), {latency.OURS: [{"delivered_p50": 75.0, "delivered_p99": 600.0}]}),
    ]
    found = peers.verdicts(peers.Peers([raw, *theirs], {}), ours, 100)
    assert [(one.value.median, one.reached) for one in found] == [
        (0.6, True),
        (12.0, True),
        (3.0, True),
        (0.5, True),
        (2.0, False),
    ]
    assert [one.limit for one in peers.verdicts(peers.Peers(theirs, {}), ours[:1], 1024)] == [10.0, 2.0]


def test_a_missing_or_failing_harness_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"has no run_all\.py"):
        peers.measured(tmp_path, sys.executable, Options())
    (tmp_path / "run_all.py").write_text("raise SystemExit('no server')", encoding="utf-8")
    with pytest.raises(BenchError, match=r"run_all\.py failed: no server"):
        peers.measured(tmp_path, sys.executable, Options())


def test_stages_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    found = stages.stages([b"x"] * 20, repeats=1)
    assert all(cost > 0 for cost in found.values())
    stages.main(["1000"])
    assert "33 messages of 1000 B" in capsys.readouterr().out
