"""Whatever endpoints of an end-to-end test record is judged at its end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stablecast.evidence.trace.activation import VARIABLE
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.trace_judge import verify_paths


@pytest.fixture(autouse=True)
def judged(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of the test's traces, its own processes' and those of its children; no rule is broken in them."""
    traces = tmp_path_factory.mktemp("traces")
    monkeypatch.setenv(VARIABLE, str(traces))
    yield traces
    if any(traces.iterdir()):
        assert [report for report in verify_paths(find([traces])).files if not report.clean] == []
