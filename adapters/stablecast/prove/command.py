"""`stablecast prove`: what it prints, and what it returns.

Exit status: 0 if there is neither loss nor stall within the bounds, 1 if there is, 2 if the configuration cannot be
read or no source would start with it.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.errors import StablecastError
from stablecast.prove import story
from stablecast.prove.instance import Bounds, Instance, instance
from stablecast.prove.search import Found, Result, Search, Verdict
from stablecast.prove.world import World
from stablecast.sentences import plural, unread

FAILED, UNREADABLE = 1, 2

Say = Callable[[str], None]


@attrs.frozen
class Job:
    """What to prove, and how to say it."""

    files: Sequence[Path]
    options: Sequence[str]
    profile: str
    bounds: Bounds
    as_json: bool


def run(job: Job, say: Say, note: Say) -> int:
    """Returns the exit status; `say` is for what was found, `note` for what is wrong with the configuration."""
    try:
        to_prove = instance(job.files, job.options, job.profile, job.bounds)
    except StablecastError as error:
        return _unread(job, str(error), say, note)
    except OSError as error:
        return _unread(job, unread(Path(error.filename or "the configuration"), error), say, note)
    refused = [finding.text for finding in to_prove.findings if finding.fatal]
    if refused:
        return _refused(job, to_prove, "; ".join(refused), say, note)
    world = World.create(to_prove)
    result = Search(world).run()
    if job.as_json:
        say(json.dumps(_told(job, world, result)))
    else:
        _print(job, world, result, say)
    return 0 if result.verdict is Verdict.NONE else FAILED


def _unread(job: Job, why: str, say: Say, note: Say) -> int:
    if job.as_json:
        say(json.dumps({"verdict": "unreadable", "reason": why}))
    note(f"stablecast: {why}")
    return UNREADABLE


def _refused(job: Job, refused: Instance, why: str, say: Say, note: Say) -> int:
    if job.as_json:
        head = {"verdict": "refused", "profile": job.profile, "reason": why}
        say(json.dumps({**head, "bounds": attrs.asdict(refused.bounds), "states": 0, "steps": [], **_advice(refused)}))
    note(f"stablecast: refused under profile {job.profile}: {why}")
    return UNREADABLE


def _advice(advised: Instance) -> dict[str, Any]:
    return {"findings": [attrs.asdict(finding) for finding in advised.findings], "notes": list(advised.notes)}


def _told(job: Job, world: World, result: Result) -> dict[str, Any]:
    found = result.loss or result.stall
    told = {
        "verdict": result.verdict,
        "profile": job.profile,
        "bounds": attrs.asdict(world.bounds),
        "states": result.states,
        "complete": result.complete,
        "stores": story.legend(world.instance),
        "steps": _run(world, found),
        "lost": story.lost(found.loss) if found else None,
        "remedies": story.remedies(world.instance, found) if found else [],
        **_advice(world.instance),
    }
    if result.loss and result.stall:
        told["stall"] = _run(world, result.stall)
    return told


def _run(world: World, found: Found | None) -> list[dict[str, Any]]:
    return [step.as_json() for step in story.steps(world, found)] if found else []


def _print(job: Job, world: World, result: Result, say: Say) -> None:
    for text in (*world.instance.notes, *(finding.text for finding in world.instance.findings)):
        say(f"note: {text}")
    for text in story.legend(world.instance):
        say(text)
    for found in (result.loss, result.stall):
        if found is not None:
            _print_run(world, found, say)
    say(_summary(job, world.bounds, result))


def _print_run(world: World, found: Found, say: Say) -> None:
    say("")
    for number, step in enumerate(story.steps(world, found), 1):
        say(f"{number:3}. {step.action}")
        for text in step.told:
            say(f"       the application hears: {text}")
        say("       " + "   ".join(f"{name}: {held}" for name, held in step.stores.items()))
    say(story.ending(found))
    for text in story.remedies(world.instance, found):
        say(f"with {text}")
    say("")


def _summary(job: Job, bounds: Bounds, result: Result) -> str:
    looked = plural(result.states, "state") + ("" if result.complete else ", and there are more: raise --bound")
    limits = f"messages {bounds.messages}, restarts of the source {bounds.restarts}, disks lost {bounds.wipes}"
    found = "none within these bounds" if result.verdict is Verdict.NONE else result.verdict
    return f"profile {job.profile}: {found} ({limits}; stores away at any time; {looked})"
