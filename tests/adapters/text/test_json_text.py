"""JSON from outside: whatever is wrong with it is one kind of error."""

import pytest

from stablecast.text.json_text import from_json


@pytest.mark.parametrize("text", ["", "{", b"\xff", "[" * 100_000, '{"a":' * 100_000])
def test_what_is_no_json_or_nested_too_deep_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the caller says what was read
        from_json(text)
    assert from_json(b'{"a": [1]}') == {"a": [1]}
