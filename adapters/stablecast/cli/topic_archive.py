"""Run `stablecast archive`: once, or again and again."""

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stablecast.cli.interrupts import until_interrupted
from stablecast.cli.stored_messages import Place
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import Pace
from stablecast.runtime.event_loop import run_loop
from stablecast.text import plural
from stablecast.text.console import note, show
from stablecast.text.exit_status import FAILED

if TYPE_CHECKING:
    from stablecast.archive.archiver import ArchiveTerms

PACES = {"receivers": Pace.RECEIVERS, "source": Pace.SOURCE}


class ArchiveUnable(StablecastError):  # noqa: N818  # a state of affairs
    """The archive cannot be written here. The text has the remedy."""


def run(
    topic: str, folder: Path, place: Place, every: float, session: int, pace: str, *, as_json: bool, new: bool
) -> int:
    """Archive what is new, once if `every` is 0; return the exit status."""
    if find_spec("pyarrow") is None:
        raise ArchiveUnable("an archive needs pyarrow: pip install pyarrow")
    if pace not in PACES:
        raise ArchiveUnable(f"--pace is {' or '.join(PACES)}, not '{pace}'")
    from stablecast.archive.archiver import ArchiveTerms  # noqa: PLC0415 - pyarrow is an extra

    terms = ArchiveTerms(topic, folder, place.stores, place.patience, place.quorum, session, PACES[pace], new)
    return run_loop(_run(terms, place, every, as_json))


async def _run(terms: "ArchiveTerms", place: Place, every: float, as_json: bool) -> int:
    from stablecast.archive.archiver import archive  # noqa: PLC0415 - as above

    missing = 0
    with until_interrupted():
        while True:
            async with place.context() as context:
                report = await archive(context, terms)
            missing += len(report.missing)
            for hole in report.missing:
                note(f"stablecast: {hole}")
            text = f"{plural(report.messages, 'message')} archived in {terms.folder}"
            show({"topic": terms.topic, "messages": report.messages, "missing": len(report.missing)}, [text], as_json)
            if not every:
                break
            await asyncio.sleep(every)
    return FAILED if missing else 0
