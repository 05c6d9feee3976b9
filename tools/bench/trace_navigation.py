"""The response times of the prompt of `stablecast trace open` in a long trace.

    python -m tools.bench.synthetic_traces DIRECTORY --records 13000000 --sessions 2
    python -m tools.bench.trace_navigation DIRECTORY

The first command writes about 200 MB. The second opens the traces and measures the longest one: the state at the end
of a new full frame, a step back and forth, and a jump to the last record. It prints the median and the longest time of
many places as a line of JSON, in milliseconds. The preparation is done before, as for people.
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from stablecast.evidence.trace.tools.travel import TravelSession

PLACES: Final = 40
SEED: Final = 7


def measured(directory: Path) -> dict[str, object]:
    """Return the time of each command at the prompt (ms)."""
    spent: dict[str, list[float]] = {}
    began = time.perf_counter()
    session = TravelSession.open([directory])
    opened = time.perf_counter()
    session.prepare()
    prepared = time.perf_counter()
    trace = max(session.traces, key=lambda one: one.count)
    session.using = session.traces.index(trace)
    chance = random.Random(SEED)
    ends = [trace.begin(chance.randrange(1, len(trace.places))).first - 1 for _ in range(PLACES)]
    for end in ends:
        for name, words in (
            ("jump", (f"goto {end}",)),
            ("state", ("state",)),
            ("back", ("back", "state")),
            ("forth", ("next", "state")),
            ("last", (f"goto {trace.count - 1}",)),
        ):
            spent.setdefault(name, []).append(_timed(session.do, words))
    return {
        "bytes": sum(path.stat().st_size for path in directory.iterdir()),
        "records": trace.count - trace.first,
        "open": _ms(opened - began),
        "prepare": _ms(prepared - opened),
        **{name: [_ms(statistics.median(some)), _ms(max(some))] for name, some in spent.items()},
    }


def _timed(do: Callable[[str], object], words: tuple[str, ...]) -> float:
    began = time.perf_counter()
    for word in words:
        list(do(word))  # type: ignore[call-overload] # lines
    return time.perf_counter() - began


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 1)


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]))))
