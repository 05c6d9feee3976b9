"""Programs of one history: each on its host, with a file for what it says on standard error.

Applications are forked and not started anew: to load their modules takes longer than most histories need them.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.tree import LAYERS, ROOT

PATH = os.pathsep.join([str(ROOT), *(str(ROOT / layer) for layer in LAYERS)])
DESCRIPTORS_LEFT = 2
FREEZE_SECONDS = 5.0
SPARE_BYTES = 1 << 20
"""How much more memory a process gets whose memory is limited."""


CLONE_NEWNET = 0x4000_0000


def _enter(namespace: Path) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(os.open(namespace, os.O_RDONLY), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter the host {namespace}")


class Forked:
    """A child that goes on in a function of ours, as far as it looks like a `subprocess.Popen`."""

    def __init__(self, act: Callable[[], None], namespace: Path, stdout: int, stderr: int) -> None:
        """Call `act` in a child, in the network namespace of that name."""
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
        """Return the status if it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        if not until(lambda: self.poll() is not None, 1e9 if timeout is None else timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


class Program:
    """One role; it may be started several times, each a *run*."""

    def __init__(self, name: str, namespace: Path, place: Path) -> None:
        """A role that does not run; `namespace` is its host."""
        self.name = name
        self.runs = 0
        self.stopped = False
        self._namespace = namespace
        self._place = place
        self._process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def run(self) -> str:
        """The name of the run."""
        return f"{self.name}.{self.runs}"

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """How the last run ended, None while it runs."""
        return None if self._process is None else self._process.poll()

    def history(self, run: int = 0) -> Path:
        """The file in which an application writes what it sees, of this run or another."""
        return self._place / f"{self.name}.{run or self.runs}.jsonl"

    def start(self, command: Sequence[str] | Callable[[], None]) -> None:
        """Begin a run of a command line, or of a function in a child."""
        self.runs += 1
        self.stopped = False
        out, err = (self._place / f"{self.run}.{stream}" for stream in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            if callable(command):
                self._process = Forked(command, self._namespace, stdout.fileno(), stderr.fileno())
                return
            self._process = subprocess.Popen(
                ["nsenter", f"--net={self._namespace}", *command],
                env={**os.environ, "PYTHONPATH": PATH, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )

    def said(self) -> str:
        """What the run has printed so far."""
        return (self._place / f"{self.run}.out").read_text(encoding="utf-8", errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
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
        """Kill it, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.stopped = False

    def end(self, seconds: float) -> bool:
        """Wait for its end, and kill it after so long; returns whether it ended by itself."""
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def limit(self, what: str) -> None:
        """Leave the running process hardly any `descriptors` or hardly any `memory`."""
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


def until(condition: Callable[[], bool], seconds: float, pause: float = 0.02) -> bool:
    """Wait until `condition()` holds; returns whether it did in time."""
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            return False
        time.sleep(pause)
    return True
