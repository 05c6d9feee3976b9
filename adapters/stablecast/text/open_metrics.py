"""Metrics as text, in the format of Prometheus and in OpenMetrics."""

from typing import Final

from stablecast.core.machine.durations import BOUNDS_NS, DurationView
from stablecast.core.machine.units import SECOND

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of the text format of Prometheus."""

OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""Content type of OpenMetrics."""

END: Final = "# EOF\n"
"""The last line of OpenMetrics."""

_EXEMPLAR_CHARACTERS: Final = 64
"""Characters of a label's value in an example. The labels of one may have 128 together."""


def label(value: object) -> str:
    r"""Escape a label's value.

    >>> label('a"b\\c')
    'a\\"b\\\\c'
    """
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def kind_of(name: str) -> str:
    """Return the type that Prometheus is told; the names of counters, and of nothing else, end in `_total`."""
    return "counter" if name.endswith("_total") else "gauge"


def head(name: str, text: str, kind: str, openly: bool) -> str:
    """Return the lines before the samples of a metric; `openly`: in OpenMetrics."""
    family = name.removesuffix("_total") if openly else name
    return f"# HELP {family} {text}\n# TYPE {family} {kind}\n"


def buckets(name: str, labels: str, found: DurationView, openly: bool) -> str:
    """Return the samples of a histogram with these labels; in OpenMetrics, each bucket with its example."""
    lines: list[str] = []
    total = 0
    examples = {one[0]: one for one in found.exemplars} if openly else {}
    for at, count in enumerate(found.counts):
        total += count
        bound = f"{BOUNDS_NS[at] / SECOND}" if at < len(BOUNDS_NS) else "+Inf"
        example = examples.get(at)
        told = ""
        if example is not None:
            _, its_labels, took_ns, at_ns = example
            text = ",".join(f'{key}="{label(word[:_EXEMPLAR_CHARACTERS])}"' for key, word in its_labels)
            told = f" # {{{text}}} {took_ns / SECOND} {at_ns / SECOND}"
        lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {total}{told}\n')
    return "".join(
        (*lines, f"{name}_sum{{{labels}}} {found.total_ns / SECOND}\n", f"{name}_count{{{labels}}} {total}\n")
    )
