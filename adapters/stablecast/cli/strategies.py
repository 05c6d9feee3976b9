"""Compare the strategies of topic resolution in virtual time (T-301), for `stablecast strategies`."""

import attrs

from stablecast.resolver.strategies import HEAD, cells, measure, stories
from stablecast.text.console import say
from stablecast.transports.resolution.udp.presets import PRESETS


def run(topics: int, wanted: int, loss: int, as_json: bool) -> int:
    """Run every strategy in a network of this size and print a table; return the exit status."""
    rows = []
    for story in stories(topics, wanted, (loss,)):
        cost = measure(story)
        if as_json:
            say({**attrs.asdict(story), **attrs.asdict(cost)})
        rows.append(cells(story, cost))
    if not as_json:
        widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
        for row in (HEAD, *rows):
            say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        for name, preset in PRESETS.items():
            say(f"{name}: {preset.summary}")
    return 0
