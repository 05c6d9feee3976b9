"""A service's side of one connection."""

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.srs.session import MAX_PAYLOAD, ServiceSession
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameDecoder, FrameKind

INFO = srs.ReceiverDelete(name="orders", instance=b"instance")


def test_records_share_frames_and_keep_their_order() -> None:
    session = ServiceSession(1, "10.0.0.1:41000", 0)
    session.stream = 3
    for number in range(3):
        session.say(bytes((number,)) * (MAX_PAYLOAD // 2))
    session.answer(INFO)
    session.say(b"behind")
    frames = FrameDecoder().feed(session.take_bytes())
    assert [len(frame.payload) for frame in frames[:2]] == [MAX_PAYLOAD, MAX_PAYLOAD // 2]
    assert srs.decode(frames[2].payload) == [INFO]
    assert frames[3].payload == b"behind"
    assert {(frame.kind, frame.stream) for frame in frames} == {(FrameKind.PAYLOAD, 3)}
    assert session.take_bytes() == b""


@pytest.mark.rows("T-402")
def test_nothing_is_sent_before_the_stream_is_requested() -> None:
    """The full exchange will tell it."""
    session = ServiceSession(1, "10.0.0.1:41000", 0)
    session.say(b"record")
    session.answer(INFO)
    assert session.take_bytes() == b""
    session.send(Frame(FrameKind.KEEPALIVE))
    assert len(FrameDecoder().feed(session.take_bytes())) == 1


@pytest.mark.parametrize(("asked", "granted"), [(0, 1), (15_000, 15), (3_600_000, 600)])
def test_a_client_sets_its_allowed_silence_within_bounds(asked: int, granted: int) -> None:
    """U7."""
    session = ServiceSession(1, "10.0.0.1:41000", 0)
    session.on_setup(rsocket.setup_frame(rsocket.RsocketSetup(1, asked)))
    assert session.lifetime == granted * SECOND


def test_records_of_a_client_count_for_a_while() -> None:
    session = ServiceSession(1, "10.0.0.1:41000", 0)
    assert session.spend(100, 10, 0) == 100
    assert session.spend(1, 10, SECOND // 20) == 101
    assert session.spend(1, 10, SECOND) == 92
    assert session.spend(1, 10, 100 * SECOND) == 1
