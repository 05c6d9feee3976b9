"""The outcomes of a played schedule that a different speed must not change.

Numbers of messages, times, deliveries of unstable messages and repetitions after a restart depend on the speed. They
are not compared. `spec/agreement.md` says why each of these outcomes does not.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from stablecast.lab.schedules.faults import Kind
from stablecast.lab.whole.history_checker import HistoryFacts, gather, undelivered
from stablecast.lab.whole.schedule import FINDERS, RECEIVERS, SOURCE, STORES, WorldSchedule

Line = Mapping[str, Any]

WINDOW_MS: Final = 1_000
"""Shortest time of unchanged faults in which stability is compared, in its second half."""

RETURN_MS: Final = 2_000
"""Time in ms in which a store or a source is back after a fault, on a machine with other work, too."""


@attrs.frozen
class PlayedSchedule:
    """The record that one side leaves of a schedule.

    Attributes:
        lines: The history.
        violations: The sentences of the checker.
        receivers: The owners of receivers, in the order of the schedule.
        names: The names of programs on this side, with those of the schedule.
        edges: The time (ns) of each edge of a fault by its index and `begin` or `end`.
        counts: Messages by what happened to them.
        seconds: Time that it took.
    """

    lines: Sequence[Line]
    violations: Sequence[str]
    receivers: Sequence[str]
    names: Mapping[str, str]
    edges: Mapping[tuple[int, str], int]
    counts: Mapping[str, int]
    seconds: float


def outcomes(schedule: WorldSchedule, played: PlayedSchedule) -> dict[str, object]:
    facts = gather(played.lines)
    found: dict[str, object] = {}
    rules = sorted({text.partition(":")[0] for text in played.violations} - {"ended"})
    found["violations"] = ", ".join(rules) or "none"
    ended = {played.names.get(line["who"], line["who"]) for line in played.lines if line["is"] in {"ended", "gone"}}
    found["programs that ended by themselves"] = ", ".join(sorted(ended)) or "none"
    found["some messages stable"] = bool(facts.stable_ids)
    for number, receiver in enumerate(played.receivers):
        missing, unseen = undelivered(facts, receiver)
        found[f"receiver{number} has every stable message"] = not missing and not unseen
        losses = [line for line in played.lines if line.get("name") == "UnrecoverableLoss"]
        runs = {line["run"] for line in facts.lines if line.get("receiver") == receiver}
        found[f"receiver{number} reported a loss"] = any(line["run"] in runs for line in losses)
    return found | _of_the_source(facts.lines) | _of_all_runs(schedule, facts) | _progress(schedule, played)


def _of_the_source(lines: Iterable[Line]) -> dict[str, object]:
    """Return what the source reports, by its last run."""
    states: dict[str, list[Line]] = defaultdict(list)
    starts: list[str] = []
    for line in lines:
        if line["is"] == "begin" and line["role"] == SOURCE:
            starts.append(line["run"])
        if "stream" in line:
            states[line["run"]].append(line)
    last = states[starts[-1]] if starts else []
    quiet = {(line["owner"], line["topic"]) for line in last if line["is"] == "quiet"}
    lives = {line["stream"] for line in last if line["is"] == "registered"}
    earlier = any(line["is"] == "stable" for run in starts[:-1] for line in states[run])
    first = [line["number"] for line in last if line["is"] == "registered"]
    return {
        "silent sources": len(quiet),
        "sources given up": sorted({line["is"] for line in last} & {"given-up", "closed", "forbidden", "refused"}),
        "lives of the last run": len(lives),
        "the last run continues the numbers": bool(first) and (not earlier or max(first) > 0),
    }


def _of_all_runs(schedule: WorldSchedule, facts: HistoryFacts) -> dict[str, object]:
    """Return starts, ends and reported events of the applications, and whether everything that was sent is stable."""
    starts, ends, reported = Counter[str](), set[str](), set[str]()
    wiped = any(fault.kind is Kind.WIPE for fault in schedule.faults)  # A race decides who reaches it first.
    lives = 0
    last: dict[str, str] = {}
    for line in facts.lines:
        role = str(line["run"]).partition(".")[0]
        if line["is"] == "begin":
            starts[line["role"]] += 1
            last[role] = line["run"]
        elif line["is"] == "end":
            ends.add(line["run"])
        elif line["is"] == "event" and not (wiped and line["name"] == "RegistrationError"):
            reported.add(f"{'source' if role == SOURCE else 'receiver'} {line['name']}")
        lives += line["is"] == "registered"
    kills = sum(fault.who == SOURCE and fault.kind is Kind.KILL for fault in schedule.faults)
    found: dict[str, object] = {
        "starts of sources": starts[SOURCE],
        "starts of receivers": starts["receiver"],
        "applications that ended on request": len(ends & set(last.values())),
        "reported events": ", ".join(sorted(reported)) or "none",
        "some messages confirmed": bool(facts.confirmed),
    }
    if kills < 2:
        found["lives of all sources"] = lives
    if not kills:
        sent = {name for numbers in facts.number.values() for name in numbers.values()}
        found["everything sent is stable"] = sent == facts.stable_ids
        delivered = {line["id"] for lines in facts.delivered.values() for line in lines}
        found["everything delivered was sent"] = delivered <= sent
    return found


def _returning(schedule: WorldSchedule, since: int, names: Collection[str]) -> bool:
    """Return whether one of the programs may still be on its way back from an earlier fault."""
    ends = [fault.at_ms + fault.span_ms for fault in schedule.faults if {fault.who, fault.other} & set(names)]
    return any(end <= since < end + RETURN_MS for end in ends)


def _progress(schedule: WorldSchedule, played: PlayedSchedule) -> dict[str, object]:
    """Return what happens in the second half of each long time of unchanged faults.

    Messages become stable or not, and each receiver gets messages or not.
    """
    edges = sorted(
        {(fault.at_ms, index, "begin") for index, fault in enumerate(schedule.faults)}
        | {(fault.at_ms + fault.span_ms, index, "end") for index, fault in enumerate(schedule.faults) if fault.span_ms}
    )
    events = {"stable": [line["t"] for line in played.lines if line["is"] == "stable"]}
    needed: dict[str, Collection[str]] = {"stable": (SOURCE, *STORES)}
    for number, receiver in enumerate(played.receivers):
        if not (schedule.setup.late and number):
            what = f"delivered to receiver{number}"
            events[what] = [line["t"] for line in played.lines if line.get("receiver") == receiver and "id" in line]
            needed[what] = (SOURCE, RECEIVERS[number], *STORES, FINDERS[0])
    found: dict[str, object] = {}
    active: set[int] = set()
    for (since, index, edge), (until, second, other) in pairwise(edges):
        if edge == "begin" and schedule.faults[index].span_ms:
            active.add(index)
        else:
            active.discard(index)
        start, end = played.edges.get((index, edge)), played.edges.get((second, other))
        if not active or until - since < WINDOW_MS or start is None or end is None:
            continue
        name = " + ".join(str(schedule.faults[one]).partition(": ")[2] for one in sorted(active))
        middle = (start + end) // 2
        for what, times in events.items():
            if not _returning(schedule, since, needed[what]):
                found[f"{since} ms: {what} while {name}"] = any(middle < at < end for at in times)
    return found
