"""The command `stablecast watch`: output, exit statuses, metrics, alerts and sentences."""

import io
import json
import shlex
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from rich.console import Console
from typer.testing import CliRunner

from stablecast.cli.app import app
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.metrics_page import MAX_SERIES, MetricsServer, PlaceError, WatchFigures
from stablecast.evidence.watch.screen import screen
from stablecast.evidence.watch.trace_watch import TraceWatch
from tests.adapters.evidence.trace.cross_faults import (
    count_on_an_ack_that_was_never_given,
    put_world_together,
    take_world_apart,
)


@pytest.fixture(scope="module")
def faulty(whole_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("faulty") / "world"
    world = take_world_apart(whole_world)
    count_on_an_ack_that_was_never_given(world)
    put_world_together(directory, world)
    return directory


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["watch", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_violations_are_lines_and_the_exit_status(faulty: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    status, told, _ = run(faulty, "--whole", "--seconds", 0, "--json", "--state", state)
    records = [json.loads(line) for line in told.splitlines()]
    assert status == 1
    assert {(one["kind"], one["rule"]) for one in records} >= {("violation", "P6"), ("violation", "replay")}
    assert all(Path(one["file"]).is_file() for one in records if one["kind"] == "violation")
    status, told, _ = run(faulty, "--whole", "--seconds", 0, "--json", "--state", state)
    assert (status, told) == (0, ""), "nothing is judged twice"


def test_people_read_the_name_of_the_rule(faulty: Path) -> None:
    status, told, _ = run(faulty, "--whole", "--seconds", 0)
    assert status == 1
    assert "violation: " in told
    assert "source 10.2.0.1:9000: [P6" in told


def test_clean_traces_have_no_line_but_notes(whole_world: Path) -> None:
    status, told, _ = run(whole_world, "--whole", "--seconds", 0)
    assert status == 0
    assert all(line.startswith("note: ") for line in told.splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "there is no nowhere: name a trace"),
        (("nowhere/*.sct",), "there is no nowhere/*.sct: name a trace"),
        (("--capture", "nowhere.pcap"), "there is no nowhere.pcap: name a capture"),
        ((".", "--seconds", "0"), ". had nothing to judge"),
        (("--capture", ".", "--seconds", "0"), ". had nothing to judge"),
        ((".", "--filter", "udp"), "--filter belongs to --interface"),
        ((".", "--alert", "x 'y"), "has an open quote"),
        ((".", "--alert", "/nowhere/at-all"), "is no program"),
        ((), "there is nothing to watch"),
        ((".", "--seconds", "0", "--metrics", "here"), "no place for metrics"),
        ((".", "--seconds", "0", "--metrics", "127.0.0.1:99999"), "no place for metrics"),
        ((".", "--seconds", "0", "--port", "x"), "kind=port"),
        ((".", "--seconds", "0", "--threshold", "x=1"), "there is no threshold"),
        ((".", "--seconds", "-1"), "Invalid value"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, told, failed = run(*arguments)
    assert (status, told) == (2, "")
    assert said in failed
    assert "Traceback" not in failed


def test_an_alert_command_gets_each_alarm(faulty: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read() + chr(10))"
    run(faulty, "--whole", "--seconds", 0, "--alert", shlex.join([sys.executable, "-c", program]))
    assert {json.loads(line)["kind"] for line in told.read_text().splitlines()} == {"violation"}


def test_an_alert_command_that_fails_is_reported(faulty: Path) -> None:
    status, _, failed = run(faulty, "--whole", "--seconds", 0, "--alert", "false")
    assert status == 1
    assert "the alert command failed" in failed


def test_metrics_count_sentences_and_series_are_bounded() -> None:
    figures = WatchFigures(records=5)
    for number in range(MAX_SERIES + 10):
        figures.count("violation", "S1", f'source "{number}"')
    text = figures.exposition()
    assert "stablecast_watch_records_total 5" in text
    assert 'stablecast_watch_alarms_total{kind="violation",rule="S1",whose="source \\"7\\""} 1' in text
    assert 'rule="*other*",whose="*other*"} 10' in text


def test_metrics_are_served() -> None:
    with MetricsServer.at("127.0.0.1:0") as server:
        server.text = WatchFigures(records=7).exposition()
        server.begin()
        with urlopen(f"http://127.0.0.1:{server.server_address[1]}/metrics") as answer:
            assert b"stablecast_watch_records_total 7" in answer.read()
        with pytest.raises(PlaceError):
            MetricsServer.at(f"127.0.0.1:{server.server_address[1]}")
        server.shutdown()


def test_the_screen_shows_sentences_and_traces(whole_world: Path) -> None:
    watch = TraceWatch([whole_world], whole=True)
    figures, alarm = WatchFigures(), WatchAlarm(AlarmKind.VIOLATION, "S1", Path("a.sct"), "source x", 7, "is wrong")
    figures.count("violation", "S1", "source x")
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(screen(figures, watch.standings().values(), [alarm], 0))
    text = console.export_text()
    assert "1 alarm" in text
    assert "violation: a.sct: source x: [S1] is wrong" in text
