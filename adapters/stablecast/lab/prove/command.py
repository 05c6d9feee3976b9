"""Print what `stablecast prove` finds.

Exit status: 0 without a loss or stall within the bounds, 1 with one, 2 if the configuration cannot be read or no source
would start with it.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.errors import StablecastError
from stablecast.lab.proof.configurations import GroupProof, covers
from stablecast.lab.prove import story
from stablecast.lab.prove.bounds import MAX_STATES, ProofFault
from stablecast.lab.prove.instance import SMALL, Instance, ProofBounds, instance
from stablecast.lab.prove.search import FoundRun, ProofVerdict, Search, SearchResult
from stablecast.lab.prove.world import ProofWorld
from stablecast.text import plural, unread

FAILED, UNREADABLE = 1, 2
PROVED_STATES = 1_000
"""Default limit of states if no run loses a message and there are more than `SMALL` stores."""
WIPED = GroupProof(False, "the proof is of stores that keep their disks")

Say = Callable[[str], None]


@attrs.frozen
class ProofJob:
    """Hold the instance to prove, and the form of the output; `of` is the application and context of XML files."""

    files: Sequence[Path]
    options: Sequence[str]
    profile: str
    bounds: ProofBounds
    as_json: bool
    of: tuple[str, str] = ("", "")
    topic: str | None = None
    refill: bool | None = None


def run(job: ProofJob, say: Say, note: Say) -> int:
    """Return the exit status; `say` prints results, and `note` prints what is wrong with the configuration."""
    try:
        to_prove = instance(job.files, job.options, job.profile, job.bounds, job.of, job.topic, job.refill)
    except StablecastError as error:
        return _unread(job, str(error), say, note)
    except OSError as error:
        return _unread(job, unread(Path(error.filename or "the configuration"), error), say, note)
    refused = [finding.text for finding in to_prove.findings if finding.fatal]
    if refused:
        return _refused(job, to_prove, "; ".join(refused), say, note)
    repairs = (to_prove.source.repairs, to_prove.store_repairs)
    proof = WIPED if to_prove.bounds.wipes else covers(to_prove.source, repairs)
    if not job.as_json:
        say(_proved(proof))
    done = _searched(job, to_prove, proof)
    if job.as_json:
        say(json.dumps({**_told(job, done), "proof": attrs.asdict(proof)}))
    else:
        _print(job, done, say)
    return 0 if done[-1][1].verdict is ProofVerdict.NONE else FAILED


def _proved(proof: GroupProof) -> str:
    """Return what is proved for any number of messages and lives, and what is only searched."""
    if proof.proved:
        return (
            "proved: no stable message is lost and no number is used again, for any number of messages and lives. "
            "Stalls and receivers that give up are searched within bounds (spec/proof.md has the assumptions)"
        )
    text = f"not proved, so losses are searched within bounds, too: {proof.why}"
    if proof.disjoint is not None:
        named = [
            ", ".join(story.label(at) for at in side) or "none" for side in (proof.disjoint.one, proof.disjoint.other)
        ]
        text += f" ({named[0]} and {named[1]})"
    return text


def _searched(job: ProofJob, to_prove: Instance, proof: GroupProof) -> list[tuple[ProofWorld, SearchResult]]:
    """Search pass by pass, up to the first one that finds something."""
    done: list[tuple[ProofWorld, SearchResult]] = []
    stores = len(to_prove.source.stores)
    limited = proof.proved and stores > SMALL and job.bounds.states == MAX_STATES
    # No run loses a message, so a search for stalls that answers within seconds is enough by default.
    chosen = attrs.evolve(job.bounds, states=PROVED_STATES) if limited else job.bounds
    for bounds in chosen.passes(stores):
        world = ProofWorld.create(attrs.evolve(to_prove, bounds=bounds))
        done.append((world, Search(world).run()))
        if done[-1][1].verdict is not ProofVerdict.NONE:
            break
    return done


def _unread(job: ProofJob, why: str, say: Say, note: Say) -> int:
    if job.as_json:
        say(json.dumps({"verdict": "unreadable", "reason": why}))
    note(f"stablecast: {why}")
    return UNREADABLE


def _refused(job: ProofJob, refused: Instance, why: str, say: Say, note: Say) -> int:
    if job.as_json:
        head = {"verdict": "refused", "profile": job.profile, "reason": why}
        say(json.dumps({**head, "bounds": attrs.asdict(refused.bounds), "states": 0, "steps": [], **_advice(refused)}))
    note(f"stablecast: refused under profile {job.profile}: {why}")
    return UNREADABLE


def _advice(advised: Instance) -> dict[str, Any]:
    return {"findings": [attrs.asdict(finding) for finding in advised.findings], "notes": list(advised.notes)}


def _told(job: ProofJob, done: list[tuple[ProofWorld, SearchResult]]) -> dict[str, Any]:
    """Return the last pass as JSON, with the states of all passes."""
    world, result = done[-1]
    found = result.loss or result.stall
    told = {
        "verdict": result.verdict,
        "profile": job.profile,
        "bounds": attrs.asdict(world.bounds),
        "refill": world.instance.refill,
        "states": sum(one.states for _, one in done),
        "complete": all(one.complete for _, one in done),
        "passes": [_pass(searched.bounds, one) for searched, one in done],
        "stores": story.legend(world.instance),
        "steps": _run(world, found),
        "lost": story.loss_json(found.loss) if found else None,
        "remedies": story.remedies(world.instance, found) if found else [],
        **_advice(world.instance),
    }
    if result.loss and result.stall:
        told["stall"] = _run(world, result.stall)
    return told


def _pass(bounds: ProofBounds, result: SearchResult) -> dict[str, Any]:
    told = {"verdict": result.verdict, "states": result.states, "complete": result.complete}
    return {"bounds": attrs.asdict(bounds), **told}


def _run(world: ProofWorld, found: FoundRun | None) -> list[dict[str, Any]]:
    return [attrs.asdict(step) for step in story.steps(world, found)] if found else []


def _print(job: ProofJob, done: list[tuple[ProofWorld, SearchResult]], say: Say) -> None:
    proved = done[0][0].instance
    for text in (*proved.notes, *(finding.text for finding in proved.findings)):
        say(f"note: {text}")
    for text in story.legend(proved):
        say(text)
    for world, result in done:
        for found in (result.loss, result.stall):
            if found is not None:
                _print_run(world, found, say)
        say(_summary(job, world.bounds, result, refill=world.instance.refill))


def _print_run(world: ProofWorld, found: FoundRun, say: Say) -> None:
    say("")
    for text in story.lines(story.steps(world, found)):
        say(text)
    say(story.ending(found))
    for text in story.remedies(world.instance, found):
        say(f"with {text}")
    say("")


def _summary(job: ProofJob, bounds: ProofBounds, result: SearchResult, *, refill: bool) -> str:
    looked = plural(result.states, "state") + ("" if result.complete else ", and there are more: raise --bound")
    limits = f"messages {bounds.messages}, restarts of the source {bounds.restarts}, disks lost {bounds.wipes}"
    if bounds.faults:
        limits += f", faults {' '.join(bounds.faults)}"
    if ProofFault.WIPE in (bounds.faults or ()):
        limits += f", {'with' if refill else 'without'} refill"
    found = "none within these bounds" if result.verdict is ProofVerdict.NONE else result.verdict
    return f"profile {job.profile}: {found} ({limits}; stores away at any time; {looked})"
