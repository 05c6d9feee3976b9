"""What the commands share."""

import pytest

from stablecast.cli import common
from stablecast.config.options import OptionError


def test_options_are_name_and_value() -> None:
    assert common.parse_options(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(OptionError) as told:
        common.parse_options(["a=1", "verbose"])
    assert str(told.value) == "'verbose' is not an option: write name=value"


def test_a_line_is_a_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    common.say("ready")
    common.say({"ready": True})
    common.note("waiting")
    assert capsys.readouterr() == ('ready\n{"ready": true}\n', "waiting\n")
