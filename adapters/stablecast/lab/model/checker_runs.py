"""Print the checker's verdicts, and its counterexamples as stories, for `stablecast model check`."""

from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.model import catalog, counterexample, tlc
from stablecast.lab.model.catalog import Configuration
from stablecast.lab.model.command import needed
from stablecast.lab.model.counterexample import Counterexample
from stablecast.text.console import note, say, spinning


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
        story = found is not None and (not expected or len(chosen) == 1)
        results.append(_as_json(one, verdict.outcome, found if story else None))
        if not as_json:
            say(f"{one.name}: {verdict.outcome}" + ("" if expected else f", EXPECTED {one.expected}"))
            for line in found.story() if found is not None and story else ():
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


def _as_json(one: Configuration, outcome: str, found: Counterexample | None) -> dict[str, Any]:
    result: dict[str, Any] = {"name": one.name, "outcome": outcome, "expected": one.expected}
    return result if found is None else {**result, "counterexample": attrs.asdict(found)}
