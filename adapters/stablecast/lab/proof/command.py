"""Print what `stablecast model prove` finds. The functions return the exit status."""

import os
import time
from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.model import catalog
from stablecast.lab.proof import obligations, tie
from stablecast.lab.proof.obligations import Obligation
from stablecast.text import plural
from stablecast.text.console import say

FAILED = 1


def prove(names: list[str], jobs: int, as_json: bool) -> int:
    """Discharge the conditions of proofs; return 0 if all of them hold."""
    began = time.monotonic()
    done = []
    for one in obligations.discharge_all(obligations.named(names), jobs or os.cpu_count() or 1):
        done.append(one)
        if not as_json:
            say(_line(one))
    failed = [one for one in done if not one.holds]
    seconds = round(time.monotonic() - began, 1)
    longest = max(result.seconds for one in done for result in one.results.values())
    if as_json:
        entries = [_entry(one) for one in done]
        say({"holds": not failed, "seconds": seconds, "longest": round(longest, 2), "conditions": entries})
    else:
        verdict = f"{plural(len(failed), 'condition')} FAILED" if failed else "all hold"
        say(f"{plural(len(done), 'condition')}: {verdict}, {seconds} s, the longest {longest:.1f} s")
    return FAILED if failed else 0


def tied(names: list[str], models: Path | None, as_json: bool) -> int:
    """Tie proofs to graphs; return 0 if every graph agrees with its proof both ways."""
    where = models or catalog.folder()
    wanted = [one for one in catalog.configurations(where, tuple(names or tie.TIED)) if tie.is_tied(one)]
    entries: list[dict[str, Any]] = []
    for configuration in wanted:
        found = tie.run(configuration)
        entries.append({"name": configuration.name, "tied": found.difference is None, **attrs.asdict(found)})
        if not as_json:
            size = f"{plural(found.states, 'state')}, {plural(found.structures, 'structure')}"
            beyond = (
                f", {plural(sum(found.left_out.values()), 'edge')} beyond the assumptions" if found.left_out else ""
            )
            say(f"{configuration.name}: {'tied' if found.difference is None else 'DIFFERENT'}, {size}{beyond}")
            if found.difference is not None:
                say(f"  {found.difference}")
    if as_json:
        say({"graphs": entries})
    return 0 if all(entry["tied"] for entry in entries) else FAILED


def _line(one: Obligation) -> str:
    said = ", ".join(f"{name} {result.answer} {result.seconds:.2f} s" for name, result in one.results.items())
    return f"{one.system} {one.name}: {'ok' if one.holds else 'FAILED'} ({said})"


def _entry(one: Obligation) -> dict[str, Any]:
    results = {
        name: {"answer": result.answer, "seconds": round(result.seconds, 3)} for name, result in one.results.items()
    }
    return {"proof": one.system, "condition": one.name, "holds": one.holds, "solvers": results}
