"""A source as a number."""

import pytest

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import Resend
from stablecast.core.protocol.events import QuorumLost, RegistrationComplete, Stable
from stablecast.core.protocol.inputs import Arrived, Gone, Sent, SourceInput, Start, Tick
from stablecast.core.protocol.messages import (
    LateJoinInfo,
    LateJoinRequest,
    Registered,
    RetransmitRequest,
    Role,
    StableAck,
)
from stablecast.lab.model.store_process import LONG_NS, SOURCE_ID, store_address
from stablecast.lab.prove.instance import ProofBounds, instance
from stablecast.lab.prove.sources import SourceStates, Told, reduced


def sources(*stores: int) -> SourceStates:
    options = [f"ume_store=10.0.0.{store}:14567:{store}" for store in stores]
    return SourceStates.create(reduced(instance([], options, "safe", ProofBounds()).source, 2))


def granted(index: int) -> Arrived:
    timeout = LONG_NS // MILLISECOND
    return Arrived(Registered(Role.SOURCE, index, 1, SOURCE_ID, 1, False, 0, 2**32 - 1, timeout, 0, 1))


def hear(known: SourceStates, state: int, *events: SourceInput) -> tuple[int, list[Told]]:
    told: list[Told] = []
    for event in events:
        heard = known.take(state, event)
        state = heard.state
        told += heard.told
    return state, told


def test_states_that_are_alike_are_one() -> None:
    known = sources(1, 2)
    new = known.new(1)
    begun, _ = hear(known, new, Start(), granted(0), granted(1))
    assert hear(known, new, Start(), granted(1), granted(0))[0] == begun
    assert known.new(1) == new
    assert [index for index, _ in known.views[hear(known, new, Start())[0]].waits] == [0, 1]
    assert known.views[begun].counting == (0, 1)


@pytest.mark.rows("P-217", "P-331", "P-336")
def test_what_the_application_is_told() -> None:
    known = sources(1, 2, 3)
    begun, told = hear(known, known.new(1), Start(), granted(0), granted(1), Tick())
    assert [type(event) for event in told] == [RegistrationComplete]
    sent, told = hear(known, begun, Sent(0, 1, 0), *(Arrived(StableAck(index, 1, 0, 0)) for index in (0, 1)))
    assert [type(event) for event in told] == [Stable]
    assert known.views[sent].settled
    lost, told = hear(known, sent, Gone(store_address(1)), Tick())
    assert [type(event) for event in told] == [QuorumLost]
    assert not known.views[lost].active


def test_a_store_that_asks_is_answered() -> None:
    known = sources(1)
    sent, _ = hear(known, known.new(1), Start(), granted(0), Sent(0, 1, 0))
    assert isinstance(known.take(sent, Arrived(LateJoinRequest(1, 0, store_address(0)))).answers[0], LateJoinInfo)
    request = RetransmitRequest(Role.STORE, 1, 0, 1, 0, 0, store_address(0))
    assert isinstance(known.take(sent, Arrived(request)).answers[0], Resend)


def test_a_store_that_is_listed_twice_is_nobody() -> None:
    known = sources(1, 2, 1)
    begun, _ = hear(known, known.new(1), Start(), granted(0), granted(1))
    assert known.views[begun].active
    assert known.generation(begun, 0) == 1
