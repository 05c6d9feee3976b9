"""Traces of one run, shared by all tests that only read."""

from pathlib import Path

import pytest

from tests.adapters.evidence.trace.traced import TracedWorld, play, tapping


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    play(TracedWorld(wrap=tapping(directory)))
    return directory


@pytest.fixture(scope="session")
def whole_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the traces of a run without killed endpoints: every trace is complete."""
    directory = tmp_path_factory.mktemp("whole")
    play(TracedWorld(wrap=tapping(directory, kill=False)))
    return directory


@pytest.fixture(scope="session")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the traces of a run with endpoints killed while they write a frame."""
    directory = tmp_path_factory.mktemp("torn")
    play(TracedWorld(wrap=tapping(directory, torn=True)))
    return directory
