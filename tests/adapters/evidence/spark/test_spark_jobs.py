"""Jobs on Spark have names and progress, and a lost worker is one sentence."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from stablecast.evidence.spark import SparkError, verification_job
from stablecast.evidence.spark.spark_jobs import job, reason
from stablecast.evidence.verification.traces import UNREADABLE, VerificationRequest, run_verify
from tests.support.processes import HANG_S


def lose_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """End the worker of each task that repeats this one, too."""
    os.kill(os.getpid(), signal.SIGKILL)
    yield from batches


def test_a_lost_worker_is_status_2_and_one_sentence(
    spark: SparkSession, whole_world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verification_job, "judge_with", lambda _: lose_worker)
    assert run_verify([whole_world], VerificationRequest(master="local[2]")) == UNREADABLE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "did not end: a worker was lost" in err
    assert "violation" not in err


class Tracker:
    """Stands for the tracker of a session with one stage of four tasks, three of which are done."""

    def getActiveStageIds(self) -> list[int]:  # noqa: N802 - Spark's name
        return [1, 2]

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(numTasks=4, numCompletedTasks=3) if stage == 1 else None


class Context:
    """Stands for the context of a session: it notes properties."""

    def __init__(self) -> None:
        self.description: str | None = "mine"

    def getLocalProperty(self, _: str) -> str | None:  # noqa: N802 - Spark's name
        return self.description

    def setLocalProperty(self, _: str, value: str | None) -> None:  # noqa: N802 - Spark's name
        self.description = value

    def setJobDescription(self, value: str) -> None:  # noqa: N802 - Spark's name
        self.description = value

    def statusTracker(self) -> Tracker:  # noqa: N802 - Spark's name
        return Tracker()


class Session:
    """Stands for a session."""

    def __init__(self) -> None:
        self.sparkContext = self._sc = Context()


def test_a_job_has_a_name_and_progress() -> None:
    session: Any = Session()
    shown = Event()
    lines: list[str] = []

    def show(text: str) -> None:
        lines.append(text)
        shown.set()

    with job(session, "verify 2 traces", show):
        assert session.sparkContext.description == "verify 2 traces"
        assert shown.wait(HANG_S)
    assert lines[0] == "verify 2 traces, 3 of 4 tasks"
    assert session.sparkContext.description == "mine"
    with pytest.raises(SparkError, match="verify 2 traces did not end: no room"), job(session, "verify 2 traces"):
        raise PySparkRuntimeError("no room")
    with pytest.raises(KeyError), job(session, "verify 2 traces"):
        raise KeyError("a fault of ours is not Spark's")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "Job aborted\nCaused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            "a worker",
        ),
        ("ExecutorLostFailure (executor 1 exited)", "a worker was lost"),
        (
            "Job aborted\n\tat a.b\nCaused by: java.io.IOException: No space left on device\n\tat c",
            "No space left on device",
        ),
        ("only this\nand that", "only this"),
        ("", "RuntimeError"),
    ],
)
def test_a_page_of_java_becomes_a_sentence(text: str, sentence: str) -> None:
    found = reason(RuntimeError(text))
    assert found.startswith(sentence)
    assert "\n" not in found
