"""Captures judged on Spark: a file is a task, and the verdicts are those of one process."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stablecast.evidence.capture.judge import judged
from stablecast.evidence.spark import judge_on
from tests.adapters.evidence.capture.judge.wire_session import World, settled
from tests.support.program import outcome


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    """Return a clean capture, a broken one, a cut one, and a file that is none."""
    bad = settled(World())
    bad.ack(1, 39, 4_000)
    bad.wait(2_000)
    bad.send(40)
    paths = [settled(World()).talk.write(tmp_path / "a.pcap"), bad.talk.write(tmp_path / "b.pcap")]
    cut, other = tmp_path / "cut.pcap", tmp_path / "other.pcap"
    cut.write_bytes(paths[1].read_bytes()[:-3])
    other.write_bytes(b"hello\n")
    return [*paths, cut, other, tmp_path / "missing.pcap"]


def test_verdicts_are_those_of_one_process(spark: SparkSession, captures: list[Path]) -> None:
    assert judge_on(spark, captures) == [judged(path) for path in captures]
    assert judge_on(spark, captures[3:], ["nothing"]) == [judged(path, ["nothing"]) for path in captures[3:]]


def test_the_command_line(spark: SparkSession, captures: list[Path]) -> None:
    fine, bad = map(str, captures[:2])
    here = outcome("verify", "--json", fine, bad)
    there = outcome("verify", "--json", "--master", "local[2]", fine, bad)
    assert there[:2] == here[:2]
    assert [json.loads(line)["broken"] for line in there[1].splitlines()] == [0, 1]
    status, _, err = outcome("verify", "--master", "nowhere", fine)
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith("stablecast: 'nowhere' is no Spark master")
