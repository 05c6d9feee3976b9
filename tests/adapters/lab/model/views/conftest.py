"""One traced run for all tests that read it."""

from pathlib import Path

import pytest

from tests.adapters.evidence.trace.traced import TracedWorld, play, tapping


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of three stores, of which one crashes, of a source that lives twice, and of three receivers."""
    directory = tmp_path_factory.mktemp("followed")
    play(TracedWorld(wrap=tapping(directory, kill=False)))
    return directory
