"""A recorded run becomes a test that finds what a handler did wrong."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stablecast.cli.app import app
from stablecast.client import Context
from stablecast.core.errors import ConfigError
from stablecast.lab.world.world import World
from stablecast.testing.generated_test import INSTANTS, UserParts, text_of
from stablecast.testing.recorded_run import (
    UNRECORDED_NS,
    RecordedCrash,
    RecordedMessage,
    RecordedRun,
    RecordedRunError,
    read_run,
)
from stablecast.testing.schedule import MILLISECOND, Strike
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world

pytest_plugins = ["pytester"]

MESSAGES = 20
CRASH = Strike("crash", "app", at=1500 * MILLISECOND, span=700 * MILLISECOND)
TRACES = Path("/traces")

APPLICATION = """
    from pathlib import Path
    from stablecast.client import Context

    BOOK = Path("book")

    async def good(**context):
        async with Context(**context, session_id=2) as office:
            async for message in office.receiver("orders"):
                booked = BOOK.read_bytes().splitlines() if BOOK.exists() else []
                if message.payload not in booked:
                    enter(message.payload)

    async def bad(**context):
        async with Context(**context, session_id=2) as office:
            async for message in office.receiver("orders"):
                enter(message.payload)

    def enter(order):
        with BOOK.open("ab") as file:
            file.write(order + b"\\n")

    def order(topic, number, size):
        return b"order %d" % number

    def check(world, sent):
        assert world.read("app", "book").splitlines() == sent
"""
"""An application whose handlers differ in one thing: the bad one books a message again that comes again."""


async def sell(stores: list[str], **context: Any) -> None:
    async with Context(**context, session_id=1) as shop:
        source = await shop.source("orders", stores=stores, within=None)
        await asyncio.sleep(0.4)  # The application finds the source meanwhile, and recovers nothing before the crash.
        for number in range(MESSAGES):
            await source.send(b"order %d" % number)
            await asyncio.sleep(0.2)
        await asyncio.Event().wait()


async def book(**context: Any) -> None:
    async with Context(**context, session_id=2, trace=TRACES) as office:
        async for _ in office.receiver("orders"):
            await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the traces of an application that crashed once."""
    directory = tmp_path_factory.mktemp("traces")
    labs: list[World] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, host="shop", **world.context_of("shop"))
        world.start(book, host="app", **world.context_of("app"))
        await asyncio.sleep(8)
        labs.append(world._lab)

    assert run_world(WorldSetting(), body, 1, [CRASH]).failure is None
    for name, _, contents in labs[0].host("app").disk.backup(str(TRACES)).files:
        assert isinstance(contents, bytes)
        (directory / name).write_bytes(contents)
    return directory


def test_traces_show_messages_and_a_crash(place: Path) -> None:
    run = read_run([place])
    assert [(one.source, one.topic, one.number) for one in run.messages] == [(0, "orders", n) for n in range(MESSAGES)]
    assert (run.messages[0].size, run.messages[-1].size) == (7, 8)
    assert (run.stores, run.orderly, len(run.crashes)) == (3, 0, 1)
    crash = run.crashes[0]
    assert crash.first <= CRASH.at <= crash.last <= crash.first + UNRECORDED_NS
    assert abs(crash.again - CRASH.at - CRASH.span) < 100 * MILLISECOND


def test_recovered_messages_get_the_times_between_their_neighbours(place: Path) -> None:
    """The messages of the crash arrived together when the application was back."""
    times = [one.at for one in read_run([place]).messages]
    steps = [later - time for time, later in pairwise(times)]
    assert all(abs(step - 200 * MILLISECOND) < 5 * MILLISECOND for step in steps)


@pytest.mark.parametrize("handler", ["good", "bad"])
def test_a_generated_test_finds_the_bad_handler(
    place: Path, handler: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(my_app=APPLICATION)
    pytester.syspathinsert()
    words = ["testing", "from-traces", str(place), "--output", "test_incident.py", "--application", f"my_app:{handler}"]
    done = CliRunner().invoke(app, [*words, "--payload", "my_app:order", "--check", "my_app:check"])
    assert done.exit_code == 0, done.output
    assert done.output == "test_incident.py: 20 messages, 1 restart\n"
    quiet = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    result = pytester.runpytest_inprocess("-p", "stablecast.testing.plugin", *quiet)
    result.assert_outcomes(passed=handler == "good", failed=handler == "bad")
    if handler == "bad":
        result.stdout.fnmatch_lines(["*assert world.read*", "  crash of app at * ms for * ms"])


def test_without_functions_the_text_has_stubs_that_say_what_is_missing(place: Path) -> None:
    done = CliRunner().invoke(app, ["testing", "from-traces", str(place)])
    assert done.exit_code == 0, done.output
    compile(done.output, "test_incident.py", "exec")
    assert "Traces have no payloads" in done.output
    assert done.output.count("@stablecast.testing.regression") == INSTANTS
    for stub in ("async def application(", "def payload(", "def check("):
        assert stub in done.output


def test_a_run_without_a_crash_is_one_world() -> None:
    run = RecordedRun((RecordedMessage(5, 0, "a", 7, 3), RecordedMessage(9, 1, "b", 0, 4)), (), 2, 1)
    text = text_of(run, UserParts("app:main", "app:payload", "package.app:verify"))
    assert "from app import main as application\nfrom app import payload\n" in text
    assert "from package.app import verify as check\n" in text
    assert "@stablecast.testing.regression(seed=0, stores=2, faults=[])\nasync def" in text
    assert "ended properly and began again, 1 times" in text
    compile(text, "test.py", "exec")


def test_instants_of_a_crash_are_spread_over_the_unknown_time() -> None:
    ms = MILLISECOND
    run = RecordedRun((RecordedMessage(0, 0, "a", 0, 1),), (RecordedCrash(100 * ms, 170 * ms, 300 * ms),), 3, 0)
    text = text_of(run, UserParts("app:main"))
    assert [f"'at_ms': {100.0 + 10 * index}" in text for index in range(INSTANTS)] == [True] * INSTANTS
    assert "'at_ms': 170.0, 'ms': 130.0" in text


@pytest.mark.parametrize("given", ["my_app", "my_app:", ":main", "my-app:main", "my_app:main()"])
def test_a_function_is_named_by_module_and_name(given: str) -> None:
    with pytest.raises(ConfigError, match="give MODULE:FUNCTION"):
        UserParts(application=given).lines()


def test_traces_without_a_receiver_are_refused(tmp_path: Path) -> None:
    """The directory has a trace, but of a source."""
    labs: list[World] = []

    async def body(world: SimulatedWorld) -> None:
        context = world.context_of("shop") | {"trace": TRACES}
        world.start(sell, world.stores, host="shop", **context)
        await asyncio.sleep(1)
        labs.append(world._lab)

    assert run_world(WorldSetting(stores=1), body, 1, []).failure is None
    for name, _, contents in labs[0].host("shop").disk.backup(str(TRACES)).files:
        assert isinstance(contents, bytes)
        (tmp_path / name).write_bytes(contents)
    with pytest.raises(RecordedRunError, match="name the directory to which the application recorded"):
        read_run([tmp_path])
