"""The declaration machinery: what a layout accepts and refuses."""

from typing import ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import (
    U8,
    U16,
    U32,
    CodeSpace,
    Ipv4,
    Layout,
    Nuls,
    Octets8,
    OptionalU32,
    Pairs,
    Rest,
    Text,
    Words,
    dotted,
    octets_of,
    packed,
    text_of,
)


@attrs.frozen
class Endpoint:
    CODE: ClassVar[int] = 3
    address: Ipv4
    session: OptionalU32
    port: U16


@attrs.frozen
class Named:
    CODE: ClassVar[int] = 4
    instance: Octets8
    name: Text
    nuls: Nuls = 0


@attrs.frozen
class Listed:
    CODE: ClassVar[int] = 5
    flags: U8
    pairs: Pairs


@attrs.frozen
class Other:
    code: int
    body: bytes


REGISTRY: CodeSpace[Endpoint | Named | Listed | Other] = CodeSpace([Endpoint, Named, Listed, Other], Other, range(1, 9))


def test_fields_stand_in_the_order_of_the_class() -> None:
    assert Layout(Endpoint).pack(Endpoint("1.2.3.4", 5, 6)) == bytes([1, 2, 3, 4, 0, 0, 0, 5, 0, 6])


def test_an_optional_field_is_left_out() -> None:
    short = bytes([1, 2, 3, 4, 0, 6])
    assert Layout(Endpoint).pack(Endpoint("1.2.3.4", None, 6)) == short
    assert Layout(Endpoint).unpack(short) == Endpoint("1.2.3.4", None, 6)


@pytest.mark.parametrize("size", [0, 5, 7, 9, 11])
def test_only_the_declared_sizes_are_accepted(size: int) -> None:
    with pytest.raises(WireError, match="Endpoint of"):
        Layout(Endpoint).unpack(bytes(size))


def test_text_ends_before_its_nuls() -> None:
    octets = b"instance" + b"name\0\0"
    assert Layout(Named).unpack(octets) == Named(b"instance", "name", 2)
    assert Layout(Named).pack(Named(b"instance", "name", 2)) == octets


def test_pairs_fill_what_is_left() -> None:
    octets = bytes([9, 0, 0, 0, 1, 0, 0, 0, 2])
    assert Layout(Listed).unpack(octets) == Listed(9, ((1, 2),))
    assert Layout(Listed).pack(Listed(9, ((1, 2),))) == octets


@pytest.mark.parametrize(
    ("record", "octets"),
    [(Named, b"instance" + b"na\0me"), (Named, b"short"), (Listed, b"\0" + bytes(9)), (Listed, b"")],
)
def test_malformed_tails_are_refused(record: type[Named] | type[Listed], octets: bytes) -> None:
    with pytest.raises(WireError):
        Layout[Named | Listed](record).unpack(octets)


@pytest.mark.parametrize(
    "record",
    [
        Endpoint("1.2.3.4", 1 << 32, 6),
        Endpoint("1.2.3.4", 5, -1),
        Endpoint("1.2.3", 5, 6),
        Endpoint("1.2.3.256", 5, 6),
        Endpoint("1.2.3.04", 5, 6),
        Endpoint("1.2.3.4.5", 5, 6),
        Endpoint("localhost", 5, 6),
        Named(b"long instance", "name"),
        Named(b"instance", "na\0me"),
        Named(b"instance", "\ud800"),
        Named(b"instance", "name", -1),
        Named(b"instance", "name", 256),
        Listed(1, ((1 << 32, 0),)),
        Listed(256, ()),
        Other(0, b""),
        Other(4, b""),
        Other(9, b""),
    ],
    ids=repr,
)
def test_fields_that_do_not_fit_are_refused(record: Endpoint | Named | Listed | Other) -> None:
    with pytest.raises(WireError):
        REGISTRY.pack(record)


def test_a_registry_keeps_what_it_does_not_know() -> None:
    assert REGISTRY.unpack(7, b"body") == Other(7, b"body")
    assert REGISTRY.pack(Other(7, b"body")) == (7, b"body")


def test_a_registry_refuses_codes_that_cannot_be() -> None:
    with pytest.raises(WireError, match="no code 9"):
        REGISTRY.unpack(9, b"body")


@given(st.binary(max_size=40).filter(lambda octets: 0 not in octets))
def test_names_keep_every_byte(octets: bytes) -> None:
    assert octets_of(text_of(octets)) == octets


@given(st.binary(min_size=4, max_size=4))
def test_addresses_keep_every_byte(octets: bytes) -> None:
    assert packed(dotted(octets)) == octets


def test_u32_is_big_endian() -> None:
    @attrs.frozen
    class One:
        number: U32

    assert Layout(One).pack(One(1)) == b"\0\0\0\1"


@attrs.frozen
class Counted:
    CODE: ClassVar[int] = 6
    flags: U8
    numbers: Words


@given(st.builds(Counted, st.integers(0, 255), st.lists(st.integers(0, 0xFFFF_FFFF), max_size=5).map(tuple)))
def test_numbers_fill_the_rest(counted: Counted) -> None:
    layout = Layout(Counted)
    assert layout.unpack(layout.pack(counted)) == counted


def test_half_a_number_is_refused() -> None:
    with pytest.raises(WireError, match="no numbers of 4 bytes"):
        Layout(Counted).unpack(bytes(6))


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(WireError, match="does not fit 4 bytes"):
        Layout(Counted).pack(Counted(0, (1 << 32,)))


@attrs.frozen
class Open:
    CODE: ClassVar[int] = 7
    flags: U8
    rest: Rest


def test_any_bytes_fill_the_rest() -> None:
    layout = Layout(Open)
    assert layout.pack(layout.unpack(b"\1more")) == b"\1more"
