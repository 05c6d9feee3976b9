"""The output of a demo, and its directory: removed at the end, or kept on request."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest
from rich.console import Console

from stablecast.core.errors import StablecastError
from stablecast.lab.demo.picture import DemoScene, ProcessPhase, drawn
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
    progress = demo.progress
    progress.sent, progress.stable, progress.delivered = 100_000, 50_000, 99_999
    progress.conditions |= {"source": ProcessPhase.RUNS, "store 0": ProcessPhase.RUNS, "store 1": ProcessPhase.KILLED}
    progress.registered = frozenset({"store 0", "store 1"})
    demo.stage = "all stores, receiver and source starting again"
    screen = io.StringIO()
    Console(file=screen, width=80, force_terminal=True, color_system=None).print(DemoView(demo, 100.0))
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert [line.split("  ")[0].split("┃")[0].strip(" ●○✗━") for line in map(str.lstrip, lines[:6])] == [
        *("source", "store 0", "store 1", "store 2", "receiver", "stable")
    ]
    assert lines[0].endswith("100000 sent")
    assert lines[1].endswith("runs, has the source")
    assert (lines[2].split()[2], lines[2].split()[-1]) == ("✗", "killed")
    assert lines[4].endswith("99999 delivered, starts")
    assert {line.index("┃") for line in lines[:6]} == {lines[0].index("┃")}  # the stable line runs through all
    assert lines[6].split()[0] == "9.9"
    assert lines[6].endswith(demo.stage)
    assert max(map(len, lines)) <= 80
    assert drawn(DemoScene(1, 1, 1, 1, {}, frozenset(), "")).plain.count("┃") == 1


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
