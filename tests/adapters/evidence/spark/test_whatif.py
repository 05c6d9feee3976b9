"""A sweep spread over Spark comes to what it comes to here."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stablecast.evidence.whatif import command


def test_a_sweep_is_spread(spark: SparkSession, whole_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for master in (None, "local[2]"):
        job = command.WhatIfJob([whole_world], {}, {"ume_flight_size": ["1", "2"]}, master)
        assert command.run(job, as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    half = len(lines) // 2
    assert lines[:half] == lines[half:]
    assert spark.version
