"""Small pictures as SVG, drawn without scripts and coloured by the style sheet.

Attributes only, no `style`: the pages' content policy lets no style in that is not in the one sheet. All that is put in
is numbers, so a picture is safe to show as it is.
"""

from collections.abc import Iterable, Iterator, Sequence

from stablecast.ops.monitor.number_spans import Spans

WIDTH, HEIGHT = 120, 28
"""Of a sparkline, in its own units."""

STRIP = 1000
"""Width of a strip, in its own units."""
LEAST = 4
"""Width of the smallest stretch that is shown on a strip: a single hole must be seen."""

_RAIL = f'<rect class="rail" width="{STRIP}" height="24"/>'
EMPTY = f'<svg class="strip" viewBox="0 0 {STRIP} 24">{_RAIL}</svg>'
"""A strip of nothing."""


def sparkline(values: Sequence[float]) -> str:
    """A line over the last samples, with the area below it; from 0 to the largest value."""
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
    """How much of a limit is used; `mark` is a threshold below it. Without a limit nothing is drawn."""
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
    """The window of a repository from its trail to the newest number known, holes and losses in it."""
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
