"""The plugin, in runs of pytest of its own: options, reports, regressions, and what works beside it."""

import re
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from stablecast.testing import exploration, failure_report, plugin
from tests.support.tree import PYTHON_PATH
from tests.test_layout import PYPROJECT

pytest_plugins = ["pytester"]

TEST = """
    import asyncio
    import pytest
    import stablecast.testing
    from stablecast.testing import crash, stop

    async def application(world, book, lines):
        for number in range(10):
            await asyncio.sleep(0.1)
            {line}
            await asyncio.sleep(0.1)
            {after}

    @stablecast.testing.world(stores=0, seeds=30, faults=crash("app") | stop("app"))
    async def test_application(world):
        book = []
        world.start(application, world, book, 10, host="app")
        await world.settled()
        assert sorted(set(book)) == list(range(10))
        assert len(book) == 10
"""
RIGHT = TEST.format(line="if number in book: continue", after="book.append(number)")
QUIET = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
WRONG = TEST.format(line="world.note(str(number))", after="book.append(number)")
"""A program that repeats its work after a crash."""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> "object":
    """Run pytest on a test file, with no other plugins."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert {exploration.__name__, failure_report.__name__} <= set(sys.modules), "a run drops what only it imports"

    def start(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess("-p", "stablecast.testing.plugin", *QUIET, *arguments)

    return start


def text_of(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


def test_a_test_that_finds_nothing_counts_worlds_and_faults(run) -> None:  # type: ignore[no-untyped-def]
    result = run(RIGHT)
    result.assert_outcomes(passed=1)
    found = re.search(
        r"::test_application: 30 worlds, (\d+) faults \(crash \d+, stop \d+\), nothing found", text_of(result)
    )
    assert found is not None
    assert int(found[1]) > 30


def test_a_failure_is_minimal_and_explained(run) -> None:  # type: ignore[no-untyped-def]
    result = run(WRONG)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*assert len(book) == 10",
            "E*assert * == 10",
            "Seed * fails after * worlds*",
            "Faults:",
            "  crash of app at * for 1 ms",
            "Timeline (virtual time):",
            " * ms  app  application starts",
            "*-- 0",
            "*!! crash (kill -9) for 1.000 ms",
            "*application starts again (start 2)",
            "*application returns None",
            "To run this seed again: pytest --stablecast-seed *",
            "To keep this failure as a regression, put this line above the test:",
            "@stablecast.testing.regression(seed=*, faults=[[]{'fault': 'crash', 'on': 'app', *'ms': 1.0}[]])",
        ]
    )
    assert "exploration.py" not in text_of(result)


def line_of(result: pytest.RunResult) -> str:
    return next(line for line in result.outlines if line.startswith("@stablecast.testing.regression"))


def test_the_seed_is_run_again(run) -> None:  # type: ignore[no-untyped-def]
    found = run(WRONG)
    seed = re.search(r"--stablecast-seed (\d+)", text_of(found))
    assert seed is not None
    again = run(WRONG, "--stablecast-seed", seed[1])
    again.assert_outcomes(failed=1)
    assert line_of(again) == line_of(found)
    assert "test_application: 2 worlds, " in text_of(again)


def test_the_line_is_a_regression(run) -> None:  # type: ignore[no-untyped-def]
    line = line_of(run(WRONG))
    above = WRONG.replace("    @stablecast.testing.world", f"    {line}\n    @stablecast.testing.world")
    result = run(above)
    result.assert_outcomes(failed=1)
    assert "fails after 1 world" in text_of(result)


def test_the_line_works_below_and_alone(run) -> None:  # type: ignore[no-untyped-def]
    line = line_of(run(WRONG))
    world = next(one for one in WRONG.splitlines() if "testing.world(" in one)
    below = run(WRONG.replace(world, f"{world}\n    {line}"))
    assert "fails after 1 world" in text_of(below)
    alone = line.replace("faults=", "stores=0, faults=")
    run(WRONG.replace(world, f"    {alone}")).assert_outcomes(failed=1)
    result = run(RIGHT.replace(world, f"    {alone}"))
    result.assert_outcomes(passed=1)
    assert "1 world, " in text_of(result)


def test_the_number_of_seeds_is_an_option(run) -> None:  # type: ignore[no-untyped-def]
    assert "::test_application: 7 worlds, " in text_of(run(RIGHT, "--stablecast-seeds", "7"))


@pytest.mark.parametrize("option", ["--stablecast-seeds", "--stablecast-jobs"])
def test_numbers_are_positive(run, option: str) -> None:  # type: ignore[no-untyped-def]
    assert run(RIGHT, option, "0").ret is pytest.ExitCode.USAGE_ERROR


def test_several_processes_find_the_same(run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("stablecast.testing.parallel_seeds.ALONE_S", -1.0)
    assert line_of(run(WRONG, "--stablecast-jobs", "3")) == line_of(run(WRONG, "--stablecast-jobs", "1"))
    assert "::test_application: 30 worlds, " in text_of(run(RIGHT, "--stablecast-jobs", "2"))


def test_fixtures_parameters_and_classes_work_beside_it(run) -> None:  # type: ignore[no-untyped-def]
    source = """
        import asyncio
        import pytest
        import stablecast.testing

        @pytest.fixture
        def wait():
            return 5

        class TestIt:
            @pytest.mark.parametrize("times", [1, 2])
            @stablecast.testing.world(stores=0, seeds=2)
            async def test_time(self, times, world, wait, tmp_path):
                await asyncio.sleep(times * wait)
                assert times * wait <= world.time() < times * wait + 1
    """
    run(source).assert_outcomes(passed=2)


def test_an_exception_of_a_program_fails_the_test(run) -> None:  # type: ignore[no-untyped-def]
    source = """
        import stablecast.testing

        async def application():
            raise ValueError("wrong book")

        @stablecast.testing.world(stores=0, seeds=2)
        async def test_it(world):
            world.start(application)
            await world.settled()
    """
    result = run(source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '>*raise ValueError("wrong book")',
            "E*ValueError: wrong book",
            "The exception is of the program application on app.",
        ]
    )
    assert "The test fails without any fault." in text_of(result)


def test_a_skip_and_an_interrupt_are_those_of_pytest(run) -> None:  # type: ignore[no-untyped-def]
    source = """
        import pytest
        import stablecast.testing

        @stablecast.testing.world(stores=0, seeds=2)
        async def test_it(world):
            pytest.skip("not here")
    """
    run(source).assert_outcomes(skipped=1)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("def test_it(world): pass", "test_it: a test of a world is an async function with a parameter named 'world'"),
        ("async def test_it(): pass", "test_it: a test of a world is an async function with a parameter named 'world'"),
    ],
)
def test_other_functions_are_refused(run, function: str, sentence: str) -> None:  # type: ignore[no-untyped-def]
    result = run(f"import stablecast.testing\n@stablecast.testing.world()\n{function}")
    assert sentence in text_of(result)


def test_a_run_without_worlds_prints_nothing(run) -> None:  # type: ignore[no-untyped-def]
    result = run("def test_it(): pass")
    result.assert_outcomes(passed=1)
    assert "stablecast" not in text_of(result)


def test_pytest_finds_the_plugin() -> None:
    points = PYPROJECT["project"]["entry-points"]["pytest11"]
    assert EntryPoint("stablecast", points["stablecast"], "pytest11").load() is plugin


def test_the_plugin_loads_little() -> None:
    """Each run of pytest in the environment of a user loads it."""
    code = "import sys; import stablecast.testing.plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": PYTHON_PATH}, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"asyncio", "greenlet", "stablecast.client", "stablecast.lab.world"}
