"""Each staged world runs once for all tests: with traces, and with a capture at each host."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from stablecast.lab.whole.runner import run
from stablecast.lab.whole.schedule import WorldSchedule
from tests.adapters.evidence.incident.test_staged import QUIET, STAGED
from tests.support.world_capture import WorldCapture, captured


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, WorldCapture]]:
    """Run a world by its name; return the folder of its traces, to read only, and its captures."""

    @cache
    def ran(name: str) -> tuple[Path, WorldCapture]:
        setup, struck = STAGED[name][:2] if name in STAGED else QUIET[name]
        folder = tmp_path_factory.mktemp("traces")
        with captured() as capture:
            run(WorldSchedule(1, setup, struck, horizon_ms=4_000), folder)
        return folder, capture

    return ran
