"""Virtual time and the threads of a world.

Each thread is a greenlet, so code that blocks works unmodified: a write to a slow disk, a lock, an event loop that
waits for its sockets. A thread that blocks switches to the hub. The hub carries out the next event of the world, and
most events resume a thread. Only one thread runs at a time, and the seed decides which of two events of one moment
comes first. Therefore a seed has one run.

A thread never sees time pass while it computes. Each time it looks for events it pays `TURN_NS`, so a loop that waits
by repeated looking comes to its end.
"""

import asyncio
import random
import sys
from asyncio.events import _get_running_loop, _set_running_loop
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, NoReturn, Protocol

import greenlet

from stablecast.core.errors import StablecastError

TURN_NS = 2_000
"""Time that one look for events costs a thread, in ns."""

WAKE_NS = 30_000
"""Time in ns within which a thread that was woken runs."""

_WAKE_BITS = WAKE_NS.bit_length()

EVENTS_AT_ONCE = 1_000_000
"""Events of one moment of virtual time; with more, a program repeats something for ever."""

FREE_LOOKS = 1_000
"""Looks at a clock in one moment that cost nothing; a program that looks more often waits for time to pass."""

START_NS = 1_000_000_000
"""Virtual time at which a world begins, in ns."""

_swap_current_task: Callable[..., "asyncio.Task[Any] | None"] | None = getattr(
    asyncio.tasks, "_swap_current_task", None
)


class WorldError(StablecastError):
    """A world that cannot go on; the message names the reason and the remedy."""


class ProcessGone(BaseException):
    """Raised in a thread of a process that has ended: it must not act any more. Nobody should catch it."""


Event = list[Any]
"""A call at a time: the time in ns, two numbers that order the calls of one time, and the call; None cancels it.

A display of a list is by far the fastest way to make an object. There are thousands in a world.
"""


class SimulatedThread:
    """A thread of a process: it runs until it blocks, and is resumed when it is woken.

    Attributes:
        owner: The process of the thread. The hub resumes the thread only while `owner.runs` is true.
        ended: Whether its function has returned, or the thread was disposed of.
        error: The exception that ended it.
    """

    __slots__ = (
        "_disposing",
        "_kernel",
        "_target",
        "_timer",
        "_waits",
        "_woken",
        "ended",
        "error",
        "green",
        "joiners",
        "name",
        "number",
        "owner",
    )

    def __init__(self, kernel: "Kernel", owner: "Owner", name: str, target: Callable[[], object]) -> None:
        self._kernel = kernel
        self.owner = owner
        self.name = name
        self.number = kernel.next_number()
        self.ended = False
        self.error: BaseException | None = None
        self.joiners: list[SimulatedThread] = []
        self.green = greenlet.greenlet(self._run, kernel.hub)
        self._target = target
        self._waits = True
        self._woken = False
        self._disposing = False
        self._timer: Event | None = None

    def start(self) -> None:
        """Let the thread begin soon."""
        self.wake()

    def wake(self) -> None:
        """Resume the thread soon if it blocks."""
        if self._waits and not self._woken and not self.ended:
            self._woken = True
            kernel = self._kernel
            bits = kernel.bits
            while (wait := bits(_WAKE_BITS)) >= WAKE_NS:  # As `Kernel.below`; threads are woken thousands of times.
                pass
            kernel._numbers = number = kernel._numbers + 1  # As `Kernel.at`.
            heappush(kernel._events, [kernel.now + 1 + wait, bits(16), number, self._resume_woken])

    def join(self, timeout: float | None = None) -> None:
        """Block the calling thread until this one has ended, at most `timeout` seconds."""
        deadline = None if timeout is None else self._kernel.now + int(timeout * 1e9)
        while not self.ended and (deadline is None or self._kernel.now < deadline):
            self.joiners.append(self._kernel.running())
            self._kernel.block(deadline)

    def is_alive(self) -> bool:
        return not self.ended

    def block(self, deadline: int | None) -> bool:
        """Suspend this thread, which is the running one, until `wake` or a time; return whether it was woken."""
        kernel = self._kernel
        owner = self.owner
        if owner.gone:
            self.leave()
        self._waits, self._woken = True, False
        if deadline is not None:
            self._timer = kernel.at(max(kernel.now, deadline), self._resume)
        loop = _get_running_loop()
        if loop is None:
            kernel.hub.switch()
            if _get_running_loop() is not None:
                _leave_loop()
        else:
            self._switch_from(loop)
        woken = self._woken
        if owner.interrupts:
            owner.on_resume(self)
        return woken

    def _switch_from(self, loop: asyncio.AbstractEventLoop) -> None:
        """Switch to the hub, and then run the loop of this thread again.

        The hub leaves the loop running: often the same thread is the next one, and then nothing has to be put back.
        """
        task = None if _swap_current_task is None else _suspend_task(loop)
        # A traceback may keep this frame. The collector does not look into the pair that the call returns, so the pair
        # would keep the whole world.
        first_hook, last_hook = sys.get_asyncgen_hooks()
        self._kernel.hub.switch()
        if _get_running_loop() is not loop:
            _set_running_loop(loop)
            sys.set_asyncgen_hooks(first_hook, last_hook)
        if task is not None:
            _resume_task(loop, task)

    def leave(self) -> NoReturn:
        """Run no more, because the process has ended; `dispose` raises `Gone` here."""
        while not self._disposing:
            self._waits = True
            _leave_loop()
            self._kernel.hub.switch()
        raise ProcessGone

    def dispose(self) -> None:
        """End the thread of a process that is gone: its `finally` clauses run now, in a world without effect."""
        self._disposing = True
        kernel = self._kernel
        previous, kernel.current = kernel.current, self
        try:
            if not self.ended and self.green:
                self.green.throw(ProcessGone)
        finally:
            self.ended = True
            kernel.current = previous

    def _resume_woken(self) -> None:
        if self._woken:
            self._resume(True)

    def _resumable(self) -> bool:
        return self._waits and not self.ended and not self.owner.gone

    def _resume(self, woken: bool = False) -> None:
        owner, kernel = self.owner, self._kernel
        if not self._waits or self.ended or owner.gone:
            return
        if kernel.on_turn is not None and owner.runs:
            kernel.on_turn(self)
            if not self._resumable():  # A fault at a turn may end the process.
                return
        if not owner.runs:
            owner.postpone(lambda: self._resume(woken))
            return
        if self._timer is not None:
            self._timer[-1] = None  # As `cancel`.
            self._timer = None
        self._waits, self._woken = False, woken
        kernel.current = self
        try:
            self.green.switch()
        finally:
            kernel.current = None

    def _run(self) -> None:
        _leave_loop()
        try:
            self._target()
        except ProcessGone:
            pass
        except BaseException as error:  # noqa: BLE001 - the owner of the world reports it
            if not self._disposing:  # What a thread does while it is released concerns nobody.
                self.error = error
                self.owner.on_error(self, error)
        finally:
            self.ended = True
            _leave_loop()
            joiners, self.joiners = self.joiners, []
            for joiner in joiners:
                joiner.wake()


class OwnerClock(Protocol):
    def monotonic_ns(self) -> int: ...


class Owner:
    """The process of a thread, as the kernel sees it.

    Attributes:
        clock: The clock of its host.
        gone: The process has ended; its threads never run again.
        runs: The process is not stopped.
        interrupts: Calls that its main thread makes when it is resumed.
    """

    clock: "OwnerClock"
    interrupts: Sequence[Callable[[], object]] = ()
    gone = False
    runs = True

    def postpone(self, act: Callable[[], object]) -> None:
        """Call `act` when the process goes on."""
        raise NotImplementedError

    def on_resume(self, thread: SimulatedThread) -> None:
        """Act in a thread that has just been resumed: handle the signals that came meanwhile."""

    def on_error(self, thread: SimulatedThread, error: BaseException) -> None:
        """Handle the exception that ended a thread."""
        raise NotImplementedError


class Kernel:
    """The clock of a world, its events, and its threads. `now` is the time in ns.

    `on_turn` is called before a thread is resumed, if it is set. It may end or stop the process of the thread.
    """

    def __init__(self, seed: int) -> None:
        """Make the kernel of a world; it runs on the calling thread of the system."""
        self.now = START_NS
        self.random = random.Random(seed)  # noqa: S311 - a seed must repeat its run
        self.hub = greenlet.getcurrent()
        self.current: SimulatedThread | None = None
        self.steps = 0
        self.on_turn: Callable[[SimulatedThread], object] | None = None
        self._events: list[Event] = []
        self.bits = self.random.getrandbits
        self._numbers = 0
        self._looks = 0
        self._looked_at = 0

    def next_number(self) -> int:
        """Return a number that no other thing of this world has."""
        self._numbers += 1
        return self._numbers

    def below(self, limit: int) -> int:
        """Return what `random.randrange(limit)` returns, in a third of its time."""
        bits = limit.bit_length()
        while (number := self.bits(bits)) >= limit:
            pass
        return number

    def at(self, when: int, act: Callable[[], object]) -> Event:
        """Call `act` on the hub at a time in ns. The seed orders the calls of one moment."""
        self._numbers = number = self._numbers + 1
        heappush(self._events, event := [when, self.bits(16), number, act])
        return event

    def after(self, wait: int, act: Callable[[], object]) -> Event:
        """Call `act` on the hub after `wait` ns."""
        return self.at(self.now + wait, act)

    def exactly(self, when: int, act: Callable[[], object]) -> Event:
        """Call `act` at a time in ns, before all other calls of that moment, and without a draw from the seed.

        A run with such a call, and a run without it, are therefore the same up to that moment.
        """
        event: Event = [when, -1, self.next_number(), act]
        heappush(self._events, event)
        return event

    def running(self) -> SimulatedThread:
        if self.current is None:
            raise WorldError("this must be called by a program of the world; start one with World.start")
        return self.current

    def block(self, deadline: int | None = None) -> bool:
        """Suspend the running thread until it is woken or until a time in ns; return whether it was woken."""
        return (self.current or self.running()).block(deadline)

    def sleep(self, wait: int) -> None:
        """Suspend the running thread for `wait` ns, whatever wakes it meanwhile."""
        until = self.now + wait
        while self.now < until:
            self.block(until)

    def pay(self) -> None:
        """Let `TURN_NS` pass in the running thread. Other threads run if something is due meanwhile."""
        until = self.now + TURN_NS
        current = self.current
        if self._events and self._events[0][0] <= until:
            self.sleep(TURN_NS)
        elif current is not None and current.owner.gone:
            current.leave()
        else:
            self.now = until

    def look(self) -> None:
        """Count a look at a clock; let time pass for a program that looks again and again."""
        if self._looked_at != self.now:
            self._looked_at, self._looks = self.now, 0
        self._looks += 1
        if self._looks > FREE_LOOKS:
            self._looks -= 1
            self.pay()

    def run(self, until: Callable[[], bool], deadline: int) -> None:
        """Carry out events until a condition holds.

        Raises:
            WorldError: Nothing is left to do, the deadline has passed, or a program repeats something for ever.
        """
        try:
            if not until():
                self._carry_out(until, deadline)
        finally:
            _leave_loop()

    def _carry_out(self, until: Callable[[], bool], deadline: int) -> None:
        events = self._events
        at_once, moment = 0, -1
        while True:
            if not events:
                raise WorldError("nothing will ever happen: every program waits for something that no other does")
            event = heappop(events)
            when, _, _, act = event
            if act is None:  # It was cancelled, as the timer of each thread that is woken.
                continue
            if when > deadline:
                raise WorldError(f"the world did not end within {(deadline - START_NS) / 1e9:g} s of its time")
            self.steps += 1
            self.now = max(self.now, when)
            if moment == self.now:
                at_once += 1
                if at_once > EVENTS_AT_ONCE:
                    raise WorldError("a program does something for ever without letting time pass")
            else:
                at_once, moment = 0, self.now
            event[-1] = None
            act()
            if until():
                return


def _leave_loop() -> None:
    """Let no loop run in this thread of the system."""
    _set_running_loop(None)
    sys.set_asyncgen_hooks(None, None)


def _suspend_task(loop: asyncio.AbstractEventLoop) -> "asyncio.Task[Any] | None":
    """Remove the current task of a loop, so that another loop of this thread of the system may run one (3.12)."""
    if _swap_current_task is None or asyncio.tasks.current_task(loop) is None:
        return None
    return _swap_current_task(loop, None)


def _resume_task(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]") -> None:
    if _swap_current_task is not None:
        _swap_current_task(loop, task)
