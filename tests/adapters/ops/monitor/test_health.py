"""What is said of sources, receivers and stores, and how urgent it is."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import health
from stablecast.ops.monitor.health import Level
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE, STORE


def codes(findings: Any) -> list[tuple[str, Level]]:
    return [(finding.code, finding.level) for finding in findings]


def test_nothing_is_findings_of_what_is_well() -> None:
    said = [*health.of_source(SOURCE), *health.of_receiver(RECEIVER, SOURCE), *health.of_store(STORE)]
    assert said == []
    assert health.worst(said) is Level.OK


@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"bursts": (0, 50, 2)}, "burst-lost", Level.CRITICAL),
        ({"lost": 3}, "lost", Level.CRITICAL),
        ({"holes": 3}, "under-replicated", Level.WARNING),
        ({"drops": (1, 5)}, "dropping", Level.WARNING),
        ({"drops": (0, 5)}, "dropped", Level.NOTICE),
        ({"memory": (3900, 2000, 4000)}, "memory-nearly-full", Level.WARNING),
        ({"paced": True, "offsets": (0, 9900, 10_000)}, "disk-nearly-full", Level.WARNING),
        ({"active": False}, "source-silent", Level.WARNING),
        ({"proxied": True}, "proxy", Level.NOTICE),
    ],
)
def test_of_a_source(changes: dict[str, Any], code: str, level: Level) -> None:
    """P-912, P-917, P-918, P-919: counters that are no longer 0 are warned of."""
    assert codes(health.of_source(attrs.evolve(SOURCE, **changes))) == [(code, level)]


def test_a_full_disk_is_fine_where_the_oldest_may_go() -> None:
    assert codes(health.of_source(attrs.evolve(SOURCE, offsets=(0, 10_000, 10_000)))) == []


@pytest.mark.parametrize(
    ("changes", "window", "code"),
    [
        ({"active": False}, (0, 40, 99), "receiver-silent"),
        ({"acknowledged": 8}, (10, 40, 99), "unread-let-go"),
        ({"lag": 5000}, (0, 40, 99), "receiver-late"),
    ],
)
def test_of_a_receiver(changes: dict[str, Any], window: tuple[int, int, int], code: str) -> None:
    """P-122: what had to go unread; P-923."""
    source = attrs.evolve(SOURCE, window=window)
    assert codes(health.of_receiver(attrs.evolve(RECEIVER, **changes), source)) == [(code, Level.WARNING)]


def test_a_receiver_may_be_behind_by_a_small_share() -> None:
    source = attrs.evolve(SOURCE, messages=100_000)
    assert codes(health.of_receiver(attrs.evolve(RECEIVER, lag=5000), source)) == []


@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"failure": "the disk failed"}, "disk-failed", Level.CRITICAL),
        ({"oddities": {"damaged": 3}}, "damaged", Level.CRITICAL),
        ({"muted_for_ns": 5 * SECOND}, "muted", Level.WARNING),
        ({"journal": attrs.evolve(STORE.journal, pressure=True)}, "slow-disk", Level.WARNING),
        ({"requests": (10, 9, 8, 1, 4, 4)}, "requests-dropped", Level.WARNING),
        ({"requests": (10, 9, 8, 0, 4, 4)}, "requests-were-dropped", Level.NOTICE),
        ({"draining": True}, "draining", Level.NOTICE),
        ({"expired": (2, 30)}, "state-let-go", Level.WARNING),
        ({"clients": (91, 100)}, "clients-nearly-full", Level.WARNING),
        ({"room": (1 << 20, 1 << 21)}, "room-low", Level.WARNING),
    ],
)
def test_of_a_store(changes: dict[str, Any], code: str, level: Level) -> None:
    """P-904: requests above the rate are dropped, and that is seen."""
    assert codes(health.of_store(attrs.evolve(STORE, **changes))) == [(code, level)]
