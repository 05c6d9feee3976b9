"""A store that was away for more lives of a source than anybody remembers.

Histories keep the newest 64 lives (`HISTORY_LIVES`). A number that began before them is ascribed to nobody, and that
must never count as agreement: the store that was away may hold another message under the number than the stable one.
"""

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.history import HISTORY_LIVES
from tests.support.cluster import Cluster

SHARED, TAIL = 10, 5
"""Messages that every store has, and messages behind them that only the store that goes away has."""

AWAY = "store1"
OTHERS = ("store0", "store2")


def away_for(lives: int) -> Cluster:
    """Return a cluster of which one store was away for so many lives, each of which got one message stable.

    The store comes back with a tail of the first life. Later lives used the numbers of the tail again.
    """
    cluster = Cluster.started(receivers=0)
    cluster.send(SHARED)
    cluster.world.run(SECOND)
    for name in OTHERS:
        cluster.crash_store(name)
    cluster.send(TAIL)
    cluster.world.run(20 * MILLISECOND)
    cluster.crash_source()
    cluster.crash_store(AWAY)
    for name in OTHERS:
        cluster.start_store(name)
    for _ in range(lives):
        cluster.start_source()
        cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
        cluster.send(1)
        cluster.world.run(SECOND)
        cluster.crash_source()
    assert len(cluster.stable()) == SHARED + lives
    cluster.start_store(AWAY)
    cluster.start_source()
    cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
    cluster.world.run(60 * SECOND)
    return cluster


@pytest.mark.rows("P-004")
@pytest.mark.parametrize(
    "lives", [TAIL + 1, HISTORY_LIVES - 1, HISTORY_LIVES, HISTORY_LIVES + 1, HISTORY_LIVES + TAIL + 3]
)
def test_a_store_that_was_away_shows_no_message_of_a_life_that_is_over(lives: int) -> None:
    """A forgotten message is cut, asked for or refused, and never believed."""
    cluster = away_for(lives)
    stable = {number: life for life, number in cluster.stable()}
    held = {number: life for (_, number), life in cluster.stores[AWAY].durable.items()}
    assert {number: life for number, life in held.items() if stable.get(number, life) != life} == {}


@pytest.mark.rows("P-004")
@pytest.mark.parametrize("lives", [TAIL + 1, HISTORY_LIVES + TAIL + 3])
@pytest.mark.parametrize("gone", OTHERS)
def test_a_receiver_that_comes_later_gets_what_is_stable(lives: int, gone: str) -> None:
    """Also from the store that was away, when one of the others is gone."""
    cluster = away_for(lives)
    cluster.crash_store(gone)
    cluster.start_receiver("receiver0")
    cluster.world.run(60 * SECOND)
    cluster.check()


@pytest.mark.rows("P-004")
def test_a_receiver_that_was_away_for_as_many_lives_gets_what_is_stable() -> None:
    """A message that it consumed of a life that is forgotten is no message of a later one."""
    cluster = Cluster.started()
    cluster.send(SHARED)
    cluster.world.run(SECOND)
    cluster.crash_receiver("receiver0")
    for _ in range(HISTORY_LIVES + TAIL + 3):
        cluster.crash_source()
        cluster.start_source()
        cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
        cluster.send(1)
        cluster.world.run(SECOND)
    cluster.start_receiver("receiver0")
    cluster.world.run(60 * SECOND)
    cluster.check()
