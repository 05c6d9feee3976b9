"""A run of equal messages makes one layer with the same contents as its messages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol import messages as core
from stablecast.evidence.capture import layers, uniform_layers
from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.layers import Decoded
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.transports import codec
from stablecast.transports.codec import lbttcp
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.lbmc import Message, MessageKind
from tests.adapters.evidence.capture.judge.wire_session import LIFE, SESSION, TOPIC, World, settled
from tests.support.retransmissions import encode_recovered

PLAIN = lbttcp.build(TOPIC, 0xFFFF_FFF0, [b"x" * 20] * 40)
MIXED = lbttcp.build(TOPIC, 5, [b"x" * size for size in range(9)])
AGAIN = b"".join(encode_recovered(codec.Recovered(LIFE + 1, LIFE, number, b"again")) for number in range(7, 20))
ACK = codec.encode(core.StableAck(1, LIFE, 3, 9))
CONSUMED = codec.encode(core.ConsumptionAck(LIFE, 100, 200, 9))
GREETING = codec.greeting(SESSION)
FRAGMENT = lbmc.encode(Message(MessageKind.DATA, TOPIC, 3, (h.Fragment(first_sqn=3, offset=0, len=9),), b"piece"))
WRONG = lbmc.encode(Message(MessageKind.DATA, TOPIC, 3, (h.Fragment(first_sqn=3, offset=9, len=9),), b"piece"))
NONSENSE = b"\xff" * 7
ALL = (PLAIN, MIXED, AGAIN, ACK, CONSUMED, GREETING, FRAGMENT, WRONG)

Said = tuple[str, object]


def said(decoded: Decoded) -> Iterator[Said]:
    """Return the contents of layers, a message at a time."""
    for layer in decoded.layers:
        match layer.record:
            case lbttcp.Run(topic_index=topic, first=first, count=count):
                yield from (("data", (topic, (first + one) % (1 << 32))) for one in range(count))
            case lbttcp.RetransmissionSeries(payloads=payloads) as series:
                life = codec.decode_series(series).incarnation
                yield from (("again", (life, series.sequence + one)) for one in range(len(payloads)))
            case lbmc.Message(kind=MessageKind.RETRANSMISSION) as message:
                yield "again", (codec.decode_recovered(message).incarnation, message.sequence)
            case lbmc.Message(kind=MessageKind.DATA, headers=()) as message:
                yield "data", (message.topic_index, message.sequence)
            case lbmc.Message(headers=(h.Ack(), *_)):
                pass  # its meaning is the next layer
            case record:
                yield layer.type, record


@given(st.lists(st.sampled_from((*ALL, PLAIN[:100], AGAIN[:90], ACK[:9], NONSENSE)), max_size=6))
def test_a_datagram_says_the_same(parts: list[bytes]) -> None:
    octets = b"".join(parts)
    short, whole = uniform_layers.messages(octets, False), layers.messages(octets, False)
    assert [*said(short)] == [*said(whole)]
    assert short.problems == whole.problems


@given(st.lists(st.sampled_from(ALL), max_size=6), st.integers(1, 400))
def test_a_stream_says_the_same_however_it_is_cut(parts: list[bytes], size: int) -> None:
    octets, reader = b"".join(parts), uniform_layers.BriefReader(whole=True, roundtrip=False)
    items = [item for at in range(0, len(octets), size) for item in reader.feed(octets[at : at + size], at)]
    assert [one for item in items for one in said(item.decoded)] == list(said(layers.messages(octets, False)))
    assert reader.close() == []


def test_a_run_is_one_layer() -> None:
    (layer,) = uniform_layers.messages(PLAIN, False).layers
    assert (layer.type, layer.record) == ("LBMC DATA", lbttcp.Run(TOPIC, 0xFFFF_FFF0, 40, 800, b""))
    (layer,) = uniform_layers.messages(AGAIN, False).layers
    assert layer.type == "LBMC RETRANSMISSION"
    (layer,) = uniform_layers.messages(ACK, False).layers
    assert layer.record == core.StableAck(1, LIFE, 3, 9)


@pytest.mark.parametrize("octets", [b"", b"\0\0", PLAIN[:31], b"\0\0\0\x05" + bytes(20), WRONG, NONSENSE * 3])
def test_other_messages_are_read_one_by_one(octets: bytes) -> None:
    assert uniform_layers.start_of(octets, 0) is None


def test_a_capture_has_the_same_verdicts_in_brief(tmp_path: Path) -> None:
    path = settled(World()).talk.write(tmp_path / "a.pcap")
    plan = survey(path)
    short, whole = packets(path, plan, brief=True), packets(path, plan)
    assert [(one.number, one.verdict, one.settles) for one in short] == [
        (one.number, one.verdict, one.settles) for one in whole
    ]
