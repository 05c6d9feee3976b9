"""Terms of repositories: configuration, wishes, and the table of clients that fit."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import UNSET, ElectionToken, Pace, Register, Role, Wishes
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType
from stablecast.core.store.retention_terms import Terms, acceptable, consistent, fits, terms_of
from tests.core.samples import register

CONFIG = RepositoryConfig(allow_rpp=True, write_delay_ns=SECOND)


def paced(**wishes: Any) -> Register:
    return register(pace=Pace.RECEIVERS, wishes=Wishes(**wishes))


@pytest.mark.rows("P-111")
def test_terms_without_a_wish_are_as_configured() -> None:
    """0 means the store's value."""
    terms = terms_of(CONFIG, Pace.SOURCE, Wishes())
    assert (terms.size_threshold, terms.size_limit, terms.disk_limit) == (25_165_824, 50_331_648, 104_857_600)
    assert (terms.write_delay_ns, terms.flight_bytes, terms.flight_messages) == (SECOND, 4_194_304, 0)
    assert (terms.paced, terms.written, terms.ack_on_reception) == (False, True, False)
    assert terms_of(CONFIG, Pace.SOURCE, Wishes(write_delay_ms=UNSET)) == terms


@pytest.mark.rows("P-562", "P-568", "P-592")
def test_wishes_are_granted() -> None:
    """A delay of 0 is a wish too."""
    wishes = Wishes(1, 2, 3, 4, 5, 0, ack_on_reception=True)
    terms = terms_of(CONFIG, Pace.RECEIVERS, wishes)
    sizes = (terms.size_threshold, terms.size_limit, terms.disk_limit, terms.flight_messages, terms.flight_bytes)
    assert sizes == (1, 2, 3, 4, 5)
    assert (terms.write_delay_ns, terms.ack_on_reception, terms.written, terms.paced) == (0, True, False, True)
    assert terms_of(CONFIG, Pace.SOURCE, Wishes(write_delay_ms=7)).write_delay_ns == 7 * MILLISECOND


@pytest.mark.rows("P-581", "P-842")
def test_in_memory_there_is_nothing_to_delay_and_nothing_sooner_than_reception() -> None:
    config = attrs.evolve(CONFIG, kind=RepositoryType.MEMORY)
    terms = terms_of(config, Pace.RECEIVERS, Wishes(ack_on_reception=True))
    assert (terms.write_delay_ns, terms.ack_on_reception, terms.written) == (0, False, False)
    assert terms.on_disk().kind is RepositoryType.DISK
    assert Terms().on_disk() == Terms()


@pytest.mark.parametrize(
    ("terms", "capacity"),
    [
        (Terms(size_limit=9, disk_limit=5), 5),
        (Terms(size_limit=9, disk_limit=0), 9),
        (Terms(kind=RepositoryType.MEMORY, size_limit=9, disk_limit=5), 9),
        (Terms(), None),
    ],
)
def test_the_capacity_is_the_smaller_limit(terms: Terms, capacity: int | None) -> None:
    assert terms.capacity == capacity


@pytest.mark.rows("P-562", "P-591", "P-592", "P-593", "P-844")
@pytest.mark.parametrize(
    ("request_", "granted"),
    [
        (register(), True),
        (register(wishes=Wishes(size_threshold=25_165_824)), True),
        (register(wishes=Wishes(50_331_649, 50_331_649, 104_857_601, write_delay_ms=1001)), True),
        (paced(size_threshold=25_165_825), False),
        (paced(size_limit=50_331_649), False),
        (paced(disk_limit=104_857_601), False),
        (paced(write_delay_ms=1000), True),
        (paced(write_delay_ms=1001), False),
        (register(pace=Pace.NON_BLOCKING), False),
        (paced(), True),
        (paced(flight_bytes=4_194_304), True),
        (paced(flight_bytes=4_194_305), False),
        (paced(ack_on_reception=True), False),
        (register(wishes=Wishes(ack_on_reception=True)), True),
    ],
)
def test_wishes_beyond_the_maxima_are_refused(request_: Register, granted: bool) -> None:
    """U13."""
    assert acceptable(CONFIG, request_, Repair.ALL) is granted


@pytest.mark.rows("P-561", "P-577", "P-841", "P-842")
@pytest.mark.parametrize(
    ("change", "granted"),
    [
        ({"allow_rpp": False}, False),
        ({"kind": RepositoryType.NO_CACHE}, False),
        ({"allow_ack_on_reception": True}, True),
        ({"kind": RepositoryType.MEMORY}, True),
        ({"size_limit": 0, "disk_limit": 0, "allow_ack_on_reception": True}, True),
    ],
)
def test_the_store_must_allow_pacing(change: dict[str, Any], granted: bool) -> None:
    assert acceptable(attrs.evolve(CONFIG, **change), paced(ack_on_reception=True), Repair.ALL) is granted


def test_a_flight_must_fit() -> None:
    """Formal design, 7.8: else nothing would ever be acknowledged. As documented that is nobody's business."""
    request = paced(flight_bytes=1001, size_limit=1000)
    assert not acceptable(CONFIG, request, Repair.ALL)
    assert acceptable(CONFIG, request, Repair.ALL & ~Repair.PACED)
    assert acceptable(CONFIG, paced(flight_bytes=1000, size_limit=1000), Repair.ALL)


@pytest.mark.rows("P-111", "P-592")
def test_a_wish_beyond_the_store_is_passed_over_where_receivers_do_not_set_the_pace() -> None:
    """The other wishes count; the documents name these options for pacing by receivers only."""
    beyond = Wishes(size_threshold=1 << 40, size_limit=1000, disk_limit=1 << 40, write_delay_ms=1 << 20)
    terms = terms_of(CONFIG, Pace.SOURCE, beyond)
    assert (terms.size_threshold, terms.size_limit, terms.disk_limit) == (
        CONFIG.size_threshold,
        1000,
        CONFIG.disk_limit,
    )
    assert terms.write_delay_ns == CONFIG.write_delay_ns


@pytest.mark.rows("P-569")
def test_a_client_that_returns_must_ask_for_the_same() -> None:
    assert consistent(Pace.RECEIVERS, Wishes(1), paced(size_threshold=1))
    assert not consistent(Pace.RECEIVERS, Wishes(1), paced(size_threshold=2))
    assert not consistent(Pace.SOURCE, Wishes(), paced())
    assert consistent(Pace.SOURCE, Wishes(), register(wishes=Wishes(1)))
    assert consistent(Pace.RECEIVERS, Wishes(1), register(election=ElectionToken(1, 1)))


@pytest.mark.rows("P-570", "P-573")
@pytest.mark.parametrize("repository", [Pace.SOURCE, Pace.RECEIVERS])
@pytest.mark.parametrize("pace", list(Pace))
def test_receivers_are_as_the_repository_is(repository: Pace, pace: Pace) -> None:
    """The rows for receivers of the table."""
    terms = Terms(pace=repository)
    expected = (repository is Pace.SOURCE) == (pace is Pace.SOURCE)
    assert fits(terms, register(role=Role.RECEIVER, pace=pace)) is expected
    assert fits(terms, register(pace=pace))
