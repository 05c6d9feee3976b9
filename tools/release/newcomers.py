"""Three newcomers, timed from an empty environment: a first message, a survived crash, an own application under seeds.

Each one installs the wheel with pip and then does what a page of the handbook says, with real processes. A person also
reads the page, so its words count at the pace of an unhurried reader.
"""

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from tools.release.distributions import Distributions
from tools.release.environments import ReleaseError, fresh
from tools.release.terminals import Terminals
from tools.site.pages import HANDBOOK

WORDS_A_MINUTE: Final = 230
"""Pace of a reader of plain English; programs are copied, not read."""


@attrs.frozen
class Newcomer:
    """Name the aim of a newcomer, what pip gets, the pages that lead there, and the most minutes."""

    aim: str
    extra: str
    pages: Sequence[str]
    minutes: float


NEWCOMERS: Final = (
    Newcomer("a first message", "daemons", ("tutorials/first-message",), 3),
    Newcomer("a survived crash", "daemons", ("tutorials/first-message", "tutorials/survive-a-crash"), 6),
    Newcomer("an own application tested under seeds", "testing", ("howto/test-your-application",), 10),
)


def follow(made: Distributions) -> Iterator[str]:
    """Yield a line for each newcomer. Raises ReleaseError if one fails or takes too long."""
    for one in NEWCOMERS:
        with tempfile.TemporaryDirectory(prefix="stablecast-newcomer-") as folder:
            installing, doing = _play(one, made, Path(folder))
        reading = 60 * sum(_words(page) for page in one.pages) / WORDS_A_MINUTE
        total = installing + doing + reading
        yield (
            f"{one.aim}: {total:.0f} s of {60 * one.minutes:.0f} s "
            f"(install {installing:.0f} s, run {doing:.0f} s, read {reading:.0f} s)"
        )
        if total > 60 * one.minutes:
            raise ReleaseError(f"{one.aim} took more than {one.minutes:g} minutes")


def _play(newcomer: Newcomer, made: Distributions, folder: Path) -> tuple[float, float]:
    """Return the seconds of the installation and those of the pages."""
    begin = time.monotonic()
    environment = fresh(folder / "environment", sys.executable)
    environment.install(f"{made.wheel}[{newcomer.extra}]")
    installed = time.monotonic()
    for number, page in enumerate(newcomer.pages):
        work = folder / f"work{number}"
        work.mkdir()
        terminals = Terminals(work, environment.variables)
        try:
            for _ in terminals.follow(HANDBOOK / f"{page}.md"):
                pass
        finally:
            terminals.close()
    return installed - begin, time.monotonic() - installed


def _words(page: str) -> int:
    """Return the words that a reader of a page reads: all but its programs and outputs."""
    text = (HANDBOOK / f"{page}.md").read_text(encoding="utf-8")
    return len(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).split())
