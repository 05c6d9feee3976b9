"""Jobs on Spark: their names in its pages, their progress, and one sentence for each that fails."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

from pyspark.sql import SparkSession

from stablecast.evidence.spark.spark_session import SparkError

PROGRESS_SECONDS: Final = 0.5
"""Time between two looks at the tasks of a job."""

NO_PROGRESS: Final[Callable[[str], None]] = lambda _: None  # noqa: E731 - a constant

LOST: Final = re.compile(
    r"Python worker exited|worker process.*(crash|exit)|ExecutorLost|executor lost|Executor heartbeat|EOFException|"
    r"Connection reset|failed to connect back|OutOfMemory",
    re.IGNORECASE,
)
"""Texts of Spark about a worker that ended before its task did."""

_CAUSE: Final = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): *(\S.*)$", re.MULTILINE)
"""A line of Java, or of Python in a worker, that names an error and its text."""


@contextmanager
def job(spark: SparkSession, what: str, show: Callable[[str], None] = NO_PROGRESS) -> Iterator[None]:
    """Name the jobs of the body `what`, and show how many of their tasks are done.

    Raises:
        SparkError: The body failed in Spark: a worker was lost, or a task failed.
    """
    context = getattr(spark, "_sc", None)  # Spark Connect has none.
    before = None if context is None else context.getLocalProperty("spark.job.description")
    if context is not None:
        context.setJobDescription(what)
    over = Event()
    watcher = Thread(target=_watch, args=(context, what, show, over), daemon=True)
    if context is not None and show is not NO_PROGRESS:
        watcher.start()
    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise SparkError(f"{what} did not end: {reason(error)}") from error
    finally:
        over.set()
        if watcher.is_alive():
            watcher.join()
        if context is not None:
            context.setLocalProperty("spark.job.description", before)


def is_of_spark(error: BaseException) -> bool:
    """Return whether Spark, or its gateway to Java, raised an error."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def reason(error: BaseException) -> str:
    """Return in one sentence why Spark failed: it writes a page of Java."""
    text = str(error)
    if LOST.search(text):
        return (
            "a worker was lost, and so were all that repeated its task; give workers more memory, or look at their logs"
        )
    causes = _CAUSE.findall(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return str(causes[-1] if causes else lines[0] if lines else type(error).__name__)


def _watch(context: Any, what: str, show: Callable[[str], None], over: Event) -> None:
    tracker = context.statusTracker()
    while not over.wait(PROGRESS_SECONDS):
        try:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Exception as error:  # The session ends; the body reports that.
            if is_of_spark(error):
                return
            raise
        done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        tasks = sum(stage.numTasks for stage in stages if stage is not None)
        if tasks:
            show(f"{what}, {done} of {tasks} tasks")
