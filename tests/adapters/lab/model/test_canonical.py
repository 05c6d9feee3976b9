"""One text for each value, whoever computed it."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.lab.model.canonical import Fn, ModelError, Value, digest, parse, record, text

ATOMS = st.booleans() | st.integers(-9, 99) | st.sampled_from(["", "a", "b c", "REGISTERED"])
VALUES = st.recursive(
    ATOMS,
    lambda values: (
        st.lists(values, max_size=3).map(tuple)
        | st.frozensets(values, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "z"]), values, max_size=3).map(lambda d: record(**d))
        | st.dictionaries(st.integers(0, 5), values, max_size=3).map(Fn)
    ),
    max_leaves=8,
)


def printed(value: Value) -> str:
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case str():
            return f'"{value}"'
        case tuple():
            return f"<<{', '.join(map(printed, value))}>>"
        case frozenset():
            return "{" + ", ".join(map(printed, value)) + "}"
        case _:
            if all(isinstance(key, str) for key in value):
                return "[" + ",\n  ".join(f"{key} |-> {printed(of)}" for key, of in value.items()) + "]"
            return "(" + " @@ ".join(f"{printed(key)} :> {printed(of)}" for key, of in value.items()) + ")"


@given(VALUES)
def test_what_the_checker_prints_is_read_as_the_same_value(value: Value) -> None:
    assert text(parse(printed(value))) == text(value)


def test_order_of_writing_does_not_matter() -> None:
    assert text(parse("{3, 1, 2}")) == text(frozenset({1, 2, 3}))
    assert text(parse("[b |-> 1, a |-> TRUE]")) == text(record(a=True, b=1)) == '["fn",["a",true],["b",1]]'


def test_a_record_is_asked_for_its_fields() -> None:
    known = record(a=1, b="x")
    assert known["b"] == "x"
    with pytest.raises(KeyError):
        known["c"]


def test_true_is_not_one() -> None:
    assert text(True) != text(1)


@pytest.mark.parametrize(
    "source", ["", "?", "name", "<<1", "{1", "[a 1]", "[a |-> 1", "(1 |-> 2)", "1 2", "[a |-> ]", "{1, %}"]
)
def test_what_is_no_value_is_refused(source: str) -> None:
    with pytest.raises(ModelError):
        parse(source)


def test_a_digest_is_of_the_set_of_lines() -> None:
    expected = hashlib.sha256(b"a\nb\n").hexdigest()
    assert digest(["b", "a", "b"]) == digest(["a", "b"]) == expected
