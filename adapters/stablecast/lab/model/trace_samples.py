"""Ask the checker whether a run of the model has the sampled steps of a trace, in order.

A step of the graph says nothing about the steps before it. The checker searches for a whole run: the module `TraceX`
constrains the model to a sample. A sample is the steps of one window of a trace, up to `LONGEST`. Configurations are
tried in order of size. A sample is a *run* if one of them has it. Messages, the end of a receiver, and the view of a
store in Registration are not in those modules.
"""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.model import catalog, tlc
from stablecast.lab.model.catalog import Configuration
from stablecast.lab.model.errors import ModelError
from stablecast.lab.model.views.edges import ModelStep, TraceView, scope_of

LONGEST = 12
"""Most steps of a sample."""
LAST = "Close"
"""The last action that shows anything."""
UNKNOWN = "Registration.store"
"""A view whose names are relative to each step, so that a sequence of steps has no meaning."""
_VIOLATED = "Invariant Unfinished is violated"
_EXHAUSTED = "Model checking completed. No error has been found."


@attrs.frozen
class Sample:
    """Hold the steps of one window, in order."""

    view: TraceView
    scope: str
    steps: tuple[ModelStep, ...]


@attrs.frozen
class Judged:
    """Hold a sample and the configuration that has it as a run; empty: none of those tried."""

    sample: Sample
    configuration: str
    tried: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the judgement as JSON."""
        steps = [attrs.asdict(step) for step in self.sample.steps]
        return {"view": self.sample.view.name, "run_of": self.configuration, "tried": list(self.tried), "steps": steps}


def choose(followed: Iterable[tuple[TraceView, str, list[ModelStep]]], most: int) -> list[Sample]:
    """Return up to `most` different samples for each view and scope, those with the most different steps first."""
    found: dict[tuple[str, str], dict[Sample, int]] = {}
    for view, scope, path in followed:
        if path and view.name != UNKNOWN:
            steps = takewhile(lambda step: step.action != LAST, path[:LONGEST])
            sample = Sample(view, scope, tuple(steps))
            found.setdefault((view.name, scope), {})[sample] = len(set(sample.steps))
    chosen: list[Sample] = []
    for _, samples in sorted(found.items()):
        chosen += sorted(samples, key=lambda sample: (-samples[sample], sample.steps))[:most]
    return chosen


def judge(samples: Iterable[Sample], models: Path, jar: Path, progress: tlc.Progress = tlc.silent) -> Iterator[Judged]:
    """Ask the checker for each sample. Raises ModelError if it reaches no verdict."""
    known = catalog.load(models)
    for sample in samples:
        fitting = [
            one
            for one in catalog.configurations(models, (sample.view.model,))
            if scope_of(sample.view, one) == sample.scope
        ]
        tried: list[str] = []
        has = ""
        for one in sorted(fitting, key=lambda one: known[one.name].digests.nodes):
            tried.append(one.name)
            if _is_run(sample, one, jar, progress):
                has = one.name
                break
        yield Judged(sample, has, tuple(tried))


def _is_run(sample: Sample, configuration: Configuration, jar: Path, progress: tlc.Progress) -> bool:
    folder = configuration.path.parent
    with tempfile.TemporaryDirectory(prefix="stablecast-sample-") as directory:
        module, config = Path(directory, "Judged.tla"), Path(directory, "Judged.cfg")
        module.write_text(_module(sample, configuration.model), encoding="utf-8")
        config.write_text(_config(sample, configuration), encoding="utf-8")
        output = tlc.run(module, config, jar, "-workers", "1", library=folder, progress=progress)
    if _VIOLATED in output or _EXHAUSTED in output:
        return _VIOLATED in output
    raise ModelError(f"the checker failed on a sample of {configuration.name}: {output.strip()[-2000:]}")


def _module(sample: Sample, model: str) -> str:
    steps = ",\n  ".join(
        f'[before |-> "{step.before}", action |-> "{step.action}", after |-> "{step.after}"]' for step in sample.steps
    )
    return f"---- MODULE Judged ----\nEXTENDS Trace{model}\nSteps == <<\n  {steps}>>\n====\n"


def _config(sample: Sample, configuration: Configuration) -> str:
    constants = "\n".join(f"    {name} = {value}" for name, value in configuration.sources.items())
    return (
        "INIT TraceInit\nNEXT TraceNext\nINVARIANT Unfinished\nCHECK_DEADLOCK FALSE\nCONSTANTS\n"
        f'{constants}\n    View = "{sample.view.name}"\n    Sample <- Steps\n'
    )
