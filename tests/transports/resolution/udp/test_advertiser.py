"""The source side: the times of advertisements, and the answers to queries."""

import attrs
import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp import inputs
from stablecast.transports.resolution.udp.advertiser import MAX_PATTERNS_REMEMBERED, MOST_AT_ONCE, Advertiser
from stablecast.transports.resolution.udp.effects import Transmit
from stablecast.transports.resolution.udp.inputs import AddSource, RecordsReceived, RemoveSource
from stablecast.transports.resolution.udp.settings import ADVERTISING, AdvertiseOptions, RateLimit, ResolutionLimits
from stablecast.transports.wire import lbmr
from tests.transports.resolution.virtual import ADVERTISEMENTS, MS, play

INSTANCE = b"instance"
ENDING = AdvertiseOptions(attrs.evolve(ADVERTISING, sustaining=60 * SECOND))


def source(
    topic: str = "orders", index: int = 1, session_id: int = 7, options: AdvertiseOptions | None = None
) -> AddSource:
    return AddSource(topic, "127.0.0.1:14371", session_id, index, "127.0.0.1:14391", persistent=True, options=options)


def asks(*topics: str) -> RecordsReceived:
    return RecordsReceived(lbmr.Packet(lbmr.PacketKind.NORMAL, tuple(map(lbmr.TopicQuery, topics)), (), ()))


def asks_for(*patterns: str, kind: int = lbmr.PatternLanguage.PCRE) -> RecordsReceived:
    queries = tuple(lbmr.WildcardQuery(kind, pattern) for pattern in patterns)
    return RecordsReceived(lbmr.Packet(lbmr.PacketKind.WILDCARD, queries, (), ()))


def told(effects: list[Transmit]) -> list[list[tuple[str, int]]]:
    """Return (topic, index) of the advertisements in each datagram."""
    return [[(tir.name, tir.index) for tir in effect.advertisements] for effect in effects]


@pytest.mark.rows("T-025", "T-109")
def test_the_whole_life_of_a_source() -> None:
    """At creation with the first TTL, then by the schedule, as long as it lives."""
    machine = Advertiser(INSTANCE)
    machine.receive(source(), 0)
    (created,) = machine.take_effects()
    assert [tir.ttl for tir in created.advertisements] == [16]
    done = play(machine, 9 * SECOND)
    assert [instant for instant, _ in done] == [*ADVERTISEMENTS, 6200, 7200, 8200]
    assert {tir.ttl for _, effect in done for tir in effect.advertisements} == {60}
    machine.receive(RemoveSource(7, 1), 9 * SECOND)
    assert machine.take_effects() == []
    assert machine.next_timeout() is None
    assert not machine


@pytest.mark.rows("T-026")
def test_a_query_is_answered_at_once_and_moves_no_timer() -> None:
    """The answer is the same record. T25 as observed: no timer moves in the initial phase."""
    machine = Advertiser(INSTANCE)
    for add in (source("orders", 1), source("orders", 2), source("trades", 3)):
        machine.receive(add, 0)
    unsolicited = play(machine, 2 * SECOND)[-1][1].advertisements
    due = machine.next_timeout()
    machine.receive(asks("orders", "nobody's", "orders", "trades"), 2 * SECOND + MS)
    answers = machine.take_effects()
    assert told(answers) == [[("orders", 1), ("orders", 2)], [("trades", 3)]]
    assert [tir for effect in answers for tir in effect.advertisements] == list(unsolicited)
    assert machine.next_timeout() == due


@pytest.mark.rows("T-029", "T-110", "T-116")
def test_a_query_wakes_a_quiet_source_for_a_whole_duration() -> None:
    machine = Advertiser(INSTANCE, ENDING)
    machine.receive(source(), 0)
    assert play(machine, 200 * SECOND)[-1][0] == 65_200
    machine.receive(asks("orders"), 300 * SECOND)
    assert told(machine.take_effects()) == [[("orders", 1)]]
    assert [at for at, _ in play(machine, 500 * SECOND)] == [*range(301_000, 360_001, 1000)]


@pytest.mark.rows("T-106")
def test_the_next_turn_may_be_the_answer() -> None:
    """T-106 with resolver_advertisement_send_immediate_response 0."""
    machine = Advertiser(INSTANCE)
    machine.receive(source(options=AdvertiseOptions(at_once=False)), 0)
    play(machine, SECOND)
    machine.receive(asks("orders"), SECOND + MS)
    assert machine.take_effects() == []
    assert machine.next_timeout() == 1010 * MS


@pytest.mark.rows("T-031")
def test_a_pattern_is_answered_with_all_topics_that_match() -> None:
    """T-031, in one datagram as observed."""
    machine = Advertiser(INSTANCE)
    for index, topic in enumerate(("orders/1", "orders/2", "trades")):
        machine.receive(source(topic, index), 0)
    machine.take_effects()
    for _ in range(2):
        machine.receive(asks_for("^orders"), MS)
        assert told(machine.take_effects()) == [[("orders/1", 0), ("orders/2", 1)]]
    machine.receive(source("orders/3", 3), MS)
    machine.take_effects()
    machine.receive(asks_for("3$", kind=lbmr.PatternLanguage.REGEX), MS)
    assert told(machine.take_effects()) == [[("orders/3", 3)]]
    assert [tir.index for tir in machine.advertised(lbmr.WildcardQuery(1, "^t"))] == [2]


def test_patterns_of_unbounded_cost_wait_for_the_limits() -> None:
    machine = Advertiser(INSTANCE, ENDING)
    machine.receive(source("orders/1", 1), 0)
    play(machine, 100 * SECOND)
    machine.receive(asks_for("(a+)+$"), 100 * SECOND)
    assert machine.take_effects() == []
    assert [at for at, _ in play(machine, 100 * SECOND)] == [100_000]
    assert machine.advertised(lbmr.WildcardQuery(1, "(a+)+$")) == ()


def test_an_answer_of_very_many_waits_for_the_limits() -> None:
    machine = Advertiser(INSTANCE, ENDING)
    for index in range(MOST_AT_ONCE + 1):
        machine.receive(source(f"orders/{index}", index), 0)
    play(machine, 200 * SECOND)
    machine.receive(asks_for("orders"), 300 * SECOND)
    assert machine.take_effects() == []
    taken = play(machine, 300 * SECOND)
    assert 0 < sum(len(effect.advertisements) for _, effect in taken) <= MOST_AT_ONCE


def test_few_patterns_of_others_are_remembered() -> None:
    machine = Advertiser(INSTANCE)
    machine.receive(source(), 0)
    for number in range(2 * MAX_PATTERNS_REMEMBERED):
        machine.receive(asks_for(f"orders{number}"), 0)
    assert len(machine.meant) == MAX_PATTERNS_REMEMBERED


def test_sources_of_one_tick_share_datagrams() -> None:
    machine = Advertiser(INSTANCE)
    for index in range(30):
        machine.receive(source(f"topic/{index}", index), index * MS // 10)
    assert len(machine.take_effects()) == 30
    ticks = play(machine, 15 * MS)
    assert [instant for instant, _ in ticks] == [0, 10, 10, 10]
    last = [entry for _, effect in ticks[1:] for entry in told([effect])[0]]
    assert sorted(index for _, index in last) == list(range(30))


@pytest.mark.rows("T-104")
def test_new_sources_share_the_limit_with_the_initial_phase() -> None:
    """The advertisement at creation waits, too."""
    machine = Advertiser(INSTANCE, limits=ResolutionLimits(initial_advertisements=RateLimit(records=20, bits=0)))
    for index in range(4):
        machine.receive(source(f"topic/{index}", index), 0)
    assert told(machine.take_effects()) == [[("topic/0", 0)], [("topic/1", 1)]]
    done = play(machine, 100 * MS)
    assert told([effect for _, effect in done]) == [[("topic/2", 2), ("topic/3", 3)]]
    assert {tir.ttl for _, effect in done for tir in effect.advertisements} == {16}


@pytest.mark.rows("T-117", "T-305")
def test_aspects_may_be_switched_off() -> None:
    """A source that only answers."""
    silent = AdvertiseOptions(attrs.evolve(ADVERTISING, shortest=0, sustain=0), at_creation=False)
    machine = Advertiser(INSTANCE, silent)
    machine.receive(source(), 0)
    assert (machine.take_effects(), machine.next_timeout()) == ([], None)
    machine.receive(asks("orders"), SECOND)
    assert told(machine.take_effects()) == [[("orders", 1)]]
    assert machine.next_timeout() is None


@pytest.mark.rows("T-003")
def test_options_of_a_topic() -> None:
    """Two topics, two intervals."""
    machine = Advertiser(INSTANCE)
    slow = AdvertiseOptions(attrs.evolve(ADVERTISING, shortest=0, sustain=10 * SECOND), at_creation=False)
    machine.receive(source("slow", 1, options=slow), 0)
    machine.receive(source("usual", 2), 0)
    done = play(machine, 30 * SECOND)
    counts = [sum(("slow", 1) in entries for entries in told([effect])) for _, effect in done]
    assert sum(counts) == 4


def test_a_final_advertisement() -> None:
    """Best effort, under the limit of the initial phase; with a time to live of 0."""
    ending = AdvertiseOptions(at_creation=False, at_end=True)
    machine = Advertiser(INSTANCE, ending, ResolutionLimits(initial_advertisements=RateLimit(records=10, bits=0)))
    for index in (1, 2):
        machine.receive(source(index=index), 0)
        machine.receive(RemoveSource(7, index), 0)
    (first,) = machine.take_effects()
    assert [(tir.index, tir.ttl) for tir in first.advertisements] == [(1, 0)]
    assert not machine
    ((at, second),) = play(machine, SECOND)
    assert (at, [tir.index for tir in second.advertisements]) == (100, [2])


def test_quiet_sources_are_woken() -> None:
    """T26: a resolution request."""
    machine = Advertiser(INSTANCE, ENDING)
    machine.receive(source(index=1), 0)
    play(machine, 100 * SECOND)
    machine.receive(source(index=2, options=AdvertiseOptions()), 100 * SECOND)
    play(machine, 110 * SECOND)
    machine.wake(110 * SECOND)
    assert told([effect for _, effect in play(machine, 110 * SECOND)]) == [[("orders", 1)]]


def test_spurious_calls_are_harmless() -> None:
    machine = Advertiser(INSTANCE)
    machine.handle_timeout(5)
    machine.receive(RemoveSource(1, 1), 5)
    machine.receive(asks("orders"), 5)
    assert machine.take_effects() == []
    assert machine.find(RemoveSource(1, 1)) is None


def test_one_of_two_sources_of_a_topic_leaves() -> None:
    machine = Advertiser(INSTANCE)
    machine.receive(source("orders", 1), 0)
    machine.receive(source("orders", 2), 0)
    found = machine.find(RemoveSource(7, 1))
    assert found is not None
    assert found.index == 1
    machine.receive(RemoveSource(7, 1), 0)
    machine.take_effects()
    machine.receive(asks("orders"), 0)
    assert told(machine.take_effects()) == [[("orders", 2)]]
    assert [tir.index for tir in machine.advertised(lbmr.TopicQuery("orders"))] == [2]
    machine.receive(RemoveSource(7, 2), 0)
    assert machine.advertised(lbmr.TopicQuery("orders")) == ()


def test_misuse_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Advertiser(INSTANCE)
    machine.receive(source(), 0)
    machine.take_effects()
    monkeypatch.setattr(inputs, "MAX_SOURCES", 1)
    for wrong, text in (
        (source(), "already"),
        (source(index=2), "at most 1 sources"),
        (source(index=1 << 32), "32-bit"),
        (source(session_id=-1), "32-bit"),
        (source(topic=""), "topic name"),
        (attrs.evolve(source(index=2), origin=bytes(31)), "32 bytes"),
        (attrs.evolve(source(index=2), cost=-1), "do not fit"),
        (attrs.evolve(source(index=2), hops=256), "do not fit"),
        (attrs.evolve(source(index=2), domain=1 << 32), "do not fit"),
    ):
        with pytest.raises(MisuseError, match=text):
            machine.receive(wrong, 0)
    assert len(machine.sources) == 1
    assert machine.take_effects() == []
