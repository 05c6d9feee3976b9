"""Messages on Spark: topics as tables and streams, and tables and streams into topics.

`register(spark)` adds the format `stablecast-messages` (spec/spark_messages.md). Executors read straight from the
stores. This package needs the spark extra and a Java.
"""

from pyspark.sql import SparkSession

from stablecast.spark.message_source import MessageSource

__all__ = ["MessageSource", "register"]


def register(spark: SparkSession) -> None:
    """Register the format `stablecast-messages` in a session."""
    spark.dataSource.register(MessageSource)
