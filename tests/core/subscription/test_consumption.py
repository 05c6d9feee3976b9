"""The messages that the application consumed in one run, as its sessions report them."""

import pytest

from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.subscription import consumption as module
from stablecast.core.subscription.consumption import Consumption


def test_a_session_that_knows_less_takes_nothing_away() -> None:
    """It was told when it began. An application consumed more of the earlier session's messages since."""
    machine = Consumption()
    machine.add({1: [(0, 7)]})
    told = machine.history()
    machine.add({1: [(0, 14)]})
    machine.add(told | {2: [(0, 3)]})
    assert machine.history() == {1: [(0, 14)], 2: [(0, 3)]}


def test_reports_of_parts_are_united() -> None:
    """In arrival order what is consumed has gaps."""
    machine = Consumption()
    machine.add({1: [(0, 2), (8, 9)]})
    machine.add({1: [(2, 4), (6, 8)]})
    assert machine.history() == {1: [(0, 4), (6, 9)]}


def test_a_session_is_told_of_lives_of_its_source_only() -> None:
    machine = Consumption()
    machine.add({1: [(0, 2)], 2: [(0, 3)]})
    assert machine.history({2, 3}) == {2: [(0, 3)]}


def test_a_returned_history_does_not_change() -> None:
    machine = Consumption()
    machine.add({1: [(0, 2)]})
    told = machine.history()
    machine.add({1: [(2, 4)]})
    assert told == {1: [(0, 2)]}


def test_lives_that_were_reported_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LIVES", 2)
    machine = Consumption()
    machine.add({1: [(0, 1)], 2: [(0, 2)]})
    machine.add({1: [(1, 2)]})
    machine.add({3: [(0, 3)]})
    assert machine.history() == {1: [(0, 2)], 3: [(0, 3)]}


def config(topic: str = "orders", session_id: int = 1, ack_mode: AckMode = AckMode.BATCHED) -> ReceiverConfig:
    return ReceiverConfig(topic, 0, "me:1", session_id=session_id, ack_mode=ack_mode)


def test_a_receiver_is_known_by_its_topic_and_session_id() -> None:
    memories = module.Memories()
    one = memories.of(config())
    assert memories.of(config()) is one
    assert memories.of(config("trades")) is not one
    assert memories.of(config(session_id=2)) is not one
    memories.forget(config())
    assert memories.of(config()) is not one


def test_the_receiver_that_was_closed_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEMORIES", 2)
    memories = module.Memories()
    first, second = memories.of(config("a")), memories.of(config("b"))
    memories.keep(config("a"), first)
    third = memories.of(config("c"))
    memories.keep(config("b"), second)
    assert list(memories.known.values()) == [first, third]


def test_only_a_receiver_with_a_session_id_returns() -> None:
    """One that acknowledges explicitly gets what it did not acknowledge again."""
    assert module.returns(config())
    assert not module.returns(config(session_id=0))
    assert not module.returns(config(ack_mode=AckMode.EXPLICIT))
