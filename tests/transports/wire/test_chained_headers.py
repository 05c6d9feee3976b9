"""Chained headers by themselves; LBMC and the reliable transports test them in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire.chained_headers import MAX_LENGTH, check_length, decode_chain, encode_chain
from stablecast.transports.wire.errors import WireError

LAST = 7
Pair = tuple[int, bytes]
PAIRS = st.lists(
    st.tuples(st.integers(0, 255).filter(lambda code: code != LAST), st.binary(min_size=2, max_size=253)), max_size=4
).map(tuple)


def pack(header: Pair) -> Pair:
    check_length(header, header[1])
    return header


def unpack(code: int, body: bytes) -> Pair:
    return code, body


@given(PAIRS, st.binary(max_size=9), st.binary(max_size=9))
def test_decoding_undoes_encoding(headers: tuple[Pair, ...], before: bytes, behind: bytes) -> None:
    first, octets = encode_chain(headers, LAST, pack)
    position = len(before)
    assert decode_chain(before + octets + behind, position, first, LAST, unpack) == (headers, position + len(octets))


@pytest.mark.parametrize("octets", ["", "07 04 00", "07 03 0000", "07 05 0000", "08 04 0000"])
def test_chains_that_do_not_end_are_refused(octets: str) -> None:
    with pytest.raises(WireError):
        decode_chain(bytes.fromhex(octets), 0, 1, LAST, unpack)


@pytest.mark.parametrize("size", [0, 1, MAX_LENGTH - 1])
def test_headers_of_a_length_that_cannot_be_are_refused(size: int) -> None:
    with pytest.raises(WireError):
        encode_chain(((1, bytes(size)),), LAST, pack)
