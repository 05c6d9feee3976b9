"""spec/machines.md shows what runs. `STABLECAST_REWRITE=1` renders its tables and diagrams anew."""

import os
import re
from typing import Any

from stablecast.core.chart import render_mermaid, render_table
from stablecast.core.election import ELECTION, ElectionState
from stablecast.core.lifetime import LIFETIME, LifetimeState
from stablecast.core.receiver import RECEIVER, ReceiverState
from stablecast.core.registration import REGISTRATION, RegistrationState
from stablecast.core.source import SOURCE, SourceState
from tests.support.tree import ROOT

CHAPTER = ROOT / "spec" / "machines.md"
BLOCK = re.compile(r"(<!-- chart: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
CHARTS: dict[str, tuple[Any, Any]] = {
    "registration": (REGISTRATION, RegistrationState.IDLE),
    "source": (SOURCE, SourceState.IDLE),
    "receiver": (RECEIVER, ReceiverState.WAITING),
    "lifetime": (LIFETIME, LifetimeState.ACTIVE),
    "election": (ELECTION, ElectionState.WATCHING),
}


def rendered(chapter: str) -> str:
    """The chapter with every block as the code has it."""

    def block(match: re.Match[str]) -> str:
        table, initial = CHARTS[match[2]]
        return f"{match[1]}\n```mermaid\n{render_mermaid(table, initial)}```\n\n{render_table(table)}\n{match[3]}"

    return BLOCK.sub(block, chapter)


def test_the_chapter_shows_what_runs() -> None:
    chapter = CHAPTER.read_text(encoding="utf-8")
    assert {name for _, name, _ in BLOCK.findall(chapter)} == set(CHARTS)
    if os.environ.get("STABLECAST_REWRITE"):
        CHAPTER.write_text(rendered(chapter), encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == rendered(chapter)
