"""Draw small pictures as SVG, without scripts and coloured by the style sheet.

The pictures use attributes, not `style`, because the content security policy permits no inline style. They contain only
numbers, so they need no escaping.
"""

from collections.abc import Iterable, Iterator, Sequence

from stablecast.ops.monitor.board import Spans

WIDTH, HEIGHT = 120, 28
"""Size of a sparkline, in its own units."""

STRIP = 1000
"""Width of a strip, in its own units."""
LEAST = 4
"""Width of the smallest stretch on a strip: a single hole must be visible."""

_RAIL = f'<rect class="rail" width="{STRIP}" height="24"/>'
EMPTY = f'<svg class="strip" viewBox="0 0 {STRIP} 24">{_RAIL}</svg>'
"""A strip without messages."""


def sparkline(values: Sequence[float]) -> str:
    """Return a line over the samples with the area below it, scaled from 0 to the largest value."""
    if len(values) < 2:
        return f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}"></svg>'
    top = max(*values, 1e-9)
    step = WIDTH / (len(values) - 1)
    points = [(place * step, HEIGHT - 2 - (HEIGHT - 4) * value / top) for place, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<polygon points="0,{HEIGHT} {line} {WIDTH},{HEIGHT}"/><polyline points="{line}"/></svg>'
    )


def gauge(used: float, limit: float, mark: float = 0) -> str:
    """Return a bar for the used share of a limit; `mark` is a threshold below it. Without a limit it is empty."""
    if limit <= 0:
        return ""
    share = min(1.0, used / limit)
    kind = "hot" if share > 0.9 else "warm" if share > 0.75 else "cool"
    at = STRIP * min(1.0, mark / limit)
    tick = f'<rect class="mark" x="{at:.1f}" y="0" width="3" height="10"/>' if mark else ""
    return (
        f'<svg class="gauge" viewBox="0 0 {STRIP} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="rail" width="{STRIP}" height="10"/>'
        f'<rect class="{kind}" width="{STRIP * share:.1f}" height="10"/>{tick}</svg>'
    )


def strip(trail: int, memory_trail: int, lead: int, spans: Spans) -> str:
    """Return a repository's window from its trail to the newest number known, with its holes and losses."""
    first, last = trail, max(spans.newest, lead)
    if last < first:
        return EMPTY
    stretches = [("disk", trail, memory_trail - 1), ("memory", memory_trail, lead)]
    stretches += [("lost", low, high) for low, high in spans.lost]
    stretches += [("hole", low, high) for low, high in spans.holes]
    return (
        f'<svg class="strip" viewBox="0 0 {STRIP} 24" preserveAspectRatio="none" role="img" '
        f'aria-label="what is held of the numbers {first} to {last}">'
        f"{_RAIL}{''.join(_stretches(stretches, first, last))}</svg>"
    )


def _stretches(stretches: Iterable[tuple[str, int, int]], first: int, last: int) -> Iterator[str]:
    unit = STRIP / (last - first + 1)
    for kind, low, high in stretches:
        if low <= high:
            at, width = min(STRIP - LEAST, (low - first) * unit), max(LEAST, (high - low + 1) * unit)
            yield f'<rect class="{kind}" x="{at:.1f}" width="{width:.1f}" height="24"/>'
