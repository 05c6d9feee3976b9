"""The target of an operation: a directory or a monitor."""

from pathlib import Path

import pytest

from stablecast.ops.operations.target import OperationError, Remote, place


def test_a_directory_is_one(tmp_path: Path) -> None:
    assert place(str(tmp_path)) == tmp_path


def test_a_directory_that_is_not_there_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="there is no directory"):
        place(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "remote"),
    [
        ("http://127.0.0.1:15304", Remote("http://127.0.0.1:15304", 0)),
        ("http://127.0.0.1:15304/stores/", Remote("http://127.0.0.1:15304", 0)),
        ("https://store.example/stores/3", Remote("https://store.example", 3)),
    ],
)
def test_a_monitor_has_an_address(text: str, remote: Remote) -> None:
    assert place(text) == remote


@pytest.mark.parametrize("text", ["file:///etc", "http://", "http://h/stores/x", "http://h/elsewhere", "ftp://h"])
def test_other_addresses_are_none(text: str) -> None:
    with pytest.raises(OperationError, match="no monitor's address"):
        place(text)
