"""One run of a test in one world: a seed and a schedule give an outcome."""

import asyncio
import gc
import hashlib
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

import attrs

from stablecast.config import profiles
from stablecast.config.option_names import SAFE
from stablecast.core.errors import StablecastError
from stablecast.lab.world.disk import DiskBackup
from stablecast.lab.world.kernel import WorldError
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.world import World
from stablecast.testing.programs import Program
from stablecast.testing.schedule import Activity, Strike
from stablecast.testing.simulated_world import SECOND, TEST_HOST, SimulatedWorld
from stablecast.testing.timeline import WorldTimeline

LIMIT_S: Final = 3_600.0
"""Seconds of virtual time after which a world is given up."""

YOUNGER: Final = 1
"""Generations that hold the objects of one world: it runs without collections, and one follows its end."""

TRACES: Final = "/traces"
"""The directory of the traces of a host."""

_INSIDE: Final = ("stablecast.lab.world", "stablecast.testing", "asyncio")

Body = Callable[[SimulatedWorld], Coroutine[Any, Any, Any]]
"""The test, as a function of its world."""


@attrs.frozen
class Failure:
    """The exception that failed a run.

    Attributes:
        error: The exception; its traceback begins in the code of the user.
        program: The program that raised it; empty for the test itself.
        place: The file and the line of the innermost frame of the user, to compare failures.
        waiting: The places where programs wait, if the world could not go on.
    """

    error: BaseException
    program: str
    place: str
    waiting: tuple[str, ...] = ()

    @property
    def signature(self) -> tuple[str, str, str]:
        """The parts that two failures of one cause have in common."""
        return type(self.error).__name__, self.program, self.place


@attrs.frozen
class Outcome:
    """The outcome of one run.

    Attributes:
        seed: The seed.
        strikes: The schedule.
        struck: The strikes that had an effect.
        failure: The failure; None if the test passed.
        timeline: All that happened.
        fates: What became of the messages that programs had when faults ended them.
        activity: The activity of its hosts.
        digest: A digest of the run: equal digests, equal runs.
        traces: The traces of each host, if the world was traced.
    """

    seed: int
    strikes: Sequence[Strike]
    struck: Sequence[Strike]
    failure: Failure | None
    timeline: WorldTimeline
    activity: Activity
    digest: str
    traces: Mapping[str, DiskBackup] = attrs.field(factory=dict, repr=False)
    fates: Sequence[str] = ()


@attrs.frozen
class WorldSetting:
    """The parts of a world that do not depend on its seed.

    Attributes:
        stores: Number of stores.
        limit_s: Seconds of virtual time after which a world is given up.
        traced: Stores and contexts write traces.
        options: Options of each store, as `stablecast store --option` takes them.
        far: The hosts of a second domain, which a router joins with the first; empty: there is one domain.
    """

    stores: int = 3
    limit_s: float = LIMIT_S
    traced: bool = False
    options: Sequence[str] = ()
    far: tuple[str, ...] = ()


EAGER: Final = 4
"""Each world whose seed this number divides acknowledges at once what was consumed, unless a program chooses otherwise.

Elsewhere an acknowledgement leaves within a tenth of a second. A program that acknowledges before it has done its work,
and is done soon after, is killed in between too seldom to be found out."""


@contextmanager
def _acknowledging(seed: int) -> Iterator[None]:
    """Let receivers acknowledge as the worlds of this seed do."""
    default = profiles.DIFFERENCES
    if seed and not seed % EAGER:
        told = {**default[SAFE]["receiver"], "ume_use_ack_batching": 0}
        profiles.DIFFERENCES = {**default, SAFE: {**default[SAFE], "receiver": told}}
    try:
        yield
    finally:
        profiles.DIFFERENCES = default


def run_world(setting: WorldSetting, body: Body, seed: int, strikes: Sequence[Strike]) -> Outcome:
    """Run a test in the world of a seed. An exception that is no failure, such as KeyboardInterrupt, is raised."""
    with warnings.catch_warnings(), _acknowledging(seed):
        # A killed program closes nothing, and Python would warn of each transport and coroutine that it left.
        warnings.simplefilter("ignore")
        try:
            return _run(setting, body, seed, strikes)
        finally:
            gc.collect(YOUNGER)


def _run(setting: WorldSetting, body: Body, seed: int, strikes: Sequence[Strike]) -> Outcome:
    lab = World(seed)
    world = SimulatedWorld(lab, strikes, TRACES if setting.traced else None, setting.far)
    with lab.open(), world.deliveries.watching():
        if setting.stores or setting.far:
            from stablecast.testing.simulated_stores import start_stores  # noqa: PLC0415 - stores load the whole client

            start_stores(world, lab, setting.stores, setting.options)
        world.begin()
        world.machine(TEST_HOST)
        test = lab.start(lambda: body(world), TEST_HOST)
        stuck: WorldError | None = None
        try:
            lab.kernel.run(lambda: test.gone or world.supervisor.failure is not None, _deadline(lab, setting))
        except WorldError as error:
            stuck = error
        failure = _failure(test, world.supervisor.failure, stuck, lab)
        return Outcome(
            seed,
            strikes,
            list(world.injector.struck),
            failure,
            world.timeline,
            world.activity(),
            _digest(lab, world),
            world.traces(),
            world.deliveries.lines() if failure is not None else (),
        )


def _deadline(lab: World, setting: WorldSetting) -> int:
    return lab.now + int(setting.limit_s * SECOND)


def _failure(
    test: SimulatedProcess, failed: tuple[Program, BaseException] | None, stuck: WorldError | None, lab: World
) -> Failure | None:
    error = failed[1] if failed is not None else test.error or stuck
    if error is None:
        return None
    if not is_failure(error):
        raise error
    shown = _user_traceback(error.__traceback__)
    program = "" if failed is None else f"{failed[0].name} on {failed[0].host}"
    waiting = () if stuck is None else tuple(_waiting(lab))
    return Failure(error.with_traceback(shown), program, _innermost(shown), waiting)


def is_failure(error: BaseException) -> bool:
    """Return whether an exception is a finding: it is an Exception, or the one of `pytest.fail`."""
    if isinstance(error, Exception):
        return True
    # The fail of a time limit concerns the run of all worlds, not this one.
    return type(error).__name__ == "Failed" and not str(error).startswith("Timeout")


def _user_traceback(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins with the first frame outside of the world and asyncio."""
    found = trace
    while found is not None and _is_inside(found):
        found = found.tb_next
    return found or trace


def _is_inside(trace: TracebackType) -> bool:
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.startswith(_INSIDE)


def _innermost(trace: TracebackType | None) -> str:
    """Return the file and the line of the innermost frame that is neither the world's nor asyncio's."""
    place = ""
    while trace is not None:
        if not _is_inside(trace):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _waiting(lab: World) -> list[str]:
    """Return the place where each task of each program waits."""
    loops = [(host.name, loop) for host in lab.hosts.values() for process in host.running for loop in process.loops]
    return [
        f"{host}: {place}"
        for host, loop in loops
        for task in sorted(asyncio.all_tasks(loop), key=lambda one: one.get_name())
        if (place := _place_of(task.get_coro()))
    ]


def _place_of(coroutine: Any) -> str:
    """Return the innermost place outside of asyncio at which a coroutine waits."""
    place = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and not str(frame.f_globals.get("__name__", "")).startswith("asyncio"):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        if getattr(coroutine, "cr_running", False):
            break  # Its thread blocks in it, and to ask what it awaits is a crash of the interpreter.
        coroutine = getattr(coroutine, "cr_await", None)
    return place


def _digest(lab: World, world: SimulatedWorld) -> str:
    state = f"{lab.now} {lab.kernel.steps} {lab.kernel.random.getstate()}"
    return hashlib.sha256(f"{world.timeline.digest()} {state}".encode()).hexdigest()


__all__ = ["Body", "Failure", "Outcome", "StablecastError", "WorldSetting", "is_failure", "run_world"]
