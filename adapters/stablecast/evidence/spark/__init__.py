"""Traces and captures on Spark: data sources, and the jobs that judge them on a cluster.

`register(spark)` adds `spark.read.format("stablecast")`, `spark.readStream.format("stablecast")` and
`spark.read.format("stablecast-capture")`. `connect` starts a session for this machine or finds the cluster's.
`verify_on` judges traces in it, `judge_on` captures. `trace_source` and `capture_source` are the data sources,
`piece_judge` is the work of a task, and `verification_job` joins the verdicts.

This package needs the spark extra and a Java; others import it on demand.
"""

from stablecast.text.pyspark_version import need_pyspark

need_pyspark()  # Before all that imports PySpark: an older one is one sentence.

from pyspark.sql import SparkSession  # noqa: E402

from stablecast.evidence.spark.capture_judge import judge_on  # noqa: E402
from stablecast.evidence.spark.capture_source import CaptureSource  # noqa: E402
from stablecast.evidence.spark.spark_session import SparkError, connect  # noqa: E402
from stablecast.evidence.spark.trace_source import TraceSource  # noqa: E402
from stablecast.evidence.spark.verification_job import VerificationOutcome, verify_on  # noqa: E402

__all__ = ["SparkError", "VerificationOutcome", "connect", "judge_on", "register", "verify_on"]


def register(spark: SparkSession) -> None:
    """Register the formats `stablecast` and `stablecast-capture` in a session."""
    spark.dataSource.register(TraceSource)
    spark.dataSource.register(CaptureSource)
