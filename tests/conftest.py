"""Hypothesis profiles, for all tests, and of which of them coverage is recorded.

No profile has a deadline: nothing here depends on the speed of the machine. On a build machine the examples are fixed,
so that a red build is red again; at a desk each run tries new ones. `make soak` takes many more of them.
"""

import os
import signal
from collections.abc import Generator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings

SOAK_EXAMPLES = 5_000
"""Examples of each property test in `make soak`, unless the test says otherwise."""

# Started in the background of a shell, pytest ignores SIGINT, and all programs that it starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("soak", deadline=None, max_examples=SOAK_EXAMPLES)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

UNCOVERED = ("bench", "e2e", "examples")
"""Folders of tests that run what others cover; so do the files beside them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Recording makes code three times slower and every process start twice: what repeats goes without."""
    here = Path(__file__).parent
    places = [here / folder for folder in UNCOVERED]
    for item in items:
        if item.path.parent == here or any(map(item.path.is_relative_to, places)):
            item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """`no_cover` holds for the processes that a test starts, too."""
    if item.get_closest_marker("no_cover") is None:
        return (yield)
    with patch.dict(os.environ):
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
        return (yield)
