"""The source side: when it advertises, what it answers."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.units import SECOND
from stablecast.transports.resolution import advertiser as module
from stablecast.transports.resolution.advertiser import Advertiser
from stablecast.transports.resolution.effects import Transmit
from stablecast.transports.resolution.inputs import AddSource, Heard, RemoveSource
from stablecast.transports.wire import lbmr
from tests.transports.resolution.virtual import ADVERTISEMENTS, MS, play

INSTANCE = b"instance"


def source(topic: str = "orders", index: int = 1, session_id: int = 7) -> AddSource:
    return AddSource(topic, "127.0.0.1:14371", session_id, index, "127.0.0.1:14391", persistent=True)


def asks(*topics: str) -> Heard:
    return Heard(lbmr.Packet(lbmr.PacketKind.NORMAL, tuple(map(lbmr.TopicQuery, topics)), (), ()))


def told(effects: list[Transmit]) -> list[list[tuple[str, int]]]:
    """(topic, index) of the advertisements in each datagram."""
    return [[(tir.name, tir.index) for tir in effect.advertisements] for effect in effects]


def test_the_whole_life_of_a_source() -> None:
    """At creation with the first TTL, then by the schedule, for as long as it lives."""
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


def test_a_query_is_answered_at_once_and_moves_no_timer() -> None:
    machine = Advertiser(INSTANCE)
    for add in (source("orders", 1), source("orders", 2), source("trades", 3)):
        machine.receive(add, 0)
    play(machine, 2 * SECOND)
    due = machine.next_timeout()
    machine.receive(asks("orders", "nobody's", "orders", "trades"), 2 * SECOND + MS)
    assert told(machine.take_effects()) == [[("orders", 1), ("orders", 2)], [("trades", 3)]]
    assert machine.next_timeout() == due


def test_pattern_queries_are_not_ours_to_answer_yet() -> None:
    machine = Advertiser(INSTANCE)
    machine.receive(source(), 0)
    machine.take_effects()
    machine.receive(Heard(lbmr.Packet(lbmr.PacketKind.WILDCARD, (lbmr.WildcardQuery(1, "orders"),), (), ())), 0)
    assert machine.take_effects() == []


def test_sources_of_one_tick_share_datagrams() -> None:
    machine = Advertiser(INSTANCE)
    for index in range(30):
        machine.receive(source(f"topic/{index}", index), index * MS // 10)
    assert len(machine.take_effects()) == 30
    ticks = play(machine, 15 * MS)
    assert [instant for instant, _ in ticks] == [0, 10, 10]
    last = [entry for _, effect in ticks[1:] for entry in told([effect])[0]]
    assert sorted(index for _, index in last) == list(range(30))


def test_spurious_calls_are_harmless() -> None:
    machine = Advertiser(INSTANCE)
    machine.handle_timeout(5)
    machine.receive(RemoveSource(1, 1), 5)
    machine.receive(asks("orders"), 5)
    assert machine.take_effects() == []


def test_one_of_two_sources_of_a_topic_leaves() -> None:
    machine = Advertiser(INSTANCE)
    machine.receive(source("orders", 1), 0)
    machine.receive(source("orders", 2), 0)
    machine.receive(RemoveSource(7, 1), 0)
    machine.take_effects()
    machine.receive(asks("orders"), 0)
    assert told(machine.take_effects()) == [[("orders", 2)]]
    assert [tir.index for tir in machine.advertised("orders")] == [2]
    machine.receive(RemoveSource(7, 2), 0)
    assert machine.advertised("orders") == ()


def test_misuse_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Advertiser(INSTANCE)
    machine.receive(source(), 0)
    machine.take_effects()
    monkeypatch.setattr(module, "MAX_SOURCES", 1)
    for wrong, text in (
        (source(), "already"),
        (source(index=2), "at most 1 sources"),
        (source(index=1 << 32), "32-bit"),
        (source(session_id=-1), "32-bit"),
        (source(topic=""), "topic name"),
    ):
        with pytest.raises(MisuseError, match=text):
            machine.receive(wrong, 0)
    assert len(machine.sources) == 1
    assert machine.take_effects() == []
