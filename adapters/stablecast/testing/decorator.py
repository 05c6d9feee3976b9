"""The decorators of tests that use a world.

A decorated test is a plain function without the parameter `world`. So fixtures, parameters and marks of pytest work
beside it, and other runners can call it, too.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from stablecast.core.errors import ConfigError
from stablecast.testing.faults import FaultKind, FaultKinds, as_faults
from stablecast.testing.run_options import OPTIONS, RunOptions
from stablecast.testing.schedule import schedule_of

if TYPE_CHECKING:
    from stablecast.testing.exploration import WorldReport

WORLD = "world"
"""The parameter through which a test gets its world."""

AsyncTest = Callable[..., Coroutine[Any, Any, Any]]


class WorldTest:
    """A decorated test: its function, its plan, and its results.

    Attributes:
        function: The coroutine function that the user wrote.
        plan: The worlds that it asks for.
        reports: The reports of its runs that nobody has collected yet.
    """

    def __init__(self, function: AsyncTest) -> None:
        from stablecast.testing.exploration import WorldPlan  # noqa: PLC0415 - the plugin loads without greenlet

        self.function = function
        self.plan = WorldPlan(seeds=0)
        self.reports: list[WorldReport] = []

    def run(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Run all worlds; raise the exception of the first that fails."""
        __tracebackhide__ = True
        options = OPTIONS.get(RunOptions())
        report = self._explore(lambda world: self.function(*arguments, **{**keywords, WORLD: world}), options)
        self.reports.append(report)
        if report.found is not None and report.found.failure is not None:
            raise report.found.failure.error

    def _explore(self, body: Callable[[Any], Coroutine[Any, Any, Any]], options: RunOptions) -> "WorldReport":
        if options.real:
            from stablecast.testing.real_exploration import RealExploration  # noqa: PLC0415

            return RealExploration(self.plan, body, options).run()
        from stablecast.testing.exploration import WorldExploration  # noqa: PLC0415

        return WorldExploration(self.plan, body, options, self.function.__name__).run()


def world(
    *,
    stores: int = 3,
    seeds: int = 200,
    faults: FaultKind | FaultKinds | None = None,
    strikes: int | None = None,
    limit: float | None = None,
    router: Sequence[str] = (),
) -> Callable[[AsyncTest], Callable[..., None]]:
    """Run a coroutine function as a test in many worlds.

    The function has a parameter `world`. It is called once in a world without faults, and then once for each seed.

    Args:
        stores: The number of stores.
        seeds: The number of worlds.
        faults: The kinds of faults, combined by `|`.
        strikes: The largest number of faults of one world; 5 unless given.
        limit: Seconds of virtual time after which a world is given up; an hour unless given.
        router: The hosts of a second domain, for example `("office", "store2")`. The host `router` joins it with the
            domain of all other hosts, which do not reach these.

    Raises:
        ConfigError: An argument is invalid, or the function cannot be such a test.
    """
    if stores < 0 or seeds < 1 or (strikes is not None and strikes < 1):
        raise ConfigError("world: seeds and strikes are at least 1, and stores at least 0")
    if isinstance(router, str):
        raise ConfigError("world: router is a sequence of the names of hosts, not one name")
    kinds = as_faults(faults)

    def decorate(function: AsyncTest) -> Callable[..., None]:
        wrapper = _wrapper(function)
        test: WorldTest = wrapper.stablecast_test  # type: ignore[attr-defined]
        plan = test.plan
        setting = attrs.evolve(plan.setting, stores=stores, limit_s=limit or plan.setting.limit_s, far=tuple(router))
        test.plan = attrs.evolve(plan, setting=setting, seeds=seeds, faults=kinds, most=strikes or plan.most)
        return wrapper

    return decorate


def regression(
    *, seed: int, faults: Iterable[Mapping[str, Any]] = (), stores: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Run a schedule that once failed, before all other worlds of the test.

    It works above `world`, below it, and alone. A failing test prints the line to copy.

    Args:
        seed: The seed of the world.
        faults: The schedule.
        stores: The number of stores, for a regression without `world`; 3 unless given.

    Raises:
        ConfigError: The schedule is malformed.
    """
    schedule = schedule_of(faults)

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        from stablecast.testing.exploration import Regression  # noqa: PLC0415

        wrapper = _wrapper(function)
        test: WorldTest = wrapper.stablecast_test  # type: ignore[attr-defined]
        plan = test.plan
        if stores is not None:
            plan = attrs.evolve(plan, setting=attrs.evolve(plan.setting, stores=stores))
        # The decorator nearest to the function is applied first, but stands last.
        test.plan = attrs.evolve(plan, regressions=(Regression(seed, schedule), *plan.regressions))
        return wrapper

    return decorate


def _wrapper(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a plain function that runs the worlds of a test; a wrapper is returned as it is."""
    if hasattr(function, "stablecast_test"):
        return function
    signature = inspect.signature(function)
    if not inspect.iscoroutinefunction(function) or WORLD not in signature.parameters:
        name = getattr(function, "__qualname__", repr(function))
        raise ConfigError(f"{name}: a test of a world is an async function with a parameter named {WORLD!r}")
    test = WorldTest(function)

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> None:
        __tracebackhide__ = True
        test.run(arguments, keywords)

    kept = [one for one in signature.parameters.values() if one.name != WORLD]
    run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    run.stablecast_test = test  # type: ignore[attr-defined]
    return run
