"""The example configuration of a daemon."""

from pathlib import Path

import pytest

from stablecast.cli import check
from tests.examples.programs import EXAMPLES


@pytest.mark.rows("P-612", "P-615")
def test_the_check_of_the_example_has_no_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cache", "state"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert check.run([EXAMPLES / "stores.xml"], "safe", as_json=False) == 0
    assert capsys.readouterr().out == "1 file, 0 findings\n"
