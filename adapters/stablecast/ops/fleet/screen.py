"""A fleet in the terminal: problems first, then the sources with the least safety."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stablecast.ops.fleet.copies import FleetSource
from stablecast.ops.fleet.findings import FleetLook
from stablecast.ops.monitor import figures
from stablecast.ops.operations.top import COLOURS
from stablecast.text import plural

MAX_FINDINGS = 20
"""Findings that a screen shows, at most."""


def screen(look: FleetLook, rows: int) -> RenderableType:
    """Return the screen with at most so many sources."""
    level, sources, found = look.level.name, look.sources, look.findings
    head = Text.assemble(
        (f"{plural(len(look.surveyed.stores), 'store')}, {plural(len(sources), 'source')}  ", "bold"),
        (level, f"bold {COLOURS[level]}"),
    )
    problems = []
    for one in found[:MAX_FINDINGS]:
        problems.append(Text(f"{one.level.name.lower()}: {one.line}", style=COLOURS[one.level.name]))
        if one.step:
            problems.append(Text(f"    {one.step}", style="dim"))
    if len(found) > MAX_FINDINGS:
        problems.append(Text(f"and {len(found) - MAX_FINDINGS} more", style="dim"))
    table = Table(expand=True, box=None, header_style="bold", pad_edge=False)
    table.add_column("topic", no_wrap=True)
    for name in ("stores", "needed", "newest", "safe through", "missing", "lag"):
        table.add_column(name, justify="right")
    ordered = sorted(sources, key=least_safe)
    for source in ordered[:rows]:
        table.add_row(
            source.topic,
            source.served("/"),
            " + ".join(str(group.needed) for group in source.groups) or "?",
            str(source.newest),
            "?" if source.safe_through is None else str(source.safe_through),
            figures.short(source.missing),
            figures.short(source.lag),
        )
    shown = Text(f"{min(rows, len(sources))} of {plural(len(sources), 'source')}, the least safe first", style="dim")
    return Group(head, *problems, Text(), table, shown)


def least_safe(source: FleetSource) -> tuple[bool, int, int, str]:
    """Return the key that orders sources: those without a quorum first, then those whose quorum is not known.

    Sources that are not active come last.
    """
    return not source.active, 0 if source.spare is None else source.spare, -source.lag, source.topic
