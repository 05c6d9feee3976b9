"""Run the process of a daemon whose file names log, pidfile and user, and end it by signals: of stores and routers."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from stablecast.config.findings import ConfigProblem
from stablecast.config.plan import DaemonPlan
from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.runtime.event_loop import on_ending, run_service
from stablecast.store.log_lines import Log, Severity
from stablecast.store.process import Pidfile, become
from stablecast.text.console import note
from stablecast.text.exit_status import INTERRUPTED
from stablecast.text.release import build, release

Serve = Callable[[Log, machine.DetachedProcess | None], Coroutine[Any, Any, int]]
"""Serves until interrupted, and returns the exit status."""

STOPPING = (Severity.INFO, "", "stopping", "a signal asks for the end; a second one ends the daemon at once")
"""The line of the log for the first signal."""

AT_ONCE = (Severity.WARNING, "", "ended-at-once", "a second signal ended the daemon before it had stopped")
"""The line for the second."""

LAST_LINE_SECONDS = 0.05
"""Seconds that the log may take for a line about a signal: two of them must end a daemon within 0.1 s (P-708)."""


def run_process(path: Path, daemon: DaemonPlan, notices: Sequence[ConfigProblem], serve: Serve, *, detach: bool) -> int:
    """Run a daemon as its file says; return the exit status. Raises like `serve`, and if the process cannot begin.

    Args:
        path: The file.
        daemon: Its process.
        notices: Notices about the file.
        serve: What to run.
        detach: Whether to go on in a background process without a terminal.
    """
    for notice in notices:
        note(notice.told(str(path)))
    if detach and daemon.log.path is None:
        note(f"{path}: the log of a detached daemon is lost: name a file in <log>")
    detached = machine.process.detach() if detach else None
    if isinstance(detached, int):
        return detached
    with ExitStack() as stack:
        pidfile = None if daemon.pidfile is None else Pidfile.write(daemon.pidfile)
        if pidfile is not None:
            stack.callback(pidfile.remove)
        machine.process.keep_files_private()  # The pidfile is for everybody.
        log = Log(daemon.log, machine.process.errors())
        stack.callback(log.close)
        for code, text in (("version", release()), ("build", build())):
            log.write(Severity.INFO, "", code, text)
        for notice in notices if daemon.log.path is not None else ():
            log.write(Severity.WARNING, "", "configuration", notice.told(str(path)))
        machine.process.raise_descriptor_limit()
        try:
            become(daemon.uid, daemon.gid, [file for file in (daemon.pidfile, daemon.log.path) if file is not None])
            return run_service(serve(log, detached))
        except Exception as error:
            expected = isinstance(error, StablecastError | OSError)
            log.write(
                Severity.ERROR, "", "daemon-failed", str(error) if expected else f"{type(error).__name__}: {error}"
            )
            raise


def interruption(log: Log | None = None) -> "asyncio.Future[None]":
    """Return a future that is done at the first signal that asks for the end (P-707).

    The second signal ends the process as a crash would (P-708). The loop may wait for a blocked disk, and every message
    that was reported stable is durable already. The log has a line for each of the two.
    """
    stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def interrupted() -> None:
        second = stop.done()
        if log is not None:
            # The disk of the log may be the one that blocks, so another thread writes and may be left behind.
            line = AT_ONCE if second else STOPPING
            machine.threads.start("stablecast-signal", log.write, *line).join(LAST_LINE_SECONDS)
        if second:
            machine.process.exit(INTERRUPTED)
        stop.set_result(None)

    on_ending(interrupted)
    return stop
