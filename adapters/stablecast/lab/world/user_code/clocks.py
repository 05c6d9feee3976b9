"""The clocks that a program sees: those of its host."""

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code.replacement import (
    Replacement,
    Table,
    in_programs,
    installation,
    named_like,
)

NS = 1_000_000_000


def table() -> Table:
    return [
        in_programs(time, "time", lambda process: _wall(process) / 1e9),
        _reading("time_ns", _wall),
        *[in_programs(time, name, lambda process: _monotonic(process) / 1e9) for name in _MONOTONIC],
        *[_reading(f"{name}_ns", _monotonic) for name in _MONOTONIC],
        in_programs(time, "clock_gettime", lambda process, clock: _read(process, clock) / 1e9),
        in_programs(time, "clock_gettime_ns", _read),
        in_programs(time, "sleep", _sleep),
        *_calendars(),
        Replacement(dt.datetime, "now", classmethod(_now(dt.datetime.__dict__["now"])), static=True),
        Replacement(dt.datetime, "utcnow", classmethod(_now(dt.datetime.__dict__["utcnow"])), static=True),
    ]


_MONOTONIC = ("monotonic", "perf_counter", "process_time", "thread_time")


def _reading(name: str, new: Callable[[SimulatedProcess], int]) -> Replacement:
    """Replace a clock as `in_programs` does, in fewer steps: a world reads clocks most often of all."""
    real: Callable[[], int] = getattr(time, name)

    def call() -> int:
        process = installation.programs()
        return real() if process is None else new(process)

    return Replacement(time, name, named_like(call, real), everywhere=True)


def _wall(process: SimulatedProcess) -> int:
    process.kernel.look()
    return process.host.clock.wall_ns()


def _monotonic(process: SimulatedProcess) -> int:
    process.kernel.look()
    return process.clock.monotonic_ns()


def _read(process: SimulatedProcess, clock: int) -> int:
    return _wall(process) if clock == time.CLOCK_REALTIME else _monotonic(process)


def _sleep(process: SimulatedProcess, seconds: float, /) -> None:
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    process.kernel.sleep(process.host.clock.true_wait(seconds))


def _calendars() -> Table:
    """Return the functions that read the wall clock unless they are given a time."""
    gmtime, localtime, ctime, strftime, asctime = time.gmtime, time.localtime, time.ctime, time.strftime, time.asctime

    def now(process: SimulatedProcess) -> int:
        return _wall(process) // NS

    def local(process: SimulatedProcess) -> time.struct_time:
        return localtime(now(process))

    return [
        in_programs(time, "gmtime", lambda process, secs=None: gmtime(now(process) if secs is None else secs)),
        in_programs(time, "localtime", lambda process, secs=None: localtime(now(process) if secs is None else secs)),
        in_programs(time, "ctime", lambda process, secs=None: ctime(now(process) if secs is None else secs)),
        in_programs(time, "strftime", lambda process, form, *t: strftime(form, *(t or [local(process)]))),
        in_programs(time, "asctime", lambda process, *t: asctime(*(t or [local(process)]))),
    ]


def _now(real: Any) -> Any:
    """Return `now` or `utcnow` of a class of dates; `today` reads `time.time` by itself."""
    is_utc = real.__name__ == "utcnow"

    def now(cls: type[dt.datetime], tz: dt.tzinfo | None = None) -> dt.datetime:
        process = installation.programs()
        if process is None:
            found: dt.datetime = real.__get__(None, cls)(*([] if is_utc or tz is None else [tz]))
            return found
        seconds, rest = divmod(_wall(process), NS)
        date = cls.fromtimestamp(seconds, dt.UTC if is_utc else tz).replace(microsecond=rest // 1_000)
        return date.replace(tzinfo=None) if is_utc else date

    now.__name__, now.__qualname__, now.__doc__ = real.__name__, real.__qualname__, real.__doc__
    return now
