"""Play a schedule in the simulated world, or on real processes."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stablecast.lab.whole import runner
from stablecast.lab.whole.schedule import RECEIVERS, WorldSchedule
from tools.agreement.outcomes import PlayedSchedule, outcomes
from tools.agreement.plan_translation import NAMES, TranslatedSchedule, translate
from tools.torture.__main__ import Outcome, play
from tools.torture.plan import LATE


def simulated(schedule: WorldSchedule) -> PlayedSchedule:
    began = time.monotonic()
    report = runner.run(schedule)
    edges: dict[tuple[int, str], int] = {}
    texts = {str(fault): index for index, fault in enumerate(schedule.faults)}
    for line in report.lines:
        if line["is"] in {"fault", "heal"} and line.get("text") in texts:
            edge = "begin" if line["is"] == "fault" else "end"
            edges[texts[str(line["text"])], edge] = int(str(line["t"]))
    names = {name: name for name in NAMES}
    return PlayedSchedule(
        report.lines, report.violations, RECEIVERS, names, edges, report.counts, time.monotonic() - began
    )


def world_outcomes(schedule: WorldSchedule) -> dict[str, Any]:
    return outcomes(schedule, simulated(schedule))


def real(schedule: WorldSchedule, place: Path) -> PlayedSchedule:
    """Play a schedule on real processes; `place` receives their files."""
    translated = translate(schedule)
    return recorded(translated, play(translated.plan, place), place)


def recorded(translated: TranslatedSchedule, outcome: Outcome, place: Path) -> PlayedSchedule:
    """Return what a played plan left in `place`."""
    marks = _lines(place / "marks.jsonl")
    lines = [line for path in sorted((place / "runs").glob("*.jsonl")) for line in _lines(path)] + marks
    steps = [line for line in marks if line["is"] == "step"]
    edges: dict[tuple[int, str], int] = {}
    for key, step in zip(translated.edges, steps, strict=False):
        edges.setdefault(key, int(step["t"])) if key[1] == "begin" else edges.update({key: int(step["t"])})
    names: Mapping[str, str] = {there: here for here, there in NAMES.items()} | {LATE: RECEIVERS[-1]}
    receivers = [*translated.plan.receivers, *([LATE] if translated.plan.late else [])]
    return PlayedSchedule(lines, outcome.violations, receivers, names, edges, outcome.counts, outcome.seconds)


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []  # a history that ended without a verdict
