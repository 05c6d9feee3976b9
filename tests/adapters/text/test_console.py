"""Lines for people and for programs."""

import io
import sys

import pytest

from stablecast.text import console


def test_a_line_is_a_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("ready")
    console.say({"ready": True})
    console.note("waiting")
    assert capsys.readouterr() == ('ready\n{"ready": true}\n', "waiting\n")


@pytest.mark.parametrize("line", ["ready", {"ready": True}])
def test_a_line_is_one_write(line: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under PYTHONUNBUFFERED each write reaches the pipe at once, and another thread may write between two."""
    writes = []

    class Unbuffered(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    monkeypatch.setattr(sys, "stdout", Unbuffered())
    monkeypatch.setattr(sys, "stderr", Unbuffered())
    console.say(line)
    console.note("waiting")
    assert [text[-1] for text in writes] == ["\n", "\n"]
