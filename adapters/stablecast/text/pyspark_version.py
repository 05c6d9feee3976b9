"""The PySpark that stablecast needs; a missing or an older one is one sentence."""

from importlib import import_module
from typing import Final

OLDEST: Final = "4.2"
"""The first release with `NEWEST_PART`."""

NEWEST_PART: Final = "pyspark.sql.streaming.datasource"
"""The newest module of PySpark that is imported: limits of the batches of a stream."""


def need_pyspark() -> None:
    """Raise ModuleNotFoundError, in one sentence, if PySpark is missing or too old."""
    version = ""
    try:
        version = import_module("pyspark").__version__
        import_module(NEWEST_PART)
    except ModuleNotFoundError as error:
        if error.name != NEWEST_PART:
            text = f"Spark needs its extra: pip install 'stablecast[spark]' ({error.name} is missing)"
        else:
            text = f"Spark needs PySpark {OLDEST} or newer, and this is {version}: pip install -U 'stablecast[spark]'"
        raise ModuleNotFoundError(text, name=error.name) from error
