"""The traps and the second seed's rules of the TCP service, played in virtual time."""

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.resolution.srs.events import BytesReceived
from stablecast.transports.resolution.srs.settings import ClientConfig, ServiceConfig
from stablecast.transports.resolution.udp.inputs import (
    AddPattern,
    AddReceiver,
    RemovePattern,
    RemoveReceiver,
    RemoveSource,
    Unresolved,
)
from stablecast.transports.resolution.udp.settings import PatternOptions
from tests.transports.resolution.srs_domain import SECOND_SRS, SRS, SrsDomain, record, source

LIFETIMES = ServiceConfig(source_lifetime_ns=100 * SECOND, interest_lifetime_ns=50 * SECOND)
ORDERS = [("orders", 1)]


def domain(config: ServiceConfig = LIFETIMES) -> SrsDomain:
    played = SrsDomain()
    played.service(config=config)
    return played


def test_t26_quiet_is_not_dead() -> None:
    """T26: apart for longer than any phase of resolution lasts, and resolved as soon as both are connected again."""
    played = domain()
    played.context("source")
    played.context("receiver")
    for name in ("source", "receiver"):
        played.leave(name)
    played.feed("receiver", AddReceiver("orders"))
    played.feed("source", source())
    played.run(90 * SECOND)
    assert played.discovered("receiver") == []
    played.back("source")
    played.back("receiver")
    played.run(played.now + 25 * SECOND)  # An attempt that hangs, and the longest wait for the next one.
    assert played.discovered("receiver") == ORDERS


@pytest.mark.rows("T-407", "T-408", "T-413", "T-414")
def test_t27_the_same_context_returns_inside_the_lifetime() -> None:
    """T27: potentially down, announced again, invisible to others."""
    played = domain()
    played.pair()
    assert played.discovered("receiver") == ORDERS
    played.leave("source")
    played.run(60 * SECOND)
    assert played.services[SRS].counters()["down"] == 1
    played.back("source")
    played.run(90 * SECOND)
    assert played.services[SRS].counters()["down"] == 0
    played.run(1000 * SECOND)
    assert (played.discovered("receiver"), played.withdrawn("receiver")) == ([], [])


@pytest.mark.rows("T-415", "T-418")
def test_t27_a_restarted_process_is_a_new_context() -> None:
    """T27: the record of its former life waits for the end of its lifetime."""
    played = domain()
    played.pair()
    played.stop("source")
    killed = played.now
    played.context("reborn")
    played.feed("reborn", source(index=2))
    assert played.discovered("receiver") == [*ORDERS, ("orders", 2)]
    played.run(killed + 100 * SECOND - 1)
    assert played.withdrawn("receiver") == []
    played.run(killed + 100 * SECOND)
    assert played.withdrawn("receiver") == ORDERS


def test_t27_a_leave_record_shortens_the_wait() -> None:
    """T27: a receiver that lost the transport reports it; the service waits shortly for the source's return."""
    played = domain()
    played.pair()
    played.stop("source")
    played.feed("receiver", Unresolved("orders"))
    played.run(played.now + 500 * MILLISECOND - 1)
    assert played.withdrawn("receiver") == []
    played.run(played.now + 1)
    assert played.withdrawn("receiver") == ORDERS


def test_a_leave_record_does_not_end_a_source_that_is_up() -> None:
    """T27: one receiver's broken network is not the source's end; known sources are reported again."""
    played = domain()
    played.pair()
    played.discovered("receiver")
    played.feed("receiver", Unresolved("orders"))
    played.run(10 * SECOND)
    assert (played.discovered("receiver"), played.withdrawn("receiver")) == (ORDERS, [])


@pytest.mark.rows("T-419")
def test_an_outage_longer_than_the_lifetime_ends_and_creates_again() -> None:
    played = domain()
    played.pair()
    played.discovered("receiver")
    played.leave("source")
    played.run(200 * SECOND)
    assert played.withdrawn("receiver") == ORDERS
    played.back("source")
    played.run(220 * SECOND)
    assert played.discovered("receiver") == ORDERS


@pytest.mark.rows("T-416")
def test_interest_has_a_lifetime_of_its_own() -> None:
    """The topics of a disconnected context are forgotten after their lifetime."""
    played = domain()
    played.pair()
    played.stop("receiver")
    played.run(played.now + 50 * SECOND - 1)
    assert played.services[SRS].counters()["topics_wanted"] == 1
    played.run(played.now + 1)
    assert played.services[SRS].counters()["topics_wanted"] == 0
    assert played.services[SRS].counters()["clients"] == 1


@pytest.mark.rows("T-409")
def test_a_new_receiver_is_served_without_the_source() -> None:
    """The service alone answers."""
    played = domain()
    played.context("source")
    played.feed("source", source())
    played.leave("source")
    played.context("receiver")
    played.feed("receiver", AddReceiver("orders"))
    assert played.discovered("receiver") == ORDERS
    assert played.found == []


@pytest.mark.rows("T-403", "T-404", "T-412")
def test_only_contexts_that_want_a_topic_receive_its_records() -> None:
    """Creation and deletion go to interested contexts only; interest goes to none."""
    played = domain()
    played.pair()
    played.context("other")
    played.feed("other", AddReceiver("trades"))
    before = len(played.wire)
    played.feed("source", RemoveSource(7, 1), source(index=2))
    assert {to for _, to, _ in played.wire[before:]} == {SRS, "receiver"}
    assert played.withdrawn("receiver") == ORDERS
    assert played.discovered("receiver") == [*ORDERS, ("orders", 2)]


@pytest.mark.rows("T-405")
def test_wildcard_interest_brings_every_topic_that_matches() -> None:
    played = domain()
    played.context("source")
    played.feed("source", source("fx.eur", 1), source("fx.usd", 2), source("bonds", 3))
    played.context("receiver")
    played.feed("receiver", AddPattern("^fx[.]"))
    assert played.discovered("receiver") == [("fx.eur", 1), ("fx.usd", 2)]
    played.feed("source", source("fx.gbp", 4), source("stocks", 5))
    assert played.discovered("receiver") == [("fx.gbp", 4)]
    played.feed("receiver", RemovePattern("^fx[.]"))
    played.feed("source", source("fx.chf", 6), RemoveSource(7, 1))
    assert (played.discovered("receiver"), played.withdrawn("receiver")) == ([], [])


def test_a_topic_of_a_pattern_is_abandoned_after_its_linger() -> None:
    """A source that comes back in time keeps its topic. A receiver of the topic keeps it, too, and leaves it behind."""
    played = domain()
    played.context("source")
    played.feed("source", source("fx.eur", 1), source("fx.usd", 2))
    context = played.context("receiver")
    played.feed("receiver", AddPattern("^fx[.]", options=PatternOptions(linger=2 * SECOND)), AddReceiver("fx.usd"))
    played.feed("source", RemoveSource(7, 1), RemoveSource(7, 2))
    began = played.now
    played.run(began + SECOND)
    played.feed("source", source("fx.eur", 3))
    played.run(began + 10 * SECOND)
    assert played.abandoned("receiver") == []
    played.feed("source", RemoveSource(7, 3))
    assert context.leaving.next() == played.now + 2 * SECOND
    played.run(played.now + 3 * SECOND)
    assert played.abandoned("receiver") == ["fx.eur"]
    played.feed("receiver", Unresolved("fx.eur"))
    played.run(played.now + 10 * SECOND)
    assert played.abandoned("receiver") == ["fx.eur"]
    played.feed("source", source("fx.usd", 4))
    played.discovered("receiver")
    played.feed("receiver", RemoveReceiver("fx.usd"))
    assert played.discovered("receiver") == [("fx.usd", 4)]


@pytest.mark.rows("T-404")
def test_flood_brings_every_source() -> None:
    """A context may request all sources, wanted or not."""
    played = domain()
    played.context("source")
    played.feed("source", source("orders", 1))
    context = played.context("receiver", config=ClientConfig(flood=True))
    played.feed("source", source("trades", 2))
    assert context.counters()["known"] == 2
    assert played.discovered("receiver") == []
    played.feed("receiver", AddReceiver("trades"), RemoveReceiver("trades"), AddReceiver("trades"))
    assert played.discovered("receiver") == [("trades", 2), ("trades", 2)]


@pytest.mark.rows("T-406")
def test_keepalives_are_all_that_travels_when_nothing_changes() -> None:
    """U7: the same bytes for any number of topics."""

    def steady(topics: int) -> int:
        played = domain()
        played.pair()
        played.feed("source", *(source(f"topic/{number}", number) for number in range(2, 2 + topics)))
        start = len(played.wire)
        played.run(played.now + 100 * SECOND)
        return sum(len(data) for _, _, data in played.wire[start:])

    assert steady(0) == steady(50) == 2 * 20 * (17 + 17)


@pytest.mark.rows("T-401")
def test_two_services_are_used_at_once() -> None:
    """Found once, and still known when one service is gone."""
    played = domain()
    played.service(SECOND_SRS, LIFETIMES)
    played.context("source", SRS, SECOND_SRS)
    played.context("receiver", SRS, SECOND_SRS)
    played.feed("receiver", AddReceiver("orders"))
    played.feed("source", source())
    assert played.discovered("receiver") == ORDERS
    played.stop(SRS)
    played.feed("source", source(index=2), RemoveSource(7, 1))
    assert played.discovered("receiver") == [("orders", 2)]
    assert played.withdrawn("receiver") == ORDERS


@pytest.mark.rows("T-402", "T-407")
def test_a_restarted_service_receives_all_records_again() -> None:
    """It knows nothing, and receivers lose nothing."""
    played = domain()
    played.pair()
    played.discovered("receiver")
    played.stop(SRS)
    played.run(played.now + 60 * SECOND)
    assert [change.up for name, change in played.changes if name == "receiver"] == [True, False]
    played.service(config=LIFETIMES)
    played.run(played.now + 20 * SECOND)
    assert played.services[SRS].counters()["sources"] == 1
    assert (played.discovered("receiver"), played.withdrawn("receiver")) == ([], [])
    played.context("late")
    played.feed("late", AddReceiver("orders"))
    assert played.discovered("late") == ORDERS


def test_a_source_deleted_during_an_outage_is_gone_after_the_exchange() -> None:
    """Formal design, 7.10: a record that the full exchange does not name is older, at either end."""
    played = domain()
    played.pair()
    played.feed("source", source(index=2))
    played.leave("source")
    played.feed("source", RemoveSource(7, 1))
    played.run(90 * SECOND)
    assert played.withdrawn("receiver") == []
    played.back("source")
    played.run(110 * SECOND)
    assert played.withdrawn("receiver") == ORDERS
    played.leave("receiver")
    played.feed("source", RemoveSource(7, 2))
    played.run(150 * SECOND)
    played.back("receiver")
    played.run(170 * SECOND)
    assert played.withdrawn("receiver") == [("orders", 2)]


def test_records_of_a_connection_that_was_replaced_are_dropped() -> None:
    """Formal design, 7.10: delayed bytes of the old connection mean nothing after the hello of the new one."""
    played = domain()
    played.context("source")
    old = next(end for end in played.peers if end[0] == SRS)
    played.leave("source")
    played.feed("source", source())
    late = [data for end, data in played.held if end[0] == "source"]
    played.feed("source", RemoveSource(7, 1))
    played.held.clear()
    played.peers.clear()  # The context's host forgot the connection, the service's did not.
    played.run(14 * SECOND)
    played.away.clear()
    played.contexts["source"].links[0].give_up("gone", played.now)
    played.work.append("source")
    played.run(14 * SECOND + 500 * MILLISECOND)
    service = played.services[SRS]
    assert service.counters()["connections"] == 1
    service.receive(BytesReceived(old[1], b"".join(late)), played.now)
    assert service.counters()["sources"] == 0
    assert any("took over" in note for note in played.notes)


def test_interest_that_comes_back_is_not_served_by_records_of_before() -> None:
    """Formal design, 7.10: a record sent before the withdrawal was answered is late."""
    played = domain()
    played.pair()
    played.discovered("receiver")
    played.feed("source", source(index=2))
    stale = next(data for _, to, data in reversed(played.wire) if to == "receiver")
    played.discovered("receiver")
    receiver = played.contexts["receiver"]
    receiver.receive(RemoveReceiver("orders"), played.now)
    receiver.receive(AddReceiver("orders"), played.now)
    link = receiver.links[0]
    receiver.receive(BytesReceived(link.connection, stale), played.now)
    assert receiver.counters()["unwanted"] == 1
    played.work.append("receiver")
    played.feed("source", RemoveSource(7, 2))
    assert played.discovered("receiver") == [("orders", 1), ("orders", 2)]
    assert played.withdrawn("receiver") == [("orders", 2)]
    assert link.unanswered == {}


def test_a_context_finds_its_own_sources() -> None:
    played = domain()
    played.context("both")
    played.feed("both", AddReceiver("orders"), source(), AddPattern("ord"), RemoveSource(7, 1))
    assert played.found == [("both", "orders", record(b"both....")), ("both", "orders", record(b"both...."))]
    assert played.withdrawn("both") == ORDERS


@pytest.mark.rows("T-415")
@pytest.mark.parametrize("count", [0, 3])
def test_lifetimes_of_zero_never_end(count: int) -> None:
    """0 keeps potentially down records forever."""
    played = domain(ServiceConfig(source_lifetime_ns=0, interest_lifetime_ns=0))
    played.context("source")
    played.feed("source", *(source(index=index) for index in range(count)))
    played.stop("source")
    played.run(10**9 * SECOND)
    counters = played.services[SRS].counters()
    assert (counters["sources"], counters["clients"]) == (count, 1 if count else 0)
