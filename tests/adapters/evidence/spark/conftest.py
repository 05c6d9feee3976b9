"""A Spark session for all tests, as small as possible; without a Java the tests that need it are skipped."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.left_out import NO_SPARK

pytest.importorskip("pyspark", reason=NO_SPARK)

from pyspark.sql import SparkSession

from stablecast.evidence.spark import register
from stablecast.evidence.spark.spark_session import SparkError, check_java, connect
from tests.adapters.evidence.trace.traced import TracedWorld, play, tapping


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect the objects of Spark when its tests end.

    Each such object opens a connection to the gateway when it is collected. In a later test that counts its sockets,
    this connection looks like a leak.
    """
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """Undo the settings of the garbage collector, which a task makes for its worker only."""
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Return a local session that knows the format."""
    try:
        check_java()
    except SparkError as error:
        pytest.skip(str(error))
    session = connect("local[2]", memory="512m")
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def whole_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a world with complete traces only."""
    directory = tmp_path_factory.mktemp("whole")
    play(TracedWorld(wrap=tapping(directory, kill=False)))
    return directory
