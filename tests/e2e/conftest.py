"""Fixtures of end-to-end tests: judged traces, and a relay."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stablecast.evidence.trace.activation import VARIABLE
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.trace_judge import verify_paths
from tests.support.program import lbmrd


@pytest.fixture(autouse=True)
def judged(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Record traces of the test's process and of its children, and check at the end that they break no rule."""
    traces = tmp_path_factory.mktemp("traces")
    monkeypatch.setenv(VARIABLE, str(traces))
    yield traces
    if any(traces.iterdir()):
        assert [report for report in verify_paths(find([traces])).files if not report.clean] == []


@pytest.fixture
def relay() -> Iterator[str]:
    with lbmrd() as (_, address):
        yield address
