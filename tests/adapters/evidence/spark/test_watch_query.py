"""A watch on Spark names what a local watch names, and goes on from its checkpoint without repeating."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from stablecast.cli.app import app
from stablecast.core.machine.units import SECOND
from stablecast.evidence.watch import watch_query
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm
from stablecast.evidence.watch.trace_watch import TraceWatch
from stablecast.evidence.watch.watch_query import SparkWatch
from tests.adapters.evidence.trace.cross_faults import CROSS_FAULTS, put_world_together, take_world_apart


def growing(world: Path, hosts: Path, share: float) -> None:
    """Copy the first part of each trace to the directory of its host: stores to one, clients to the other."""
    for path in world.glob("*.sct"):
        host = hosts / ("stores" if path.name.startswith("store") else "clients")
        host.mkdir(parents=True, exist_ok=True)
        octets = path.read_bytes()
        (host / path.name).write_bytes(octets[: int(len(octets) * share)])


def watched(
    spark: SparkSession, hosts: Path, checkpoint: Path, ended: Callable[[SparkWatch], bool]
) -> list[WatchAlarm]:
    """Run a watch until it has judged all, and return its sentences."""
    found = list[WatchAlarm]()
    watch = SparkWatch.begin(spark, [hosts], checkpoint, whole=True)
    try:
        while not (watch.read and ended(watch)):
            found += watch.poll(0)
            time.sleep(0.02)
        found += watch.poll(0)
    finally:
        watch.close()
    return found


def settled(watch: SparkWatch) -> bool:
    return not watch.joint.ledger.rounds


def keys(alarms: list[WatchAlarm]) -> list[tuple[str, int, str]]:
    return sorted((one.file.name, one.place, one.rule) for one in alarms if one.kind is AlarmKind.VIOLATION)


def repeat_last_batch(checkpoint: Path) -> None:
    """Leave the checkpoint as a kill does after a batch was reported, and before Spark noted it; a stop may do so."""
    begun, ended = (
        max((int(path.name) for path in (checkpoint / log).iterdir() if path.name.isdigit()), default=-1)
        for log in ("offsets", "commits")
    )
    assert (checkpoint / "ledgers" / f"{ended}.json").is_file() or ended < begun
    if ended == begun:
        (checkpoint / "commits" / f"{ended}").unlink()
        (checkpoint / "commits" / f".{ended}.crc").unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let batches follow each other at once."""
    monkeypatch.setattr(watch_query, "EVERY", "0 seconds")


def test_faults_of_two_hosts_are_named_once_across_a_stop(
    spark: SparkSession, whole_world: Path, tmp_path: Path
) -> None:
    world = take_world_apart(whole_world)
    for fault in CROSS_FAULTS[:6]:
        fault(world)
    put_world_together(tmp_path / "world", world)
    local = TraceWatch([tmp_path / "world"], whole=True)
    expected = [alarm for now in range(40) for alarm in local.poll(now * SECOND)]
    hosts, checkpoint = tmp_path / "hosts", tmp_path / "checkpoint"
    growing(tmp_path / "world", hosts, 0.6)
    first = watched(spark, hosts, checkpoint, lambda watch: True)
    repeat_last_batch(checkpoint)
    growing(tmp_path / "world", hosts, 1)
    rest = watched(spark, hosts, checkpoint, settled)
    assert keys(first + rest) == keys(expected)
    assert len(keys(expected)) >= 6
    assert keys(first)
    assert keys(rest)


@pytest.mark.usefixtures("spark")
def test_the_command_has_no_alarm_for_clean_traces(whole_world: Path, tmp_path: Path) -> None:
    growing(whole_world, tmp_path / "hosts", 1)
    options = ["--whole", "--seconds", "0", "--master", "local[2]", "--checkpoint", str(tmp_path / "checkpoint")]
    result = CliRunner().invoke(app, ["watch", str(tmp_path / "hosts"), *options, "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert {json.loads(line)["kind"] for line in result.stdout.splitlines()} <= {"note"}
    ledgers = sorted((tmp_path / "checkpoint" / "ledgers").glob("*.json"))
    for path in ledgers:
        path.write_text("[]")
    result = CliRunner().invoke(app, ["watch", str(tmp_path / "hosts"), *options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is no state of a watch: name another file, or remove it" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--master", "local[2]"], "name it by --checkpoint"),
        (["--master", "nowhere", "--checkpoint", "place"], "is no Spark master"),
        (["--master", "local[2]", "--checkpoint", "place", "--state", "file"], "watch captures without --master"),
        (["--checkpoint", "place"], "--checkpoint belongs to --master"),
        (["--master", "local[2]", "--checkpoint", "taken"], "the state taken cannot be written"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_wrong_options_get_one_sentence(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    result = CliRunner().invoke(app, ["watch", ".", *options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
