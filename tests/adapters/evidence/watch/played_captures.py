"""Captures that the tests of the judges write, written again in their own time, and a watch that follows them."""

import inspect
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.files import CaptureRing, frames
from stablecast.evidence.capture.judge import CaptureFindings, RuleStanding, judge
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.watch.alarms import AlarmKind
from stablecast.evidence.watch.capture_watch import CaptureWatch
from stablecast.evidence.watch.command import POLL_NS
from tests.adapters.evidence.capture.doctor import test_session_findings
from tests.adapters.evidence.capture.judge import test_multicast_rules, test_persistence_rules, test_unicast

AFTER_NS: Final = 6 * SECOND
"""Time for which the watch goes on after the last packet."""

Fault = tuple[str, str]
"""A broken rule or an advice, and whose it is."""


@attrs.frozen
class CaptureFault:
    """A fault of a capture, and the delay (ns) from the packet that shows it until a watch named it; None: never."""

    capture: str
    rule: str
    whose: str
    delay_ns: int | None


def faults_of(findings: CaptureFindings) -> set[Fault]:
    """Return the broken rules and the advice of a capture."""
    broken = {key for key, standing in findings.standings.items() if standing is RuleStanding.BROKEN}
    return broken | {(one.code, one.whose) for one in findings.advice}


def captures(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield the captures that tests of the judges write, by the names of the tests."""
    for test in (
        test_persistence_rules.test_each_fault_is_found_and_blamed,
        test_multicast_rules.test_each_rule,
        test_unicast.test_each_rule,
    ):
        for number, arguments in enumerate(_cases(test)):
            yield from _written(f"{test.__module__.rpartition('.')[2]} {number}", directory, test, arguments)
    for name, function in vars(test_session_findings).items():
        if name.startswith("test_") and not hasattr(function, "pytestmark"):
            yield from _written(name, directory, function, ())
    function = test_session_findings.test_findings_about_a_source
    for number, arguments in enumerate(_cases(function)):
        yield from _written(f"test_findings_about_a_source {number}", directory, function, arguments)


def _cases(test: Any) -> Iterable[tuple[Any, ...]]:
    """Return the arguments of a test that pytest calls several times."""
    cases: Iterable[tuple[Any, ...]] = test.pytestmark[0].args[1]
    return cases


def _written(
    name: str, directory: Path, test: Callable[..., None], arguments: tuple[Any, ...]
) -> Iterator[tuple[str, Path]]:
    into = Path(tempfile.mkdtemp(dir=directory))
    names = [one for one in inspect.signature(test).parameters if one != "tmp_path"]
    test(tmp_path=into, **dict(zip(names, arguments, strict=True)))
    yield from ((f"{name} {path.stem}", path) for path in sorted(into.glob("*.pcap")))


def named_faults(name: str, path: Path) -> Iterator[CaptureFault]:
    """Play a capture, and yield each fault that `verify` finds in it."""
    wanted = faults_of(judge(path))
    if not wanted:
        return
    found = played(path, path.with_suffix(".live"))
    for rule, whose in sorted(wanted):
        at = found.get((rule, whose))
        yield CaptureFault(name, rule, whose, None if at is None else at - shown_ns(path, (rule, whose)))


def played(path: Path, into: Path) -> dict[Fault, int]:
    """Write a capture in its own time while a watch follows it; return when (ns) it named each fault."""
    octets = path.read_bytes()
    ends = [(one.time_ns, one.offset) for one in frames(path)]
    stops = [*(offset for _, offset in ends[1:]), len(octets)]
    due = [(time_ns, stop) for (time_ns, _), stop in zip(ends, stops, strict=True)]
    watch, named = CaptureWatch(CaptureRing(into), PortPlan()), dict[Fault, int]()
    now = due[0][0]
    last = max(time_ns for time_ns, _ in due) + AFTER_NS
    while now <= last:
        now += POLL_NS
        into.write_bytes(octets[: max((stop for time_ns, stop in due if time_ns <= now), default=0)])
        for alarm in watch.poll(now):
            if alarm.kind is not AlarmKind.NOTE:
                named.setdefault((alarm.rule, alarm.whose), now)
    return named


def shown_ns(path: Path, fault: Fault) -> int:
    """Return the time (ns) of the first packet with which `verify` finds a fault."""
    octets = path.read_bytes()
    marks = [(one.time_ns, one.offset) for one in frames(path)]
    stops = [*(offset for _, offset in marks[1:]), len(octets)]
    low, high = 0, len(marks) - 1
    part = path.with_suffix(".part")
    while low < high:
        middle = (low + high) // 2
        part.write_bytes(octets[: stops[middle]])
        if fault in faults_of(judge(part)):
            high = middle
        else:
            low = middle + 1
    return marks[low][0]
