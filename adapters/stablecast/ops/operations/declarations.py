"""Declare that a store's directory is a restored copy or a new disk, and report what its next start will do.

A store that is started on an old copy, or on an empty disk, must have no vote about messages that it once held. The
store notices many such cases by itself. An operator who knows better declares them, while the store does not run.
"""

from pathlib import Path
from typing import Any

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import StoreMemory
from stablecast.ops.operations.directory_contents import read
from stablecast.ops.operations.target import OperationError
from stablecast.store.client_records import generation_of, memory_of
from stablecast.store.declaration import declare
from stablecast.store.journal.segments import list_segments
from stablecast.text import plural


async def restore(directory: Path) -> dict[str, Any]:
    """Declare that a directory is a copy from a backup; return a report.

    Raises:
        OperationError: The directory holds no journal.
        JournalError: The directory is in use, or the disk fails.
    """
    if not (directory.is_dir() and list_segments(directory)[0]):  # noqa: ASYNC240 - a command of its own process
        raise OperationError(f"there is no journal in {directory}: declare an empty disk by `stablecast store replace`")
    sources = await declare(directory)
    return {"directory": str(directory), "declared": "restored", "sources": sources}


async def replace(directory: Path) -> dict[str, Any]:
    """Declare that an empty directory is the new disk of a store that has served; return a report.

    Raises:
        OperationError: The directory does not exist, or holds a journal.
        JournalError: The directory is in use, or the disk fails.
    """
    if not directory.is_dir():  # noqa: ASYNC240 - a command of its own process
        # To make it would declare a mistyped path, and the store would start undeclared at the right one.
        raise OperationError(f"there is no directory {directory}: mount the new disk and make it, or correct the path")
    if list_segments(directory)[0]:
        raise OperationError(
            f"{directory} holds a journal: declare a copy with `stablecast store restore`, or name an empty directory"
        )
    await declare(directory)
    return {"directory": str(directory), "declared": "replaced", "sources": 0}


def recovery(directory: Path) -> dict[str, Any]:
    """Return what a store knows here, what it lost, and what its next start will do. Raises like `read`."""
    found = read(directory)
    memory = memory_of(found.states)
    generation, waiting, _ = generation_of(found.states)
    without_vote = [one.reg_id for one in found.sources() if one.memory is not StoreMemory.KEPT]
    empty = not found.segments
    return {
        "directory": str(directory),
        "memory": "lost" if empty else memory.name.lower(),
        "starts": generation >> 32,
        "sources": len(found.sources()),
        "sources_without_vote": without_vote,
        "damages": len(found.damages),
        "lost": [{"source": source, "first": first, "last": last} for source, first, last in found.lost],
        "next_start": {"waits": bool(waiting) or empty, "votes": not (waiting or empty or without_vote)},
    }


def sentences(report: dict[str, Any]) -> list[str]:
    lines = [f"{report['directory']}: memory {report['memory']}, {plural(report['sources'], 'source')}"]
    lines += [
        f"source {one['source']}: messages {one['first']}..{one['last']} are damaged; the store asks its peers for them"
        for one in report["lost"]
    ]
    if report["next_start"]["waits"]:
        lines.append("the store grants nothing at first, until the longest activity timeout has passed")
    if report["next_start"]["votes"]:
        lines.append("the store takes part in every decision")
    else:
        lines.append("the store has no vote about a source's earlier messages until the source announces itself")
        lines.append("it asks its peers for everything that it lacks; `stablecast fleet` shows the progress")
    return lines


def progress(store: dict[str, Any], sources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a running store lacks, from the records of its monitor."""
    lacking = {one["reg_id"]: sum(one["lacking"]) for one in sources if sum(one["lacking"])}
    # Before its sources have announced themselves, a store cannot know what it lacks.
    whole = bool(sources) and not lacking and not store["muted_for_ns"]
    return {
        "store": store["name"] or store["address"],
        "muted_for_ns": store["muted_for_ns"],
        "sources": len(sources),
        "lacking": lacking,
        "whole": whole,
        "refilled": sum(one["refilled"] for one in sources),
    }


def progress_sentences(report: dict[str, Any]) -> list[str]:
    lines = []
    if report["muted_for_ns"]:
        lines.append(f"{report['store']} grants nothing for another {-(-report['muted_for_ns'] // SECOND)} s")
    lines += [
        f"source {reg_id}: {plural(messages, 'message')} are not here yet, and other stores are asked for them"
        for reg_id, messages in report["lacking"].items()
    ]
    whole = ", nothing is lacking" if report["whole"] else ""
    unknown = "" if report["whole"] or report["lacking"] else "; what it lacks is known when its sources register again"
    fetched = plural(report["refilled"], "message", "was", "were")
    return [
        *lines,
        f"{report['store']}: {plural(report['sources'], 'source')}, {fetched} fetched again{whole}{unknown}",
    ]
