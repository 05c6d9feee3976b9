"""Messages on Spark: topics as tables and streams, and tables and streams into topics.

`register(spark)` adds the format `stablecast-messages` (spec/spark_messages.md). Executors read straight from the
stores. This package needs the spark extra and a Java.
"""

from typing import Any

from stablecast.text.pyspark_version import need_pyspark

need_pyspark()  # Before all that imports PySpark: an older one is one sentence.

from pyspark.sql import SparkSession  # noqa: E402

from stablecast.spark.message_source import MessageSource  # noqa: E402

__all__ = ["MessageSource", "register"]


def register(spark: SparkSession) -> None:
    """Register the format `stablecast-messages` in a session, and make it the active session of this thread.

    Let Spark also give filters to sources that are written in Python: without that it refuses one that takes some.
    Writers look formats up in the active session. That is another one in a thread that a streaming query began.
    """
    spark.dataSource.register(MessageSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is not None:  # Spark Connect has one session for each connection.
        # `createDataFrame` does the same; there is no public call.
        SparkSession._get_j_spark_session_class(jvm).setActiveSession(spark._jsparkSession)  # noqa: SLF001
