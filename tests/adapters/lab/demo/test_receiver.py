"""The application's own file: every message once, over all lives of the process."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stablecast.lab.demo.receiver import MessageLedger, WrongMessageError
from stablecast.lab.demo.source import payload


def _message(number: int, text: bytes | None = None) -> Any:
    return SimpleNamespace(sequence_number=number, payload=payload(number) if text is None else text)


def test_a_message_counts_once_over_all_lives(tmp_path: Path) -> None:
    path = tmp_path / "received"
    first = MessageLedger(path)
    for number in (0, 1, 2):
        first.write(_message(number))
    again = MessageLedger(path)  # the first one was killed: what it wrote is there
    assert again.numbers == {0, 1, 2}
    for number in (2, 3, 3):
        again.write(_message(number))
    first.close()
    again.close()
    assert path.read_text().split() == ["0", "1", "2", "3"]
    assert path.with_suffix(".again").read_text().split() == ["2", "3"]


@pytest.mark.parametrize("message", [_message(1, b"message 2"), _message(2, b"massage 2"), _message(2, b"message 02")])
def test_a_message_that_says_something_else_is_an_error(message: Any, tmp_path: Path) -> None:
    ledger = MessageLedger(tmp_path / "received")
    with pytest.raises(WrongMessageError, match=r"has payload b'm.ssage 0?2'"):
        ledger.write(message)
    assert ledger.numbers == set()
    ledger.close()
