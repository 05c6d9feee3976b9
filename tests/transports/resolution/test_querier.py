"""The receiver side: when it asks, what it reports."""

import attrs
import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.units import SECOND
from stablecast.transports.resolution import querier as module
from stablecast.transports.resolution.effects import Discovered, QuerierEffect, Transmit
from stablecast.transports.resolution.inputs import AddReceiver, Heard, RemoveReceiver, Resolved, Unresolved
from stablecast.transports.resolution.querier import MAX_REPORTED, Querier
from stablecast.transports.resolution.records import SourceRecord, advertisement
from stablecast.transports.wire import lbmr
from tests.transports.resolution.virtual import MS, QUERIES, play

RECORD = SourceRecord("10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True, instance=b"instance")


def tells(topic: str, *records: SourceRecord) -> Heard:
    tirs = tuple(advertisement(topic, record, 60) for record in records)
    return Heard(lbmr.Packet(lbmr.PacketKind.NORMAL, (), tirs, ()))


def asked(done: list[tuple[int, QuerierEffect]]) -> list[tuple[int, list[str]]]:
    """Instants and topics of the queries."""
    return [(at, [query.name for query in e.queries]) for at, e in done if isinstance(e, Transmit)]


def found(machine: Querier) -> list[tuple[str, SourceRecord]]:
    return [(e.topic, e.record) for e in machine.take_effects() if isinstance(e, Discovered)]


def test_an_unresolved_topic_is_asked_for_without_end() -> None:
    """T-107, T-112, T26."""
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    done = asked(play(machine, 100 * SECOND))
    assert [at for at, _ in done] == [*QUERIES, *range(6100, 100_001, 1000)]
    assert {tuple(topics) for _, topics in done} == {("orders",)}
    machine.receive(RemoveReceiver("orders"), 100 * SECOND)
    assert machine.next_timeout() is None
    assert not machine


def test_a_resolved_topic_is_asked_for_in_the_initial_phase_only() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(Resolved("orders"), 0)
    assert [at for at, _ in asked(play(machine, 100 * SECOND))] == list(QUERIES)


def test_a_topic_resolved_late_is_not_asked_for_again_until_it_is_lost() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    play(machine, 7 * SECOND)
    machine.receive(Resolved("orders"), 7 * SECOND)
    assert machine.next_timeout() is None
    machine.receive(Unresolved("orders"), 20 * SECOND + MS)
    assert [at for at, _ in asked(play(machine, 23 * SECOND))] == [20_020, 21_100, 22_100]


def test_a_loss_in_the_initial_phase_moves_no_timer() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(Resolved("orders"), 0)
    machine.receive(Unresolved("orders"), 0)
    assert [at for at, _ in asked(play(machine, 7 * SECOND))] == [*QUERIES, 6100]


def test_topics_lost_together_are_asked_for_together() -> None:
    machine = Querier()
    for topic in "ab":
        machine.receive(AddReceiver(topic), 0)
        machine.receive(Resolved(topic), 0)
    play(machine, 10 * SECOND)
    for topic in "ab":
        machine.receive(Unresolved(topic), 10 * SECOND)
    assert asked(play(machine, 10 * SECOND)) == [(10_000, ["a", "b"])]


def test_each_source_is_reported_once_and_again_after_the_loss() -> None:
    machine = Querier()
    other = attrs.evolve(RECORD, session_id=8)
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(tells("orders", RECORD, other), 0)
    machine.receive(tells("orders", RECORD), 0)
    machine.receive(tells("trades", RECORD), 0)
    assert found(machine) == [("orders", RECORD), ("orders", other)]
    machine.receive(Unresolved("orders"), 0)
    machine.receive(tells("orders", RECORD), 0)
    assert found(machine) == [("orders", RECORD)]
    machine.receive(AddReceiver("orders"), 0)
    machine.receive(tells("orders", RECORD), 0)
    assert found(machine) == [("orders", RECORD)]


def test_what_was_reported_is_remembered_within_a_bound() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    for index in range(MAX_REPORTED + 1):
        machine.receive(tells("orders", attrs.evolve(RECORD, index=index)), 0)
    assert len(found(machine)) == MAX_REPORTED + 1
    assert len(machine.interests["orders"].reported) == MAX_REPORTED
    machine.receive(tells("orders", attrs.evolve(RECORD, index=MAX_REPORTED), attrs.evolve(RECORD, index=0)), 0)
    assert [record.index for _, record in found(machine)] == [0]


def test_sources_on_other_transports_are_counted() -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    tir = attrs.evolve(advertisement("orders", RECORD, 60), transport=lbmr.UnknownTransport(0x40, bytes(10)))
    machine.receive(Heard(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (tir,), ())), 0)
    assert found(machine) == []
    assert machine.unusable == 1


def test_what_concerns_no_receiver_is_ignored() -> None:
    machine = Querier()
    for event in (Resolved("orders"), Unresolved("orders"), RemoveReceiver("orders"), tells("orders", RECORD)):
        machine.receive(event, 0)
    machine.handle_timeout(0)
    assert machine.take_effects() == []
    assert machine.next_timeout() is None


def test_misuse_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Querier()
    machine.receive(AddReceiver("orders"), 0)
    monkeypatch.setattr(module, "MAX_TOPICS", 1)
    with pytest.raises(MisuseError, match="at most 1 topics"):
        machine.receive(AddReceiver("trades"), 0)
    with pytest.raises(MisuseError, match="topic name"):
        machine.receive(AddReceiver("a\0b"), 0)
    assert list(machine.interests) == ["orders"]
