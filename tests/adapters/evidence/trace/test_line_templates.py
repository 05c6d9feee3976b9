"""Templates say what the converter says, for every class and value."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.protocol.effects import Effect, StartProxy
from stablecast.core.protocol.inputs import Input
from stablecast.core.protocol.messages import ElectionToken, StoreEntry
from stablecast.evidence.trace.converter import encode_effect, encode_input
from stablecast.evidence.trace.writer import effects_text, input_text


def any_of(union: Any) -> st.SearchStrategy[Any]:
    return st.one_of([st.from_type(member) for member in get_args(union)])


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@settings(max_examples=400)
@given(any_of(Input))
def test_inputs_are_written_as_the_converter_writes_them(event: Input) -> None:
    assert input_text(event) == text_of(encode_input(event))


@pytest.mark.no_cover
@settings(max_examples=400)
@given(st.lists(any_of(Effect), max_size=3))
def test_effects_are_written_as_the_converter_writes_them(effects: list[Effect]) -> None:
    assert effects_text(effects) == text_of([encode_effect(effect) for effect in effects])


def test_records_within_records() -> None:
    entry = StoreEntry(0, 1, "10.0.0.1:14567", 7, 8)
    proxy = StartProxy(1, "t", 2, ElectionToken(3, 4, 5), (entry,), (1, 2))
    assert effects_text([proxy]) == text_of([encode_effect(proxy)])
    assert effects_text([]) == "[]"
