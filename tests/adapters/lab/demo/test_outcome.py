"""Counting and judging: what is wrong is found."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from stablecast.lab.demo.run import KINDS, DemoOutcome, judge
from tests.support.program import store

CRASHES = dict.fromkeys(KINDS, 1)
PORTS = {"lbmr": [1], "lbttcp": [2]}


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """The trace of a store that did nothing."""
    with store(tmp_path / "store", "--trace", tmp_path / "traces") as (program, _):
        program.interrupt()
        assert program.end()[0] == 0
    return tmp_path / "traces"


def _judge(traces: Path, numbers: Iterable[int], again: Iterable[int] = ()) -> DemoOutcome:
    ledger = traces.parent / "received"
    ledger.write_text("".join(f"{number}\n" for number in numbers))
    ledger.with_suffix(".again").write_text("".join(f"{number}\n" for number in again))
    return judge(5, 5, ledger, traces, CRASHES, PORTS)


def test_everything_once(traces: Path) -> None:
    found = _judge(traces, [0, 1, 3, 2, 4], [1, 3])
    assert (found.sent, found.delivered, found.lost, found.duplicates, found.redelivered) == (5, 5, 0, 0, 2)
    assert (found.verified, found.violations, found.problems) == (True, 0, [])
    assert found.records > 0
    assert (found.crashes, found.ports) == (CRASHES, PORTS)


def test_a_missing_and_a_doubled_message(traces: Path) -> None:
    found = _judge(traces, [0, 1, 1, 4, 2])
    assert (found.delivered, found.lost, found.duplicates) == (4, 1, 1)
    assert found.problems == ["message 3 was not delivered", "1 message was processed twice"]


def test_a_trace_that_was_cut(traces: Path) -> None:
    (trace,) = traces.iterdir()
    trace.write_bytes(trace.read_bytes()[:-1])
    found = _judge(traces, range(5))
    assert not found.verified
    (problem,) = found.problems
    assert str(trace) in problem


def test_no_trace_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    found = _judge(tmp_path / "traces", range(5))
    assert (found.verified, found.problems) == (False, [])
