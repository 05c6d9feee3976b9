"""Run the process of a daemon whose file names log, pidfile and user, and end it by signals: of stores and routers."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stablecast.config.findings import ConfigFileError, ConfigProblem
from stablecast.config.plan import DaemonPlan, LogConfig
from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.runtime.event_loop import on_ending, run_service
from stablecast.store.log_lines import Log, Severity
from stablecast.store.process import Pidfile, become
from stablecast.text.console import note, say
from stablecast.text.exit_status import FAILED, INTERRUPTED
from stablecast.text.release import build, release

if TYPE_CHECKING:
    from stablecast.config.plan import Plan
    from stablecast.router.config import RouterConfig

Serve = Callable[[Log, machine.DetachedProcess | None], Coroutine[Any, Any, int]]
"""Serves until interrupted, and returns the exit status."""

STOPPING = (Severity.INFO, "", "stopping", "a signal asks for the end; a second one ends the daemon at once")
"""The line of the log for the first signal."""

AT_ONCE = (Severity.WARNING, "", "ended-at-once", "a second signal ended the daemon before it had stopped")
"""The line for the second."""

CODE = "configuration"
"""The code of lines about the file."""

LAST_LINE_SECONDS = 0.05
"""Seconds that the log may take for a line about a signal: two of them must end a daemon within 0.1 s (P-708)."""


ConfiguredT = TypeVar("ConfiguredT", "Plan", "RouterConfig")
"""What the file of a daemon says."""


def validated(
    path: Path, load: Callable[[], ConfiguredT], shown: Callable[[ConfiguredT], Mapping[str, Any]], as_json: bool
) -> int:
    """Check a configuration file; return 0 if it is valid (P-703).

    With `as_json` its problems, or what is `shown` of it, are printed. Without it, this raises like `load`.
    """
    try:
        found = load()
    except ConfigFileError as error:
        if not as_json:
            raise
        wrong = [{"line": one.place.line, "element": one.place.element, "text": one.text} for one in error.problems]
        say({"valid": False, "problems": wrong})
        return FAILED
    for notice in found.notices:
        note(notice.told(str(path)))
    say({"valid": True, **shown(found)} if as_json else f"{path} is valid")
    return 0


def read_again(path: Path, load: Callable[[], ConfiguredT], log: Log, rolling: LogConfig) -> ConfiguredT | None:
    """Reopen the log after a SIGHUP, and return what the file says now; None if it cannot be read.

    The log rolls as the file says, and as before (`rolling`) if it cannot be read.
    """
    try:
        found = load()
    except (StablecastError, OSError) as error:
        log.reopen(rolling)
        for line in str(error).splitlines():
            log.write(Severity.WARNING, "", CODE, f"nothing is changed, because it cannot be read: {line}")
        return None
    log.reopen(found.daemon.log)
    log.write(Severity.INFO, "", CODE, f"{path} is read again")
    return found


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
            log.write(Severity.WARNING, "", CODE, notice.told(str(path)))
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
