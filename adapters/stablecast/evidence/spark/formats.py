"""The formats that a session learns."""

from pyspark.sql import SparkSession

from stablecast.evidence.spark.capture_source import CaptureSource
from stablecast.evidence.spark.trace_source import TraceSource


def register(spark: SparkSession) -> None:
    """Makes `stablecast` and `stablecast-capture` known to a session."""
    spark.dataSource.register(TraceSource)
    spark.dataSource.register(CaptureSource)
