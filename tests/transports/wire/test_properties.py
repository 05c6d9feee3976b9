"""Blocks of message properties, in both byte orders."""

import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import properties
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.properties import MAGIC, STRING, Properties, decode, encode
from tests.support.layouts import mutations


def block(order: str) -> bytes:
    """An int and a text."""
    head = struct.pack(f"{order}IHBB", MAGIC, 2, 0x10, 0)
    fields = struct.pack(f"{order}8I", 40, 43, 7, 4, 47, 51, 8, STRING)
    return head + fields + b"px\0" + struct.pack(f"{order}i", -42) + b"sym\0" + b"ABC\0"


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_block_in_either_byte_order(order: str) -> None:
    decoded = decode(block(order))
    assert decoded.order == order
    assert [(entry.key, entry.kind, entry.value) for entry in decoded.properties] == [
        ("px", 4, struct.pack(f"{order}i", -42)),
        ("sym", STRING, b"ABC"),
    ]
    assert encode(decoded) == block(order)


@given(st.sampled_from(["<", ">"]).map(block).flatmap(mutations) | st.binary(max_size=60))
def test_encoding_undoes_decoding(octets: bytes) -> None:
    try:
        decoded = decode(octets)
    except WireError:
        return
    assert encode(decoded) == octets


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\0" * 20,
        block("<")[:7],  # no whole head
        block("<")[:30],  # no whole field
        block("<")[:-1],  # a text without its NUL
        block("<")[:8] + struct.pack("<4I", 8, 8, 0, 9) + b"\0" * 20,  # no such type
        struct.pack("<IHBB4I", MAGIC, 1, 0x10, 0, 24, 25, 0, 5) + b"\0" * 4,  # a value that is not there
    ],
)
def test_malformed_blocks_are_refused(octets: bytes) -> None:
    with pytest.raises(WireError):
        decode(octets)


def changed(key_hash: int = 0, key_offset: int = 40) -> Properties:
    decoded = decode(block(">"))
    entry = attrs.evolve(decoded.properties[0], hash=key_hash, key_offset=key_offset)
    return attrs.evolve(decoded, properties=(entry,))


@pytest.mark.parametrize(
    "wrong", [changed(key_hash=1 << 32), changed(key_offset=10_000), attrs.evolve(changed(), ver_type=256)]
)
def test_blocks_that_cannot_be_are_refused(wrong: properties.Properties) -> None:
    with pytest.raises(WireError):
        encode(wrong)
