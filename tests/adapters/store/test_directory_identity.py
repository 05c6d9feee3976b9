"""The identity of a store in its state directory."""

from pathlib import Path

import pytest

from stablecast.store.directory_identity import IDENTITY_NAME, IdentityError, known, note


def test_a_store_that_noted_itself_is_known(tmp_path: Path) -> None:
    assert not known(tmp_path, "a")
    note(tmp_path, "a")
    note(tmp_path, "a")
    assert known(tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == [IDENTITY_NAME]


@pytest.mark.rows("P-813")
def test_the_directory_of_another_store_is_refused(tmp_path: Path) -> None:
    note(tmp_path, "a")
    with pytest.raises(IdentityError, match="is the state directory of store 'a', not of 'b'"):
        known(tmp_path, "b")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_a_damaged_note_is_set_aside_and_means_that_there_was_a_store(content: bytes, tmp_path: Path) -> None:
    (tmp_path / IDENTITY_NAME).write_bytes(content)
    assert known(tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == [f"{IDENTITY_NAME}.damaged"]


def test_a_directory_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match="there is no state directory"):
        known(tmp_path / "none", "a")
