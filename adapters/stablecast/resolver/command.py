"""What `stablecast lbmrd` runs."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from importlib import import_module

from stablecast.core.errors import StablecastError
from stablecast.resolver.daemon import RelayDaemon


def run_lbmrd(interface: str, port: int, as_json: bool) -> int:
    """Runs a relay until SIGINT or SIGTERM and returns the exit status: 0, or 1 if it could not start.

    Standard output gets one line when it is ready and one with its statistics when it stops; with `as_json` these are
    `{"ready": true, "port": n}` and `{"stopped": true, ...}`. The error is one sentence on standard error.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            runner.run(_serve(interface, port, as_json))
        except StablecastError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop where it is installed: its datagrams are several times faster."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return factory


async def _serve(interface: str, port: int, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    daemon = await RelayDaemon.start(interface, port)
    ready = json.dumps({"ready": True, "port": daemon.port}) if as_json else f"lbmrd is ready on {daemon.address}"
    _say(ready)
    await stop.wait()
    statistics = daemon.statistics()
    await daemon.close()
    _say(json.dumps({"stopped": True, **statistics}) if as_json else _summary(statistics))


def _summary(statistics: dict[str, int]) -> str:
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in statistics.items())
    return f"lbmrd stopped: {counts}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
