"""Run `stablecast archive`: once, or again and again."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import attrs

from stablecast.cli.stored_messages import Place
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import Pace
from stablecast.runtime.event_loop import on_ending, run_loop
from stablecast.text import plural
from stablecast.text.console import note, show
from stablecast.text.exit_status import FAILED

PACES = {"receivers": Pace.RECEIVERS, "source": Pace.SOURCE}


class ArchiveUnable(StablecastError):  # noqa: N818  # a state of affairs
    """The archive cannot be written here. The text has the remedy."""


@attrs.frozen
class ArchiveJob:
    """Hold the arguments of `stablecast archive`; `every` 0 runs once."""

    topic: str
    folder: Path
    place: Place
    every: float
    session: int
    pace: str
    as_json: bool
    new: bool


def run(job: ArchiveJob) -> int:
    """Archive what is new; return the exit status."""
    if find_spec("pyarrow") is None:
        raise ArchiveUnable("an archive needs pyarrow: pip install pyarrow")
    if job.pace not in PACES:
        raise ArchiveUnable(f"--pace is {' or '.join(PACES)}, not '{job.pace}'")
    return run_loop(_run(job))


async def _run(job: ArchiveJob) -> int:
    from stablecast.archive.archiver import ArchiveTerms, archive  # noqa: PLC0415 - pyarrow is an extra

    place = job.place
    terms = ArchiveTerms(
        job.topic, job.folder, place.stores, place.patience, place.quorum, job.session, PACES[job.pace], job.new
    )
    task = asyncio.current_task()
    assert task is not None
    on_ending(task.cancel)
    missing = 0
    try:
        while True:
            async with place.context() as context:
                report = await archive(context, terms)
            missing += len(report.missing)
            for hole in report.missing:
                note(f"stablecast: {hole}")
            text = f"{plural(report.messages, 'message')} archived in {job.folder}"
            show({"topic": job.topic, "messages": report.messages, "missing": len(report.missing)}, [text], job.as_json)
            if not job.every:
                break
            await asyncio.sleep(job.every)
    except asyncio.CancelledError:
        task.uncancel()
    return FAILED if missing else 0
