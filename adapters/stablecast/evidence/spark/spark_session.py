"""A Spark session for this machine, or that of a cluster; each failure is one sentence."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from stablecast.core.errors import StablecastError

JAVA: Final = 17
"""The oldest Java version that runs Spark 4."""

LOCAL: Final = re.compile(r"local(\[(\*|\d+)\])?$")

UI: Final = "spark.ui.enabled"
"""The setting that serves Spark's pages about its jobs. On a cluster its own configuration decides."""

SETTINGS: Final[dict[str, bool | float | int | str | None]] = {
    UI: "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings of every session that is started here. The work is in Python; Java should start soon and use few cores."""

MASTERS: Final = re.compile(r"local$|local(-cluster)?\[.+\]$|spark://.|k8s://.|yarn$|sc://.")
"""Masters that Spark accepts, roughly, because Spark answers another one with a stack of Java."""

JAVA_ERROR: Final = re.compile(r"^: [\w.$]+(?:Exception|Error): *(\S.*)$", re.MULTILINE)
"""The line with the reason in what the gateway to Java writes about an error."""

JAVA_TIMEOUT_S: Final = 30

ATTEMPTS: Final = 4
"""Attempts of a task before its job fails: the default of Spark on clusters, which a plain `local[2]` does not have."""


class SparkError(StablecastError):
    """Spark cannot be used; the text has the remedy."""


def connect(master: str, memory: str = "1g") -> SparkSession:
    """Start a session, or return the existing one.

    Args:
        master: As Spark writes it: `local[2]`, `spark://host:7077`, `yarn`; `sc://host` for Spark Connect.
        memory: Of the driver's Java; tasks of a local session run in it, too.

    Raises:
        SparkError: If there is no such master, Java is missing or too old, or the session does not start.
    """
    if not MASTERS.match(master):
        masters = "local[2], spark://host:port, yarn, k8s://host and sc://host are"
        raise SparkError(f"{master!r} is no Spark master: {masters}")
    if master.startswith("sc://"):
        builder = SparkSession.builder.remote(master)
    else:
        check_java()
        local = LOCAL.match(master)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if local:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        cores = cores_of(master)
        builder = SparkSession.builder.master(with_retries(master)).appName("stablecast verify")
        builder = builder.config("spark.driver.memory", memory).config("spark.sql.shuffle.partitions", 2 * cores)
        builder = builder.config(map=SETTINGS if local else {key: SETTINGS[key] for key in SETTINGS if key != UI})
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise SparkError(f"no Spark session at {master!r}: {_first_line(error)}") from error
    if not master.startswith("sc://"):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def cores_of(master: str) -> int:
    """Return the cores of a local master; others get more partitions, which do no harm.

    >>> cores_of("local"), cores_of("local[3]")
    (1, 3)
    """
    found = LOCAL.match(master)
    if not found:
        return 16
    count = found.group(2) or "1"
    return os.cpu_count() or 1 if count == "*" else int(count)


def with_retries(master: str) -> str:
    """Return a local master with retries of its tasks, which Spark leaves out; others retry anyway.

    >>> with_retries("local"), with_retries("local[3]"), with_retries("local[3,1]"), with_retries("yarn")
    ('local[1,4]', 'local[3,4]', 'local[3,1]', 'yarn')
    """
    found = LOCAL.match(master)
    return f"local[{found.group(2) or 1},{ATTEMPTS}]" if found else master


def check_java() -> None:
    """Check that there is a Java that runs Spark.

    Raises:
        SparkError: If there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = f"install a Java {JAVA} or newer, or name it in JAVA_HOME; without --master none is needed"
    if java is None:
        raise SparkError(f"Spark needs Java and there is none on this machine: {remedy}")
    try:
        ran = subprocess.run(  # noqa: S603 - the Java that the environment names
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkError(f"Spark needs Java and {java} does not run ({_first_line(error)}): {remedy}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    if found is None:
        raise SparkError(f"Spark needs Java and {java} does not print its version: {remedy}")
    if int(found.group(1)) < JAVA:
        raise SparkError(f"Spark needs Java {JAVA} and {java} is Java {found.group(1)}: {remedy}")


def _first_line(error: BaseException) -> str:
    java = JAVA_ERROR.search(str(error))
    if java is not None:
        return java[1]
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(error).__name__
