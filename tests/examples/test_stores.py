"""The configuration of a daemon that the examples show."""

from pathlib import Path

import pytest

from stablecast.cli import check
from tests.examples.programs import EXAMPLES


def test_nothing_is_to_be_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cache", "state"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert check.run([EXAMPLES / "stores.xml"], "safe", as_json=False) == 0
    assert capsys.readouterr().out == "1 file, 0 findings\n"
