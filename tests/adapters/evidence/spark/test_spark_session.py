"""Each obstacle to Spark is one sentence with the remedy."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stablecast.evidence.spark import spark_session
from stablecast.evidence.spark.spark_session import SETTINGS, SparkError, check_java, connect, cores_of, with_retries


def java(home: Path, script: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo 'java version \"1.8.0_402\"' >&2", "is Java 8: install a Java 17"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11: install a Java 17"),
        ("echo nonsense", "does not print its version: install"),
    ],
)
def test_a_wrong_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, sentence: str) -> None:
    java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=sentence):
        check_java()


def test_a_right_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path, "echo 'openjdk version \"21\" 2025-01-01' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=r"does not run \(.*No such file.*\): install"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkError, match="there is none on this machine: install"):
        connect("local")


@pytest.mark.parametrize("master", ["", "locl", "local[", "local[]", "spark://", "host:7077", "yarn-client"])
def test_an_invalid_master_is_not_tried(master: str) -> None:
    with pytest.raises(SparkError, match=r"is no Spark master: local\[2\], spark://host:port"):
        connect(master)


def test_cores_of_a_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert [cores_of(master) for master in ("local", "local[3]", "local[*]", "spark://a:7077")] == [1, 3, 6, 16]


class Builder:
    """Stands for Spark's; remembers what it was told."""

    def __init__(self, failure: str | None = None) -> None:
        self.failure = failure
        self.told: list[object] = []

    def __getattr__(self, name: str) -> object:
        def tell(*values: object, **more: object) -> "Builder":
            self.told.append((name, *values, *more.values()))
            return self

        return tell

    def getOrCreate(self) -> "Builder":  # noqa: N802 - Spark's name
        if self.failure is not None:
            raise RuntimeError(self.failure)
        return self

    @property
    def sparkContext(self) -> "Builder":  # noqa: N802 - Spark's name
        return self


def test_a_session_that_does_not_start_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "check_java", lambda: None)
    java = "An error occurred while calling None.a.b.\n: org.apache.spark.SparkException: no room\n\tat a.b.C"
    cases = (("\n  no master\n at line 5", "no master"), ("", "RuntimeError"), (java, "no room"))
    for failure, sentence in cases:
        monkeypatch.setattr(SparkSession, "builder", Builder(failure))
        with pytest.raises(SparkError, match=f"no Spark session at 'spark://a:7077': {sentence}$"):
            connect("spark://a:7077")


CLUSTER = {key: value for key, value in SETTINGS.items() if key != "spark.ui.enabled"}
"""On a cluster its own configuration decides whether the driver has pages."""


def test_sessions_here_there_and_by_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "check_java", lambda: None)
    for variable in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    for master in ("local[2]", "spark://a:7077", "sc://a"):
        builder = Builder()
        monkeypatch.setattr(SparkSession, "builder", builder)
        connect(master)
        if master.startswith("sc://"):
            assert builder.told == [("remote", master)], "what a server is told is not ours"
        else:
            assert ("master", with_retries(master)) in builder.told
            assert ("config", SETTINGS if master.startswith("local") else CLUSTER) in builder.told
            assert builder.told[-1] == ("setLogLevel", "ERROR")
