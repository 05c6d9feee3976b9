"""The life cycle of a client at a service: connections, marks, lifetimes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.srs.client import (
    CLIENT,
    ClientChart,
    ClientEvent,
    ClientState,
    Dropped,
    ServiceClient,
)
from stablecast.transports.resolution.srs.directory import Interest
from tests.transports.resolution.charts import agree

ORDERS, TRADES = Interest("orders"), Interest("trades")


def abstract(client: ServiceClient) -> tuple[str, int, int, int, int]:
    """Return the state's name; sources up and potentially down; interests up and potentially down."""
    up = client.connection if client.up else None
    sources = sum(mark == up for mark in client.sources.values())
    interests = sum(mark == up for mark in client.interests.values())
    return (client.state.name, sources, len(client.sources) - sources, interests, len(client.interests) - interests)


def client(source_ns: int = 100, interest_ns: int = 50) -> ServiceClient:
    """Return a client on connection 1 that has announced two sources and an interest."""
    made = ServiceClient(b"instance", 1, source_ns, interest_ns, connection=1, counter=1)
    made.sources = {b"1": 1, b"2": 1}
    made.interests = {ORDERS: 1}
    made.complete(0)
    return made


@given(st.lists(st.sampled_from(list(ClientEvent)), max_size=12))
def test_the_rows_do_what_the_library_does(events: list[ClientEvent]) -> None:
    agree(ClientChart, CLIENT, ClientState.ANNOUNCING, list(events))


@pytest.mark.rows("T-413")
def test_a_lost_connection_makes_records_potentially_down() -> None:
    lost = client()
    assert abstract(lost) == ("CURRENT", 2, 0, 1, 0)
    lost.lost(10)
    assert abstract(lost) == ("DOWN", 0, 2, 0, 1)
    assert not lost.up
    assert lost.is_down(b"1")
    assert lost.lapse(59) == Dropped()
    assert lost.next_lapse() == 60


@pytest.mark.rows("T-414")
def test_a_record_announced_again_is_up() -> None:
    """Record by record, before the exchange is over."""
    back = client()
    back.lost(10)
    back.hello(2, 2, 20)
    back.sources[b"1"] = 2
    assert abstract(back) == ("ANNOUNCING", 1, 1, 0, 1)
    assert (back.is_down(b"1"), back.is_down(b"2")) == (False, True)
    assert back.complete(30) == Dropped((b"2",), (ORDERS,))
    assert abstract(back) == ("CURRENT", 1, 0, 0, 0)
    assert back.next_lapse() is None
    assert back.complete(40) == Dropped()


@pytest.mark.rows("T-415", "T-416")
def test_each_kind_has_its_lifetime() -> None:
    """50 for interest, 100 for sources; then the client is gone."""
    lost = client()
    lost.lost(10)
    assert lost.lapse(60) == Dropped((), (ORDERS,))
    assert abstract(lost)[0] == "DOWN"
    assert lost.next_lapse() == 110
    assert lost.lapse(110) == Dropped((b"1", b"2"))
    assert abstract(lost)[0] == "GONE"
    with pytest.raises(MisuseError):
        lost.hello(3, 3, 120)


def test_a_lifetime_runs_from_the_break_of_the_announcing_connection() -> None:
    """Formal design, 7.10: a connection without complete exchange does not prolong records that it did not name."""
    flapping = client()
    flapping.lost(10)
    flapping.hello(2, 2, 20)
    flapping.sources[b"1"] = 2
    flapping.lost(90)
    assert flapping.lapse(110) == Dropped((b"2",), (ORDERS,))
    assert flapping.next_lapse() == 190


def test_a_newer_hello_replaces_a_connection_that_is_still_there() -> None:
    replaced = client()
    replaced.hello(2, 2, 10)
    assert abstract(replaced) == ("ANNOUNCING", 0, 2, 0, 1)
    replaced.hello(3, 3, 20)
    assert replaced.next_lapse() == 60
    assert replaced.lost_at == {1: 10}


@pytest.mark.parametrize(("counter", "late"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_hello_is_late_if_its_number_is_not_higher(counter: int, late: bool) -> None:
    """Formal design, 7.10; 0 is a context that does not number connections."""
    assert ServiceClient(b"instance", 1, 0, 0, connection=1, counter=2).is_late(counter) is late


def test_a_lifetime_of_zero_never_ends() -> None:
    kept = client(source_ns=0, interest_ns=0)
    kept.lost(10)
    assert kept.next_lapse() is None
    assert kept.lapse(10**20) == Dropped()
