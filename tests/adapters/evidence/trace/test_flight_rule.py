"""F1: what is sent, what is not in flight any more, and sources that promise nothing."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol.effects import Notify, Release
from stablecast.core.protocol.events import NotStable, NotStableFlag, Reclaimed, Stable, StableFlag
from stablecast.core.protocol.inputs import Sent, Tick
from stablecast.core.protocol.settings import FlightBehavior
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.flight_rule import FlightKept
from tests.adapters.evidence.trace.rule_probe import ask
from tests.adapters.evidence.trace.test_endpoint_rules import source

TOO_MANY = "11 messages are in flight, the flight size is 10"


def small(**more: Any) -> SourceEndpoint:
    return source(flight_messages=10, **more)


def judged(*facts: Any, machine: SourceEndpoint | None = None) -> list[str]:
    """Return the verdict of the rule on these inputs and effects."""
    rule = FlightKept.begin(machine or small())
    told = [ask(rule, one) for one in facts]
    return [text for text in told if text is not None]


def sent(first: int, count: int, **more: Any) -> Sent:
    return Sent(first, count, count, **more)


@pytest.mark.rows("P-307")
def test_no_more_than_the_flight_size_is_in_flight() -> None:
    """A send beyond the flight size is named (P-307)."""
    assert judged(sent(0, 10), Tick()) == []
    assert judged(sent(0, 10), sent(10, 1)) == [TOO_MANY]


def test_messages_that_are_stable_or_given_up_are_not_in_flight() -> None:
    stable, one_store = (Notify(Stable(0, 4, 0, flag)) for flag in (StableFlag.STABLE, StableFlag.STORE))
    gone, lost = (Notify(NotStable(0, 4, 0, flag)) for flag in (NotStableFlag.TIMEOUT, NotStableFlag.LOSS))
    forced = Notify(Reclaimed(0, 4, forced=True))
    for settles in (stable, gone, forced):
        assert judged(sent(0, 10), settles, sent(10, 5)) == []
    for keeps in (one_store, lost, Release(3)):
        assert judged(sent(0, 10), keeps, sent(10, 1)) == [TOO_MANY]


@pytest.mark.rows("P-314")
@pytest.mark.parametrize("messages", [0, 10])
def test_no_more_bytes_than_the_flight_size_are_in_flight(messages: int) -> None:
    """Runs of which a part is settled count no more, because nobody knows the bytes of the other part."""
    machine, stable = source(flight_messages=messages, flight_bytes=8), Notify(Stable(0, 1, 0, StableFlag.STABLE))
    assert judged(sent(0, 4), sent(4, 4), machine=machine) == []
    assert judged(sent(0, 4), sent(4, 5), machine=machine) == ["9 bytes are in flight, the limit is 8"]
    assert judged(sent(0, 4), stable, sent(4, 5), machine=machine) == []


@pytest.mark.rows("P-313")
def test_a_message_that_was_cut_counts_once() -> None:
    """Until its last piece is stable, with gaps anywhere in it."""
    cut, holes = sent(0, 30, large=((0, 29),)), [Notify(Stable(at, at, 0, StableFlag.STABLE)) for at in range(29)]
    assert judged(cut, sent(30, 9)) == []
    assert judged(cut, sent(30, 10)) == [TOO_MANY]
    assert judged(cut, *holes[3:20:2], sent(30, 9), *holes, sent(39, 1)) == [TOO_MANY]
    last = Notify(Stable(29, 29, 0, StableFlag.STABLE))
    assert judged(cut, sent(30, 9), *holes, last, sent(39, 1)) == []


def test_it_may_begin_with_a_message_that_was_cut() -> None:
    machine = small()
    machine.window.large.add(0, 29)
    machine.window.sent(30, 30, [])
    assert judged(sent(30, 9), machine=machine) == []
    assert judged(sent(30, 10), machine=machine) == [TOO_MANY]


def test_it_may_begin_anywhere() -> None:
    machine = small()
    machine.window.sent(10, 10, [])
    assert judged(sent(10, 1), machine=machine) == [TOO_MANY]
    machine.window.stable.add(0, 5)
    assert judged(sent(10, 1), machine=machine) == []


def test_not_every_source_promises_it() -> None:
    assert FlightKept.judges(small())
    assert not FlightKept.judges(source(flight_messages=0, flight_bytes=0))
    assert not FlightKept.judges(small(flight_behavior=FlightBehavior.NOTIFY))
    assert not FlightKept.judges(SourceEndpoint.create(attrs.evolve(small().config, stores=())))
