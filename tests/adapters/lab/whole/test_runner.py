"""Whole worlds: a seed repeats its run, and what the judges find is reported and made smaller."""

import gc
import os
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.evidence.trace.reports import TraceViolation
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole import runner
from stablecast.lab.whole.drawn_schedule import draw
from stablecast.lab.whole.runner import WholeReport, run, shrink
from stablecast.lab.whole.schedule import MEMORY, STORES, TURNS, Setup, WorldSchedule
from stablecast.lab.world.world import World
from tests.support.tree import PYTHON_PATH

SEEDS = (0, 3, 8)
"""Seeds with several topics, kills and power cuts."""


def test_a_seed_repeats_its_run() -> None:
    first, second = run(draw(SEEDS[0])), run(draw(SEEDS[0]))
    assert first == second
    assert first.fingerprint != run(draw(SEEDS[1])).fingerprint


def test_other_hashes_of_text_change_nothing() -> None:
    code = (
        "from stablecast.lab.whole.runner import run\n"
        "from stablecast.lab.whole.drawn_schedule import draw\n"
        f"print(*[run(draw(seed)).fingerprint for seed in {SEEDS}])"
    )
    printed = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONPATH": PYTHON_PATH, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        printed.add(done.stdout)
    assert printed == {" ".join(run(draw(seed)).fingerprint for seed in SEEDS) + "\n"}


@pytest.mark.parametrize("seed", range(19, 25))
def test_seeds_are_clean_and_their_traces_too(seed: int, tmp_path: Path) -> None:
    schedule = draw(seed)
    report = run(schedule, tmp_path)
    assert report.violations == ()
    copies = 2 if schedule.setup.hot else 1  # Two programs send the same messages, when both run.
    assert report.counts["stable"] <= report.counts["sent"] <= copies * report.counts["stable"] > 0
    roles = {path.name.partition("-")[0] for path in tmp_path.glob("*/*.sct")}
    assert roles >= {"source", "receiver", "store"}


@pytest.mark.parametrize(
    ("setup", "share"),
    [
        (Setup(), 2),
        (Setup(stored=True, start="time"), 2),
        (Setup(pattern=True, start="number"), 2),
        (Setup(modes=("arrival", "settled")), 2),
        (Setup(modes=("fickle", "impatient")), 2),
        (Setup(modes=("threads", "threads")), 2),
        (Setup(apart=True), 2),
        (Setup(apart=True, hot=True), 1),
        (Setup(group=True), 1),
    ],
    ids=["plain", "stored", "pattern", "settled", "fickle", "threads", "apart", "hot", "group"],
)
def test_a_world_without_faults_delivers_each_message_once(setup: Setup, share: int) -> None:
    report = run(WorldSchedule(5, attrs.evolve(setup, pause_ms=240)))
    assert report.violations == ()
    counts = report.counts
    assert counts["delivered"] == share * counts["sent"]
    assert counts["stable"] == counts["sent"] // (2 if setup.hot else 1)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"storage": MEMORY, "store_options": ("repository-type=memory",)}, Kind.BLACKOUT),
        ({"storage": TURNS, "options": (("ume_store_behavior", "rr"),)}, Kind.WIPE),
    ],
)
def test_stores_in_memory_and_stores_in_turn_have_no_other_copy(given: dict[str, Any], fault: Kind) -> None:
    """Nothing is lost without faults. What no drawn schedule has does harm here, and none to other stores."""
    late, faults = Setup(late=True), (Fault(2_000, fault, STORES[0], 300),)
    uncommon = attrs.evolve(late, **given)
    assert run(WorldSchedule(5, uncommon)).violations == ()
    assert run(WorldSchedule(5, late, faults)).violations == ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The programs of a world that hangs close no context.
        violations = run(WorldSchedule(5, uncommon, faults)).violations
        gc.collect()
    assert "lost" in {text.partition(":")[0] for text in violations}


def test_a_world_that_does_not_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LIMIT_SECONDS", 2.0)
    assert [text.partition(":")[0] for text in run(WorldSchedule(5)).violations] == ["hang"]


def test_a_failing_schedule_is_made_smaller() -> None:
    """The failure needs the kill of the second store and nothing else."""

    def attempt(schedule: WorldSchedule) -> WholeReport:
        broken = any(fault.kind is Kind.KILL and fault.who == "store1" for fault in schedule.faults)
        return WholeReport(schedule, ("lost: one",) if broken else ("twice: one",), Counter(), 0, "")

    faults = (
        Fault(10, Kind.KILL, "store1", 800),
        Fault(20, Kind.KILL, "store0", 700),
        Fault(30, Kind.STOP, "store1", 10),
        Fault(40, Kind.POWER, "source", 10),
    )
    report = shrink(attempt(WorldSchedule(9, Setup(topics=("orders", "trades"), hasty=True), faults)), attempt)
    assert report.schedule == WorldSchedule(9, Setup(), (Fault(10, Kind.KILL, "store1", 1),))


def test_only_a_store_with_a_failed_disk_may_miss_what_it_acknowledged() -> None:
    """Planted: the same at other stores, of which one lost its power only, and another violation of the same store."""
    faults = (
        Fault(3, Kind.WIPE, "store1", 5),
        Fault(2, Kind.BLACKOUT, "receiver1", 5),
        Fault(1, Kind.LEAVE, "source", 5),
    )
    world = World(1)
    for name in ("source", "store0", "store1"):
        world.host(name)
    weak = runner._weak(world, WorldSchedule(1, faults=faults))
    assert weak == {"10.0.0.3"}

    def excused(rule: str, text: str) -> bool:
        return runner._excused(TraceViolation(Path("source-orders.sct"), 3, rule, text), weak)

    assert excused("P6", "number 1 counts as acknowledged by 10.0.0.3:14567")
    assert not excused("P6", "number 1 counts as acknowledged by 10.0.0.2:14567")
    assert not excused("P6", "number 1 counts as acknowledged by 10.0.0.31:14567")
    assert excused("H1", "the complete traces of its sender (10.0.0.3:14567) do not have it")
    assert not excused("H1", "the complete traces of its sender (10.0.0.1:14391) do not have it")
    assert not excused("A1", "number 1 by 10.0.0.3:14567")


def test_a_number_is_stable_by_acknowledgements_whose_trace_was_lost() -> None:
    """A number that a store acknowledged by its trace, and did not keep, stays a violation, also behind another one."""

    def found(rule: str, *missing: tuple[int, int], place: str = "source-1.sct", life: str = "0x7") -> TraceViolation:
        texts = {"S1": "is reported stable by nobody", "P6": "counts as acknowledged by 10.0.0.5:14567, which did not"}
        text = f"record 3: number {missing[0][0]} {texts[rule]}"
        return TraceViolation(Path(place), 3, rule, text, found={"life": life, "missing": missing})

    weak = frozenset({"10.0.0.5"})
    lost = [found("P6", (1, 4), (8, 9)), found("P6", (5, 5))]
    excused = [found("S1", (1, 1)), found("S1", (3, 5)), found("S1", (2, 2), (9, 9))]
    alone = TraceViolation(Path("source-1.sct"), 3, "S1", "record 3: number 1 is reported stable by nobody")
    others = [found("S1", (11, 11)), found("S1", (3, 6)), found("S1", (1, 1), (7, 7)), alone]
    others += [found("S1", (1, 1), place="source-2.sct"), found("S1", (1, 1), life="0x8")]
    violations = [*lost, *excused, *others]
    assert runner._without_witness(violations, weak) == others
    assert runner._without_witness(violations, frozenset()) == violations
