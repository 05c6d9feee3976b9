"""The faults of a schedule, carried out in a world: each strike at its turn or time, and its end after its span."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import CO_COROUTINE
from pathlib import Path
from types import FrameType
from typing import Any, Final

from stablecast.lab.world.disk import DiskBackup, SimulatedDisk
from stablecast.lab.world.host import SimulatedHost
from stablecast.lab.world.kernel import Kernel, SimulatedThread
from stablecast.lab.world.network import SimulatedNetwork
from stablecast.lab.world.process import SimulatedProcess
from stablecast.testing.programs import Program, Supervisor, check_host
from stablecast.testing.schedule import MILLISECOND, OF_DISKS, OF_PATHS, Strike
from stablecast.testing.timeline import FAULT, PLACE

FOR_EVER: Final = 0
"""The span of a strike that lasts until it is healed."""

SECOND: Final = 1_000_000_000

ENDING: Final = ("crash", "wipe", "restore")
"""Faults that end the programs of a host."""

OURS: Final = ("stablecast.", "asyncio", "contextlib")
"""Modules whose lines are not those of a user."""


class FaultInjector:
    """Carry out the strikes of a schedule, and those that a test asks for.

    Attributes:
        struck: The strikes of the schedule that had an effect.
        turns: The turns of each host.
        wiped: The hosts whose disk was wiped.
        declared: The hosts whose disk is a restored backup, which their next store declares.
    """

    def __init__(
        self,
        kernel: Kernel,
        network: SimulatedNetwork,
        hosts: Mapping[str, SimulatedHost],
        supervisor: Supervisor,
        report: Callable[[str, str, str], object],
    ) -> None:
        """Prepare; `arm` begins."""
        self.struck: list[Strike] = []
        self.turns: Counter[str] = Counter()
        self.wiped: set[str] = set()
        self.declared: set[str] = set()
        self._kernel = kernel
        self._network = network
        self._hosts = hosts
        self._supervisor = supervisor
        self._report = report
        self._at_turns: dict[str, list[Strike]] = {}
        self._timed = 0
        self._active: dict[int, tuple[Strike, Callable[[], object]]] = {}
        self._number = 0
        self._armed = False
        self._acts: Mapping[str, Callable[[Strike], Callable[[], object] | bool]] = {
            "crash": self._crash,
            "wipe": self._wipe,
            "restore": self._restore,
            "stop": self._stop,
            "reset": self._reset,
            "slow_disk": _lasting,
            "full_disk": _lasting,
            "failing_disk": _lasting,
            "rot": self._rot,
            "leap": self._leap,
            "drift": self._drift,
        }

    # -------------------------------------------------------------------------------------------------- the schedule

    def arm(self, strikes: Sequence[Strike]) -> None:
        """Let the strikes of a schedule happen. This also counts turns from now on."""
        self._armed = True
        begun = self._kernel.now
        for strike in strikes:
            if strike.turn:
                self._at_turns.setdefault(strike.on, []).append(strike)
            else:
                self._timed += 1
                self._kernel.exactly(begun + strike.at, partial(self._on_time, strike))
        for waiting in self._at_turns.values():
            waiting.sort(key=lambda one: -one.turn)
        self._kernel.on_turn = self._on_turn

    def disarm(self) -> None:
        """Let no further strike happen."""
        self._armed = False
        self._at_turns.clear()
        self._timed = 0

    @property
    def unfinished(self) -> list[str]:
        """Sentences about strikes with a time that is still to come, and about faults that last."""
        found = [f"{strike} lasts" for strike, _ in self._active.values()]
        if self._timed:
            found.append(f"{self._timed} faults of the schedule are still to come")
        return found

    def _on_turn(self, thread: SimulatedThread) -> None:
        host = thread.owner.host.name  # type: ignore[attr-defined]  # each thread of a world belongs to a process
        self.turns[host] += 1
        waiting = self._at_turns.get(host)
        while waiting and waiting[-1].turn <= self.turns[host]:
            self._on_schedule(waiting.pop())

    def _on_time(self, strike: Strike) -> None:
        if self._armed:
            self._timed -= 1
            self._on_schedule(strike)

    def _on_schedule(self, strike: Strike) -> None:
        # A host appears when its first program starts, which may be later than in the world without faults.
        known = strike.on in self._hosts and (not strike.to or strike.to in self._hosts)
        if self._armed and known and self.strike(strike):
            self.struck.append(strike)

    # ---------------------------------------------------------------------------------------------------------- strikes

    def strike(self, strike: Strike) -> bool:
        """Carry out a strike now; return whether it had an effect. Raises WorldError for an unknown host."""
        check_host(strike.on, self._hosts)
        if strike.to:
            check_host(strike.to, self._hosts)
        struck = _lines(self._hosts[strike.on]) if strike.fault in ENDING else []
        undo = self._acts.get(strike.fault, self._path)(strike)
        if undo is False:
            return False
        until = "put back after" if strike.fault == "restore" else "for"
        span = f" {until} {strike.span / MILLISECOND:,.3f} ms" if strike.span else ""
        self._report(strike.on, FAULT, f"{_sentence(strike)}{span}")
        for line in struck:
            self._report(strike.on, PLACE, f"it struck {line}")
        if callable(undo):
            self._number += 1
            number = self._number
            self._active[number] = strike, undo
            self._set_state(strike)
            if strike.span:
                self._kernel.exactly(self._kernel.now + strike.span, lambda: self._end(number))
        return True

    def heal(self) -> None:
        """End all faults that last now."""
        for number in list(self._active):
            self._end(number)

    def end(self, kinds: Sequence[str], host: str) -> None:
        for number, (strike, _) in list(self._active.items()):
            if strike.fault in kinds and strike.on == host:
                self._end(number)

    def _end(self, number: int) -> None:
        found = self._active.pop(number, None)
        if found is not None:
            strike, undo = found
            undo()
            self._set_state(strike)
            if strike.fault not in ("crash", "wipe", "restore"):
                self._report(strike.on, FAULT, f"{_sentence(strike)}: healed")

    # ------------------------------------------------------------------------------------------------------ by the kind

    def _crash(self, strike: Strike) -> Callable[[], object] | bool:
        victims = self._supervisor.crash(self._hosts[strike.on], power=strike.power)
        return (lambda: self._supervisor.restart(victims)) if victims else False

    def _wipe(self, strike: Strike) -> Callable[[], object] | bool:
        host = self._hosts[strike.on]
        victims: list[Program] = self._supervisor.crash(host)
        if not victims:
            return False
        self._disk(strike).wipe()
        self.wiped.add(strike.on)
        return lambda: self._supervisor.restart(victims)

    def _restore(self, strike: Strike) -> Callable[[], object]:
        backup = self._disk(strike).backup()
        return lambda: self._put_back(strike, backup)

    def _put_back(self, strike: Strike, backup: DiskBackup) -> None:
        victims = self._supervisor.crash(self._hosts[strike.on])
        self._disk(strike).restore(backup)
        self._report(strike.on, FAULT, "crash, and the disk is a restored backup")
        if not strike.undeclared:
            self.declared.add(strike.on)
        self._supervisor.restart(victims)

    def _stop(self, strike: Strike) -> Callable[[], object] | bool:
        host = self._hosts[strike.on]
        stopped = [one for one in host.running if one.runs]
        for one in stopped:
            one.stop()
        return partial(_resume, stopped) if stopped else False

    def _reset(self, strike: Strike) -> bool:
        return self._network.reset(self._hosts[strike.on].address, self._hosts[strike.to].address) > 0

    def _rot(self, strike: Strike) -> bool:
        return self._disk(strike).rot(self._kernel.random) is not None

    def _leap(self, strike: Strike) -> bool:
        self._hosts[strike.on].clock.leap(round(strike.amount * SECOND))
        return True

    def _drift(self, strike: Strike) -> Callable[[], object]:
        clock = self._hosts[strike.on].clock
        clock.drift(round(strike.amount))
        return lambda: clock.drift(0)

    def _path(self, strike: Strike) -> Callable[[], object] | bool:
        return (lambda: None) if strike.to and strike.to != strike.on else False

    def _disk(self, strike: Strike) -> SimulatedDisk:
        return self._hosts[strike.on].disk

    # ------------------------------------------------------------------------------------------------- paths and disks

    def _set_state(self, strike: Strike) -> None:
        """Give the paths or the disk of a strike the properties that follow from all faults that last."""
        if strike.fault in OF_PATHS:
            self._set_paths(strike)
        elif strike.fault in OF_DISKS:
            self._set_disk(strike.on)

    def _set_disk(self, host: str) -> None:
        disk = self._hosts[host].disk
        disk.heal()
        for one, _ in self._active.values():
            if one.on == host and one.fault == "slow_disk":
                disk.slow(round(one.amount * MILLISECOND))
            elif one.on == host and one.fault == "full_disk":
                disk.full()
            elif one.on == host and one.fault == "failing_disk":
                disk.fail_writes()
                disk.fail_syncs()

    def _set_paths(self, strike: Strike) -> None:
        """Give the paths between two hosts the properties that follow from all faults that last."""
        self._set_path(strike.on, strike.to)
        self._set_path(strike.to, strike.on)

    def _set_path(self, on: str, to: str) -> None:
        strikes = [
            one
            for one, _ in self._active.values()
            if (one.on, one.to) == (on, to) or ((one.to, one.on) == (on, to) and not one.one_way)
        ]

        def worst(kind: str) -> float:
            return max((one.amount for one in strikes if one.fault == kind), default=0.0)

        source, target = self._hosts[on].address, self._hosts[to].address
        path, usual = self._network.path(source, target), self._network.usual
        path.loss = max(usual.loss, worst("loss"))
        path.duplication = max(usual.duplication, worst("duplicate"))
        path.reordering = max(usual.reordering, worst("reorder"))
        path.delay_ns = usual.delay_ns + round(worst("delay") * MILLISECOND)
        if any(one.fault == "partition" for one in strikes):
            self._network.cut(source, target)
        else:
            self._network.heal(source, target)


def _resume(stopped: Sequence[SimulatedProcess]) -> None:
    for one in stopped:
        if not one.gone:
            one.resume()


def _lasting(_: Strike) -> Callable[[], object]:
    """Begin a fault that is the state of a disk or path: `_set_state` does the work."""
    return lambda: None


_SENTENCES: Final[Mapping[str, str]] = {
    "crash": "crash (kill -9)",
    "stop": "stop (SIGSTOP)",
    "slow_disk": "slow disk",
    "full_disk": "full disk",
    "failing_disk": "failing disk",
    "rot": "one bit of the disk rots",
    "wipe": "crash, and the disk is wiped",
    "restore": "a backup of the disk,",
    "leap": "the wall clock leaps",
    "drift": "the clocks drift",
}


def _sentence(strike: Strike) -> str:
    text = "power cut" if strike.power else _SENTENCES.get(strike.fault, strike.fault)
    if strike.to:
        text += f" {'to' if strike.one_way else 'to and from'} {strike.to}"
    if strike.amount:
        text += f" {strike.amount:g}"
    return text


def _lines(host: SimulatedHost) -> list[str]:
    """Return the line of a user's program at which each task of a host is, of those that have one."""
    found: dict[str, None] = {}
    for running, loop in ((process, loop) for process in host.running for loop in process.loops):
        for task in sorted(asyncio.all_tasks(loop), key=lambda one: one.get_name()):
            place = ""
            coroutine: Any = task.get_coro()
            while coroutine is not None:
                if getattr(coroutine, "cr_running", False) or getattr(coroutine, "ag_running", False):
                    # The thread blocks in it. To ask what a running coroutine awaits is a crash of the interpreter.
                    place = _line_of(None if running.main is None else running.main.green.gr_frame) or place
                    break
                place = line_in(getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)) or place
                coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
            if place:
                found[place] = None
    return list(found)


def _line_of(frame: FrameType | None) -> str:
    """Return the line of the innermost coroutine of a user's program in a stack; empty without one."""
    while frame is not None and not (frame.f_code.co_flags & CO_COROUTINE and line_in(frame)):
        frame = frame.f_back
    return line_in(frame)


def line_in(frame: FrameType | None) -> str:
    """Return the line of a frame of a user's program; empty for another one."""
    if frame is None or str(frame.f_globals.get("__name__", "")).startswith(OURS):
        return ""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
