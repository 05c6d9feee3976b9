"""The option table: every documented name sets its field, anything else is one sentence."""

import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.config.options import SCOPES, Option, OptionError, Value, apply
from stablecast.core.settings import AckMode, ReceiverConfig, SourceConfig, StoreConfig
from stablecast.core.units import MILLISECOND

CONFIGS: dict[str, Any] = {
    "source": SourceConfig("topic", 0, "", ""),
    "receiver": ReceiverConfig("topic", 0, ""),
    "store": StoreConfig("", 0),
}
TABLE = [(scope, option) for scope, options in SCOPES.items() for option in options]
EACH = pytest.mark.parametrize(("scope", "option"), TABLE, ids=[f"{s}-{o.name}" for s, o in TABLE])
NAMES = {scope: [option.name for option in options] for scope, options in SCOPES.items()}


def value_of(config: Any, option: Option) -> Any:
    for part in option.field.split("."):
        config = getattr(config, part)
    return config


def flat(config: Any, prefix: str = "") -> dict[str, object]:
    """Every field of a configuration by its dotted name."""
    found: dict[str, object] = {}
    for field in attrs.fields(type(config)):
        value = getattr(config, field.name)
        if attrs.has(type(value)):
            found |= flat(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = value
    return found


def acceptable(option: Option) -> list[Value]:
    """Values of any kind that this option takes."""
    candidates: list[Value] = [0, 1, 2, 7, 1234, "lowest", "majority", "highest", "block", "notify", "quorum", "all"]
    taken: list[Value] = []
    for candidate in candidates:
        try:
            option.read(option.name, candidate)
        except OptionError:
            continue
        taken.append(candidate)
    return taken


@EACH
def test_an_option_changes_its_field_and_no_other(scope: str, option: Option) -> None:
    default = CONFIGS[scope]
    values = {value: value_of(apply(scope, default, {option.name: value}), option) for value in acceptable(option)}
    assert any(value != value_of(default, option) for value in values.values())
    for value in values:
        changed = flat(apply(scope, default, {option.name: value}))
        differing = {name for name, content in flat(default).items() if changed[name] != content}
        assert differing <= {option.field}


@EACH
def test_milliseconds_become_nanoseconds(scope: str, option: Option) -> None:
    if option.unit == "ms":
        config = apply(scope, CONFIGS[scope], {option.name: "1234"})
        assert value_of(config, option) == 1234 * MILLISECOND


@EACH
def test_an_option_has_a_documented_name_and_a_summary(scope: str, option: Option) -> None:
    pattern = r"[a-z]+(-[a-z]+)+" if scope == "store" else r"(ume|retransmit)(_[a-z]+)+"
    assert re.fullmatch(pattern, option.name)
    assert option.summary
    assert NAMES[scope].count(option.name) == 1


@given(st.sampled_from(TABLE), st.text(max_size=12) | st.integers() | st.booleans())
def test_any_value_is_taken_or_refused_in_one_sentence(place: tuple[str, Option], value: Value) -> None:
    scope, option = place
    refused: OptionError | None = None
    try:
        config = apply(scope, CONFIGS[scope], {option.name: value})
    except OptionError as error:
        refused = error
    else:
        assert flat(config).keys() == flat(CONFIGS[scope]).keys()
    if refused is not None:
        reasons = "wants a whole number, not '|must be one of |must be 0 or 1, not '|must lie between"
        assert re.match(f"option {option.name} ({reasons})", str(refused))


@given(st.sampled_from(sorted(NAMES)), st.data())
def test_a_misspelt_name_tells_the_one_that_was_meant(scope: str, draw: st.DataObject) -> None:
    name = draw.draw(st.sampled_from(NAMES[scope]))
    place = draw.draw(st.integers(0, len(name) - 1))
    misspelt = name[:place] + name[place + 1 :]
    if misspelt not in NAMES[scope]:
        with pytest.raises(OptionError) as raised:
            apply(scope, CONFIGS[scope], {misspelt: 1})
        meant = re.fullmatch(rf"there is no {scope} option '{misspelt}': did you mean '(.*)'\?", str(raised.value))
        assert meant is not None
        assert meant[1] in NAMES[scope]


@pytest.mark.parametrize(
    ("scope", "name", "value", "sentence"),
    [
        ("source", "ume_flight_size", 0, "option ume_flight_size must lie between 1 and 2147483647, not 0"),
        ("source", "ume_flight_size", "many", "option ume_flight_size wants a whole number, not 'many'"),
        ("source", "ume_flight_size", 1.5, "option ume_flight_size wants a whole number, not '1.5'"),
        (
            "source",
            "ume_flight_size_behavior",
            "wait",
            "option ume_flight_size_behavior must be one of block, notify, not 'wait'",
        ),
        ("receiver", "ume_use_ack_batching", "yes", "option ume_use_ack_batching must be 0 or 1, not 'yes'"),
        ("store", "source-activity-timeou", 1, "did you mean 'source-activity-timeout'?"),
        ("store", "completely different", 1, "there is no store option 'completely different': did you mean '"),
    ],
)
def test_sentences(scope: str, name: str, value: Value, sentence: str) -> None:
    with pytest.raises(OptionError, match=re.escape(sentence)):
        apply(scope, CONFIGS[scope], {name: value})


def test_several_options_and_spellings() -> None:
    options: dict[str, Value] = {"ume_session_id": "0xff", "ume_use_ack_batching": False, "ume_state_lifetime": "1000"}
    config = apply("receiver", ReceiverConfig("topic", 0, ""), options)
    assert (config.session_id, config.ack_mode, config.state_lifetime_ns) == (
        255,
        AckMode.IMMEDIATE,
        1000 * MILLISECOND,
    )
    same: dict[str, Value] = {"ume_session_id": 255, "ume_use_ack_batching": "0", "ume_state_lifetime": 1000}
    assert apply("receiver", ReceiverConfig("topic", 0, ""), same) == config
    assert apply("receiver", config, {}) is config
