"""Shrinking: what is left still fails, and needs everything that is left."""

from collections import Counter

import attrs
import pytest

from stablecast.core.store import StoreEndpoint
from stablecast.lab.schedules.faults import Kind
from stablecast.lab.sim.facts import Violation
from stablecast.lab.sim.runner import Report, run, shrink
from stablecast.lab.sim.schedule import Schedule, draw


def judged(schedule: Schedule) -> Report:
    """Fails while there are a crash of the source and ten messages."""
    crash = any(fault.kind is Kind.KILL and fault.who == "source" for fault in schedule.faults)
    bad = crash and sum(count for _, count in schedule.sends) >= 10
    violations = (Violation("S2", 0, "planted"),) if bad else ()
    return Report(schedule, violations, Counter(), 0, "")


def test_only_what_matters_is_left() -> None:
    seed = next(seed for seed in range(1000) if judged(draw(seed)).violations)
    small = shrink(judged(draw(seed)), judged).schedule
    assert [(fault.kind, fault.who, fault.span_ms) for fault in small.faults] == [(Kind.KILL, "source", 1)]
    assert 10 <= sum(count for _, count in small.sends) < 20


def test_another_rule_is_another_failure() -> None:
    report = attrs.evolve(judged(draw(0)), violations=(Violation("X1", 0, "gone with the rest"),))
    assert shrink(report, judged) is report


def test_a_real_one_shrinks_to_nothing_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(StoreEndpoint, "_on_keepalive")
    small = shrink(run(draw(2)))
    assert small.violations[0].rule == "X1"
    assert (small.schedule.faults, small.schedule.sends) == ((), ())
