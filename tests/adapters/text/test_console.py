"""Lines for people and for programs."""

import pytest

from stablecast.text import console


def test_a_line_is_a_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("ready")
    console.say({"ready": True})
    console.note("waiting")
    assert capsys.readouterr() == ('ready\n{"ready": true}\n', "waiting\n")
