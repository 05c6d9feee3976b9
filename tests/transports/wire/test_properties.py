"""Blocks of message properties, in both byte orders."""

import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import properties
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.properties import (
    BYTES_MARK,
    MAGIC,
    STRING,
    Properties,
    Value,
    block,
    decode,
    encode,
    values,
)
from tests.support.layouts import mutations


def sample(order: str) -> bytes:
    """An int and a text."""
    head = struct.pack(f"{order}IHBB", MAGIC, 2, 0x10, 0)
    fields = struct.pack(f"{order}8I", 40, 43, 7, 4, 47, 51, 8, STRING)
    return head + fields + b"px\0" + struct.pack(f"{order}i", -42) + b"sym\0" + b"ABC\0"


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_block_in_either_byte_order(order: str) -> None:
    decoded = decode(sample(order))
    assert decoded.order == order
    assert [(entry.key, entry.kind, entry.value) for entry in decoded.properties] == [
        ("px", 4, struct.pack(f"{order}i", -42)),
        ("sym", STRING, b"ABC"),
    ]
    assert encode(decoded) == sample(order)


@given(st.sampled_from(["<", ">"]).map(sample).flatmap(mutations) | st.binary(max_size=60))
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
        sample("<")[:7],  # no whole head
        sample("<")[:30],  # no whole field
        sample("<")[:-1],  # a text without its NUL
        sample("<")[:8] + struct.pack("<4I", 8, 8, 0, 9) + b"\0" * 20,  # no such type
        struct.pack("<IHBB4I", MAGIC, 1, 0x10, 0, 24, 25, 0, 5) + b"\0" * 4,  # a value that is not there
    ],
)
def test_malformed_blocks_are_refused(octets: bytes) -> None:
    with pytest.raises(WireError):
        decode(octets)


def changed(key_hash: int = 0, key_offset: int = 40) -> Properties:
    decoded = decode(sample(">"))
    entry = attrs.evolve(decoded.properties[0], hash=key_hash, key_offset=key_offset)
    return attrs.evolve(decoded, properties=(entry,))


@pytest.mark.parametrize(
    "wrong", [changed(key_hash=1 << 32), changed(key_offset=10_000), attrs.evolve(changed(), ver_type=256)]
)
def test_blocks_that_cannot_be_are_refused(wrong: properties.Properties) -> None:
    with pytest.raises(WireError):
        encode(wrong)


VALUES: st.SearchStrategy[Value] = (
    st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.binary()
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
)
KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(KEYS, VALUES))
def test_values_of_an_application_are_read_back(told: dict[str, Value]) -> None:
    found = values(block(told))
    assert found == told
    assert [type(value) for value in found.values()] == [type(value) for value in told.values()]


def test_a_text_of_another_sender_that_is_no_base64_stays_a_text() -> None:
    mark = BYTES_MARK.encode()
    text = block({"a": b""}).replace(mark, mark[:-1] + b"?")
    assert values(text) == {"a": f"{BYTES_MARK[:-1]}?"}
    assert values(block({"a": b"abc"}).replace(b"YWJj", b"Y!Jj")) == {"a": f"{BYTES_MARK}Y!Jj"}


def test_the_types_of_others_are_read() -> None:
    """In both byte orders; a stock sender has ints of many sizes."""
    for order in "<>":
        kinds = ((0, "", None), (2, "b", -1), (3, "h", -2), (4, "i", -3), (6, "f", 0.5))
        lead, fields, contents = 8 + 16 * len(kinds), b"", b""
        for kind, layout, value in kinds:
            at = lead + len(contents)
            fields += struct.pack(f"{order}4I", at, at + 2, 0, kind)
            contents += (layout or "n").encode() + b"\0" + (struct.pack(order + layout, value) if layout else b"")
        octets = struct.pack(f"{order}IHBB", MAGIC, len(kinds), 0x10, 0) + fields + contents
        assert values(octets) == {layout or "n": value for _, layout, value in kinds}


@pytest.mark.parametrize(
    ("told", "error", "text"),
    [
        ({"": 1}, ValueError, "needs a key"),
        ({"a\0b": 1}, ValueError, "not contain a NUL"),
        ({"a": "b\0"}, ValueError, "not contain a NUL"),
        ({"a": 1 << 63}, ValueError, "64 bits"),
        ({"a": bytearray(b"x")}, TypeError, "not bytearray"),
        ({"a": f"{BYTES_MARK}eA=="}, ValueError, "begins like bytes"),
        ({1: "x"}, TypeError, "the key of a property must be a str, not int: 1"),
        ({"a": None}, TypeError, "not NoneType"),
    ],
)
def test_values_without_bytes_are_refused(told: dict[str, Value], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        block(told)
