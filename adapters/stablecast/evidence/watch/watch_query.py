"""A watch on Spark: a streaming query judges traces of many hosts, and the driver the rules between them.

Tasks judge the traces that grew, each with a state of its own. Facts and sentences come to the driver, which keeps the
same ledger as a local watch and writes it for each batch into the checkpoint. A batch that Spark repeats begins with
the ledger of the batch before, and reports only the sentences that were not reported then.
"""

import json
import logging
import pickle
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stablecast.core.errors import StablecastError
from stablecast.evidence.spark.spark_jobs import is_of_spark, reason
from stablecast.evidence.spark.spark_session import SparkError
from stablecast.evidence.watch import growth_judge, watch_state
from stablecast.evidence.watch.alarms import WatchAlarm
from stablecast.evidence.watch.growth_source import FORMAT, GrowthSource
from stablecast.evidence.watch.joint_judgement import QUIET_NS, JointJudgement, TraceStanding
from stablecast.runtime import garbage_collection

SETTINGS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stopTimeout": "10s",
}
"""Settings of the session of a watch: its batches are small, and come every second."""

EVERY: Final = "1 second"
"""Time between two batches, as Spark writes it."""

LEDGER: Final = re.compile(r"(\d+)\.json$")
"""The ledger after a batch, by its number."""

KEPT: Final = 2
"""Ledgers in the checkpoint: Spark repeats the last batch at most, which needs the one before."""


_UNREPORTED: Final = StablecastError("the watch was stopped before it reported this batch, so Spark must repeat it")
"""Ends the query: Spark would count a batch as done if its function returned."""


@attrs.define
class SparkWatch:
    """Traces that are followed on Spark: the driver's part.

    Attributes:
        directory: The directory of ledgers.
        joint: The rules between traces.
        traces: The standing of each followed trace.
        records: Records judged.
        batch: The last batch that was judged; -1 before the first one.
    """

    directory: Path
    joint: JointJudgement = attrs.field(factory=JointJudgement)
    traces: dict[str, TraceStanding] = attrs.field(factory=dict)
    records: int = 0
    batch: int = -1
    query: StreamingQuery | None = None
    _fresh: list[WatchAlarm] = attrs.field(factory=list)
    _handed: list[WatchAlarm] = attrs.field(factory=list)
    _changed: threading.Condition = attrs.field(factory=threading.Condition)
    _judging: bool = False
    _read: bool = False
    _stopped: bool = False
    _failure: StablecastError | None = None

    @classmethod
    def begin(cls, spark: SparkSession, paths: Sequence[Path], checkpoint: Path, *, whole: bool) -> "SparkWatch":
        """Start the query, or go on where the checkpoint stopped.

        Args:
            spark: The session; its workers must have stablecast, and see the same files.
            paths: Directories, files and patterns.
            checkpoint: A directory for the progress, which the driver and Spark see.
            whole: Whether traces that are there at the beginning are judged from their first record.

        Raises:
            StateError: If the checkpoint cannot be written.
            SparkError: If the query does not start.
        """
        found = cls(checkpoint / "ledgers")
        try:
            found.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise watch_state.unwritable(checkpoint, error) from error
        own = _own_session(spark)
        for key, value in SETTINGS.items():
            own.conf.set(key, value)
        own.dataSource.register(GrowthSource)
        growth = own.readStream.format(FORMAT).option("paths", json.dumps([str(path.absolute()) for path in paths]))
        judged = (
            growth.load()
            .groupBy("trace")
            .applyInPandasWithState(
                growth_judge.judge_growth(whole), growth_judge.SCHEMA, growth_judge.STATE, "append", "NoTimeout"
            )
        )
        writer = judged.writeStream.queryName("stablecast watch").trigger(processingTime=EVERY)
        try:
            found.query = writer.option("checkpointLocation", str(checkpoint)).foreachBatch(found.judge).start()
        except Exception as error:
            if not is_of_spark(error):
                raise
            raise SparkError(f"the watch did not start: {reason(error)}") from error
        return found

    @property
    def read(self) -> bool:
        """Return whether a batch was judged, which has all traces that were there."""
        return self._read

    def standings(self) -> dict[str, TraceStanding]:
        return dict(self.traces)

    def poll(self, now_ns: int) -> list[WatchAlarm]:
        """Return new sentences. Those of the poll before count as reported.

        Args:
            now_ns: Not used: the time of a batch is that of its offset.

        Raises:
            SparkError: The query ended.
            StateError: The checkpoint cannot be used.
        """
        with self._changed:
            self._acknowledge()
            if self._failure is not None:
                raise self._failure
            if (why := self._ended()) is not None:
                raise SparkError(f"the watch ended: {why}")
            self._handed = list(self._fresh)
            return self._handed

    def _acknowledge(self) -> None:
        """Forget the sentences that the last poll returned: the batch may be written."""
        del self._fresh[: len(self._handed)]
        self._handed = []
        self._changed.notify_all()

    def _ended(self) -> str | None:
        """Return why the query ended; None while it runs."""
        if self._failure is not None:
            return str(self._failure)
        if self.query is None or self.query.isActive:
            return None
        error = self.query.exception()
        return "somebody stopped its query" if error is None else reason(error)

    def close(self) -> None:
        """Let the batch in progress end, and stop the query. Sentences of the last poll count as reported."""
        with self._changed:
            self._stopped = True
            self._acknowledge()
            self._changed.wait_for(lambda: not self._judging)
        if self.query is not None:
            # A batch may begin now. Spark hangs up on it, and its gateway would log a page about that.
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
            self.query.stop()

    def judge(self, rows: DataFrame, batch: int) -> None:
        """Judge a batch of the query, wait until its sentences are reported, and write its ledger."""
        with self._changed:
            if self._stopped:
                raise _UNREPORTED
            self._judging = True
        try:
            alarms = self._judged(rows, batch)
            if not self._reported_all(alarms):
                raise _UNREPORTED
            self._write(batch, alarms)
        except StablecastError as error:
            self._failure = error
            raise
        finally:
            with self._changed:
                self._judging = False
                self._changed.notify_all()

    def _reported_all(self, alarms: list[WatchAlarm]) -> bool:
        """Wait until the polls took all sentences; return whether they did before the watch was closed."""
        with self._changed:
            self._fresh += alarms
            self._changed.wait_for(lambda: not self._fresh or self._stopped)
            return not self._fresh

    def _judged(self, rows: DataFrame, batch: int) -> list[WatchAlarm]:
        """Return the sentences of a batch that were not reported yet."""
        results = rows.collect()
        now_ns = max(row.time for row in results)
        self._restore(batch, now_ns)
        alarms, told = list[WatchAlarm](), []
        with garbage_collection.paused():
            for row in sorted((row for row in results if row.outcome is not None), key=lambda row: row.trace):
                one: growth_judge.GrowthOutcome = pickle.loads(row.outcome)  # noqa: S301 - of our own tasks
                self._stand(row.trace, one.standing)
                self.records += one.records
                told += one.told
                alarms += one.alarms
            alarms += self.joint.judge(told, self.traces, now_ns)
        for name, trace in list(self.traces.items()):
            if trace.ended or now_ns - trace.read_ns > QUIET_NS:
                self.joint.end(self.traces.pop(name))
        before = {_key(one) for one in self._reported(batch)}
        return [one for one in alarms if self.joint.first_time(one) and _key(one.as_json()) not in before]

    def _stand(self, name: str, standing: TraceStanding) -> None:
        """Note the standing of a trace; a worker that read no frame of it does not know its endpoint."""
        before = self.traces.get(name)
        if before is not None and before.evidence is not None and standing.evidence is None:
            evidence = attrs.evolve(before.evidence, read_ns=standing.read_ns, ended=standing.ended)
            standing = attrs.evolve(standing, evidence=evidence, owner=before.owner, wall_ns=before.wall_ns)
        self.traces[name] = standing

    def _restore(self, batch: int, now_ns: int) -> None:
        """Have the ledger after the batch before. Raise StateError."""
        if self.batch == batch - 1:
            return
        path = self._path(batch - 1)
        self.joint, self.traces, self.records = JointJudgement(), {}, 0
        if batch > 0:
            value = watch_state.content(path)
            with watch_state.named_errors(path):
                watch_state.restore_joint(self.joint, value, now_ns)
                self.traces = {name: watch_state.standing_of(one) for name, one in value["standings"].items()}

    def _reported(self, batch: int) -> list[dict[str, Any]]:
        """Return what was reported of a batch that is repeated."""
        path = self._path(batch)
        if not path.exists():
            return []
        value = watch_state.content(path)
        with watch_state.named_errors(path):
            return list(value["reported"])

    def _write(self, batch: int, alarms: list[WatchAlarm]) -> None:
        value = {
            "version": watch_state.VERSION,
            "standings": {name: watch_state.trace_standing_state(one) for name, one in self.traces.items()},
            "reported": [*self._reported(batch), *(one.as_json() for one in alarms)],
            **watch_state.joint_state(self.joint),
        }
        watch_state.replace(self._path(batch), value)
        self.batch, self._read = batch, True
        for path in self.directory.iterdir():
            if (found := LEDGER.match(path.name)) and int(found[1]) <= batch - KEPT:
                path.unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self.directory / f"{batch}.json"


def _own_session(spark: SparkSession) -> SparkSession:
    """Return a session with settings of its own: those of the user's session stay as they are."""
    try:
        return spark.newSession()
    except (PySparkException, NotImplementedError):  # Spark Connect may have one session for each connection.
        return spark


def _key(alarm: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(alarm[name] for name in ("kind", "rule", "file", "place", "text"))
