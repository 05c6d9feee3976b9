"""Templates say what the converter says, for every class and value; what they would not write, they do not read."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.effects import Effect, StartProxy
from stablecast.core.inputs import Data, Input, Sent
from stablecast.core.messages import ElectionToken, Role, StoreEntry
from stablecast.trace.converter import INPUTS, Json, decode_input, encode_effect, encode_input
from stablecast.trace.errors import SchemaError
from stablecast.trace.lines import effects_text, input_readers, input_text


def any_of(union: Any) -> st.SearchStrategy[Any]:
    return st.one_of([st.from_type(member) for member in get_args(union)])


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@settings(max_examples=400)
@given(any_of(Input))
def test_inputs_are_written_as_the_converter_writes_them(event: Input) -> None:
    assert input_text(event) == text_of(encode_input(event))


@settings(max_examples=400)
@given(st.lists(any_of(Effect), max_size=3))
def test_effects_are_written_as_the_converter_writes_them(effects: list[Effect]) -> None:
    assert effects_text(effects) == text_of([encode_effect(effect) for effect in effects])


@pytest.mark.parametrize("role", Role)
def test_inputs_are_read_as_the_converter_reads_them(role: Role) -> None:
    @settings(max_examples=200)
    @given(any_of(INPUTS[role]))
    def check(event: Input) -> None:
        value = json.loads(input_text(event))
        assert input_readers(INPUTS[role])[value["_"]](value) == event == decode_input(role, value)

    check()


def read(value: Json) -> Input:
    event: Input = input_readers(INPUTS[Role.STORE] | INPUTS[Role.SOURCE])[value["_"]](value)
    return event


def spoiled(event: Input) -> list[Json]:
    """The same with a field that is missing, is too many, is of another type, or stands elsewhere."""
    value = json.loads(input_text(event))
    last = [*value][-1]
    return [
        {key: one for key, one in value.items() if key != last},
        {**value, "more": 1},
        {**value, last: 1.0},
        {**value, last: None},
        dict(reversed(value.items())),
    ]


@pytest.mark.parametrize(
    "value",
    [
        *spoiled(Data(1, 2, 3, 4, 5, recovered=False, token=6)),
        *spoiled(Sent(1, 2, 3, ((1, 2),))),
        {"_": "Sent", "first": 1, "count": 1, "payload_bytes": 1, "large": [[1]]},
        {"_": "Sent", "first": True, "count": 1, "payload_bytes": 1, "large": []},
        {"_": "Arrived", "message": {}},
        {"_": "Arrived", "message": {"_": "Nobody"}},
    ],
)
def test_what_the_writer_would_not_write_is_not_read(value: Json) -> None:
    with pytest.raises((SchemaError, LookupError, TypeError, ValueError, AttributeError)):
        read(value)


def test_records_within_records() -> None:
    entry = StoreEntry(0, 1, "10.0.0.1:14567", 7, 8)
    proxy = StartProxy(1, "t", 2, ElectionToken(3, 4, 5), (entry,), (1, 2))
    assert effects_text([proxy]) == text_of([encode_effect(proxy)])
    assert effects_text([]) == "[]"
