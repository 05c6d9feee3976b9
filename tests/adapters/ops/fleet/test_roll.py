"""A rolling replacement: which fleets may lose a store for a while, and what the roll waits for."""

from contextlib import ExitStack
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.cli import roll as commands
from stablecast.ops.fleet.roll import Roll, obstacles
from stablecast.ops.fleet.survey import Survey, SurveyedStore, survey
from stablecast.ops.operations.target import OperationError
from stablecast.sync import Context
from tests.adapters.ops.fleet.test_fleet import copy, store
from tests.support.daemons import daemon, until
from tests.support.program import running as program_of

MONITORS = [f"http://10.0.0.{name}:15304" for name in "123"]


def whole(**more: Any) -> dict[str, Any]:
    return copy(**{"lacking": [0, 0, 0], **more})


def running(name: str, *sources: dict[str, Any], started_ns: int = 5, **record: Any) -> SurveyedStore:
    return store(name, *sources, **{"muted_for_ns": 0, "started_ns": started_ns, **record})


def fleet(**more: Any) -> list[SurveyedStore]:
    return [running(name, whole(**more)) for name in "123"]


@pytest.mark.parametrize(
    ("stores", "silent", "expected"),
    [
        (fleet(), {}, []),
        (fleet(active=False), {}, []),
        (fleet()[:2], {"m": "m does not answer"}, ["m does not answer", "topic orders: 2 of its 3 stores have it"]),
        ([*fleet()[:2], running("3")], {}, ["topic orders: 2 of its 3 stores have it"]),
        ([*fleet(active=False)[:2], running("3")], {}, ["topic orders: 2 of its 3 stores have it"]),
        (
            [running(name, whole(replicas=2)) for name in "12"],
            {},
            ["topic orders: 2 of its 2 stores are needed, so none may go"],
        ),
        (
            [*fleet()[:2], running("3", whole(lacking=[0, 7, 1], holes=1))],
            {},
            ["store 3 (10.0.0.3:14567) lacks 9 messages of topic orders"],
        ),
        # What all of them lack is nowhere: to wait brings nothing.
        (fleet(lacking=[3, 0, 0], lacks=[[0, 1], [7, 7]]), {}, []),
        (
            [
                running("1", whole(lacking=[3, 0, 0], lacks=[[0, 1], [7, 7]])),
                running("2", whole(lacking=[0, 1, 0], lacks=[[1, 1]])),
                running("3", whole(lacking=[9, 0, 0], lacks=[[1, 9]])),
            ],
            {},
            [
                "store 1 (10.0.0.1:14567) lacks 2 messages of topic orders",
                "store 3 (10.0.0.3:14567) lacks 8 messages of topic orders",
            ],
        ),
        (
            fleet(lacking=[3, 0, 0], lacks=[[0, 2]])[:2],
            {"m": "m does not answer"},
            [
                "m does not answer",
                "store 1 (10.0.0.1:14567) lacks 3 messages of topic orders",
                "store 2 (10.0.0.2:14567) lacks 3 messages of topic orders",
                "topic orders: 2 of its 3 stores have it",
            ],
        ),
        ([*fleet(), running("4", muted_for_ns=9)], {}, ["store 4 (10.0.0.4:14567) grants no registration yet"]),
        ([*fleet(), running("4", failure="no space")], {}, ["store 4 (10.0.0.4:14567) does not serve: no space"]),
    ],
)
def test_a_store_may_go_only_from_a_fleet_that_is_whole(
    stores: list[SurveyedStore], silent: dict[str, str], expected: list[str]
) -> None:
    assert list(obstacles(Survey(stores, silent))) == expected


@attrs.define
class Bench:
    """A roll over surveys that a test chooses."""

    surveys: list[Survey]
    now: float = 0.0
    replaced: list[str] = attrs.field(factory=list)
    said: list[str] = attrs.field(factory=list)

    def look(self) -> Survey:
        return self.surveys.pop(0) if len(self.surveys) > 1 else self.surveys[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, monitors: list[str]) -> None:
        Roll(self.look, self.replaced.append, self.said.append, 10.0, self.sleep, lambda: self.now).run(monitors)


def restarted(*names: str) -> Survey:
    return Survey([running(name, whole(), started_ns=9 if name in names else 5) for name in "123"], {})


def test_each_daemon_is_replaced_when_the_one_before_has_everything() -> None:
    refilling = Survey([running("1", whole(lacking=[0, 9, 0]), started_ns=9), *fleet()[1:]], {})
    away = Survey(fleet()[1:], {MONITORS[0]: "it does not answer"})
    bench = Bench([restarted(), restarted(), away, refilling, restarted("1"), restarted("1", "2")])
    bench.run(MONITORS[:2])
    assert bench.replaced == MONITORS[:2]
    assert bench.said == [
        f"{MONITORS[0]}: replacing (1 of 2)",
        f"waiting: {MONITORS[0]} still runs the stores that it ran before",
        "waiting: it does not answer, and 1 more",
        "waiting: store 1 (10.0.0.1:14567) lacks 9 messages of topic orders",
        f"{MONITORS[0]}: replaced, and nothing is lacking",
        f"{MONITORS[1]}: replacing (2 of 2)",
        f"{MONITORS[1]}: replaced, and nothing is lacking",
    ]


def test_nothing_is_replaced_where_a_quorum_would_be_lost() -> None:
    bench = Bench([Survey(fleet()[:2], {})])
    with pytest.raises(OperationError, match="no store was replaced; not going on: topic orders: 2 of its 3"):
        bench.run(MONITORS)
    assert bench.replaced == []
    assert bench.now == 10


def test_a_refill_that_does_not_end_stops_the_roll() -> None:
    lacking = Survey([running("1", *(whole(topic=f"t{at}", lacking=[1, 0, 0]) for at in range(7)), started_ns=9)], {})
    bench = Bench([restarted(), lacking])
    with pytest.raises(OperationError, match=r"1 daemon of 3 replaced.*not going on: .* and 9 more"):
        bench.run(MONITORS)
    assert bench.replaced == MONITORS[:1]


def test_a_monitor_that_is_not_of_the_fleet_is_refused() -> None:
    bench = Bench([restarted()])
    with pytest.raises(OperationError, match="has no store"):
        bench.run(["http://10.0.0.9:15304"])


def job(**given: Any) -> commands.RollJob:
    usual: dict[str, Any] = {"monitors": [], "configs": [], "command": "", "patience": 0.0, "token": None}
    return commands.RollJob(**{**usual, "check": False, **given})


def test_the_command_asks_real_monitors_and_runs_what_replaces_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as running_daemons:
        bases = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            bases.append(f"http://{running_daemons.enter_context(daemon(tmp_path / name)).monitor}")
        assert commands.run(job(monitors=bases, check=True)) == 0
        assert "a store may be replaced now" in capsys.readouterr().out
        mark = tmp_path / "mark"
        with pytest.raises(OperationError, match="still runs the stores that it ran before"):
            commands.run(job(monitors=bases, command=f'printf %s "$STABLECAST_MONITOR" > {mark}'))
        assert mark.read_text() == bases[0]
        with pytest.raises(OperationError, match="ended with status 3"):
            commands.run(job(monitors=bases, command="exit 3"))
        asked: list[str] = []
        monkeypatch.setattr("builtins.input", lambda: asked.append("asked"))
        with pytest.raises(OperationError, match="still runs"):
            commands.run(job(monitors=bases))
        assert asked
    assert commands.run(job(monitors=bases, check=True)) == 1
    with pytest.raises(OperationError, match="name the monitors of all daemons"):
        commands.run(job(monitors=bases[:1]))


def test_without_input_one_sentence_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(OperationError, match=r"the input ended before http://one was replaced: .* --run"):
        commands._replace("", "http://one")


def test_monitors_are_found_in_configurations(tmp_path: Path) -> None:
    path = tmp_path / "stores.toml"
    path.write_text('[daemon]\nweb-monitor = "127.0.0.1:15304"\n')
    assert commands._monitor_of(path) == "http://127.0.0.1:15304"
    path.write_text("[daemon]\n")
    with pytest.raises(OperationError, match="has no web-monitor"):
        commands._monitor_of(path)


def test_all_disks_of_a_real_fleet_are_replaced_under_a_source(tmp_path: Path) -> None:
    """Afterwards no store has a disk of the beginning, and each has every message."""
    with ExitStack() as stack:
        daemons = {}
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()
            one = stack.enter_context(daemon(tmp_path / name))
            daemons[f"http://{one.monitor}"] = (name, one)
        context = stack.enter_context(Context(session_id=1))
        stores = [one.store for _, one in daemons.values()]
        source = context.source("orders", stores=stores, options={"ume_activity_timeout": 60_000})
        source.send_many(b"%d" % number for number in range(500))
        source.wait_stable_through(499)
        until(lambda: all(one.sources() and one.sources()[0]["sync"][2] == 499 for _, one in daemons.values()))

        def replace(monitor: str) -> None:
            name, one = daemons[monitor]
            one.program.process.kill()
            one.program.process.wait()
            for path in (tmp_path / name).iterdir():
                if path.name != "store.toml":
                    path.unlink()
            program = stack.enter_context(program_of("store", tmp_path / name / "store.toml", "--new", "--json"))
            program.json_line()

        said: list[str] = []
        look = partial(survey, [*daemons])
        Roll(look, replace, said.append, 60.0).run([*daemons])
        assert [text.rpartition(": ")[2] for text in said].count("replaced, and nothing is lacking") == 3
        source.send(b"500")
        source.wait_stable_through(500)
        until(lambda: all(one.sources[0]["sync"][2] == 500 for one in look().stores))
        assert {one.sources[0]["messages"] for one in look().stores} == {501}
