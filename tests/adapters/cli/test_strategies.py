"""`stablecast strategies`."""

import json

import pytest
from typer.testing import CliRunner

from stablecast.cli.app import app
from stablecast.cli.strategies import run
from stablecast.transports.resolution.udp.presets import PRESETS


@pytest.mark.rows("T-301")
def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Cost figures, and when to take which."""
    assert run(2, 1, 10, as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("strategy")
    assert [line.split()[0] for line in lines[1 : 1 + len(PRESETS)]] == list(PRESETS)
    assert "deaf" in lines[2]


def test_for_machines() -> None:
    done = CliRunner().invoke(app, ["strategies", "--topics", "1", "--wanted", "5", "--json"])
    found = [json.loads(line) for line in done.output.splitlines()]
    assert done.exit_code == 0
    assert [one["preset"] for one in found] == list(PRESETS)
    assert {one["wanted"] for one in found} == {1}
