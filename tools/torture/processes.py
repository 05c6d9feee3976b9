"""The programs of one history: each on its host, with files for its standard output and standard error.

Applications are forked from this process, because loading their modules takes longer than most histories use them.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.processes import until
from tests.support.tree import PYTHON_PATH

DESCRIPTORS_LEFT = 2
"""Number of descriptors that a process with limited descriptors may still open."""
FREEZE_SECONDS = 5.0
"""Time limit for a stopped process to leave the processor."""
SPARE_BYTES = 1 << 20
"""Memory that a process with limited memory may still allocate (bytes)."""
CLONE_NEWNET = 0x4000_0000


def _enter(namespace: Path) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(os.open(namespace, os.O_RDONLY), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter the host {namespace}")


class Forked:
    """A child process that runs a function, with the part of the interface of `subprocess.Popen` that is used here."""

    def __init__(self, act: Callable[[], None], namespace: Path, stdout: int, stderr: int) -> None:
        """Call `act` in a child process, in a network namespace."""
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            os._exit(self._child(act, namespace, stdout, stderr))

    @staticmethod
    def _child(act: Callable[[], None], namespace: Path, stdout: int, stderr: int) -> int:
        try:
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            _enter(namespace)
            act()
        except BaseException:  # noqa: BLE001 - reported as the interpreter would
            traceback.print_exc()
            return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return 0

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if not until(lambda: self.poll() is not None, 1e9 if timeout is None else timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL if the process runs."""
        self.send_signal(signal.SIGKILL)


class Role:
    """One role of a history. It may be started several times; each start is a *run*."""

    def __init__(self, name: str, namespace: Path, place: Path) -> None:
        """Make a role that does not run yet. `namespace` is its host, `place` the directory of its files."""
        self.name = name
        self.runs = 0
        self.stopped = False
        self._namespace = namespace
        self._place = place
        self._process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def run(self) -> str:
        return f"{self.name}.{self.runs}"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """The exit status of the last run, None while it runs."""
        return None if self._process is None else self._process.poll()

    def history(self, run: int = 0) -> Path:
        """Return the history file of an application, of the current run or another one."""
        return self._place / f"{self.name}.{run or self.runs}.jsonl"

    def start(self, command: Sequence[str] | Callable[[], None]) -> None:
        """Begin a run of a command line, or of a function in a child process."""
        self.runs += 1
        self.stopped = False
        out, err = (self._place / f"{self.run}.{stream}" for stream in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            if callable(command):
                self._process = Forked(command, self._namespace, stdout.fileno(), stderr.fileno())
                return
            self._process = subprocess.Popen(
                ["nsenter", f"--net={self._namespace}", *command],
                env={**os.environ, "PYTHONPATH": PYTHON_PATH, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )

    def output(self) -> str:
        """Return the standard output of the current run so far."""
        return (self._place / f"{self.run}.out").read_text(encoding="utf-8", errors="replace")

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.alive:
            self._process.send_signal(number)
            self.stopped = number is signal.SIGSTOP or (self.stopped and number is not signal.SIGCONT)

    def freeze(self) -> None:
        """Stop the program, and wait until none of its threads runs: its machine lost its power.

        When ext4 is shut down, an `fdatasync` that runs may return 0 although its write is lost: in 14 of 330 shutdowns
        of a 20-line program on Linux 6.18. A machine without power acknowledges nothing, so no program may see that.
        """
        if (process := self._process) is not None and self.alive:
            self.signal(signal.SIGSTOP)
            if not until(lambda: motionless(process.pid), FREEZE_SECONDS):
                raise TimeoutError(f"{self.name} still runs {FREEZE_SECONDS} s after SIGSTOP")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.stopped = False

    def end(self, seconds: float) -> bool:
        """Wait for the end, and kill the program after `seconds`; return whether it ended by itself."""
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def limit(self, what: str) -> None:
        """Limit the `descriptors` or the `memory` of the running process to little more than it uses."""
        if self._process is None or not self.alive:
            return
        pid = self._process.pid
        if what == "descriptors":
            number = max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()) + 1 + DESCRIPTORS_LEFT
            self._soft(resource.RLIMIT_NOFILE, number)
        else:
            pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
            self._soft(resource.RLIMIT_AS, pages * resource.getpagesize() + SPARE_BYTES)

    def unlimit(self) -> None:
        """Undo `limit`."""
        if self._process is not None and self.alive:
            for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
                self._soft(which, resource.prlimit(self._process.pid, which)[1])

    def _soft(self, which: int, value: int) -> None:
        assert self._process is not None
        hard = resource.prlimit(self._process.pid, which)[1]
        resource.prlimit(self._process.pid, which, (value, hard))


def motionless(pid: int) -> bool:
    """Return whether no thread of the process runs; a thread inside a system call of the disk counts as stopped."""
    states = []
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            states.append(task.read_text(encoding="ascii").rpartition(")")[2].split()[0])
    return set(states) <= {"T", "t", "D"}
