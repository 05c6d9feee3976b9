"""Findings about sources, receivers and stores, and their urgency."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import health
from stablecast.ops.monitor.health import Urgency
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE, STORE


def codes(findings: Any) -> list[tuple[str, Urgency]]:
    return [(finding.code, finding.level) for finding in findings]


def test_nothing_is_findings_of_what_is_well() -> None:
    said = [*health.of_source(SOURCE), *health.of_receiver(RECEIVER, SOURCE), *health.of_store(STORE)]
    assert said == []
    assert health.worst(said) is Urgency.OK


@pytest.mark.rows("P-912", "P-917", "P-918", "P-919")
@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"lost": 5, "given_up": 3}, "lost", Urgency.CRITICAL),
        ({"lost": 3, "bursts": (0, 50, 2)}, "was-lost", Urgency.NOTICE),  # A refill brought them back.
        ({"holes": 3}, "under-replicated", Urgency.WARNING),
        ({"drops": (1, 5)}, "dropping", Urgency.WARNING),
        ({"drops": (0, 5)}, "dropped", Urgency.NOTICE),
        ({"memory": (3900, 2000, 4000)}, "memory-nearly-full", Urgency.WARNING),
        ({"paced": True, "offsets": (0, 9900, 10_000)}, "disk-nearly-full", Urgency.WARNING),
        ({"active": False}, "source-silent", Urgency.WARNING),
        ({"active": False, "ended": True}, "source-ended", Urgency.NOTICE),  # By itself or not: its host knows.
        ({"proxied": True}, "proxy", Urgency.NOTICE),
    ],
)
def test_of_a_source(changes: dict[str, Any], code: str, level: Urgency) -> None:
    """Counters that are no longer 0 are warned of."""
    assert codes(health.of_source(attrs.evolve(SOURCE, **changes))) == [(code, level)]


def test_a_burst_counts_until_other_stores_have_sent_it() -> None:
    burst = attrs.evolve(SOURCE, lost=3, burst_lost=3, bursts=(0, 50, 2))
    critical = [("burst-lost", Urgency.CRITICAL), ("lost", Urgency.CRITICAL)]
    assert codes(health.of_source(attrs.evolve(burst, given_up=3))) == critical
    assert codes(health.of_source(attrs.evolve(burst, lacking=(3, 0, 0, 0)))) == [("lacking", Urgency.WARNING)]
    assert codes(health.of_source(burst)) == [("was-lost", Urgency.NOTICE)]


def test_a_full_disk_is_fine_where_the_oldest_may_go() -> None:
    assert codes(health.of_source(attrs.evolve(SOURCE, offsets=(0, 10_000, 10_000)))) == []


@pytest.mark.rows("P-122", "P-923")
@pytest.mark.parametrize(
    ("changes", "window", "code"),
    [
        ({"active": False}, (0, 40, 99), "receiver-silent"),
        ({"acknowledged": 8}, (10, 40, 99), "unread-let-go"),
        ({"lag": 5000}, (0, 40, 99), "receiver-late"),
    ],
)
def test_of_a_receiver(changes: dict[str, Any], window: tuple[int, int, int], code: str) -> None:
    """Messages had to go unread; P-923."""
    source = attrs.evolve(SOURCE, window=window)
    assert codes(health.of_receiver(attrs.evolve(RECEIVER, **changes), source)) == [(code, Urgency.WARNING)]


def test_a_receiver_that_ended_is_no_cause_for_alarm_before_messages_go_unread() -> None:
    ended = attrs.evolve(RECEIVER, active=False, ended=True, lag=5000)
    known = [("receiver-ended", Urgency.NOTICE), ("receiver-late", Urgency.NOTICE)]
    assert codes(health.of_receiver(ended, SOURCE)) == known
    gone = attrs.evolve(SOURCE, window=(200, 200, 299))
    assert codes(health.of_receiver(ended, gone)) == [("unread-let-go", Urgency.WARNING), *known]


def test_a_receiver_may_be_behind_by_a_small_share() -> None:
    source = attrs.evolve(SOURCE, messages=100_000)
    assert codes(health.of_receiver(attrs.evolve(RECEIVER, lag=5000), source)) == []


@pytest.mark.rows("P-904")
@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"failure": "the disk failed"}, "disk-failed", Urgency.CRITICAL),
        ({"oddities": {"damaged": 3}}, "damaged", Urgency.CRITICAL),
        ({"muted_for_ns": 5 * SECOND}, "muted", Urgency.WARNING),
        ({"journal": attrs.evolve(STORE.journal, pressure=True)}, "slow-disk", Urgency.WARNING),
        ({"requests": (10, 9, 8, 1, 4, 4)}, "requests-dropped", Urgency.WARNING),
        ({"requests": (10, 9, 8, 0, 4, 4)}, "requests-were-dropped", Urgency.NOTICE),
        ({"draining": True}, "draining", Urgency.NOTICE),
        ({"expired": (2, 30)}, "state-let-go", Urgency.WARNING),
        ({"clients": (91, 100)}, "clients-nearly-full", Urgency.WARNING),
        ({"room": (1 << 20, 1 << 21)}, "room-low", Urgency.WARNING),
    ],
)
def test_of_a_store(changes: dict[str, Any], code: str, level: Urgency) -> None:
    """Requests above the rate are dropped, and that is seen."""
    assert codes(health.of_store(attrs.evolve(STORE, **changes))) == [(code, level)]
