"""Readers of streams: cut anywhere, begun anywhere, with holes and with nonsense, they find every message they can."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.streams import (
    MAX_PIECES,
    MAX_STRAYS,
    MAX_STREAMS,
    CapturedStreamReader,
    FrameReader,
    Item,
    MessageReader,
)
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, rsocket, srs
from stablecast.transports.wire.lbmc import Message, MessageKind
from stablecast.transports.wire.rsocket import Frame, FrameKind

GREETING = lbmc.encode(Message(MessageKind.CONTROL, headers=(h.TcpSid(sid=5),)))
DATA = [lbmc.encode(Message(MessageKind.DATA, 1, number, (), b"message %d" % number)) for number in range(4)]
BROKEN = DATA[0][:1] + b"\x65" + DATA[0][2:]  # a header announced that does not fit
NONSENSE = b"\xff" * 20
STREAM = rsocket.encode(Frame(FrameKind.REQUEST_STREAM, 6, 0, 1, None, srs.encode(srs.StreamRequest())))


def records(items: list[Item]) -> list[Any]:
    return [layer.record for item in items for layer in item.decoded.layers]


def verdicts(items: list[Item]) -> list[tuple[FrameVerdict, tuple[int, ...]]]:
    return [(problem.verdict, item.frames) for item in items for problem in item.decoded.problems]


def fed(reader: CapturedStreamReader, *chunks: bytes) -> list[Item]:
    """Return everything that some chunks complete, in frames 1, 2 and so on, and at the end."""
    items = []
    for number, chunk in enumerate(chunks, 1):
        items += reader.feed(chunk, number)
    return items + reader.close()


def message_reader(whole: bool = True) -> MessageReader:
    return MessageReader(whole, roundtrip=True)


@given(st.lists(st.integers(0, len(b"".join(DATA))), max_size=6))
def test_messages_cut_anywhere(cuts: list[int]) -> None:
    octets = b"".join(DATA)
    places = [0, *sorted(cuts), len(octets)]
    chunks = [octets[start:end] for start, end in pairwise(places) if start < end]
    items = fed(message_reader(), *chunks)
    assert [record.sequence for record in records(items)] == [0, 1, 2, 3]
    assert verdicts(items) == []


def test_a_message_names_all_its_frames() -> None:
    (item,) = fed(message_reader(), DATA[0][:5], DATA[0][5:9], DATA[0][9:])
    assert item.frames == (1, 2, 3)


def test_the_frames_of_a_piece_are_awaited() -> None:
    reader = message_reader()
    reader.feed(DATA[0] + DATA[1][:5], 7)
    assert reader.frames == {7}
    reader.feed(DATA[1][5:], 8)
    assert reader.frames == set()


def test_a_malformed_message_does_not_hide_the_next() -> None:
    items = fed(message_reader(), DATA[0] + BROKEN + DATA[1])
    assert [record.sequence for record in records(items)] == [0, 1]
    assert verdicts(items) == [(FrameVerdict.MALFORMED, (1,))]


def test_behind_a_length_that_cannot_be_messages_are_found_again() -> None:
    items = fed(message_reader(), DATA[0] + NONSENSE, NONSENSE, DATA[1])
    assert [record.sequence for record in records(items)] == [0, 1]
    assert verdicts(items) == [(FrameVerdict.MALFORMED, (1,)), (FrameVerdict.INCOMPLETE, (2,))]


def test_a_capture_may_begin_inside_a_message() -> None:
    items = fed(message_reader(whole=False), b"essage 0", b"y" + DATA[1] + DATA[2], DATA[3])
    assert [record.sequence for record in records(items)] == [1, 2, 3]
    assert verdicts(items) == [(FrameVerdict.INCOMPLETE, (1,)), (FrameVerdict.INCOMPLETE, (2,))]


def test_a_capture_may_begin_with_a_message() -> None:
    items = fed(message_reader(whole=False), GREETING + DATA[0][:5], DATA[0][5:])
    assert len(records(items)) == 2
    assert verdicts(items) == []


def test_a_stream_without_any_message_is_malformed() -> None:
    assert verdicts(fed(message_reader(whole=False), NONSENSE, NONSENSE)) == [(FrameVerdict.MALFORMED, (1, 2))]


def test_a_first_header_that_is_not_listed_is_no_beginning() -> None:
    assert verdicts(fed(message_reader(whole=False), b"\x08\xc8\0\x08\xff\x04\0\0")) == [(FrameVerdict.MALFORMED, (1,))]


def test_nonsense_at_the_end_of_a_stream_that_had_messages_is_incomplete() -> None:
    reader = message_reader()
    reader.feed(DATA[0] + NONSENSE, 1)
    reader.feed(NONSENSE, 2)
    assert verdicts(reader.close()) == [(FrameVerdict.INCOMPLETE, (2,))]


def test_a_message_that_does_not_end_is_incomplete() -> None:
    assert verdicts(fed(message_reader(), DATA[0], DATA[1][:9])) == [(FrameVerdict.INCOMPLETE, (2,))]


def test_lost_bytes_cost_the_message_around_them() -> None:
    reader = message_reader()
    items = reader.feed(DATA[0] + DATA[1][:5], 1)
    items += reader.lose(100)
    items += reader.lose(100)
    items += reader.feed(DATA[2], 2)
    assert [record.sequence for record in records(items)] == [0, 2]
    assert verdicts(items) == [(FrameVerdict.INCOMPLETE, (1,))]


def test_strays_are_bounded() -> None:
    reader = message_reader(whole=False)
    items = [item for number in range(MAX_STRAYS + 2) for item in reader.feed(NONSENSE, number)]
    assert verdicts(items) == [(FrameVerdict.INCOMPLETE, tuple(range(MAX_STRAYS + 1)))]
    assert verdicts(reader.close()) == [(FrameVerdict.INCOMPLETE, (MAX_STRAYS + 1,))]


@pytest.mark.parametrize("reader", [MessageReader(True, False), MessageReader(False, False), FrameReader(True, False)])
def test_an_encrypted_stream_is_told_from_nonsense(reader: CapturedStreamReader) -> None:
    items = reader.feed(b"\x16\x03\x01\0\x10hello", 1) + reader.feed(b"\x17\x03\x03\0\5data!", 2) + reader.lose(5)
    assert verdicts(items + reader.feed(DATA[0], 3)) == [(FrameVerdict.UNKNOWN, (number,)) for number in (1, 2, 3)]
    assert reader.close() == []


def test_an_empty_end_is_no_item() -> None:
    assert fed(message_reader(whole=False)) == []


# RSocket frames.


def frame_reader(whole: bool = True) -> FrameReader:
    return FrameReader(whole, roundtrip=True)


@given(st.lists(st.integers(0, 3 * len(STREAM)), max_size=6))
def test_frames_cut_anywhere(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), 3 * len(STREAM)]
    chunks = [(STREAM * 3)[start:end] for start, end in pairwise(places) if start < end]
    items = fed(frame_reader(), *chunks)
    assert [type(record) for record in records(items)] == [Frame, srs.StreamRequest] * 3
    assert verdicts(items) == []


def test_a_payload_in_pieces_is_one() -> None:
    message = srs.encode(srs.RegistrationResponse(client_id=5))
    frames = [
        Frame(FrameKind.PAYLOAD, 2, 0x80, payload=message[:3]),
        Frame(FrameKind.PAYLOAD, 4, 0x20, payload=message),
        Frame(FrameKind.PAYLOAD, 2, 0xA0, payload=message[3:5]),
        Frame(FrameKind.PAYLOAD, 2, 0x20, payload=message[5:]),
    ]
    items = fed(frame_reader(), b"".join(map(rsocket.encode, frames)))
    assert verdicts(items) == []
    assert [type(record) for record in records(items)] == [
        Frame,
        Frame,
        srs.RegistrationResponse,
        Frame,
        Frame,
        srs.RegistrationResponse,
    ]


def test_pieces_are_bounded() -> None:
    reader = frame_reader()
    for stream in range(1, MAX_STREAMS + 1):
        octets = rsocket.encode(Frame(FrameKind.PAYLOAD, stream, 0x80, payload=b"x"))
        assert verdicts(reader.feed(octets, stream)) == []
    octets = rsocket.encode(Frame(FrameKind.PAYLOAD, 999, 0x80, payload=b"x"))
    assert verdicts(reader.feed(octets, 1)) == [(FrameVerdict.MALFORMED, (1,))]


def test_a_payload_in_pieces_is_bounded() -> None:
    reader = frame_reader()
    octets = rsocket.encode(Frame(FrameKind.PAYLOAD, 2, 0x80, payload=bytes(MAX_PIECES // 2 + 1)))
    assert verdicts(reader.feed(octets, 1)) == []
    assert verdicts(reader.feed(octets, 2)) == [(FrameVerdict.MALFORMED, (2,))]


def test_a_frame_that_is_none_is_malformed() -> None:
    items = fed(frame_reader(), b"\0\0\6\0\0\0\0\x3c\0" + STREAM)
    assert verdicts(items) == [(FrameVerdict.MALFORMED, (1,))]
    assert len(records(items)) == 2


@pytest.mark.parametrize(
    "octets",
    [
        b"\x7f\0\0" + bytes(9),  # a giant
        b"\0\0\5" + bytes(9),  # shorter than a frame
        b"\0\0\6\xff\0\0\0\x28\0",  # a stream of more than 31 bits
        b"\0\0\6\0\0\0\1\x3c\0",  # no such kind
        b"\0\0\6\0\0\0\0\x28\0",  # a payload without a stream
        b"\x10\0\1",  # more than a frame may have
    ],
)
def test_frames_that_cannot_be_are_no_beginning(octets: bytes) -> None:
    assert verdicts(fed(frame_reader(whole=False), octets)) == [(FrameVerdict.MALFORMED, (1,))]


def test_half_a_frame_may_be_a_beginning() -> None:
    items = fed(frame_reader(whole=False), STREAM[:2], STREAM[2:8], STREAM[8:])
    assert len(records(items)) == 2


def test_a_capture_may_begin_inside_a_frame() -> None:
    items = fed(frame_reader(whole=False), STREAM[5:], STREAM[7:] + STREAM + STREAM)
    assert len(records(items)) == 4
    assert verdicts(items) == [(FrameVerdict.INCOMPLETE, (1,)), (FrameVerdict.INCOMPLETE, (2,))]
