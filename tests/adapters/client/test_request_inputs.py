"""Who speaks for a receiver at a source: the connection that did first, until it ends."""

from collections import Counter
from typing import Any, cast
from unittest.mock import Mock

import pytest

from stablecast.client import request_inputs
from stablecast.client.range_inquiry import RangeRoutes
from stablecast.client.receiver import Receiver
from stablecast.client.request_inputs import RequestInputs
from stablecast.client.source import Source
from stablecast.core.protocol.inputs import Arrived, Departed
from stablecast.core.protocol.messages import ConsumptionAck, Message, ReceiverAlive
from stablecast.runtime.origins import Origin, Origins
from stablecast.runtime.request_port import Peer
from stablecast.runtime.routing import Routing
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import StreamDecoder
from tests.adapters.runtime.peers import data

LIFE = 7
CONFIRMED = ConsumptionAck(LIFE, 0, 5, 4, session_id=2)


class Told:
    """A source that keeps what it gets."""

    def __init__(self) -> None:
        self.told: list[Message | Departed] = []

    def receive(self, event: Any) -> None:
        self.told.append(event.message if isinstance(event, Arrived) else event)


def routing(origins: Origins) -> Routing:
    return Routing(lambda *_: None, lambda _: None, origins)


def peer(host: str) -> Peer:
    made = Peer(lambda *_: None, lambda _: None)
    made.origin = Origin(host)
    return made


def test_one_host_confirms_for_a_receiver_while_it_is_connected() -> None:
    source, oddities = Told(), Counter[str]()
    origins = Origins()
    origins.oddities = oddities
    inputs = RequestInputs({LIFE: cast("Source", source)}, {}, oddities, RangeRoutes(), routing(origins))
    first, other = peer("192.0.2.1"), peer("192.0.2.2")
    inputs._route(ReceiverAlive(LIFE, 5, 2, 77), first)
    inputs._route(CONFIRMED, other)
    assert source.told == [ReceiverAlive(LIFE, 5, 2, 77)]
    assert oddities == {"foreign-ConsumptionAck": 1}
    inputs._route(CONFIRMED, peer("192.0.2.1"))
    first.connection_lost(None)
    inputs._route(CONFIRMED, other)
    assert source.told[1:] == [CONFIRMED] * 2


def test_another_host_cannot_end_the_receivers_of_a_context() -> None:
    """The end of a connection ends all receivers of the contexts that spoke over it (P-338)."""
    source = Told()
    inputs = RequestInputs({LIFE: cast("Source", source)}, {}, Counter(), RangeRoutes(), routing(Origins()))
    own, other = peer("192.0.2.1"), peer("192.0.2.2")
    inputs._route(ReceiverAlive(LIFE, 5, 2, 77), own)
    inputs._route(ReceiverAlive(LIFE, 6, 3, 77), other)
    source.told.clear()
    for one in (other, own):
        inputs.on_left(one)
        assert source.told == ([Departed(77)] if one is own else [])


def test_one_read_may_bring_messages_that_a_peer_may_say_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that may answer about one topic is believed about no other."""
    receivers, origins = {8: Mock(topic="orders"), 9: Mock(topic="bills")}, Origins()
    origins.dial("192.0.2.1:14567")
    monkeypatch.setattr(origins, "may_say", lambda _origin, _found, topic: topic == "orders")
    inputs = RequestInputs({}, cast("dict[int, Receiver]", receivers), Counter(), RangeRoutes(), routing(origins))
    again = b"".join(codec.encode_again(life, life, data(3, index=life), 0, 1) for life in receivers)
    inputs.on_items(StreamDecoder(True).feed(again), peer("192.0.2.1"))
    assert [bool(receiver.on_recovered.mock_calls) for receiver in receivers.values()] == [True, False]


def test_as_many_speakers_are_remembered_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest ones: a peer could invent others without end."""
    monkeypatch.setattr(request_inputs, "MAX_VOICES", 2)
    source = Told()
    inputs = RequestInputs({LIFE: cast("Source", source)}, {}, Counter(), RangeRoutes(), routing(Origins()))
    own, other = peer("192.0.2.1"), peer("192.0.2.2")
    said = [ConsumptionAck(LIFE, 0, reg_id, 4) for reg_id in (5, 6, 7)]
    for message in said:
        inputs._route(message, own)
    assert len(inputs._voices) == 2
    source.told.clear()
    for message in reversed(said):
        inputs._route(message, other)
    assert source.told == said[:1]
