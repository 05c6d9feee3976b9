"""Grants: admission to a store, the first number of a receiver, and the contents of a grant."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol.messages import Pace, Refusal, Role, StoreEntry, Wishes
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, StoreConfig, TopicPattern
from stablecast.core.store.clients import ClientTable
from stablecast.core.store.grants import first_number, grant, verdict
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from tests.core.drivers import REPOSITORY_CONFIG, RepositoryDriver
from tests.core.samples import LIFE, OLDER_LIFE, register

ALLOWING = StoreConfig("store:1", 1, RepositoryConfig(allow_rpp=True))
FORBIDDING = StoreConfig("store:1", 1)
RECEIVER: dict[str, Any] = {"role": Role.RECEIVER, "source_reg_id": 50}


def shop(count: int = 5, **terms: Any) -> Repository:
    driver = RepositoryDriver(terms=Terms(**terms))
    if count:
        driver.data(0, count)
    return driver.machine


def clients(config: StoreConfig = REPOSITORY_CONFIG) -> ClientTable:
    return ClientTable(config, Seeded(1))


@pytest.mark.rows("P-561", "P-567", "P-573", "P-598")
@pytest.mark.parametrize(
    ("config", "pace", "expected"),
    [
        (ALLOWING, Pace.RECEIVERS, None),
        (ALLOWING, Pace.SOURCE, None),
        (FORBIDDING, Pace.RECEIVERS, Refusal.INCOMPATIBLE),
        (FORBIDDING, Pace.SOURCE, None),
    ],
)
def test_a_new_source_decides_within_what_the_store_allows(
    config: StoreConfig, pace: Pace, expected: Refusal | None
) -> None:
    """The rows for sources of the table, first registration."""
    assert verdict(register(reg_id=50, pace=pace), clients(config), None, config) is expected


@pytest.mark.rows("P-569", "P-573", "P-575")
@pytest.mark.parametrize("repository", [Pace.SOURCE, Pace.RECEIVERS])
@pytest.mark.parametrize("pace", [Pace.SOURCE, Pace.RECEIVERS])
@pytest.mark.parametrize("wishes", [Wishes(), Wishes(size_limit=1000)])
def test_a_source_that_returns_must_be_as_it_was(repository: Pace, pace: Pace, wishes: Wishes) -> None:
    """Its pace, and its wishes if receivers set the pace; its address may change."""
    known = clients(ALLOWING)
    record = known.add(register(reg_id=50, pace=repository), 0)
    request = register(reg_id=50, pace=pace, wishes=wishes, reply_to="moved:1")
    same = pace is repository and (wishes == Wishes() or pace is Pace.SOURCE)
    assert verdict(request, known, None, ALLOWING) is (record if same else Refusal.INCOMPATIBLE)


@pytest.mark.rows("P-561", "P-573")
@pytest.mark.parametrize("repository", [Pace.SOURCE, Pace.RECEIVERS])
@pytest.mark.parametrize("pace", list(Pace))
def test_a_receiver_must_be_as_the_repository_is(repository: Pace, pace: Pace) -> None:
    """The rows for receivers of the table."""
    fits = (repository is Pace.SOURCE) == (pace is Pace.SOURCE)
    found = verdict(register(**RECEIVER, reg_id=70, pace=pace), clients(), shop(pace=repository), ALLOWING)
    assert found is (None if fits else Refusal.INCOMPATIBLE)


@pytest.mark.rows("P-569", "P-573")
def test_a_receiver_stays_blocking_or_not() -> None:
    known = clients()
    known.add(register(**RECEIVER, reg_id=70, pace=Pace.RECEIVERS), 0)
    request = register(**RECEIVER, reg_id=70, pace=Pace.NON_BLOCKING)
    assert verdict(request, known, shop(pace=Pace.RECEIVERS), ALLOWING) is Refusal.INCOMPATIBLE


@pytest.mark.rows("P-817")
def test_a_topic_that_no_pattern_matches_is_refused() -> None:
    config = attrs.evolve(FORBIDDING, repository=None, topics=(TopicPattern("topic", RepositoryConfig()),))
    assert verdict(register(topic="other"), clients(), None, config) is Refusal.NO_PATTERN
    assert verdict(register(), clients(), None, config) is None


@pytest.mark.rows("P-247")
@pytest.mark.parametrize("source", [None, RepositoryDriver().machine])
def test_the_source_of_a_receiver_must_be_the_one_registered(source: Repository | None) -> None:
    request = register(**RECEIVER, reg_id=70, incarnation=OLDER_LIFE)
    assert verdict(request, clients(), source, FORBIDDING) is Refusal.UNKNOWN_SOURCE


@pytest.mark.rows("P-019")
def test_a_reg_id_that_is_held_is_refused() -> None:
    """T6."""
    known = clients()
    known.add(register(reg_id=50), 0)
    request = register(reg_id=50, incarnation=9, reply_to="other:1")
    assert verdict(request, known, None, FORBIDDING) is Refusal.HELD_BY_SOURCE


@pytest.mark.rows("P-837")
@pytest.mark.parametrize(("rollback", "first"), [(0, 5), (3, 2), (99, 0)])
def test_a_new_receiver_goes_back_as_far_as_it_may(rollback: int, first: int) -> None:
    """U16: 0 starts with the next message."""
    config = StoreConfig("store:1", 1, RepositoryConfig(rollback=rollback))
    assert first_number(register(**RECEIVER), shop(), config) == first


def test_a_new_receiver_of_an_unknown_topic_goes_back_to_the_beginning() -> None:
    assert first_number(register(**RECEIVER), shop(), attrs.evolve(FORBIDDING, repository=None)) == 0


@pytest.mark.rows("P-564", "P-582")
def test_a_paced_receiver_begins_where_not_all_have_consumed() -> None:
    """C-34: whatever the rollback."""
    config = StoreConfig("store:1", 1, RepositoryConfig(rollback=0))
    source = shop(pace=Pace.RECEIVERS)
    source.window.trail = 3
    assert first_number(register(**RECEIVER, pace=Pace.RECEIVERS), source, config) == 3


@pytest.mark.rows("P-132", "P-413", "P-414", "P-443")
@pytest.mark.parametrize(
    ("role", "low", "high", "lives"), [(Role.SOURCE, 0, 4, ((LIFE, 0),)), (Role.RECEIVER, 8, 7, ())]
)
def test_a_grant_says_what_is_held(role: Role, low: int, high: int, lives: tuple[Any, ...]) -> None:
    """A receiver that acknowledged more than is held here is offered nothing, from where it stopped."""
    known = clients()
    record = known.add(register(role=role, reg_id=50, source_reg_id=0), 0)
    known.on_acknowledged(record, 7)
    answer = grant(record, record.client, shop(), 3, old=True)
    assert (answer.low, answer.high, answer.lives, answer.generation, answer.reg_id) == (low, high, lives, 3, 50)
    assert (answer.no_cache, answer.pace) == (False, Pace.SOURCE)


def test_a_grant_names_the_generations_of_the_other_stores() -> None:
    """As far as the source knows them."""
    record = clients().add(register(reg_id=50), 0)
    stores = (StoreEntry(0, 0, "a:1", 50, 1, 7), StoreEntry(1, 0, "b:1", 60, 1, 8), StoreEntry(2, 0, "c:1", 70, 1))
    client = attrs.evolve(record.client, store_index=0, stores=stores)
    assert grant(attrs.evolve(record, client=client), client, shop(), 1, old=True).peers == ((1, "b:1", 8),)


@pytest.mark.rows("P-101", "P-571")
def test_a_grant_says_in_what_mode_it_is() -> None:
    known = clients()
    source = known.add(register(reg_id=50, pace=Pace.RECEIVERS), 0)
    receiver = known.add(register(**RECEIVER, reg_id=70, pace=Pace.NON_BLOCKING), 0)
    paced = shop(0, pace=Pace.RECEIVERS)
    assert grant(source, source.client, paced, 1, old=False).pace is Pace.RECEIVERS
    assert grant(receiver, source.client, paced, 1, old=False).pace is Pace.NON_BLOCKING
    bare = shop(kind=RepositoryType.NO_CACHE)
    answer = grant(receiver, source.client, bare, 1, old=False)
    assert (answer.no_cache, answer.low, answer.high) == (True, 0, 0xFFFF_FFFF)
    assert grant(source, source.client, bare, 1, old=False).high == 4
