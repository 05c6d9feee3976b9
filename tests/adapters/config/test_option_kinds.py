"""Each kind of option reads what it shows, and refuses other values in one sentence."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.config.option_kinds import (
    LEVELS,
    AckModeKind,
    ChoiceKind,
    ConfirmationsKind,
    FlagKind,
    ListKind,
    NumberKind,
    OptionError,
    OptionKind,
    Value,
    numbers,
    read_flag,
    words,
)
from stablecast.core.protocol.messages import UNSET
from stablecast.core.protocol.settings import AckMode, Notification, SourceConfig
from tests.support.option_values import type_of, unit_of, value_of

SOURCE = SourceConfig("topic", 0, "", "")
COLOURS = words(red_hot=1, crimson=1, blue=2)


@given(st.integers(-10, 10), st.integers(0, 100), st.sampled_from([1, 1000]), st.integers(-200, 200))
def test_a_number_is_one_within_its_range(low: int, width: int, factor: int, number: int) -> None:
    kind = NumberKind(low, low + width, "ms", factor)
    assert kind.allowed == f"{low}..{low + width}"
    if low <= number <= low + width:
        assert kind.merge("x", None, number) == kind.merge("x", None, str(number)) == number * factor
        assert value_of(kind, number * factor) == ("unset" if number * factor == UNSET else str(number))
    else:
        with pytest.raises(OptionError, match=re.escape(f"option x must lie between {low} and {low + width}, not")):
            kind.merge("x", None, number)


@pytest.mark.rows("P-241")
def test_a_number_may_be_hexadecimal() -> None:
    """Session ids are often written so."""
    assert NumberKind(0, 1 << 64).merge("x", None, "0xFF") == 255


@pytest.mark.parametrize("value", ["", "ten", "1.5", 1.5])
def test_anything_else_is_no_number(value: Any) -> None:
    with pytest.raises(OptionError, match=re.escape(f"option x wants a whole number, not '{value}'")):
        NumberKind(0, 9).merge("x", None, value)


@pytest.mark.parametrize(("value", "meaning"), [("red-hot", 1), ("CRIMSON", 1), ("blue", 2)])
def test_a_word_is_taken_in_any_case(value: str, meaning: int) -> None:
    assert COLOURS.merge("x", None, value) == meaning


def test_the_first_word_of_a_meaning_is_shown() -> None:
    assert [value_of(COLOURS, 1), value_of(COLOURS, 2)] == ["red-hot", "blue"]
    with pytest.raises(OptionError, match="option x must be one of red-hot, crimson, blue, not 'green'"):
        COLOURS.merge("x", None, "green")


def test_choices_by_number_take_flags_as_well() -> None:
    kind = numbers(["none", "some"])
    assert kind == ChoiceKind((("0", "none"), ("1", "some")))
    assert [kind.merge("x", None, value) for value in (0, "1", True, False)] == ["none", "some", "some", "none"]


@pytest.mark.parametrize(("value", "flag"), [(0, False), ("1", True), (True, True), ("False", False)])
def test_a_flag_is_0_or_1(value: Value, flag: bool) -> None:
    assert read_flag("x", value) is flag
    assert FlagKind().merge("x", None, value) is flag
    assert value_of(FlagKind(), flag) == str(int(flag))


@pytest.mark.parametrize("value", [2, "yes", ""])
def test_anything_else_is_no_flag(value: Value) -> None:
    with pytest.raises(OptionError, match=re.escape(f"option x must be 0 or 1, not '{value}'")):
        FlagKind().merge("x", None, value)


@pytest.mark.rows("P-345")
@given(st.sampled_from(AckMode), st.sampled_from([AckMode.BATCHED, AckMode.EXPLICIT]), st.booleans())
def test_a_way_to_acknowledge_ends_the_other(before: AckMode, mode: AckMode, on: bool) -> None:
    after = AckModeKind(mode).merge("x", before, on)
    if on:
        assert after is mode
    else:
        assert after is (AckMode.IMMEDIATE if before is mode else before)
    assert value_of(AckModeKind(mode), before) == str(int(before is mode))


@pytest.mark.parametrize("level", range(4))
def test_confirmations_are_shown_as_they_were_set(level: int) -> None:
    after = ConfirmationsKind().merge("x", SOURCE, level)
    assert isinstance(after, SourceConfig)
    assert after.confirmations == (level > 0)
    assert after.confirmed_notification is LEVELS.merge("x", None, level)
    assert value_of(ConfirmationsKind(), after) == str(level)


def test_without_confirmations_there_are_no_events_of_them() -> None:
    assert SOURCE.confirmed_notification is Notification.FRAGMENTS
    assert value_of(ConfirmationsKind(), SOURCE) == "0"


def test_a_list_takes_entries_apart_by_blanks_and_commas() -> None:
    kind = ListKind(lambda found, text: (*found, text), "anything")
    assert kind.merge("x", (), " a, b\tc,d ") == ("a", "b", "c", "d")


def test_every_kind_says_what_it_is() -> None:
    kinds: list[OptionKind] = [NumberKind(0, 1), COLOURS, FlagKind(), AckModeKind(AckMode.BATCHED), ConfirmationsKind()]
    kinds.append(ListKind(lambda found, _: found, "anything"))
    assert [type_of(kind) for kind in kinds] == ["number", "choice", "flag", "flag", "choice", "list"]
    assert all(kind.allowed for kind in kinds)
    assert not any(unit_of(kind) for kind in kinds)
