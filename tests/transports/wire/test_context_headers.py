"""The chain of the application's elements inside a header; layouts are tested with the other headers."""

import pytest

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import ApplicationChain


def chain(first: int, octets: str) -> ApplicationChain:
    return ApplicationChain(first=first, chain=bytes.fromhex(octets))


def test_elements_name_the_one_behind_them() -> None:
    header = chain(1, "06 08 0000 00000009  ff 08 0000 00000030")
    assert header.elements() == ((1, b"\0\0\0\x09"), (6, b"\0\0\0\x30"))
    assert header.properties_length() == 0x30


def test_a_chain_may_be_empty_or_without_properties() -> None:
    assert chain(255, "").elements() == ()
    assert chain(1, "ff 05 0000 09").properties_length() == 0


@pytest.mark.parametrize(
    ("first", "octets"),
    [
        (1, ""),  # the first element is missing
        (1, "ff 00 0000"),  # an element of length 0
        (1, "ff 04 0000"),  # an element without data
        (1, "ff 09 0000 00000009"),  # longer than its chain
        (1, "02 05 0000 09"),  # the next element is missing
        (1, "ff 05 0000 09 00"),  # a byte behind the last element
    ],
)
def test_elements_that_do_not_fit_are_refused(first: int, octets: str) -> None:
    with pytest.raises(WireError):
        chain(first, octets).elements()


def test_the_length_of_properties_has_four_bytes() -> None:
    with pytest.raises(WireError, match="four bytes"):
        chain(6, "ff 05 0000 09").properties_length()
