"""A watch in the terminal: the newest sentences first, then the traces with the most recent records."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stablecast.core.machine.units import SECOND
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.joint_judgement import TraceStanding
from stablecast.evidence.watch.metrics_page import WatchFigures
from stablecast.text import plural

MAX_ROWS = 20
"""Sentences and traces that a screen shows, at most."""

COLOURS = {AlarmKind.VIOLATION: "red", AlarmKind.DAMAGE: "red", AlarmKind.ADVICE: "yellow", AlarmKind.NOTE: "dim"}


def screen(
    figures: WatchFigures, traces: Iterable[TraceStanding], newest: Iterable[WatchAlarm], now_ns: int
) -> RenderableType:
    """Return the screen, `newest` first; `now_ns` is the watch's clock."""
    alarms = sum(count for (kind, _, _), count in figures.alarms.items() if kind != AlarmKind.NOTE)
    head = Text.assemble(
        (f"{plural(alarms, 'alarm')}  ", "bold red" if alarms else "bold green"),
        f"{plural(figures.traces, 'trace')}, {figures.records:,} records, {figures.frames:,} captured frames",
    )
    lines = [Text(line_of(one), style=COLOURS[one.kind]) for one in newest]
    table = Table(expand=True, box=None, header_style="bold", pad_edge=False)
    for name in ("endpoint", "records", "last read"):
        table.add_column(name, justify="left" if name == "endpoint" else "right", no_wrap=True)
    for trace in sorted(traces, key=lambda one: -one.read_ns)[:MAX_ROWS]:
        age = f"{(now_ns - trace.read_ns) / SECOND:.0f} s ago"
        table.add_row(trace.owner or trace.path.name, f"{trace.records:,}", age)
    return Group(head, *lines[:MAX_ROWS], Text(), table)


def line_of(alarm: WatchAlarm) -> str:
    where = f"{alarm.file}: " if alarm.file.name else ""
    whose = f"{alarm.whose}: " if alarm.whose else ""
    rule = f"[{alarm.rule}] " if alarm.rule else ""
    remedy = f"; {alarm.remedy}" if alarm.remedy else ""
    return f"{alarm.kind.value}: {where}{whose}{rule}{alarm.text}{remedy}"
