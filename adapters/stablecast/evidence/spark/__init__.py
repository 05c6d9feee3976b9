"""Traces and captures on Spark: data sources, and the jobs that judge them on a cluster.

`register(spark)` adds `spark.read.format("stablecast")`, `spark.readStream.format("stablecast")` and
`spark.read.format("stablecast-capture")`. `connect` starts a session for this machine or finds the cluster's.
`verify_on` judges traces in it, `judge_on` captures. `trace_source` and `capture_source` are the data sources,
`piece_judge` is the work of a task, and `verification_job` joins the verdicts.

This package needs the spark extra and a Java; others import it on demand.
"""

from pyspark.sql import SparkSession

from stablecast.evidence.spark.capture_judge import judge_on
from stablecast.evidence.spark.capture_source import CaptureSource
from stablecast.evidence.spark.spark_session import SparkError, connect
from stablecast.evidence.spark.trace_source import TraceSource
from stablecast.evidence.spark.verification_job import VerificationOutcome, verify_on

__all__ = ["SparkError", "VerificationOutcome", "connect", "judge_on", "register", "verify_on"]


def register(spark: SparkSession) -> None:
    """Register the formats `stablecast` and `stablecast-capture` in a session."""
    spark.dataSource.register(TraceSource)
    spark.dataSource.register(CaptureSource)
