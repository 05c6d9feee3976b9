"""Runs of messages with chained headers: their limits and their content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.codec import chained_messages
from stablecast.transports.codec.chained_messages import ChainedPiece, payload_at, pieces
from stablecast.transports.codec.fragments import encode_pieces
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.wire import headers as h
from stablecast.transports.wire.lbmc import DATA_HEADER, Message, MessageKind, decode, encode
from tests.support.layouts import mutations

ROOM = 500


def data(number: int, payload: bytes = b"p", *headers: h.Header, topic: int = 7) -> bytes:
    return encode(Message(MessageKind.DATA, topic, number, headers, payload))


def told(properties: int) -> h.ApplicationChain:
    return h.ApplicationChain(first=6, chain=b"\xff\x08\0\0" + properties.to_bytes(4))


def fragment(first: int = 0) -> h.Fragment:
    return h.Fragment(first_sqn=first, offset=0, len=9)


@pytest.mark.rows("P-129")
def test_pieces_of_a_large_message_are_one_run() -> None:
    """The bytes stay where they are."""
    payload = bytes(range(256)) * 8
    stream = b"".join(encode_pieces(7, 40, payload, ROOM))
    (run,) = StreamDecoder().feed(stream)
    assert isinstance(run, Run)
    assert (run.topic_index, run.first, run.count, run.payload_bytes) == (7, 40, 5, len(payload))
    assert run.chained
    found = pieces(run.block, 0, run.count)
    assert b"".join(piece.payload for piece in found) == payload
    assert [piece.fragment and piece.fragment.offset for piece in found] == [0, 472, 944, 1416, 1888]
    assert pieces(run.block, 2, 2) == found[2:4]


def test_plain_and_chained_messages_are_in_runs_of_their_own() -> None:
    stream = data(1) + data(2, b"q", told(1)) + data(3, b"r", fragment(3)) + data(4)
    found = StreamDecoder().feed(stream)
    assert [(item.first, item.count, item.chained) for item in found if isinstance(item, Run)] == [
        (1, 1, False),
        (2, 2, True),
        (4, 1, False),
    ]
    assert pieces(found[1].block, 0, 2) == [ChainedPiece(b"q", None, 1), ChainedPiece(b"r", fragment(3), 0)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "following",
    [
        data(3, b"p", told(0)),  # a gap
        data(2, b"p", told(0), topic=8),
        data(2),  # a plain one
        data(2, b"p", h.Batch()),  # another header
        data(2, b"p", fragment(), h.Batch()),
        encode(Message(MessageKind.RETRANSMISSION, 7, 2, (told(0),), b"p")),
    ],
)
def test_other_messages_end_a_run(following: bytes) -> None:
    one = data(1, b"p", told(0))
    assert chained_messages.run(one + following, 0) == (1, 1, len(one))
    assert len(StreamDecoder().feed(one + following)) == 2


def test_numbers_wrap_inside_a_run() -> None:
    stream = data(0xFFFF_FFFF, b"p", told(0)) + data(0, b"p", told(0))
    assert chained_messages.run(stream, 0) == (2, 2, len(stream))
    assert chained_messages.run(stream[:-1], 0)[0] == 1
    assert chained_messages.run(stream[:5], 0)[0] == 0


@pytest.mark.parametrize(
    "chain",
    [
        b"\0\x03\0\0",  # shorter than a header
        b"\0\xff\0\0",  # longer than the message
        b"\0\x04",
        b"\0\x04\0\0",  # FRAG has 16 bytes
    ],
)
def test_a_chain_that_cannot_be_is_in_no_run(chain: bytes) -> None:
    octets = DATA_HEADER.pack(0, 1, 12 + len(chain), 7, 1) + chain
    assert payload_at(octets, 0, len(octets)) is None


def test_elements_that_make_no_sense_are_the_applications() -> None:
    """A receiver cannot judge the application's elements; the payload is delivered unchanged."""
    stream = data(1, b"p", h.ApplicationChain(first=6, chain=b"\xff\x09\0\0abcde"))
    assert pieces(stream, 0, 1) == [ChainedPiece(b"p", None, 0)]


@given(
    st.sampled_from([data(1, b"pp", told(1), fragment(1)), data(1, b"", fragment(1)), data(1, b"x" * 30)])
    .flatmap(mutations)
    .filter(lambda octets: len(octets) >= DATA_HEADER.size)
)
def test_a_run_holds_what_the_codec_decodes(octets: bytes) -> None:
    count, payload_bytes, end = chained_messages.run(octets, 0)
    if count:
        messages, at = [], 0
        while at < end:
            message, at = decode(octets, at)
            messages.append(message)
        found = pieces(octets, 0, count)
        assert [piece.payload for piece in found] == [message.payload for message in messages]
        assert sum(len(piece.payload) for piece in found) == payload_bytes
