"""The output of a demo, and its directory: removed at the end, or kept on request."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest
from rich.console import Console

from stablecast.core.errors import StablecastError
from stablecast.lab.demo.run import Demo, DemoError, DemoOutcome, DemoView, run, workplace

BAD = DemoOutcome(9, 8, 1, 0, 0, {"all": 1}, ["a.sct"], True, 5, 0, {"lbmr": []}, ["message 3 was not delivered"])


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


def test_the_picture_fits_into_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.lab.demo.run.time", SimpleNamespace(monotonic=lambda: 109.94))
    demo = Demo(100_000, 8, 1, tmp_path, print)
    demo.progress.sent, demo.progress.delivered = 100_000, 99_999
    demo.stage = "all stores, receiver and source starting again"
    screen = io.StringIO()
    Console(file=screen, width=80, force_terminal=True, color_system=None).print(DemoView(demo, 100.0))
    lines = screen.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["sent", "stable", "delivered", "9.9"]
    assert "100000/100000" in lines[0]
    assert demo.stage in lines[3]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (BAD, "message 3 was not delivered"),
        (attrs.evolve(BAD, verified=False, problems=[]), "there is no trace to judge"),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_a_demo_that_went_wrong_says_so(
    outcome: DemoOutcome, why: str, as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def nothing(demo: Demo) -> None:
        """Nobody is started."""

    monkeypatch.setattr(Demo, "run", nothing)
    monkeypatch.setattr(Demo, "judge", lambda demo: outcome)
    with pytest.raises(DemoError, match=f"^{why}; stores, traces and logs are in "):
        run(9, 1, 1, None, as_json)
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out) == attrs.asdict(outcome)
    else:
        assert "failed" in out
