"""Payloads of every kind of type, and bytes that are none."""

from dataclasses import dataclass
from typing import Any

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.client import PayloadError
from stablecast.typed import PayloadCodec, PayloadFormat


@dataclass
class Order:
    item: str
    count: int = 1


@attrs.define
class Attrs:
    item: str
    count: int = 1


class Struct(msgspec.Struct):
    item: str
    count: int = 1


class Model(pydantic.BaseModel):
    item: str
    count: int = 1


@pytest.mark.parametrize("made", [Order, Attrs, Struct, Model])
@pytest.mark.parametrize("payload", PayloadFormat)
def test_objects_come_back(made: Any, payload: PayloadFormat) -> None:
    codec: PayloadCodec[Any] = PayloadCodec(made, payload)
    octets = codec.encode(made(item="apples", count=3))
    assert codec.decode(octets, made.__name__) == made(item="apples", count=3)
    if payload is PayloadFormat.JSON:
        assert msgspec.json.decode(octets) == {"item": "apples", "count": 3}


def test_plain_types_are_types() -> None:
    assert PayloadCodec(int).decode(PayloadCodec(int).encode(3), "int") == 3
    codec: PayloadCodec[Any] = PayloadCodec(dict[str, int])
    assert codec.decode(codec.encode({"a": 1})) == {"a": 1}


@pytest.mark.parametrize("made", [Order, Attrs, Struct, Model])
@pytest.mark.parametrize("payload", PayloadFormat)
@pytest.mark.parametrize("octets", [b"", b"{", b"[]", b'{"item": 3}', b"\xff\xfe", b'{"count": 1}'])
def test_other_bytes_are_refused(made: Any, payload: PayloadFormat, octets: bytes) -> None:
    with pytest.raises(PayloadError, match=f"it is no {made.__name__}"):
        PayloadCodec(made, payload).decode(octets)


@given(st.binary(max_size=64), st.sampled_from([Order, Model]), st.sampled_from(PayloadFormat))
def test_any_bytes_are_decoded_or_refused(octets: bytes, made: Any, payload: PayloadFormat) -> None:
    try:
        found = PayloadCodec(made, payload).decode(octets)
    except PayloadError:
        return
    assert isinstance(found, made)


def test_another_schema_is_refused() -> None:
    with pytest.raises(PayloadError, match="it has the schema 'Price', and 'Order' is read here"):
        PayloadCodec(Order).decode(PayloadCodec(Order).encode(Order("apples")), "Price")


def test_a_type_that_cannot_be_converted_is_refused_at_once() -> None:
    with pytest.raises(TypeError):
        PayloadCodec(list[Order] | dict[str, int] | dict[int, str])  # type: ignore[arg-type]


def test_a_part_that_cannot_be_converted_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        PayloadCodec(Order).encode(Order(item=object()))  # type: ignore[arg-type]
