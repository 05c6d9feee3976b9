"""Translate the schedule of a whole world to the plan of real processes.

| schedule | plan |
|---|---|
| kill | SIGKILL, and a start |
| stop | SIGSTOP and SIGCONT |
| cut from all | the host's port leaves the bridge |
| cut from one, mute | frames to the other host have a MAC address that nobody has, one way or both |
| noise | a frame bridge loses, repeats and delays frames of the host |
| slow | each sync of the store sleeps before it syncs |
| full | the store's tmpfs has no room |
| wipe | SIGKILL, the directory is emptied, and a start |
| rot | one bit of a segment is flipped while the store is killed |
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole.jobs import SESSIONS, SLOW_SECONDS
from stablecast.lab.whole.schedule import FINDERS, RECEIVERS, SOURCE, STORES, WorldSchedule
from tools.torture import plan as plans
from tools.torture.plan import LATE, Plan, Step

NAMES: Final[Mapping[str, str]] = {
    **{name: name for name in (SOURCE, *RECEIVERS)},
    **dict(zip(STORES, plans.STORES, strict=True)),
    FINDERS[0]: "relay",
}
"""The names of the programs in plans."""


@attrs.frozen
class TranslatedSchedule:
    """A plan, and for each of its steps the fault of the schedule (its index) and the edge: `begin` or `end`."""

    plan: Plan
    edges: tuple[tuple[int, str], ...]


def translate(schedule: WorldSchedule) -> TranslatedSchedule:
    setup = schedule.setup
    steps: list[tuple[Step, int, str]] = []
    names = {name: NAMES[name] for name in NAMES if not (setup.late and name == RECEIVERS[-1])}
    for index, fault in enumerate(schedule.faults):
        steps += _steps(fault, index, names)
    steps.sort(key=lambda step: step[0].at)
    full = {fault.who for fault in schedule.faults if fault.kind is Kind.FULL}
    receivers = {name: _receiver(schedule, name) for name in RECEIVERS[: -1 if setup.late else None]}
    plan = Plan(
        seed=schedule.seed,
        kind="agreement",
        disks=tuple("tmpfs" if name in full else "plain" for name in STORES),
        sources={SOURCE: _source(schedule)},
        receivers=receivers,
        steps=tuple(step for step, _, _ in steps),
        service=setup.finder == "service",
        late=setup.late,
        store_options=setup.store_options,
        forked=True,
    )
    return TranslatedSchedule(plan, tuple((index, edge) for _, index, edge in steps))


def _source(schedule: WorldSchedule) -> dict[str, Any]:
    setup = schedule.setup
    job: dict[str, Any] = {
        "session": SESSIONS[SOURCE],
        "owner": SOURCE,
        "topics": list(setup.topics),
        "pause": setup.pause_ms / 1e3,
        "burst": setup.burst,
        "size": setup.size,
        "options": dict(setup.options),
        "uvloop": bool(schedule.seed % 2),
        "again": True,
    }
    if setup.handles > 1:
        job |= {"handles": setup.handles, "sessions": [SESSIONS[SOURCE] + 100 * at for at in range(setup.handles)]}
    return job


def _receiver(schedule: WorldSchedule, name: str) -> dict[str, Any]:
    mode = schedule.setup.modes[RECEIVERS.index(name)]
    return {
        "session": SESSIONS[name],
        "owner": name,
        "topics": list(schedule.setup.topics),
        "mode": mode,
        "delay": SLOW_SECONDS if mode == "slow" else 0.0,
        "uvloop": bool(schedule.seed % 2),
    }


def _steps(fault: Fault, index: int, names: Mapping[str, str]) -> list[tuple[Step, int, str]]:
    """Return the steps of a fault, each with the fault and the edge. `names` are the hosts that it may strike."""
    who, at = names[fault.who], fault.at_ms / 1e3
    end = (fault.at_ms + fault.span_ms) / 1e3
    others = [names[fault.other]] if fault.other else [name for name in names.values() if name != who]
    begins, ends = {
        Kind.KILL: ([Step(at, "kill", who)], [Step(end, "start", who)]),
        Kind.STOP: ([Step(at, "stop", who)], [Step(end, "continue", who)]),
        Kind.CUT: (
            [Step(at, "mute", *way) for other in others for way in ((who, other), (other, who))],
            [Step(end, "unmute", *way) for other in others for way in ((who, other), (other, who))],
        ),
        Kind.MUTE: (
            [Step(at, "mute", who, other) for other in others],
            [Step(end, "unmute", who, other) for other in others],
        ),
        Kind.NOISE: ([Step(at, "noise", who, how=str(fault.amount))], [Step(end, "still", who)]),
        Kind.SLOW: ([Step(at, "slow", who, how=str(fault.amount))], [Step(end, "quick", who)]),
        Kind.FULL: ([Step(at, "fill", who)], [Step(end, "free", who)]),
        Kind.WIPE: ([Step(at, "damage", who, how="empty")], [Step(end, "start", who)]),
        Kind.ROT: ([Step(at, "damage", who, how="flip", seed=index)], []),
    }[fault.kind]
    if fault.kind is Kind.CUT and not fault.other:
        begins, ends = [Step(at, "cut", who)], [Step(end, "join", who)]
    return [(step, index, "begin") for step in begins] + [(step, index, "end") for step in ends]


__all__ = ["LATE", "TranslatedSchedule", "translate"]
