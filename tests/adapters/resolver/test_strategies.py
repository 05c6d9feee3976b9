"""The strategies in a bad network, and the tables of the chapter."""

import os
import re

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.presets import PRESETS
from tests.support.strategies import HEAD, Story, cells, measure, stories
from tests.support.tree import ROOT

CHAPTER = ROOT / "spec" / "resolution.md"
LOSSES = (0, 10, 30)


def check(topics: int, wanted: int) -> None:
    """The table of a network of this size is the one in the chapter; STABLECAST_REWRITE=1 writes it anew."""
    lines = [HEAD, ("---",) * len(HEAD), *(cells(story, measure(story)) for story in stories(topics, wanted, LOSSES))]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    block = re.compile(rf"(<!-- strategies: {topics} {wanted} -->\n).*?(<!-- end -->)", re.DOTALL)
    text = CHAPTER.read_text(encoding="utf-8")
    assert block.search(text)
    wished = block.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", text)
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(wished, encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == wished


@pytest.mark.rows("T-301", "T-311")
@pytest.mark.no_cover
def test_the_table_of_a_small_network() -> None:
    """The table has one line for each strategy and loss."""
    check(10, 10)


@pytest.mark.thorough
def test_the_table_of_a_network_with_few_wanted_sources() -> None:
    check(200, 20)


@pytest.mark.rows("T-012")
def test_strategies_that_find_nothing_after_a_long_outage() -> None:
    """T26: the documented defaults; TCP heals by itself, as do all whose phases never end."""
    healed = {name: measure(Story(name, 1, 1, 0)).healed for name in PRESETS}
    assert [name for name, found in healed.items() if found is None] == ["default"]
    assert all(found is None or found < 12 * SECOND for found in healed.values())


@pytest.mark.rows("T-305", "T-306", "T-308", "T-310")
def test_each_strategy_has_its_advantage() -> None:
    """Bytes of ten sources of which one is wanted."""
    costs = {name: measure(Story(name, 10, 1, 0)) for name in PRESETS}
    assert {cost.resolved for cost in costs.values()} == {1}
    steady = {name: cost.steady_bytes for name, cost in costs.items()}
    assert steady["known-threshold"] == 0
    assert 0 < steady["tcp"] < steady["query-centric"] < steady["advertise-centric"]


@pytest.mark.parametrize("loss", [0, 50])
def test_the_same_story_has_the_same_end(loss: int) -> None:
    story = Story("safe", 3, 3, loss)
    assert measure(story) == measure(story)
