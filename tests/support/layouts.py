"""Hypothesis strategies and fixed samples of wire records, derived from the declared layouts."""

from typing import Any, TypeVar

import attrs
from hypothesis import strategies as st

from stablecast.transports.wire import fields, lbmr
from stablecast.transports.wire import headers as h

RecordT = TypeVar("RecordT")

NAMES = st.binary(max_size=40).map(lambda octets: fields.text_of(octets.replace(b"\0", b".")))
ADDRESSES = st.binary(min_size=4, max_size=4).map(fields.dotted)
MAX_REST = 231
"""Bytes that fit into every header that ends with arbitrary bytes."""
WORDS = {"B": 8, "H": 16, "I": 32, "Q": 64}


def annotation(field: "attrs.Attribute[Any]") -> object:
    kind: object = field.type.__metadata__[0]  # type: ignore[union-attr]
    return kind


def values(kind: object) -> st.SearchStrategy[Any]:
    match kind:
        case fields.Fixed(form=form, optional=optional) if form in WORDS:
            numbers = st.integers(0, (1 << WORDS[form]) - 1)
            return st.none() | numbers if optional else numbers
        case fields.Fixed(form="i"):
            return st.integers(-(1 << 31), (1 << 31) - 1)
        case fields.Fixed(form="q"):
            return st.integers(-(1 << 63), (1 << 63) - 1)
        case fields.Fixed(form="4s"):
            return ADDRESSES
        case fields.Fixed(form=form):
            return st.binary(min_size=int(form[:-1]), max_size=int(form[:-1]))
        case fields.Tail() if kind is fields.TEXT:
            return NAMES
        case fields.Tail() if kind is fields.NULS:
            return st.integers(0, 3)
        case fields.Tail() if kind is fields.PAIRS:
            numbers = st.integers(0, (1 << 32) - 1)
            return st.lists(st.tuples(numbers, numbers), max_size=31).map(tuple)
        case fields.Tail() if kind is fields.WORDS:
            return st.lists(st.integers(0, (1 << 32) - 1), max_size=20).map(tuple)
        case fields.Tail() if kind is fields.REST:
            return st.binary(max_size=MAX_REST)
        case _:
            raise AssertionError(kind)


def records(record: type[RecordT]) -> st.SearchStrategy[RecordT]:
    declared: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)  # type: ignore[arg-type]
    return st.builds(record, **{field.name: values(annotation(field)) for field in declared})


def members(registry: fields.CodeSpace[Any], unknown: type[RecordT], highest: int) -> st.SearchStrategy[Any]:
    """Return the strategy for records of a code space, including unknown codes."""
    codes = st.integers(0, highest).filter(lambda code: code not in registry.classes and code in registry.codes)
    others = st.builds(unknown, codes, st.binary(min_size=2, max_size=30))
    return st.one_of(others, *map(records, registry.classes.values()))


HEADERS = members(h.HEADERS, h.UnknownHeader, 255)
TIR_OPTIONS = members(lbmr.TIR_OPTIONS, lbmr.UnknownOption, 255)
PACKET_OPTIONS = members(lbmr.PACKET_OPTIONS, lbmr.UnknownOption, 255)
TRANSPORTS = members(lbmr.TRANSPORTS, lbmr.UnknownTransport, 127)


def _sample_value(kind: object, number: int) -> Any:
    match kind:
        case fields.Fixed(form="4s"):
            return f"10.1.2.{number}"
        case fields.Fixed(form=form) if form.endswith("s"):
            return bytes(range(number, number + int(form[:-1])))
        case fields.Fixed():
            return number
        case fields.Tail() if kind is fields.TEXT:
            return f"name/{number}"
        case fields.Tail() if kind is fields.REST:
            return bytes(range(number, number + 20))
        case fields.Tail() if kind is fields.WORDS:
            return (number, number + 1)
        case _:
            return ((number, number + 1), (number + 2, number + 3))


def sample(record: type[RecordT]) -> RecordT:
    """Return a record whose fields all differ. Fields with a default keep it: they are flags and reserved fields."""
    declared: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)  # type: ignore[arg-type]
    given = {
        field.name: _sample_value(annotation(field), number)
        for number, field in enumerate(declared, 1)
        if field.default is attrs.NOTHING
    }
    return record(**given)


def mutations(octets: bytes) -> st.SearchStrategy[bytes]:
    """Return the strategy for the octets with some of them changed, inserted or cut off."""
    places = st.integers(0, max(len(octets) - 1, 0))
    changes = st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)
    cut = st.builds(lambda place: octets[:place], places)
    grown = st.builds(lambda place, more: octets[:place] + more + octets[place:], places, st.binary(max_size=4))
    return st.one_of(changes.map(lambda pairs: _changed(octets, pairs)), cut, grown)


def _changed(octets: bytes, changes: list[tuple[int, int]]) -> bytes:
    changed = bytearray(octets)
    for place, value in changes:
        changed[place : place + 1] = bytes((value,)) if octets else b""
    return bytes(changed)
