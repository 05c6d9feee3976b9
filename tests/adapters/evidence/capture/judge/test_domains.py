"""Unicast across domains in a capture: each message counts once, from its origin to its destination."""

from pathlib import Path

from stablecast.core.protocol import messages as core
from stablecast.evidence.capture import decoder
from stablecast.evidence.capture.statements import RepeatedRun, StatedMessage, StatementReader
from stablecast.transports import codec
from stablecast.transports.codec.routed import Endpoint, hopped, routed
from stablecast.transports.wire.headers import Stream
from tests.adapters.evidence.capture.judge.wire_session import Talk
from tests.support.retransmissions import encode_recovered

CLIENT, NEAR, FAR, STORE = "10.0.0.1:14391", "10.0.0.9:14392", "10.1.0.9:14392", "10.1.0.3:14567"


def wrapped(data: bytes, number: int) -> bytes:
    position = Stream(stream_id=1, sqn=number, ctxinst=b"INSTANCE")
    return routed(data, Endpoint.of(f"2:{STORE}"), Endpoint.of(f"1:{CLIENT}"), position)


def test_a_message_on_both_sides_of_a_router_is_said_once(tmp_path: Path) -> None:
    asked = core.RetransmitRequest(core.Role.RECEIVER, 7, 1, 1, 0, 5, f"1:{CLIENT}")
    ack = core.StableAck(0, 7, 0, 5, False)
    repair = encode_recovered(codec.Recovered(7, 7, 3, b"x"))
    sent = [wrapped(codec.encode(asked), 0), wrapped(codec.encode(ack), 1), wrapped(repair, 2)]
    talk = Talk()
    talk.say("10.0.0.1:40000", NEAR, *sent)
    talk.say("10.1.0.9:40001", STORE, *map(hopped, sent))
    talk.say("10.1.0.3:40002", FAR, codec.encode(ack))
    reader = StatementReader()
    packets = decoder.packets(talk.write(tmp_path / "talk.pcap"))
    said = [one for packet in packets for one in reader.statements_of(packet)]
    way = (("10.0.0.1", 14391), ("10.1.0.3", 14567))
    near = [(one.at.ends, one.message) for one in said if isinstance(one, StatedMessage)]
    plain = core.RetransmitRequest(core.Role.RECEIVER, 7, 1, 1, 0, 5, CLIENT)
    assert near == [(way, plain), (way, ack), ((("10.1.0.3", 40002), ("10.1.0.9", 14392)), ack)]
    assert [(one.at.ends, one.wire_number) for one in said if isinstance(one, RepeatedRun)] == [(way, 3)]
