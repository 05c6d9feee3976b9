"""The options that the sources of traces and captures share."""

from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from stablecast.evidence.capture.files import CaptureError
from stablecast.evidence.spark.capture_source import CaptureSource
from stablecast.evidence.spark.trace_source import TraceSource
from stablecast.evidence.trace.errors import TraceError
from stablecast.text.spark_table import named_paths


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"path": "traces"}, ["traces"]),
        ({"path": "a,b"}, ["a", "b"]),
        ({"paths": '["a", "b,c"]'}, ["a", "b,c"]),
        ({"path": "file:///tmp/my%20traces"}, ["/tmp/my traces"]),
        ({"path": "file:/tmp/a, b"}, ["/tmp/a", "b"]),
        ({"path": "[ab]*.trace"}, ["[ab]*.trace"]),
    ],
)
def test_paths_as_spark_gives_them(given: dict[str, str], paths: list[str]) -> None:
    assert named_paths(given, "traces", TraceError) == [Path(path).absolute() for path in paths]


@pytest.mark.parametrize("path", ["s3a://bucket/traces", "hdfs://host:8020/traces", "https://host/traces"])
def test_remote_paths_get_a_sentence(path: str) -> None:
    with pytest.raises(TraceError, match="is not on a local file system: copy the traces"):
        TraceSource({"path": path})
    with pytest.raises(CaptureError, match="is not on a local file system: copy the captures"):
        CaptureSource({"path": path})


def test_types_that_cannot_be_read_are_refused_at_the_driver() -> None:
    asked = StructType().add("path", "string").add("record", "string")
    with pytest.raises(TraceError, match="the column 'record' of traces is bigint, not string: cast it after the load"):
        TraceSource({"path": "a"}).streamReader(asked)
    with pytest.raises(CaptureError, match="the column 'types' of captures is array<string>, not string"):
        CaptureSource({"path": "."}).reader(StructType().add("types", "string"))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TraceError, match="no option 'onEror': did you mean onError"):
        TraceSource({"path": "a", "onEror": "skip"})
    with pytest.raises(CaptureError, match="no option 'master': there are path"):
        CaptureSource({"path": "a", "master": "local"})


def test_paths_are_absolute_because_workers_have_other_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert named_paths({"path": "a/b"}, "traces", TraceError) == [Path("/a/b")]
