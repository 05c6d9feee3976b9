"""Hypothesis profiles, garbage collection, signals, tiers and the count of what is left out, for all tests.

No profile has a deadline, because no test depends on the speed of the machine. On a build machine the examples are
fixed, so that a failing build fails again. At a desk each run tries new examples. `make soak` runs many more of them.
"""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support import left_out, tiers

SOAK_EXAMPLES = 5_000
"""Number of examples of each property test in `make soak`, unless the test sets its own."""

YOUNG = 100_000
"""Number of new objects before a garbage collection. Collecting long-lived worlds took a sixth of their time."""

COUNTS = os.environ.pop("STABLECAST_COUNTS", "")
"""The folder for the counts of this process. Tests start others, such as those that must find a planted fault."""

gc.set_threshold(YOUNG, *gc.get_threshold()[1:])

# A shell starts background jobs with SIGINT ignored. All programs that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("soak", deadline=None, max_examples=SOAK_EXAMPLES)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose a tier."""
    parser.addoption(
        "--tier", choices=(tiers.GATE, tiers.REST, tiers.ALL), default=tiers.ALL, help="see tests/tiers.toml"
    )
    parser.addoption("--budget", type=int, default=0, help="seconds after which no further test begins")
    parser.addoption("--spent", default="", help="file for the processor seconds of each test file")


def pytest_configure(config: pytest.Config) -> None:
    """Select a tier, and count processor seconds, as the options say."""
    if config.getoption("--tier") != tiers.ALL or config.getoption("--budget"):
        config.pluginmanager.register(
            tiers.Selection(config.getoption("--tier"), config.getoption("--budget")), "tiers"
        )
    if config.getoption("--spent"):
        config.pluginmanager.register(tiers.Spent(Path(config.getoption("--spent"))), "spent")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Let a test that is left out fail on a build machine."""
    return left_out.judge((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Let a file that is left out fail on a build machine."""
    return left_out.judge((yield))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was left out, if a run of several processes asks for it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and COUNTS:
        selection = session.config.pluginmanager.get_plugin("tiers")
        left_out.write(reporter.stats, Path(COUNTS), selection.late if selection else 0)
