"""The directory of a demo: gone at the end, kept when somebody wants to look into it."""

from pathlib import Path

import pytest

from stablecast.core.errors import StablecastError
from stablecast.demo.run import DemoError
from stablecast.demo.show import workplace


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_temporary_one_goes_away(tmp_path: Path) -> None:
    with workplace(None) as place:
        (place / "file").write_text("x")
        assert place.parent == tmp_path
    assert not place.exists()


def test_an_interrupt_removes_it_too() -> None:
    with pytest.raises(KeyboardInterrupt), workplace(None) as place:
        raise KeyboardInterrupt
    assert not place.exists()


def test_a_failure_keeps_it_and_says_where() -> None:
    with pytest.raises(DemoError) as told, workplace(None) as place:
        raise StablecastError("something is wrong")
    assert str(told.value) == f"something is wrong; stores, traces and logs are in {place}"
    assert place.is_dir()


def test_the_user_keeps_one(tmp_path: Path) -> None:
    with workplace(tmp_path / "a" / "b") as place:
        (place / "file").write_text("x")
    assert (tmp_path / "a" / "b" / "file").exists()
    with pytest.raises(DemoError, match="is not empty: name a new one"), workplace(tmp_path / "a" / "b"):
        pass
