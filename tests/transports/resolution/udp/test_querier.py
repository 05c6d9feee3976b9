"""The receiver side: the times of queries, and the reports."""

import attrs
import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.records import SourceRecord, advertisement, named
from stablecast.transports.resolution.udp import settings as module
from stablecast.transports.resolution.udp.effects import (
    Abandoned,
    Discovered,
    QuerierEffect,
    SourceNotFound,
    Transmit,
    Withdrawn,
)
from stablecast.transports.resolution.udp.inputs import (
    AddPattern,
    AddReceiver,
    RecordsReceived,
    RemovePattern,
    RemoveReceiver,
    Resolved,
    SourceLost,
    Unresolved,
)
from stablecast.transports.resolution.udp.presets import DOCUMENTED
from stablecast.transports.resolution.udp.querier import MAX_REPORTED, Querier
from stablecast.transports.resolution.udp.settings import (
    QUERYING,
    CacheOptions,
    PatternOptions,
    QueryOptions,
    RateLimit,
    ResolutionLimits,
)
from stablecast.transports.wire import lbmr
from tests.transports.resolution.virtual import MS, PATTERN_QUERIES, QUERIES, play

RECORD = named(SourceRecord("10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True, instance=b"instance"))
SECOND_RECORD = named(attrs.evolve(RECORD, index=2, origin=b""))
UNCACHED = CacheOptions(on=False)


def tells(topic: str, *records: SourceRecord, ttl: int = 60) -> RecordsReceived:
    tirs = tuple(advertisement(topic, record, ttl) for record in records)
    return RecordsReceived(lbmr.Packet(lbmr.PacketKind.NORMAL, (), tirs, ()))


def asked(done: list[tuple[int, QuerierEffect]]) -> list[tuple[int, list[str]]]:
    """Return instants, and topics or patterns, of the queries."""
    return [
        (at, [q.name if isinstance(q, lbmr.TopicQuery) else q.pattern for q in e.queries])
        for at, e in done
        if isinstance(e, Transmit)
    ]


def found(machine: Querier) -> list[tuple[str, SourceRecord]]:
    return [(e.topic, e.record) for e in machine.take_effects() if isinstance(e, Discovered)]


@pytest.mark.rows("T-107", "T-112")
def test_an_unresolved_topic_is_asked_for_without_end() -> None:
    """T26."""
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    done = asked(play(machine, 100 * SECOND))
    assert [at for at, _ in done] == [*QUERIES, *range(6100, 100_001, 1000)]
    assert {tuple(topics) for _, topics in done} == {("orders",)}
    machine.receive(RemoveReceiver("orders"), 100 * SECOND)
    assert machine.next_timeout() is None
    assert not machine


@pytest.mark.rows("T-112", "T-113")
def test_the_documented_phases_end() -> None:
    """Any number of known sources, and a live session, change nothing."""
    machine = Querier(DOCUMENTED.query)
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(tells("orders", RECORD), 0)
    machine.receive(Resolved("orders"), 0)
    done = asked(play(machine, 100 * SECOND))
    assert [at for at, _ in done] == [*QUERIES, *range(6100, 65_101, 1000)]


def test_a_resolved_topic_is_asked_for_in_the_initial_phase_only() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(Resolved("orders"), 0)
    assert [at for at, _ in asked(play(machine, 100 * SECOND))] == list(QUERIES)


@pytest.mark.rows("T-113")
def test_a_topic_resolved_late_is_not_asked_for_again_until_it_is_lost() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    play(machine, 7 * SECOND)
    machine.receive(Resolved("orders"), 7 * SECOND)
    assert machine.next_timeout() is None
    machine.receive(Unresolved("orders"), 20 * SECOND + MS)
    assert [at for at, _ in asked(play(machine, 23 * SECOND))] == [20_020, 21_100, 22_100]


def test_a_loss_in_the_initial_phase_brings_the_next_query_near() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(Resolved("orders"), 0)
    play(machine, 500 * MS)
    machine.receive(Unresolved("orders"), 510 * MS)
    assert [at for at, _ in asked(play(machine, 1000 * MS))] == [520, 720, 920]


def test_topics_lost_together_are_asked_for_together() -> None:
    machine = Querier()
    for topic in "ab":
        machine.receive(AddReceiver(topic), 0)
        machine.receive(Resolved(topic), 0)
    play(machine, 10 * SECOND)
    for topic in "ab":
        machine.receive(Unresolved(topic), 10 * SECOND)
    assert asked(play(machine, 10 * SECOND)) == [(10_000, ["a", "b"])]


@pytest.mark.rows("T-307", "T-308")
def test_a_known_number_of_sources_is_enough() -> None:
    """Primary and standby; queries stop in any phase, and resume when one fails."""
    two = QueryOptions(QUERYING, enough=2, until_resolved=False)
    machine = Querier()
    machine.receive(AddReceiver("orders", two), 0)
    machine.receive(tells("orders", RECORD), 0)
    assert [at for at, _ in asked(play(machine, 60 * MS))] == [0, 20, 60]
    machine.receive(tells("orders", attrs.evolve(RECORD, address="10.0.1.1:14371", session_id=8, hops=1)), 100 * MS)
    assert machine.next_timeout() is not None, "a router repeats the first one"
    machine.receive(tells("orders", SECOND_RECORD), 100 * MS)
    assert machine.next_timeout() is None
    machine.receive(SourceLost("orders", 7, 2), 20 * SECOND)
    machine.receive(SourceLost("orders", 7, 3), 20 * SECOND)
    machine.receive(SourceLost("trades", 7, 2), 20 * SECOND)
    assert [at for at, _ in asked(play(machine, 22 * SECOND))] == [20_000, 21_000, 22_000]
    machine.take_effects()
    machine.receive(tells("orders", SECOND_RECORD), 23 * SECOND)
    assert found(machine) == [("orders", SECOND_RECORD)]
    assert machine.next_timeout() is None


def test_a_source_is_reported_once_and_again_after_a_loss() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    for _ in range(2):
        machine.receive(tells("orders", RECORD, SECOND_RECORD), 0)
    assert found(machine) == [("orders", RECORD), ("orders", SECOND_RECORD)]
    machine.receive(Unresolved("orders"), 0)
    machine.receive(tells("orders", RECORD), 0)
    assert found(machine) == [("orders", RECORD)]


@pytest.mark.rows("T-005", "T-028")
def test_a_known_source_is_joined_at_once() -> None:
    """But not a lost source, which may be gone."""
    machine = Querier()
    machine.receive(tells("orders", RECORD), 0)
    assert found(machine) == []
    machine.receive(AddReceiver("orders"), 10 * SECOND)
    assert found(machine) == [("orders", RECORD)]
    machine.receive(AddReceiver("orders"), 11 * SECOND)
    assert found(machine) == [("orders", RECORD)]
    machine.receive(Unresolved("orders"), 12 * SECOND)
    machine.receive(AddReceiver("orders"), 13 * SECOND)
    assert found(machine) == []


def test_nothing_is_known_before_without_a_cache() -> None:
    machine = Querier(cache_options=UNCACHED)
    machine.receive(tells("orders", RECORD), 0)
    machine.receive(AddReceiver("orders"), 0)
    assert found(machine) == []


@pytest.mark.rows("R-065")
def test_a_final_advertisement_is_an_end() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(tells("orders", RECORD), 0)
    machine.receive(Resolved("orders"), 0)
    play(machine, 10 * SECOND)
    machine.take_effects()
    for _ in range(2):
        machine.receive(tells("orders", RECORD, ttl=0), 10 * SECOND)
        machine.receive(tells("trades", RECORD, ttl=0), 10 * SECOND)
    assert machine.take_effects() == [Withdrawn("orders", RECORD)]
    assert [at for at, _ in asked(play(machine, 10 * SECOND))] == [10_000]
    assert len(machine.cache) == 0


def test_nobody_answers() -> None:
    """The event after N unanswered queries; queries continue. An answer restarts the count."""
    machine = Querier()
    machine.receive(AddReceiver("orders", QueryOptions(report_after=3)), 0)
    play(machine, 20 * MS)
    machine.receive(tells("orders", RECORD), 30 * MS)
    done = play(machine, 2 * SECOND)
    assert [(at, e) for at, e in done if isinstance(e, SourceNotFound)] == [(300, SourceNotFound("orders", 3))]
    assert [at for at, _ in asked(done)][-1] == 1900


@pytest.mark.rows("T-031", "T-032", "T-309")
def test_a_pattern_is_asked_for_and_finds_topics() -> None:
    """One long phase."""
    machine = Querier(pattern_options=DOCUMENTED.patterns)
    machine.receive(tells("orders/1", RECORD), 0)
    machine.receive(AddPattern("^orders"), 0)
    assert found(machine) == [("orders/1", RECORD)]
    done = asked(play(machine, 100 * SECOND))
    assert [at for at, _ in done] == list(PATTERN_QUERIES)
    assert {tuple(names) for _, names in done} == {("^orders",)}
    machine.receive(tells("orders/2", RECORD, SECOND_RECORD), 100 * SECOND)
    machine.receive(tells("trades", RECORD), 100 * SECOND)
    assert found(machine) == [("orders/2", RECORD), ("orders/2", SECOND_RECORD)]
    machine.receive(AddPattern("^orders", lbmr.PatternLanguage.REGEX, PatternOptions()), 101 * SECOND)
    assert len(found(machine)) == 3
    machine.receive(RemovePattern("^orders"), 102 * SECOND)
    machine.receive(RemovePattern("^orders"), 102 * SECOND)
    assert (machine.next_timeout(), bool(machine)) == (None, False)


def test_a_topic_found_by_a_pattern_is_left_when_nobody_answers() -> None:
    """Ten queries after the loss of its sources, then it lingers for a second."""
    machine = Querier(pattern_options=PatternOptions(attrs.evolve(DOCUMENTED.patterns.pace, initial=SECOND)))
    machine.receive(AddPattern("^orders"), 0)
    machine.receive(tells("orders/1", RECORD), 0)
    machine.receive(Resolved("orders/1"), 0)
    play(machine, 10 * SECOND)
    machine.receive(Unresolved("orders/1"), 10 * SECOND)
    done = play(machine, 100 * SECOND)
    assert [at for at, names in asked(done) if names == ["orders/1"]] == [10_000 + 1000 * n for n in range(10)] + [
        20_000
    ]
    assert [(at, e) for at, e in done if isinstance(e, SourceNotFound)] == [
        (19_000, SourceNotFound("orders/1", 10, left=True))
    ]
    assert [(at, e) for at, e in done if isinstance(e, Abandoned)] == [(20_000, Abandoned("orders/1"))]
    assert "orders/1" not in machine.interests
    machine.receive(tells("orders/1", RECORD), 100 * SECOND)
    assert found(machine) == [("orders/1", RECORD)]


def test_a_topic_that_answers_while_it_lingers_stays() -> None:
    machine = Querier()
    machine.receive(AddPattern("^orders", options=PatternOptions(report_after=1)), 0)
    machine.receive(tells("orders/1", RECORD), 0)
    machine.receive(Unresolved("orders/1"), 0)
    play(machine, 500 * MS)
    assert list(machine.leaving.deadlines) == ["orders/1"]
    machine.receive(tells("orders/1", RECORD), 600 * MS)
    assert (list(machine.leaving.deadlines), list(machine.interests)) == ([], ["orders/1"])


def test_receivers_and_patterns_of_one_topic_share_it() -> None:
    """The topic stays as long as either wants it."""
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(AddPattern("^orders"), 0)
    machine.receive(AddPattern("s$"), 0)
    machine.receive(tells("orders", RECORD), 0)
    assert found(machine) == [("orders", RECORD)]
    machine.receive(RemoveReceiver("orders"), 0)
    assert list(machine.interests) == ["orders"]
    machine.receive(RemovePattern("^orders"), 0)
    assert list(machine.interests) == ["orders"]
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(RemovePattern("s$"), 0)
    assert list(machine.interests) == ["orders"]
    machine.receive(RemoveReceiver("orders"), 0)
    assert not machine


def test_quiet_topics_and_patterns_are_woken() -> None:
    """T26: a resolution request."""
    machine = Querier(DOCUMENTED.query, DOCUMENTED.patterns)
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(AddPattern("^t"), 0)
    play(machine, 200 * SECOND)
    machine.receive(AddReceiver("busy"), 200 * SECOND)
    machine.receive(AddPattern("^b"), 200 * SECOND)
    play(machine, 200 * SECOND + 10 * MS)
    machine.wake(200 * SECOND + 10 * MS, topics=False, patterns=False)
    assert asked(play(machine, 200 * SECOND + 19 * MS)) == []
    machine.wake(200 * SECOND + 20 * MS, topics=True, patterns=True)
    done = asked(play(machine, 200 * SECOND + 40 * MS))
    assert done == [(200_020, ["busy", "orders"]), (200_040, ["^t"])]


def test_pattern_queries_have_a_limit_of_their_own() -> None:
    machine = Querier(limits=ResolutionLimits(pattern_queries=RateLimit(records=10, bits=0)))
    for pattern in ("a", "b"):
        machine.receive(AddPattern(pattern), 0)
    assert asked(play(machine, 110 * MS)) == [(0, ["a"]), (100, ["b"])]


def test_unknown_topics_are_nobodys_business() -> None:
    machine = Querier()
    for event in (Resolved("x"), Unresolved("x"), RemoveReceiver("x"), SourceLost("x", 1, 1)):
        machine.receive(event, 0)
    machine.handle_timeout(0)
    assert (machine.take_effects(), machine.next_timeout()) == ([], None)


def test_sources_on_other_transports_are_counted() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    smx = lbmr.UnknownTransport(0x04, bytes(10))
    for topic in ("orders", "nobody's"):
        tir = lbmr.Advertisement(topic, smx, 60, 1)
        machine.receive(RecordsReceived(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (tir,), ())), 0)
    assert (found(machine), machine.unusable) == ([], 1)


def test_the_sources_remembered_are_bounded() -> None:
    machine = Querier(cache_options=UNCACHED)
    machine.receive(AddReceiver("orders"), 0)
    for index in range(MAX_REPORTED + 1):
        machine.receive(tells("orders", attrs.evolve(RECORD, index=index, origin=b"")), 0)
    assert len(machine.interests["orders"].known) == MAX_REPORTED
    machine.take_effects()
    machine.receive(tells("orders", attrs.evolve(RECORD, index=0, origin=b"")), 0)
    assert len(found(machine)) == 1


def test_misuse_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(AddPattern("^orders"), 0)
    machine.take_effects()
    monkeypatch.setattr(module, "MAX_TOPICS", 1)
    monkeypatch.setattr(module, "MAX_PATTERNS", 1)
    for wrong, text in (
        (AddReceiver("trades"), "at most 1 topics"),
        (AddReceiver("a\0b"), "topic name"),
        (AddPattern("^trades"), "at most 1 patterns"),
        (AddPattern("("), "is malformed"),
    ):
        with pytest.raises(MisuseError, match=text):
            machine.receive(wrong, 0)
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(AddPattern("^orders"), 0)
    machine.receive(tells("orders/1", RECORD), 0)
    assert list(machine.interests) == ["orders"]


def test_a_pattern_gets_the_topic_that_a_receiver_leaves() -> None:
    """Its sources are reported again. Without a source the topic is forgotten."""
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(AddReceiver("orders/2"), 0)
    machine.receive(AddPattern("^orders"), 0)
    machine.receive(tells("orders", RECORD), 0)
    machine.take_effects()
    machine.receive(RemoveReceiver("orders"), SECOND)
    machine.receive(RemoveReceiver("orders/2"), SECOND)
    assert found(machine) == [("orders", RECORD)]
    assert list(machine.interests) == ["orders"]


def test_each_pattern_has_its_own_linger() -> None:
    machine = Querier()
    for pattern, linger in (("^a", 3 * SECOND), ("^b", 2 * SECOND)):
        machine.receive(AddPattern(pattern, options=PatternOptions(report_after=1, linger=linger)), 0)
    for topic in ("a", "b"):
        machine.receive(Unresolved(topic), 0)
    done = play(machine, 10 * SECOND)
    assert [(at, e) for at, e in done if isinstance(e, Abandoned)] == [(2000, Abandoned("b")), (3000, Abandoned("a"))]


@pytest.mark.rows("T-307", "T-308")
def test_nothing_is_asked_while_enough_sources_are_known() -> None:
    """Neither the end of one source of three nor a request of another context wakes a satisfied topic."""
    machine = Querier(QueryOptions(enough=2, until_resolved=False))
    machine.receive(AddReceiver("orders"), 0)
    third = named(attrs.evolve(RECORD, index=3, origin=b""))
    machine.receive(tells("orders", RECORD, SECOND_RECORD, third), 0)
    machine.receive(Resolved("orders"), 0)
    machine.receive(SourceLost("orders", third.session_id, third.index), SECOND)
    machine.wake(SECOND, topics=True, patterns=False)
    assert asked(play(machine, 20 * SECOND)) == []
    machine.receive(SourceLost("orders", RECORD.session_id, RECORD.index), 20 * SECOND)
    assert len(asked(play(machine, 22 * SECOND))) > 1
