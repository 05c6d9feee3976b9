"""The benchmark still runs and still checks what it measures. No figure is asserted: they depend on the machine."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bench import bookkeeping, pipeline
from tests.bench.bench_pipeline import main
from tests.bench.roles import BenchError, Role, Wire, Work, run

FEW = ["--messages", "2000", "--flight", "300", "--rounds", "1"]


def test_a_run_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "bench.json"
    main([*FEW, "--trace", "--json", "--directory", str(tmp_path), "--output", str(output)])
    printed = capsys.readouterr().out
    assert printed == output.read_text(encoding="utf-8")
    results = json.loads(printed)
    assert list(results["rounds"]) == ["baseline", "stablecast", "traced"]
    assert list(results["ratios"]["stable_per_s"]) == ["stablecast / baseline", "traced / stablecast"]
    assert results["durability"] == "stable = fdatasync returned"


def test_a_run_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*FEW, "--directory", str(tmp_path), "--output", str(tmp_path / "bench.json")])
    assert "stable = fdatasync returned" in capsys.readouterr().out


def test_bookkeeping_balances() -> None:
    """More runs than the flight, so that every part of the cycle is passed."""
    assert all(cost(2 * bookkeeping.FLIGHT_RUNS) > 0 for cost in bookkeeping.COSTS.values())


def _careless_source(work: Work, wire: Wire) -> None:
    """Sends messages that are one byte short."""
    pipeline.source(Work(work.messages, work.size - 1, work.flight, work.directory), wire)


def _absent_source(work: Work, wire: Wire) -> None:
    raise SystemExit(1)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [(_careless_source, "the receiver failed"), (_absent_source, "the source died before it was ready")],
)
def test_a_wrong_run_is_no_result(source: Role, complaint: str, tmp_path: Path) -> None:
    roles: Mapping[str, Role] = {**pipeline.ROLES, "source": source}
    with pytest.raises(BenchError, match=complaint):
        run(roles, Work(100, 50, 300, tmp_path))
