"""`stablecast watch PATH...`: follow the inputs, report each finding, and end with an exit status."""

import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.evidence.capture.doctor import parse_thresholds
from stablecast.evidence.capture.files import CaptureRing
from stablecast.evidence.capture.ports import PortPlan, parse_told
from stablecast.evidence.rules import RULES
from stablecast.evidence.watch import watch_state
from stablecast.evidence.watch.alarms import AlarmBound, AlarmKind, WatchAlarm
from stablecast.evidence.watch.capture_watch import CaptureWatch
from stablecast.evidence.watch.joint_judgement import JointJudgement, TraceStanding
from stablecast.evidence.watch.live_capture import LiveCapture
from stablecast.evidence.watch.metrics_page import MetricsServer, WatchFigures
from stablecast.evidence.watch.screen import MAX_ROWS, line_of, screen
from stablecast.evidence.watch.trace_watch import TraceWatch
from stablecast.runtime import garbage_collection, machine
from stablecast.text.console import note, say
from stablecast.text.exit_status import failed

CLEAN: Final = 0
FOUND: Final = 1
UNREADABLE: Final = 2
"""Exit statuses: nothing was found; something was; the inputs or options are wrong."""

POLL_NS: Final = 500 * MILLISECOND
"""Time between two readings of the inputs."""

SAVE_NS: Final = 5 * SECOND
"""Time between two writes of the state file if nothing is reported."""

ALERT_SECONDS: Final = 10
"""Time for which an alert command may run, in seconds."""


@attrs.frozen
class WatchRequest:
    """Inputs, outputs and bounds of a watch.

    Attributes:
        paths: Traces, and directories and patterns of traces.
        whole: Whether to judge traces that are there from their first record.
        state: The state file, or None.
        metrics: The place of the metrics, or an empty text.
        alert: A command that gets each alarm as JSON on its standard input, or an empty text.
        seconds: Time after which the watch ends; None: never.
        as_json: Whether to print JSON lines.
        captures: Captures that grow: files, and rings as directories or patterns.
        interface: An interface to capture at, or an empty text; `wanted` is its filter.
        ports: What the caller knows of ports of captures.
        thresholds: Thresholds of advice, as name=value.
        master: The master of a Spark that judges, or an empty text.
        checkpoint: The directory of its progress.
    """

    paths: Sequence[Path]
    whole: bool = False
    state: Path | None = None
    metrics: str = ""
    alert: str = ""
    seconds: float | None = None
    as_json: bool = False
    captures: Sequence[Path] = ()
    interface: str = ""
    wanted: str = ""
    ports: Sequence[str] = ()
    thresholds: Sequence[str] = ()
    master: str = ""
    checkpoint: Path | None = None


class WatchedTraces(Protocol):
    """Traces that are followed, here or on Spark."""

    records: int
    joint: JointJudgement

    @property
    def read(self) -> bool:
        """Return whether all traces were read once."""

    def poll(self, now_ns: int) -> list[WatchAlarm]:
        """Return new sentences, at this time of the caller's clock (ns)."""

    def standings(self) -> Mapping[str, TraceStanding]: ...


@attrs.define
class Watch:
    """A running watch: its inputs, its counters, and the newest sentences."""

    wanted: WatchRequest
    traces: WatchedTraces
    captures: list[CaptureWatch] = attrs.field(factory=list)
    figures: WatchFigures = attrs.field(factory=WatchFigures)
    bound: AlarmBound = attrs.field(factory=AlarmBound)
    newest: "deque[WatchAlarm]" = attrs.field(factory=lambda: deque(maxlen=MAX_ROWS))
    found: bool = False
    saved_ns: int = 0

    @property
    def read(self) -> bool:
        """Return whether a trace was followed, or a packet read."""
        return bool(self.traces.standings() or self.traces.joint.ledger.past) or any(one.read for one in self.captures)

    def step(self, now_ns: int, report: Callable[[WatchAlarm], None]) -> None:
        """Read the inputs once, report what is new, and save the state. Raise StateError."""
        alarms = self.traces.poll(now_ns) + [one for capture in self.captures for one in capture.poll(now_ns)]
        for alarm in alarms:
            self.figures.count(alarm.kind.value, alarm.rule, alarm.whose)
            self.found |= alarm.kind is not AlarmKind.NOTE
            if self.bound.admit(alarm):
                self.newest.appendleft(alarm)
                report(alarm)
        self._measure()
        if self.wanted.state is not None and (alarms or now_ns - self.saved_ns >= SAVE_NS):
            self.save(now_ns)

    def save(self, now_ns: int) -> None:
        """Write the state file, if there is one; Spark has its checkpoint. Raise StateError."""
        if self.wanted.state is not None and isinstance(self.traces, TraceWatch):
            captures = [one.as_json() for one in self.captures]
            watch_state.write(self.wanted.state, self.traces, {"captures": captures})
            self.saved_ns = now_ns

    def _measure(self) -> None:
        figures = self.figures
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        figures.records, figures.traces = self.traces.records, len(self.traces.standings())
        figures.frames = sum(one.frames for one in self.captures)
        figures.waiting, figures.polled = len(self.traces.joint.ledger.rounds), time.time()
        figures.cpu = sum(one.ru_utime + one.ru_stime for one in used)
        figures.resident = machine.process.resident_bytes()


def run(wanted: WatchRequest) -> int:
    """Watch until interrupted, or for the wanted time.

    Return 1 if a rule was broken, a file is damaged or something is advised; 2 if the inputs are wrong; else 0.
    """
    with ExitStack() as stack:
        try:
            _check(wanted)
            watch = Watch(wanted, _traces(wanted, stack))
            live = LiveCapture.begin(wanted.interface, wanted.wanted, stack) if wanted.interface else None
            thresholds, told = parse_thresholds(list(wanted.thresholds)), parse_told(wanted.ports)
            for path in (*wanted.captures, *(() if live is None else (live.directory,))):
                plan = PortPlan(told=dict(told))
                watch.captures.append(CaptureWatch(CaptureRing(path), plan, thresholds))
            if wanted.state is not None:
                _resume(watch, wanted.state)
            server = None
            if wanted.metrics:
                server = stack.enter_context(MetricsServer.at(wanted.metrics))
                server.begin()
                stack.callback(server.shutdown)
            garbage_collection.keep_loaded()
            _loop(watch, server, live, stack)
            watch.save(time.monotonic_ns())
        except StablecastError as error:
            return failed(error, UNREADABLE)
    if wanted.seconds is not None and not (watch.found or watch.read):
        text = (
            f"{_inputs(wanted)} had nothing to judge: name the directory of STABLECAST_TRACE, or a capture that grows"
        )
        return failed(StablecastError(text), UNREADABLE)
    return FOUND if watch.found else CLEAN


def _inputs(wanted: WatchRequest) -> str:
    return ", ".join([*map(str, (*wanted.paths, *wanted.captures)), *([wanted.interface] if wanted.interface else [])])


def _traces(wanted: WatchRequest, stack: ExitStack) -> WatchedTraces:
    """Return the traces, which Spark judges if there is a master. Raise StablecastError."""
    if not wanted.master:
        if wanted.checkpoint is not None:
            raise StablecastError("--checkpoint belongs to --master: without Spark, name a file by --state")
        return TraceWatch(list(wanted.paths), wanted.whole)
    if wanted.checkpoint is None:
        raise StablecastError("a watch on Spark keeps its progress in a directory: name it by --checkpoint")
    if wanted.state is not None or wanted.captures or wanted.interface or not wanted.paths:
        raise StablecastError("Spark judges traces, with --checkpoint for --state: watch captures without --master")
    try:
        from stablecast.evidence.spark.spark_session import connect  # noqa: PLC0415 - an extra
        from stablecast.evidence.watch.watch_query import SparkWatch  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise StablecastError(str(error)) from error
    found = SparkWatch.begin(connect(wanted.master), wanted.paths, wanted.checkpoint, whole=wanted.whole)
    stack.callback(found.close)
    return found


def _resume(watch: Watch, path: Path) -> None:
    """Go on where an earlier watch stopped. Raise StateError."""
    if not isinstance(watch.traces, TraceWatch):
        return
    state = watch_state.read(path, watch.traces, time.monotonic_ns())
    try:
        before = {one["ring"]: one for one in state.get("captures", ())}
        for capture in watch.captures:
            if (place := before.get(str(capture.ring.path))) is not None:
                capture.resume(place)
    except (KeyError, TypeError, ValueError) as error:
        raise watch_state.StateError(f"{path} is no state of a watch: name another file, or remove it") from error


def _check(wanted: WatchRequest) -> None:
    """Raise StablecastError for a name that stands for nothing and never will, and for options that have no effect."""
    kinds = ((wanted.paths, "a trace, or the directory that traces are recorded to"), (wanted.captures, "a capture"))
    for paths, kind in kinds:
        for path in paths:
            pattern = any(letter in path.name for letter in "*?[")
            if not (path.parent if pattern else path).exists():
                raise StablecastError(f"there is no {path}: name {kind}")
    if wanted.wanted and not wanted.interface:
        raise StablecastError("--filter belongs to --interface: name one, or leave the filter out")
    if wanted.alert:
        _check_alert(wanted.alert)


def _check_alert(command: str) -> None:
    """Raise StablecastError for an alert command that cannot be run."""
    try:
        program = shlex.split(command)[0]
    except (ValueError, IndexError):
        raise StablecastError(f"the alert command {command!r} has an open quote or no word: correct it") from None
    if shutil.which(program) is None:
        raise StablecastError(f"the alert command {program!r} is no program: name one by its path")


def _loop(watch: Watch, server: MetricsServer | None, live: LiveCapture | None, stack: ExitStack) -> None:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.signal(number, lambda *_: ended.set())
        stack.callback(signal.signal, number, before)
    report, shown = _reporter(watch, stack)
    begun = time.monotonic_ns()
    due = begun
    while True:
        now = time.monotonic_ns()
        if live is not None:
            live.check()
        watch.step(now, report)
        shown(now)
        if server is not None:
            server.text = watch.figures.exposition()
        if watch.wanted.seconds is not None and watch.traces.read and now - begun >= watch.wanted.seconds * SECOND:
            return
        due = max(due + POLL_NS, now)
        if ended.wait(max(0, due - time.monotonic_ns()) / SECOND):
            return


def _reporter(watch: Watch, stack: ExitStack) -> tuple[Callable[[WatchAlarm], None], Callable[[int], None]]:
    """Return a function that reports an alarm, and one that renews the screen."""
    wanted = watch.wanted
    if wanted.as_json or not sys.stdout.isatty():

        def report(alarm: WatchAlarm) -> None:
            say(alarm.as_json() if wanted.as_json else line_of(_titled(alarm)))
            _alert(wanted.alert, alarm)

        return report, lambda _: None
    from rich.live import Live  # noqa: PLC0415 - slow to import, and only a terminal needs it

    live = stack.enter_context(Live(screen(watch.figures, [], [], 0), screen=True, auto_refresh=False))

    def renew(now_ns: int) -> None:
        shown = [_titled(one) for one in watch.newest]
        clock = time.time_ns() if wanted.master else now_ns  # Spark's batches have the wall clock.
        live.update(screen(watch.figures, watch.traces.standings().values(), shown, clock), refresh=True)

    return lambda alarm: _alert(wanted.alert, alarm), renew


def _titled(alarm: WatchAlarm) -> WatchAlarm:
    return attrs.evolve(alarm, rule=RULES[alarm.rule].title) if alarm.rule in RULES else alarm


def _alert(command: str, alarm: WatchAlarm) -> None:
    """Run the alert command with an alarm on its standard input; report its failure."""
    if not command or alarm.kind is AlarmKind.NOTE:
        return
    import json  # noqa: PLC0415

    try:
        subprocess.run(  # noqa: S603 - the user's own command
            shlex.split(command),
            input=json.dumps(alarm.as_json()),
            text=True,
            timeout=ALERT_SECONDS,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        note(f"stablecast: the alert command failed: {error}")
