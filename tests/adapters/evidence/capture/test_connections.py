"""Directions of connections: segments to messages, and the verdict on each frame once it is final."""

from stablecast.evidence.capture.connections import Direction
from stablecast.evidence.capture.ip import FrameVerdict, TcpSegment
from stablecast.evidence.capture.ports import TrafficKind
from stablecast.transports.wire import lbmc, rsocket
from stablecast.transports.wire.lbmc import Message, MessageKind

A, B = ("10.0.0.1", 1000), ("10.0.0.2", 2000)
ONE, TWO = (lbmc.encode(Message(MessageKind.DATA, 1, number, (), b"payload")) for number in (1, 2))
BAD = ONE[:1] + b"\x65" + ONE[2:]


def segment(sequence: int, payload: bytes, flags: int = 0x18, missing: int = 0) -> TcpSegment:
    return TcpSegment(A, B, sequence, flags, payload, missing)


def opened() -> Direction:
    direction = Direction(TrafficKind.LBTTCP, roundtrip=True)
    assert direction.read_segment(segment(99, b"", TcpSegment.SYN), 1).settled == {1: FrameVerdict.DECODED}
    return direction


def test_a_message_in_pieces_settles_its_frames() -> None:
    direction = opened()
    assert direction.read_segment(segment(100, ONE[:5]), 2).settled == {}
    progress = direction.read_segment(segment(105, ONE[5:] + TWO[:5]), 3)
    assert progress.settled == {2: FrameVerdict.DECODED}
    assert len(progress.decoded.layers) == 1
    progress = direction.read_segment(segment(100 + len(ONE) + 5, TWO[5:]), 4)
    assert progress.settled == {3: FrameVerdict.DECODED, 4: FrameVerdict.DECODED}
    assert direction.close().settled == {}


def test_a_frame_has_the_gravest_verdict_of_its_messages() -> None:
    direction = opened()
    assert direction.read_segment(segment(100, BAD + TWO[:5]), 2).settled == {}
    progress = direction.read_segment(segment(100 + len(BAD) + 5, TWO[5:]), 3)
    assert progress.settled == {2: FrameVerdict.MALFORMED, 3: FrameVerdict.DECODED}


def test_out_of_order_and_again() -> None:
    direction = opened()
    assert direction.read_segment(segment(100 + len(ONE), TWO), 2).settled == {}
    progress = direction.read_segment(segment(100, ONE), 3)
    assert (len(progress.decoded.layers), progress.settled) == (2, {2: FrameVerdict.DECODED, 3: FrameVerdict.DECODED})
    assert direction.read_segment(segment(100, ONE), 4).settled == {4: FrameVerdict.DECODED}


def test_bytes_behind_a_gap_are_read_at_the_end() -> None:
    direction = opened()
    direction.read_segment(segment(100, ONE), 2)
    direction.read_segment(segment(200, TWO), 3)
    progress = direction.close()
    assert (len(progress.decoded.layers), progress.settled) == (1, {3: FrameVerdict.DECODED})


def test_a_segment_that_was_cut_costs_its_message() -> None:
    direction = opened()
    direction.read_segment(segment(100, ONE[:5], missing=len(ONE) - 5), 2)
    progress = direction.read_segment(segment(100 + len(ONE), TWO), 3)
    assert progress.settled == {2: FrameVerdict.INCOMPLETE, 3: FrameVerdict.DECODED}


def test_a_segment_that_was_cut_to_nothing_is_no_message() -> None:
    direction = opened()
    progress = direction.read_segment(segment(100, b"", missing=9), 2)
    assert progress.settled == {2: FrameVerdict.INCOMPLETE}
    assert progress.decoded.problems[0].text == "9 bytes of the segment were not captured"


def test_a_segment_in_pieces_stands_for_all_its_frames() -> None:
    direction = opened()
    assert direction.read_segment(segment(100, ONE[:5]), 2, 3).settled == {}
    assert direction.read_segment(segment(105, ONE[5:]), 4).settled == dict.fromkeys((2, 3, 4), FrameVerdict.DECODED)


def test_an_empty_direction_ends_without_a_word() -> None:
    assert opened().close().settled == {}


def test_another_connection_between_the_same_endpoints() -> None:
    direction = opened()
    assert not direction.ends_with(segment(99, b"", TcpSegment.SYN))
    assert not direction.ends_with(segment(5, b""))
    assert direction.ends_with(segment(5, b"", TcpSegment.SYN))


def test_resolution_has_frames() -> None:
    direction = Direction(TrafficKind.SRS, roundtrip=True)
    octets = rsocket.encode(rsocket.Frame(rsocket.FrameKind.KEEPALIVE))
    assert [layer.type for layer in direction.read_segment(segment(1, octets), 1).decoded.layers] == [
        "RSOCKET KEEPALIVE"
    ]
