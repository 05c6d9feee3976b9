"""Functions of Python act on the host of a program of a world, and as ever in all other code."""

import datetime as dt
import logging
import os
import random
import secrets
import time
import uuid
from collections.abc import Callable
from datetime import datetime as imported_datetime
from time import time as imported_time
from typing import Any

import pytest

from tests.adapters.lab.world.scene import scene

BEGIN = dt.datetime(2026, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
"""Wall clock of a host when a world begins."""

WIDTH = dt.timedelta(milliseconds=1)


def run(main: Callable[[], Any], seed: int = 1) -> Any:
    """Run a function as a program; return its result."""
    with scene(seed) as world:
        (process,) = world.run_programs(host=main)
        return process.status


# ------------------------------------------------------------------------------------------------------------- clocks

CLOCKS: dict[str, Callable[[], dt.datetime]] = {
    "time": lambda: dt.datetime.fromtimestamp(time.time(), dt.UTC),
    "imported time": lambda: dt.datetime.fromtimestamp(imported_time(), dt.UTC),
    "time_ns": lambda: dt.datetime.fromtimestamp(time.time_ns() / 1e9, dt.UTC),
    "now": lambda: dt.datetime.now().astimezone(),
    "now of a zone": lambda: imported_datetime.now(dt.UTC),
    "utcnow": lambda: dt.datetime.utcnow().replace(tzinfo=dt.UTC),  # noqa: DTZ003 - programs call it
    "today": lambda: dt.datetime.today().astimezone(),
    "gmtime": lambda: dt.datetime(*time.gmtime()[:6], tzinfo=dt.UTC) + dt.timedelta(microseconds=25),
    "clock_gettime": lambda: dt.datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), dt.UTC),
}


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.filterwarnings("ignore:.*utcnow:DeprecationWarning")
def test_the_wall_clock_is_that_of_the_host(name: str) -> None:
    assert BEGIN <= run(CLOCKS[name]) < BEGIN + WIDTH
    assert CLOCKS[name]() > dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


def test_dates_keep_their_class() -> None:
    class Derived(dt.datetime):
        pass

    found = run(lambda: (dt.datetime.now(), Derived.now(dt.UTC), dt.date.today()))  # noqa: DTZ005, DTZ011
    assert [type(one) for one in found] == [dt.datetime, Derived, dt.date]
    assert type(dt.datetime.now(dt.UTC)) is dt.datetime


def test_a_host_has_its_own_clocks() -> None:
    with scene() as world:
        slow, fast = world.host("slow"), world.host("fast")
        fast.clock.leap(3_600 * 10**9)
        fast.clock.drift(100_000)

        def main() -> tuple[float, float]:
            begin = time.monotonic()
            time.sleep(10)
            return time.monotonic() - begin, time.time()

        one, other = world.call(main, slow.name), world.call(main, fast.name)
        world.finish(other)
        assert not one.gone
        world.finish(one)
        assert (one.status[0], other.status[0]) == (pytest.approx(10, abs=0.01), pytest.approx(10, abs=0.01))
        assert other.status[1] - one.status[1] == pytest.approx(3_600, abs=2)


def test_a_sleep_takes_virtual_time() -> None:
    def main() -> list[float]:
        clocks = (time.monotonic, time.perf_counter, time.time, time.process_time)
        begin = [clock() for clock in clocks]
        time.sleep(86_400)
        return [clock() - since for clock, since in zip(clocks, begin, strict=True)]

    assert run(main) == [pytest.approx(86_400, abs=0.001)] * 4


def test_log_records_have_virtual_times() -> None:
    record = run(lambda: logging.LogRecord("name", logging.INFO, "file", 1, "text", None, None))
    assert record.created == pytest.approx(BEGIN.timestamp(), abs=0.001)


# ------------------------------------------------------------------------------------------------------------ entropy

ENTROPY: dict[str, Callable[[], Any]] = {
    "random": lambda: [random.random(), random.randrange(10**9), random.sample(range(100), 5)],
    "generators": lambda: random.Random().getrandbits(64),
    "SystemRandom": lambda: random.SystemRandom().getrandbits(64),
    "urandom": lambda: os.urandom(16),
    "secrets": lambda: (secrets.token_bytes(16), secrets.token_urlsafe(), secrets.randbelow(10**9)),
    "uuid4": lambda: uuid.uuid4(),  # noqa: PLW0108 - looked up in the world
    "uuid1": lambda: [uuid.uuid1() for _ in range(3)],
}


@pytest.mark.parametrize("name", ENTROPY)
def test_the_seed_decides_entropy(name: str) -> None:
    assert run(ENTROPY[name], 1) == run(ENTROPY[name], 1)
    assert run(ENTROPY[name], 1) != run(ENTROPY[name], 2)
    assert ENTROPY[name]() != ENTROPY[name]()


def test_a_program_may_seed_its_functions_without_effect_on_others() -> None:
    def main() -> tuple[float, bytes]:
        random.seed(7)
        return random.random(), os.urandom(8)

    with scene() as world:
        one, other = world.run_programs(one=main, other=main)
        assert one.status[0] == other.status[0] == random.Random(7).random()
        assert one.status[1] != other.status[1]


def test_identifiers_are_in_order_and_name_their_host() -> None:
    with scene() as world:
        found = world.run_programs(**{name: lambda: [uuid.uuid1() for _ in range(50)] for name in ("one", "other")})
        nodes = []
        for process in found:
            assert [one.time for one in process.status] == sorted({one.time for one in process.status})
            nodes.append({one.node for one in process.status})
        assert nodes[0].isdisjoint(nodes[1])
