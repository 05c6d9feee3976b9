"""`stablecast whatif`: output and exit status."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.config.options import Value
from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace.tools.analysis import percentiles, percentiles_text
from stablecast.evidence.whatif.replay import Recording, ReplayOutcome, WhatIfError, configured, recordings, replay
from stablecast.text import plural
from stablecast.text.console import show

MAX_VARIANTS: Final = 1_000
"""Configurations of one sweep, at most."""

Task = tuple[Recording, dict[str, Value]]


@attrs.frozen
class WhatIfJob:
    """A set of replays.

    Attributes:
        paths: Traces.
        options: Set in every variant.
        sweep: Values to try, by option; all combinations are.
        master: The Spark to spread a sweep over; None: the cores of this machine.
    """

    paths: Sequence[Path]
    options: Mapping[str, Value]
    sweep: Mapping[str, Sequence[str]]
    master: str | None = None


def run(job: WhatIfJob, as_json: bool) -> int:
    """Replay every source as it was and in every variant, and print both.

    Raises:
        TraceError, WhatIfError: What cannot be read or tried.
        OptionError: An option that there is not, or a value that it cannot have.
    """
    variants = [{}, *variants_of(job)]
    tasks = [(recording, dict(options)) for recording in recordings(list(job.paths)) for options in variants]
    for recording, options in tasks:
        configured(recording, options)
    outcomes = _spread(tasks, job.master) if job.master else _here(tasks)
    results = [
        {"source": recording.config.topic, "file": str(recording.path), "options": options, **summary(outcome)}
        for (recording, options), outcome in zip(tasks, outcomes, strict=True)
    ]
    show({"runs": results}, lines(results), as_json)
    return 0


def variants_of(job: WhatIfJob) -> list[dict[str, Value]]:
    """Return the configurations to try beside the recorded one. Raise WhatIfError for none, and for too many."""
    found: list[dict[str, Value]] = [
        dict(job.options) | dict(zip(job.sweep, values, strict=True)) for values in product(*job.sweep.values())
    ]
    if not job.options and not job.sweep:
        raise WhatIfError("nothing is to be tried: give --set option=value or --sweep option=value,value")
    if len(found) > MAX_VARIANTS:
        raise WhatIfError(f"{len(found)} variants are too many, {MAX_VARIANTS} are the most: sweep fewer values")
    return found


def attempt(task: Task) -> ReplayOutcome:
    """Replay once, in any process. Raise WhatIfError for a configuration that no source starts with."""
    recording, options = task
    try:
        return replay(recording, configured(recording, options))
    except StablecastError as error:
        told = ", ".join(f"{name}={value}" for name, value in options.items())
        raise WhatIfError(f"source '{recording.config.topic}' does not run with {told}: {error}") from error


def _here(tasks: list[Task]) -> list[ReplayOutcome]:
    if len(tasks) <= SMALL:
        return [attempt(task) for task in tasks]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(attempt, tasks))


SMALL: Final = 4
"""Replays below which new processes cost more than they save."""


def _spread(tasks: list[Task], master: str) -> list[ReplayOutcome]:
    from stablecast.evidence.spark.spark_session import connect  # noqa: PLC0415  # only where it is asked for

    context = connect(master).sparkContext
    return list(context.parallelize(tasks, len(tasks)).map(attempt).collect())


def summary(outcome: ReplayOutcome) -> dict[str, Any]:
    """Return an outcome for machines: counts, µs, and exposure in message seconds."""
    return {
        "messages": outcome.messages,
        "sent": outcome.sent,
        "stable": outcome.stable,
        "latency_us": percentiles(outcome.latencies),
        "wait_us": percentiles(outcome.waits),
        "most_exposed": outcome.most_exposed,
        "exposure_message_s": outcome.exposure / SECOND,
    }


def lines(results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a heading for each source and a line for each variant."""
    file = None
    for result in results:
        if result["file"] != file:
            file = result["file"]
            yield f"source '{result['source']}', {file}: {plural(result['messages'], 'message')}"
        name = ", ".join(f"{option}={value}" for option, value in result["options"].items()) or "as recorded"
        counts = f"sent {result['sent']}, stable {result['stable']}"
        exposed = f"at most {result['most_exposed']} exposed, {result['exposure_message_s']:.3f} message seconds"
        latency, wait = (percentiles_text(result[name]) or "never" for name in ("latency_us", "wait_us"))
        yield f"  {name}: {counts}; to stable {latency}; waited {wait}; {exposed}"
