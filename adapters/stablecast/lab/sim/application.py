"""Simulate the application of a receiver, which consumes messages at its own pace.

It replaces the client's asyncio iterator (`client.iteration`) on the client's own inbox. The message it asked for last
is in hand, and asking for the next one consumes it. Messages that wait in the inbox when a source returns are its
backlog.
"""

from collections import deque
from random import Random

from stablecast.client.batch import AckHandle, Batch
from stablecast.client.inbox import Inbox
from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.sim.process import VirtualProcess
from stablecast.lab.sim.setup import Habit
from stablecast.lab.sim.source import PAYLOAD
from stablecast.lab.sim.source_checkers import Checkers

CONSUME_NS = 10 * MILLISECOND
"""Longest time in ns that a prompt application needs for a run."""

SLOW_NS = 25 * MILLISECOND
"""Longest time in ns that a slow application needs for a message."""

BLOCK_NS = 900 * MILLISECOND
"""Longest time in ns that a blocking application blocks its event loop."""

BLOCK_SHARE = 0.05

LEAVE_SHARE = 0.05
LEAVE_NS = 600 * MILLISECOND
"""Share of messages after which a fickle application leaves its loop, and longest pause in ns."""

THREAD_NS = 40 * MILLISECOND
"""Longest delay in ns of acknowledgements from other threads."""

ACKNOWLEDGE_SHARE = 0.5
"""Share of runs after which an explicitly acknowledging application acknowledges."""


class SimulatedApplication:
    """Run the program once. With `explicit` it acknowledges messages itself."""

    def __init__(
        self, process: VirtualProcess, receiver: str, checkers: Checkers, habit: Habit, seed: int, *, explicit: bool
    ) -> None:
        """Consume as soon as a message waits. Habits draw from `seed`, so prompt worlds do not depend on them."""
        self.inbox: Inbox[Batch] = Inbox(lambda: None)
        self._process = process
        self._receiver = receiver
        self._checkers = checkers
        self._habit = habit
        self._rng = Random(seed)  # noqa: S311  # not a secret
        self._explicit = explicit
        self._handles: deque[AckHandle] = deque()
        self._highest: dict[object, AckHandle] = {}
        self.inbox.wake = self._next

    def _next(self) -> None:
        rng, world = self._rng, self._process.world
        match self._habit:
            case Habit.PROMPT:
                delay = int(world.rng.random() * CONSUME_NS)
            case Habit.FICKLE if rng.random() < LEAVE_SHARE:
                delay = int(rng.random() * LEAVE_NS)
            case Habit.BLOCKING if rng.random() < BLOCK_SHARE:
                delay = int(rng.random() * BLOCK_NS)
                self._block(delay)
            case _:
                delay = int(rng.random() * SLOW_NS)
        world.after(delay, lambda: self._process.deliver(self._read))

    def _block(self, span: int) -> None:
        """Block the event loop: it reads nothing and runs no timer."""
        if not self._process.frozen:
            self._process.freeze()
            self._process.world.after(span, lambda: self._process.thaw(timers_first=self._rng.random() < 0.5))

    def _read(self) -> None:
        """Finish the message in hand and take the next one."""
        inbox = self.inbox
        if inbox.current is not None:
            self._done(inbox.current, inbox.handed)
        if inbox.rest:
            begin, inbox.handed = inbox.handed, inbox.handed + 1
        else:
            if inbox.next_batch() is None:
                inbox.wake = self._next
                return
            begin, inbox.handed = 0, 1
            if self._habit is Habit.PROMPT:
                assert inbox.current is not None
                inbox.handed = inbox.current.count
        assert inbox.current is not None
        for first, stop in inbox.current.spans(begin, inbox.handed):
            life = inbox.current.incarnation
            self._checkers.receivers.on_handed(self._process.name, life, first, stop)
        if self._habit is Habit.PROMPT:
            self._done(inbox.current, inbox.handed)
            if not inbox:
                inbox.wake = self._next
                return
        self._next()

    def _done(self, batch: Batch, count: int) -> None:
        if count <= batch.reported:
            return
        for first, stop in batch.spans(batch.reported, count):
            self._checkers.receivers.on_consumed(self._receiver, batch.incarnation, first, stop)
        batch.settle(count)
        if self._explicit:
            self._acknowledge(batch, count)

    def _acknowledge(self, batch: Batch, count: int) -> None:
        """Acknowledge some consumed messages, and all of them when the inbox is empty."""
        handle = batch.ack_handle(count - 1)
        known = self._highest.get(batch.owner)
        if known is None or known.number < handle.number:
            self._highest[batch.owner] = handle
        if self.inbox or self.inbox.rest:
            if self._process.world.rng.random() < ACKNOWLEDGE_SHARE:
                self._send_ack(handle)
            return
        highest, self._highest = self._highest, {}
        for last in highest.values():
            self._send_ack(last)

    def _send_ack(self, handle: AckHandle) -> None:
        if self._habit is not Habit.THREADED:
            handle.ack()
            return
        self._handles.append(handle)
        delay = int(self._rng.random() * THREAD_NS)
        self._process.world.after(delay, lambda: self._process.deliver(self._call))

    def _call(self) -> None:
        """Run the acknowledgements of other threads in bursts and in any order."""
        handles = [self._handles.popleft() for _ in range(self._rng.randint(0, len(self._handles)))]
        self._rng.shuffle(handles)
        for handle in handles:
            handle.ack()
        if self._handles:
            self._process.world.after(int(self._rng.random() * THREAD_NS), lambda: self._process.deliver(self._call))


def payloads_of(batch: Batch) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Return the numbers [first, stop) of a batch in runs, with sender and number of each payload."""
    found = [list(PAYLOAD.iter_unpack(payload)) for payload in batch.payloads()]
    runs: list[tuple[int, int, list[tuple[int, int]]]] = []
    for index, told in enumerate(found):
        first, last = batch.numbers(index)
        if runs and runs[-1][1] == first:
            start, _, before = runs.pop()
            runs.append((start, last + 1, before + told))
        else:
            runs.append((first, last + 1, told))
    return runs
