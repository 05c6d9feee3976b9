"""Print what `stablecast model list`, `graph`, `equal` and `check` find.

Each function returns the exit status.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.model import catalog, counterexample, equal, tlc, uncovered
from stablecast.lab.model.canonical import ModelError
from stablecast.lab.model.catalog import Configuration
from stablecast.text import plural
from stablecast.text.console import note, say, show, spinning


def list_models(names: list[str], models: Path | None, as_json: bool) -> int:
    where = models or catalog.folder()
    known = catalog.load(where)
    told: list[dict[str, Any]] = []
    for one in catalog.configurations(where, tuple(names)):
        digests = known[one.name].digests if one.name in known else None
        told.append(
            {
                "name": one.name,
                "expected": one.expected,
                "purpose": one.purpose,
                "nodes": digests and digests.nodes,
                "edges": digests and digests.edges,
            }
        )
    show({"configurations": told}, map(_described, told), as_json)
    return 0


def _described(entry: dict[str, Any]) -> str:
    size = f", {_size(entry['nodes'], entry['edges'])}" if entry["nodes"] else ""
    return f"{entry['name']}: {entry['purpose']} ({entry['expected']}{size})"


def write_graph(name: str, output: Path, models: Path | None, jar: Path | None) -> int:
    (*_, one) = catalog.configurations(models or catalog.folder(), (name,))
    if one.name != name:
        raise ModelError(f"{name} has several configurations; name one, such as {one.name}")
    graph = equal.core_graph(one).graph if jar is None else tlc.graph(one, jar)[0]
    graph.write(output)
    digests = graph.digests()
    say(f"{output}: {_size(digests.nodes, digests.edges)}, {digests.actions}")
    return 0


def compare(names: list[str], models: Path | None, jar: Path | None, jobs: int, record: bool, as_json: bool) -> int:
    """Compare the core with the models; return 0 if it is equal to every one.

    Each result is printed when it is there; with `as_json` as a line of JSON.
    """
    where = models or catalog.folder()
    chosen = [one for one in catalog.configurations(where, tuple(names)) if one.has_graph]
    if record:
        checker = needed(jar)
        done: Iterator[equal.Comparison] = (equal.record(one, where, checker) for one in chosen)
    else:
        done = equal.compare_all(chosen, where, jar, jobs or os.cpu_count() or 1)
    every = True
    for result in done:
        every = every and result.equal
        if as_json:
            say(attrs.asdict(result))
        else:
            _print(result)
    return 0 if every else 1


def unused(names: list[str], models: Path | None, as_json: bool, beside: uncovered.Explored = tuple) -> int:
    """Print what graphs do not run in the core; return 0 if exactly that has a reason.

    Without names, some graphs of each model are explored, and more `beside` them.
    """
    where = models or catalog.folder()
    chosen = [one for one in catalog.configurations(where, tuple(names) or uncovered.SHORT) if one.has_graph]
    found = uncovered.uncovered(chosen, where, tuple if names else beside)
    if as_json:
        say({"explained": found.explained, **attrs.asdict(found)})
    else:
        for name, reason in found.unused.items():
            say(f"{name}: {reason or 'NO REASON'}")
        for name, (missing, reason) in found.partial.items():
            say(f"{name}: {plural(missing, 'branch')} never taken: {reason or 'NO REASON'}")
        for name in found.stale:
            say(f"{name}: runs, or is gone; remove its reason")
        say(f"{len(found.unused)} of {plural(found.functions, 'function')} never run")
        say(f"{found.missed} of {plural(found.branches, 'branch')} are never taken")
    return 0 if found.explained else 1


def check(names: list[str], models: Path | None, jar: Path | None, as_json: bool) -> int:
    """Run the checker; return 0 if every verdict is the expected one.

    A counterexample is printed if one configuration is named, or if it was not expected.
    """
    checker = needed(jar)
    results: list[dict[str, Any]] = []
    chosen = catalog.configurations(models or catalog.folder(), tuple(names))
    for one in chosen:
        verdict = _check(one, checker, as_json)
        found = counterexample.read(verdict.output, one, verdict.outcome.removeprefix("violates "))
        expected = verdict.outcome == one.expected
        story = found if not expected or len(chosen) == 1 else None
        results.append({"name": one.name, "outcome": verdict.outcome, "expected": one.expected})
        if story is not None:
            results[-1]["counterexample"] = attrs.asdict(story)
        if not as_json:
            say(f"{one.name}: {verdict.outcome}" + ("" if expected else f", EXPECTED {one.expected}"))
            for line in story.story() if story is not None else ():
                say(line)
        if not expected and found is None:
            note(verdict.output)
    if as_json:
        say({"models": results})
    return 0 if all(entry["outcome"] == entry["expected"] for entry in results) else 1


def _check(one: Configuration, checker: Path, quiet: bool) -> tlc.CheckerVerdict:
    with spinning(quiet) as report:
        report(one.name)
        return tlc.check(one, checker, "-workers", "auto", progress=lambda text: report(f"{one.name}: {text}"))


def needed(jar: Path | None) -> Path:
    """Return the checker's path. Raises ModelError if there is none."""
    if jar is None:
        raise ModelError(f"this needs the checker: {tlc.HOW_TO_GET_IT}")
    if not jar.is_file():
        raise ModelError(f"there is no checker at {jar}: {tlc.HOW_TO_GET_IT}")
    return jar


def _size(nodes: int, edges: int) -> str:
    return f"{plural(nodes, 'state')}, {plural(edges, 'edge')}"


def _print(result: equal.Comparison) -> None:
    verdict = "equal" if result.equal else "DIFFERENT"
    say(f"{result.name}: {verdict}, {_size(result.nodes, result.edges)}")
    told = result.difference
    if isinstance(told, str):
        say(f"  {told}")
    elif told is not None:
        say(f"  after {' '.join(told['path']) or 'nothing'}")
        say(f"  in {told['state']}")
        for side in ("model", "core"):
            for action, state in told[f"only_{side}"]:
                say(f"  only the {side}: {action} -> {state}")
