"""Samples of recorded traces, given to the checker: is there a run of the model that shows these very steps, in order?

That a step is one of the graph's says nothing of the steps before it. The checker is asked for a whole run: the module
`TraceX` constrains the model to a sample. A sample is the steps of one window of a trace, up to `LONGEST`; of equal
ones one is enough. Configurations are tried from the one with the fewest states on; a sample is a *run* if one of them
has it. What a step says, the end of a receiver, and the view of a store in Registration are not in those modules.
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
from stablecast.lab.model.views.edges import Step, View, scope_of

LONGEST = 12
"""Steps of a sample."""
LAST = "Close"
"""After it nothing is left that could be looked at."""
UNKNOWN = "Registration.store"
"""A view whose names are relative to each step, so that a sequence of them says nothing."""
_VIOLATED = "Invariant Unfinished is violated"
_EXHAUSTED = "Model checking completed. No error has been found."


@attrs.frozen
class Sample:
    """Steps of one window, in their order."""

    view: View
    scope: str
    steps: tuple[Step, ...]


@attrs.frozen
class Judged:
    """A sample, and the configuration that has it as a run; empty: none of those that were tried."""

    sample: Sample
    configuration: str
    tried: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        steps = [attrs.asdict(step) for step in self.sample.steps]
        return {"view": self.sample.view.name, "run_of": self.configuration, "tried": list(self.tried), "steps": steps}


def choose(followed: Iterable[tuple[View, str, list[Step]]], most: int) -> list[Sample]:
    """For each view and scope up to `most` different samples, those with the most different steps first."""
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
    """Ask the checker for each. Raises ModelError if it comes to no verdict."""
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
