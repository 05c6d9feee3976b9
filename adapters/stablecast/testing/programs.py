"""The programs of a world: a supervisor starts them, and starts them again after a crash."""

import asyncio
import traceback
from collections.abc import Callable, Iterable
from typing import Any, Final

from stablecast.lab.world.host import SimulatedHost
from stablecast.lab.world.kernel import WorldError
from stablecast.lab.world.process import Console, SimulatedProcess
from stablecast.testing.timeline import ERROR, OUTPUT, PROGRAM

RESTART_NS: Final = 1_000_000_000
"""Time after which the supervisor starts a program again that failed and may fail, in ns."""

Errors = tuple[type[BaseException], ...]
"""Types of exceptions."""


class Program:
    """A program that the test started.

    Attributes:
        name: Its name, from the function that it runs.
        host: The name of its host.
        machine: The host itself.
        may_fail: Uncaught exceptions of these types do not fail the test; the program starts again.
        is_service: The program also starts again when it returns.
        starts: Number of starts.
        ended: Whether it has returned. Then it is not started again.
        result: The value that it returned.
    """

    def __init__(
        self,
        name: str,
        host: SimulatedHost,
        launch: Callable[[], SimulatedProcess],
        *,
        may_fail: Errors = (),
        is_service: bool = False,
    ) -> None:
        """Describe a program; the supervisor starts it."""
        self.name = name
        self.host = host.name
        self.machine = host
        self.may_fail = may_fail
        self.is_service = is_service
        self.starts = 0
        self.ended = False
        self.down = False
        self.result: Any = None
        self.process: SimulatedProcess | None = None
        self.launch = launch
        self._output: list[str] = []
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def is_running(self) -> bool:
        """True while a process of the program runs."""
        return self.process is not None and not self.process.gone

    @property
    def output(self) -> list[str]:
        """The lines that the program printed, in all of its lives."""
        return self._output

    async def wait(self) -> Any:
        """Wait until the program returns, and return its result. A crash does not end the wait."""
        if not self.ended:
            waker = asyncio.Event()
            self._waiting.append((asyncio.get_running_loop(), waker))
            await waker.wait()
        return self.result

    def finish(self, result: Any) -> None:
        """Note that the program returned, and wake whoever waits for it."""
        self.ended, self.result = True, result
        waiting, self._waiting = self._waiting, []
        for loop, waker in waiting:
            loop.call_soon_threadsafe(waker.set)

    def __repr__(self) -> str:
        return f"<Program {self.name} on {self.host}>"


class OutputLines(list[str]):
    """The printed lines of a process; each new one is also given to a function."""

    def __init__(self, on_line: Callable[[str], object]) -> None:
        super().__init__()
        self._on_line = on_line

    def __iadd__(self, lines: Iterable[str]) -> "OutputLines":  # type: ignore[misc,override]  # as `Console` uses it
        for line in lines:
            self.append(line)
            self._on_line(line)
        return self


class Supervisor:
    """Start programs, restart them after crashes, and report what happens to them.

    Attributes:
        programs: All programs.
        failure: The first program that failed and may not, with its exception.
        on_crash: Is called with the name of a host whose programs are to be killed.
    """

    def __init__(self, report: Callable[[str, str, str], object]) -> None:
        """Make a supervisor; `report` adds a host, a kind and a text to the timeline."""
        self.programs: list[Program] = []
        self.failure: tuple[Program, BaseException] | None = None
        self.on_crash: Callable[[str], object] = str
        self._report = report
        self._of: dict[SimulatedProcess, Program] = {}

    def add(self, program: Program) -> None:
        """Start a program for the first time."""
        self.programs.append(program)
        self.start(program)

    def start(self, program: Program) -> None:
        program.starts += 1
        program.down = False
        process = program.launch()
        program.process = process
        self._of[process] = program
        program.machine.ended, program.machine.failed = self._on_end, self._on_error
        process.output = OutputLines(lambda line: self._on_line(program, line))
        process.console = Console(process.output)
        process.new_loop = lambda: self._loop(process)  # type: ignore[method-assign]  # to see what a loop reports
        again = "" if program.starts == 1 else f" again (start {program.starts})"
        self._report(program.host, PROGRAM, f"{program.name} starts{again}")

    def crash(self, host: SimulatedHost, *, power: bool = False) -> list[Program]:
        self.on_crash(host.name)
        victims = [one for one in self.programs if one.host == host.name and one.is_running]
        for one in victims:
            one.down = True
        if power:
            host.cut_power()
        for process in host.running:
            process.kill()
        return victims

    def restart(self, programs: Iterable[Program]) -> None:
        """Start those programs that a crash ended and that are still down."""
        for one in programs:
            if one.down and not one.is_running:
                self.start(one)

    @property
    def down(self) -> list[Program]:
        """The programs that were killed and are not started again yet."""
        return [one for one in self.programs if one.down]

    def _loop(self, process: SimulatedProcess) -> Any:
        loop = SimulatedProcess.new_loop(process)
        loop.set_exception_handler(lambda _, context: self._on_loop_error(process, context))
        return loop

    def _on_loop_error(self, process: SimulatedProcess, context: dict[str, Any]) -> None:
        if process.gone:
            return  # A world that ends throws away what its programs left.
        error = context.get("exception")
        told = f": {type(error).__name__}: {error}" if error is not None else ""
        message = str(context.get("message", "the event loop reports")).replace("SimulatedTask", "Task")
        self._report(process.host.name, ERROR, f"{message}{told}")

    def _on_line(self, program: Program, line: str) -> None:
        program.output.append(line)
        self._report(program.host, OUTPUT, line)

    def _on_end(self, process: SimulatedProcess) -> None:
        program = self._of.get(process)
        if program is None:
            return
        if process.error is None:
            self._report(program.host, PROGRAM, f"{program.name} returns {process.status!r}"[:200])
            if not program.is_service:
                program.finish(process.status)
        if program.is_service if process.error is None else isinstance(process.error, program.may_fail):
            program.down = True
            process.kernel.after(RESTART_NS, lambda: self.restart([program]))

    def _on_error(self, process: SimulatedProcess, error: BaseException) -> None:
        program = self._of.get(process)
        if program is None:
            return
        line = "".join(traceback.format_exception_only(error)).strip()
        self._report(program.host, ERROR, f"{program.name} fails: {line}")
        if self.failure is None and not isinstance(error, program.may_fail):
            self.failure = program, error


def check_host(host: str, hosts: Iterable[str]) -> str:
    """Return the name of a host. Raises WorldError unless the world has it."""
    names = sorted(hosts)
    if host not in names:
        raise WorldError(f"the world has no host {host!r}: its hosts are {', '.join(names)}")
    return host
