"""RSocket frames: round trips, in any pieces, and refusal of malformed frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import rsocket
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.rsocket import Frame, FrameDecoder, FrameFlag, FrameKind, RsocketSetup

NUMBERED = {
    FrameKind.KEEPALIVE: 64,
    FrameKind.REQUEST_STREAM: 32,
    FrameKind.REQUEST_CHANNEL: 32,
    FrameKind.REQUEST_N: 32,
    FrameKind.ERROR: 32,
}


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    kind = draw(st.sampled_from([kind for kind in FrameKind if kind is not FrameKind.SETUP]))
    flags = draw(st.integers(0, 0x3FF)) & ~FrameFlag.METADATA
    number = draw(st.integers(0, (1 << NUMBERED.get(kind, 0)) - 1))
    stream = draw(st.integers(0, (1 << 32) - 1))
    return Frame(kind, stream, flags, number, draw(st.none() | st.binary(max_size=20)), draw(st.binary(max_size=40)))


@given(st.lists(frames(), max_size=5), st.data())
def test_a_stream_of_frames_in_any_pieces(sent: list[Frame], data: st.DataObject) -> None:
    octets = b"".join(map(rsocket.encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(octets)), max_size=4)))
    decoder, found = FrameDecoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(octets)], strict=True):
        found += decoder.feed(octets[start:end])
    assert found == sent


@given(st.binary(max_size=60))
def test_nonsense_is_refused_or_means_the_same_when_written_again(octets: bytes) -> None:
    try:
        frame = rsocket.decode(octets)
    except WireError:
        return
    assert rsocket.encode(frame)[3:] == octets


@pytest.mark.parametrize("resume", [False, True])
def test_setup(resume: bool) -> None:
    """U7: the keepalive interval of a client, and its allowed silence."""
    setup = RsocketSetup(5000, 15_000, "a/b", "c/d")
    frame = rsocket.setup_frame(setup)
    if resume:
        payload = frame.payload[:12] + b"\0\3tok" + frame.payload[12:]
        frame = Frame(FrameKind.SETUP, 0, FrameFlag.RESUME, payload=payload)
    (decoded,) = FrameDecoder().feed(rsocket.encode(frame))
    assert rsocket.parse_setup(decoded) == setup


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\0\0\0\0\0",
        b"\0\0\0\0\x3c\0",  # kind 15
        b"\0\0\0\0\x0c\0\0",  # a KEEPALIVE without its position
        b"\0\0\0\1\x29\0\0\0",  # metadata without its length
        b"\0\0\0\1\x29\0\0\0\5abc",  # shorter than it says
    ],
)
def test_malformed_frames_are_refused(octets: bytes) -> None:
    with pytest.raises(WireError):
        rsocket.decode(octets)


@pytest.mark.parametrize("payload", [b"", bytes(11), bytes(12), bytes(12) + b"\5abc", bytes(13) + b"\5"])
def test_malformed_setups_are_refused(payload: bytes) -> None:
    with pytest.raises(WireError):
        rsocket.parse_setup(Frame(FrameKind.SETUP, payload=payload))


def test_values_that_do_not_fit_are_refused() -> None:
    for frame in (
        Frame(FrameKind.PAYLOAD, 1 << 32),
        Frame(FrameKind.ERROR, number=-1),
        Frame(FrameKind.PAYLOAD, payload=bytes(rsocket.MAX_FRAME)),
    ):
        with pytest.raises(WireError):
            rsocket.encode(frame)
    for setup in (RsocketSetup(-1, 0), RsocketSetup(0, 0, "x" * 256)):
        with pytest.raises(WireError):
            rsocket.setup_frame(setup)


def test_a_giant_frame_is_refused_before_it_has_come() -> None:
    with pytest.raises(WireError, match="exceeds"):
        FrameDecoder().feed(b"\xff\xff\xff")
