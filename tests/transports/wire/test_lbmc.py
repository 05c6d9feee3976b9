"""LBMC messages: encode and decode are inverse both ways, and nothing but WireError comes out of bad bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import headers as h
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE, PREFIX, Message, MessageKind, decode, encode
from tests.support.layouts import mutations
from tests.support.messages import MESSAGES

BROKEN = st.one_of(st.binary(max_size=64), MESSAGES.map(encode).flatmap(mutations))


@given(MESSAGES)
def test_decoding_undoes_encoding(message: Message) -> None:
    octets = encode(message)
    assert decode(octets) == (message, len(octets))
    assert decode(memoryview(octets)) == (message, len(octets))


@given(MESSAGES, st.binary(max_size=8), st.binary(max_size=8))
def test_a_message_is_decoded_where_it_stands(message: Message, before: bytes, behind: bytes) -> None:
    octets = encode(message)
    decoded, end = decode(before + octets + behind, len(before))
    assert (decoded, end) == (message, len(before) + len(octets))


@given(BROKEN)
def test_encoding_undoes_decoding(octets: bytes) -> None:
    try:
        message, end = decode(octets)
    except WireError:
        return
    assert encode(message) == octets[:end]


def test_a_plain_message_looks_like_the_observed_one() -> None:
    octets = encode(Message(MessageKind.DATA, 4711, 3, (), b"hello"))
    assert octets == bytes.fromhex("0000 0011 00001267 00000003") + b"hello"
    assert DATA_HEADER.unpack_from(octets) == (0, 0, 17, 4711, 3)


def test_each_header_names_the_one_behind_it() -> None:
    message = Message(MessageKind.CONTROL, headers=(h.TcpSid(sid=5), h.StoreId(flags=1)))
    assert encode(message) == bytes.fromhex("08 6b 0010  17 08 0000 00000005  ff 04 0001")


@pytest.mark.parametrize(
    "octets",
    [
        "08 ff 0004",  # an empty control message
        "01 ff 0004",  # an empty end of topic
        "00 00 0000",  # length 0
        "00 00 000b 00000000 000000",  # shorter than its header
        "10 00 000c 00000000 00000000",  # version 1
        "03 00 000c 00000000 00000000",  # no such kind
        "00 00 000d 00000000 00000000",  # longer than what is there
        "00 ff 000c 00000000 00000000",  # data does not end with 255
        "08 00 0008 00000000",  # a control message does not end with 0
        "08 6b 000c 00 08 0000 00000005",  # nor later
        "08 6b 000c ff 00 0000 00000005",  # header length 0
        "08 6b 000c ff 03 0000 00000005",  # header length 3
        "08 6b 000c ff 09 0000 00000005",  # header longer than the message
        "08 6b 000c ff 07 0000 00000005",  # header shorter than its layout
        "08 6b 000d ff 09 0000 00000005 00",  # header longer than its layout
        "08 6b 000d ff 08 0000 00000005 00",  # bytes behind the last header
        "08 6b 000c 17 08 0000 00000005",  # the next header is missing
        "00 00",
    ],
)
def test_malformed_messages_are_refused(octets: str) -> None:
    with pytest.raises(WireError):
        decode(bytes.fromhex(octets))


def test_unknown_headers_are_kept() -> None:
    octets = bytes.fromhex("08 c8 0010 17 08 8000 01020304 ff 04 0001")
    message, _ = decode(octets)
    assert message.headers == (h.UnknownHeader(200, bytes.fromhex("8000 01020304")), h.StoreId(flags=1))
    assert encode(message) == octets


@pytest.mark.parametrize(
    "message",
    [
        Message(MessageKind.CONTROL),
        Message(MessageKind.EOT),
        Message(MessageKind.CONTROL, 1, 0, (h.StoreId(flags=0),)),
        Message(MessageKind.CONTROL, 0, 1, (h.StoreId(flags=0),)),
        Message(MessageKind.CONTROL, 0, 0, (h.StoreId(flags=0),), b"payload"),
        Message(MessageKind.DATA, 1 << 32, 0),
        Message(MessageKind.DATA, 0, -1),
        Message(MessageKind.DATA, 0, 0, (), bytes(MAX_MESSAGE)),
        Message(MessageKind.CONTROL, 0, 0, (h.Otid(otid=bytes(32)),) * 2000),
    ],
    ids=range(9),
)
def test_messages_that_cannot_be_are_refused(message: Message) -> None:
    with pytest.raises(WireError):
        encode(message)


def test_the_longest_message_fits() -> None:
    message = Message(MessageKind.DATA, 1, 2, (), bytes(MAX_MESSAGE - DATA_HEADER.size))
    octets = encode(message)
    assert len(octets) == MAX_MESSAGE
    assert decode(octets)[0] == message


def test_the_longest_chain_is_decoded() -> None:
    count = (MAX_MESSAGE - PREFIX.size) // 4
    message = Message(MessageKind.CONTROL, headers=(h.StoreId(flags=7),) * count)
    assert decode(encode(message))[0] == message


def test_the_length_is_read_unsigned() -> None:
    octets = struct.pack(">BBHII", 0, 0, 0xFFFF, 1, 2)
    with pytest.raises(WireError, match="65535 bytes ends after 12"):
        decode(octets)
