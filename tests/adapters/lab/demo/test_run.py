"""The director: what it does when the demo does not come to its end, and what it counts."""

from pathlib import Path

import pytest

from stablecast.lab.demo import run
from stablecast.lab.demo.run import STORES, Crash, Demo, DemoError
from tests.support.network import others
from tests.support.processes import alive, children


def _demo(directory: Path, told: list[str], seconds: float = 1) -> Demo:
    return Demo(100, seconds, 1, directory, told.append)


async def test_it_gives_up_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever stage that is: no process and no task is left."""
    monkeypatch.setattr(run, "LIMIT_SECONDS", -8)
    before, parent = others(), children()
    with pytest.raises(DemoError) as told:
        await _demo(tmp_path, [], seconds=8.3).run()
    assert str(told.value) == ("after 0.3 s only 0 of 100 messages were delivered and 0 stable, last stage: starting")
    assert others() == before
    assert not [child for child in children() if child not in parent and alive(child)]


async def test_reports_are_added_up(tmp_path: Path) -> None:
    told: list[str] = []
    demo = _demo(tmp_path, told)
    demo._on_report({"ready": True, "ports": {"lbmr": [3], "lbttcp": [1, 2]}})
    demo._on_report({"sent": 20, "stable": 18})
    demo._on_report({"sent": 12, "stable": 10})  # another life, which starts a little behind
    demo._on_report({"delivered": 15})
    demo._names = {"127.0.0.1:7": "store 1"}
    demo._on_report({"registered": ["127.0.0.1:7"]})
    demo._on_report({"lost": [15, 16]})
    demo._on_report({"lost": [16, 16], "ports": {"lbttcp": [2, 4]}})
    progress = demo.progress
    assert (progress.sent, progress.stable, progress.delivered, progress.lost) == (20, 18, 15, {15, 16})
    assert (progress.lbmr, progress.lbttcp) == ({3}, {1, 2, 4})
    assert demo._settled() == 17
    assert progress.registered == {"store 1"}
    assert told == ["the receiver gave up messages 15 to 16", "the receiver gave up messages 16 to 16"]


@pytest.mark.parametrize(
    ("kind", "names"), [("receiver", "receiver"), ("source", "source"), ("store", "store 1"), ("all", "")]
)
async def test_victims(kind: str, names: str, tmp_path: Path) -> None:
    demo = _demo(tmp_path, [])
    demo._clients = [demo._child([], name, "module") for name in ("receiver", "source")]
    demo._servers = [demo._child([], name, "module") for name in ("lbmrd", *(f"store {n}" for n in range(STORES)))]
    victims, said = demo._victims(Crash(kind, 1, 0.1, choice=STORES + 1))
    if kind == "all":
        assert {victim.name for victim in victims} == {"receiver", "source", "store 0", "store 1", "store 2"}
        assert said == "all stores, receiver and source"
    else:
        assert [victim.name for victim in victims] == [said] == [names]
