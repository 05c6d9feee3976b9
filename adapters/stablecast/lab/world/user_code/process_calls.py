"""The calls of a program about its process: environment, number, signals, end, output; and what is refused."""

import _posixsubprocess
import atexit
import builtins
import concurrent.futures.process
import multiprocessing.process
import os
import platform
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from stablecast.lab.world.event_loop import SUBPROCESS
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code.replacement import (
    Replacement,
    Table,
    in_programs,
    installation,
    method_in_programs,
    refusal_in_programs,
    refuse,
)

CORES: Final = 2
"""Processors of each host."""

USER: Final = 1_000
"""Number of the user and the group of all processes: nobody is root."""

_REFUSED_OF_OS: Final = ("fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "system")
_REFUSED_SIGNALS: Final = ("alarm", "setitimer", "pause", "sigwait", "sigwaitinfo", "sigtimedwait", "pthread_kill")


def table() -> Table:
    return [*_environment(), *_identity(), *_signals(), *_end(), *_output(), *_refusals()]


# ------------------------------------------------------------------------------------------------------- environment


def _environment() -> Table:
    kind: Any = type(os.environ)
    return [
        method_in_programs(kind, "__getitem__", _get),
        method_in_programs(kind, "__setitem__", _set),
        method_in_programs(kind, "__delitem__", _delete),
        method_in_programs(kind, "__iter__", _names),
        method_in_programs(kind, "__len__", lambda process, *_: len(process.environment)),
        in_programs(os, "putenv", lambda *_: None),
        in_programs(os, "unsetenv", lambda *_: None),
    ]


def _get(process: SimulatedProcess, _: Any, environ: Any, key: Any) -> Any:
    environ.encodekey(key)
    try:
        value = process.environment[os.fsdecode(key)]
    except KeyError:
        raise KeyError(key) from None
    return environ.decodevalue(os.fsencode(value))


def _set(process: SimulatedProcess, _: Any, environ: Any, key: Any, value: Any) -> None:
    name, octets = environ.encodekey(key), environ.encodevalue(value)
    process.environment[os.fsdecode(name)] = os.fsdecode(octets)


def _delete(process: SimulatedProcess, _: Any, environ: Any, key: Any) -> None:
    environ.encodekey(key)
    try:
        del process.environment[os.fsdecode(key)]
    except KeyError:
        raise KeyError(key) from None


def _names(process: SimulatedProcess, _: Any, environ: Any) -> Iterator[Any]:
    return iter([environ.decodekey(os.fsencode(name)) for name in process.environment])


# ---------------------------------------------------------------------------------------------------------- identity


def _identity() -> Table:
    cores = [name for name in ("cpu_count", "process_cpu_count") if hasattr(os, name)]
    real_uname = os.uname
    return [
        in_programs(os, "getpid", lambda process: process.number),
        in_programs(os, "getppid", lambda _: 1),
        *[in_programs(os, name, lambda _: CORES) for name in cores],
        *[in_programs(os, name, lambda _: USER) for name in ("getuid", "geteuid", "getgid", "getegid")],
        in_programs(os, "sched_yield", lambda process: process.kernel.pay()),
        in_programs(os, "sched_getaffinity", lambda *_: set(range(CORES))),
        in_programs(os, "uname", lambda process: _uname(process, real_uname())),
        in_programs(platform, "node", lambda process: process.host.name),
        in_programs(socket, "gethostname", lambda process: process.host.name),
        in_programs(socket, "getfqdn", lambda process, name="": name or process.host.name),
    ]


def _uname(process: SimulatedProcess, real: os.uname_result) -> os.uname_result:
    return os.uname_result((real.sysname, process.host.name, real.release, real.version, real.machine))


# ----------------------------------------------------------------------------------------------------------- signals


def _signals() -> Table:
    return [
        in_programs(os, "kill", _kill),
        in_programs(signal, "raise_signal", lambda process, number: _kill(process, process.number, number)),
        in_programs(signal, "signal", _handle),
        in_programs(signal, "getsignal", _handler),
        in_programs(signal, "set_wakeup_fd", lambda *_, **__: -1),
        in_programs(signal, "siginterrupt", lambda *_: None),
        in_programs(signal, "pthread_sigmask", lambda *_: set()),
        *[refusal_in_programs(signal, name, f"signal.{name}", "use asyncio or threads") for name in _REFUSED_SIGNALS],
    ]


def _kill(process: SimulatedProcess, pid: int, number: int, /) -> None:
    """Send a signal to a process of the same host. Raises ProcessLookupError."""
    target = next((one for one in process.host.running if one.number == pid), None)
    if target is None:
        raise ProcessLookupError(3, "No such process")
    if number:
        target.signal(number)
    running = process.kernel.running()
    if process.gone:
        running.leave()
    if not process.runs:
        process.kernel.pay()
    process.on_resume(running)


def _handler(process: SimulatedProcess, number: int) -> Any:
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGPIPE: signal.SIG_IGN}
    return process.memory.get(("signal", number), usual.get(number, signal.SIG_DFL))


def _handle(process: SimulatedProcess, number: int, handler: Any) -> Any:
    """Set a handler; it runs in the main thread. Raises ValueError elsewhere."""
    if process.kernel.running() is not process.main:
        raise ValueError("signal only works in main thread of the main interpreter")
    if number in (signal.SIGKILL, signal.SIGSTOP):
        raise OSError(22, "Invalid argument")
    previous = _handler(process, number)
    process.memory["signal", number] = handler
    if handler == signal.SIG_DFL:
        process.signals.pop(number, None)
    elif handler == signal.SIG_IGN:
        process.signals[number] = lambda: None
    else:
        process.signals[number] = lambda: process.interrupt(lambda: handler(number, None))
    return previous


# --------------------------------------------------------------------------------------------------------------- end


def _end() -> Table:
    return [
        in_programs(os, "_exit", _exit),
        in_programs(os, "abort", _exit),
        in_programs(atexit, "register", _at_exit),
        in_programs(atexit, "unregister", _not_at_exit),
    ]


def _exit(process: SimulatedProcess, status: int = 134) -> NoReturn:
    process.status = status
    process.end()
    process.kernel.running().leave()


def _at_exit(process: SimulatedProcess, function: Any, /, *args: Any, **options: Any) -> Any:
    def call() -> None:
        function(*args, **options)

    process.memory.setdefault("exits", []).append((function, call))
    process.at_exit.append(call)
    return function


def _not_at_exit(process: SimulatedProcess, function: Any, /) -> None:
    for known, call in process.memory.get("exits", ()):
        if known == function and call in process.at_exit:
            process.at_exit.remove(call)


# ------------------------------------------------------------------------------------------------------------ output


class ProgramStream:
    """`sys.stdout` or `sys.stderr`: lines of a program are kept by its process."""

    def __init__(self, real: Any) -> None:
        """Pass everything else on to the real stream."""
        self._real = real

    def write(self, text: str) -> int:
        process = installation.programs()
        if process is None:
            written: int = self._real.write(text)
            return written
        if process.gone:
            return len(text)
        if installation.echoes:
            self._real.write(text)
        return process.console.write(text)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream that is written now."""
        process = installation.programs()
        return getattr(self._real if process is None else process.console, name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the lines of the real stream."""
        return iter(self._real)


def _output() -> Table:
    return [in_programs(builtins, "input", lambda *_: refuse("standard input", "pass arguments"))]


def streams() -> Table:
    """Return the replacements of the streams of this moment: pytest exchanges them for each test."""
    return [Replacement(sys, name, ProgramStream(getattr(sys, name))) for name in ("stdout", "stderr")]


# ---------------------------------------------------------------------------------------------------------- refusals


def _refusals() -> Table:
    return [
        *[refusal_in_programs(os, name, f"os.{name}", SUBPROCESS) for name in _REFUSED_OF_OS],
        refusal_in_programs(_posixsubprocess, "fork_exec", "a subprocess", SUBPROCESS),
        refusal_in_programs(subprocess.Popen, "__init__", "a subprocess", SUBPROCESS),
        refusal_in_programs(multiprocessing.process.BaseProcess, "start", "multiprocessing", SUBPROCESS),
        refusal_in_programs(
            concurrent.futures.process.ProcessPoolExecutor, "__init__", "a process pool", "use threads"
        ),
        refusal_in_programs(ssl.SSLContext, "wrap_socket", "TLS on blocking sockets", "use the streams of asyncio"),
    ]
