"""Ways to hold the client wrong. Each one is done here, and spec/misuse.md is made of them.

STABLECAST_REWRITE=1 writes the page anew.
"""

import os
import re

import pytest

from tests.adapters.client import misuse_of_contexts, misuse_of_messages
from tests.adapters.client.misuses import MISUSES
from tests.support.misuse import Misuse
from tests.support.network import Network
from tests.support.tree import ROOT

PAGE = ROOT / "spec" / "misuse.md"
TABLE = re.compile(r"(<!-- misuse -->\n).*?(<!-- end -->)", re.DOTALL)
FEWEST = 30
CASES = (misuse_of_contexts, misuse_of_messages)
"""The modules with the cases, which add them when they are imported."""


@pytest.mark.parametrize("misuse", MISUSES.ways, ids=lambda misuse: misuse.way)
async def test_a_way_to_hold_it_wrong(net: Network, misuse: Misuse) -> None:
    await misuse.check(net)


def test_the_page_has_these_ways() -> None:
    assert CASES
    assert len(MISUSES.ways) >= FEWEST
    rows = "\n".join(misuse.row() for misuse in MISUSES.ways)
    table = f"\n| way | what happens |\n|---|---|\n{rows}\n\n"
    text = PAGE.read_text(encoding="utf-8")
    written = TABLE.sub(lambda found: found[1] + table + found[2], text)
    if os.environ.get("STABLECAST_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert written == text or os.environ.get("STABLECAST_REWRITE")
