"""Lists of sequence numbers and the byte of a refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.reliable_packets import decode_sqns, encode_sqns, join_reason, split_reason

WORDS = st.lists(st.integers(0, 0xFFFF_FFFF), max_size=9).map(tuple)


@given(WORDS, st.binary(max_size=9))
def test_decoding_undoes_encoding(sqns: tuple[int, ...], behind: bytes) -> None:
    octets = encode_sqns(sqns)
    assert decode_sqns(octets + behind, 0, len(sqns)) == (sqns, len(octets))


def test_a_list_shorter_than_its_count_is_refused() -> None:
    with pytest.raises(WireError, match="2 sequence numbers are announced, 1 are there"):
        decode_sqns(bytes(11), 4, 2)


def test_a_number_of_more_than_32_bits_is_refused() -> None:
    with pytest.raises(WireError):
        encode_sqns((1 << 32,))


def test_reason_and_format_share_a_byte() -> None:
    assert [join_reason(*split_reason(octet)) for octet in range(256)] == list(range(256))


@pytest.mark.parametrize(("reason", "form"), [(16, 0), (-1, 0), (0, 16), (0, -1)])
def test_a_reason_that_does_not_fit_is_refused(reason: int, form: int) -> None:
    with pytest.raises(WireError):
        join_reason(reason, form)
