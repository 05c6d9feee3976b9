"""The pytest plugin: its options, the report of a failing world, and a line for each test that ran worlds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from stablecast.testing.run_options import OPTIONS, RunOptions, usable_cores

if TYPE_CHECKING:
    from stablecast.testing.exploration import WorldReport


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stablecast", "worlds of stablecast")
    group.addoption("--stablecast-seeds", type=_count, metavar="N", help="run N worlds for each test")
    group.addoption("--stablecast-seed", type=int, metavar="S", help="run the world of one seed only")
    group.addoption(
        "--stablecast-jobs",
        type=_count,
        metavar="N",
        help="share the seeds of a test among N processes; default: cores",
    )
    group.addoption("--stablecast-traces", default="", metavar="DIR", help="keep the traces of failing worlds in DIR")
    group.addoption(
        "--stablecast-real", action="store_true", help="run on sockets, processes and disks of this machine"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Give the options to the tests."""
    config.pluginmanager.register(WorldReports(config), "stablecast-reports")


class WorldReports:
    """Collect the reports of tests, and print them."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        self._options = RunOptions(
            option.stablecast_seeds,
            option.stablecast_seed,
            option.stablecast_jobs or usable_cores(),
            option.stablecast_traces,
            option.stablecast_real,
        )
        self._lines: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Let a test see the options."""
        token = OPTIONS.set(self._options if self._options.traces else self._with_traces(item))
        try:
            return (yield)
        finally:
            OPTIONS.reset(token)

    def _with_traces(self, item: pytest.Item) -> RunOptions:
        """Return the options with a directory for traces among pytest's temporary ones, which are removed later."""
        if _world_test(item) is None:
            return self._options
        factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]  # noqa: SLF001
        return attrs.evolve(self._options, traces=str(factory.getbasetemp() / "stablecast-traces"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[None]:
        """Add what a test's worlds reported to the report of the test."""
        made: Any = yield
        for report in _reports(item) if call.when == "call" else ():
            from stablecast.testing import failure_report  # noqa: PLC0415 - a run without worlds does without

            made.sections.append(("stablecast", failure_report.summary(report)))
            lines = failure_report.failure_lines(report)
            if lines:
                made.sections.append(("stablecast: the failing world", "\n".join(lines)))
            made.user_properties.append(("stablecast", failure_report.summary(report)))
        return made  # type: ignore[no-any-return]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the line of a test; with pytest-xdist it comes from a worker."""
        if report.when == "call":
            self._lines += [f"{report.nodeid}: {text}" for name, text in report.user_properties if name == "stablecast"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print a line for each test that ran worlds."""
        if self._lines:
            terminalreporter.section("worlds of stablecast")
            for line in self._lines:
                terminalreporter.line(line)


def _reports(item: pytest.Item) -> "list[WorldReport]":
    test = _world_test(item)
    if test is None:
        return []
    reports: list[WorldReport] = test.reports
    test.reports = []
    return reports


def _world_test(item: pytest.Item) -> Any:
    return getattr(getattr(item, "function", None), "stablecast_test", None)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number
