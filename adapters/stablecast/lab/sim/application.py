"""What the application of a receiver does with messages: reads them one by one, at its own pace, and in its own way.

It stands where the client's asyncio shell does (`client.iteration`), on the client's own inbox: a message that it asks
for is in hand, and the one before is consumed then. What waits in the inbox when a source returns is its backlog.
"""

from collections import deque
from random import Random

from stablecast.client.inbox import Inbox
from stablecast.client.message import AckHandle, Batch
from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.sim.process import Process
from stablecast.lab.sim.setup import Habit
from stablecast.lab.sim.source import PAYLOAD
from stablecast.lab.sim.source_checkers import Checkers

CONSUME_NS = 10 * MILLISECOND
"""A prompt application is done with a run after so long at most,"""

SLOW_NS = 25 * MILLISECOND
"""a slow one with a single message,"""

BLOCK_NS = 900 * MILLISECOND
"""and one that works without giving way blocks its process for so long at most, now and then:"""

BLOCK_SHARE = 0.05

LEAVE_SHARE = 0.05
LEAVE_NS = 600 * MILLISECOND
"""how often an application leaves its loop with a message in hand, and after how long at most it reads on."""

THREAD_NS = 40 * MILLISECOND
"""After how long at most other threads acknowledge what they were given."""

ACKNOWLEDGE_SHARE = 0.5
"""How often an application that acknowledges itself does so after a run."""


class Application:
    """One run of the program. `explicit`: it acknowledges messages itself."""

    def __init__(
        self, process: Process, receiver: str, checkers: Checkers, habit: Habit, seed: int, *, explicit: bool
    ) -> None:
        """It reads as soon as something waits. Habits draw from `seed`: prompt worlds do not depend on them."""
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
        """Ask for more, when that takes place."""
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
        """Work for so long without giving way: the event loop reads nothing, and no timer rings."""
        if not self._process.frozen:
            self._process.freeze()
            self._process.world.after(span, lambda: self._process.thaw(timers_first=self._rng.random() < 0.5))

    def _read(self) -> None:
        """Be done with what is in hand, and take what comes next."""
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
        """Now and then acknowledge what it is done with, and everything when nothing waits; threads do so later."""
        handle = batch.ack_handle(count - 1)
        known = self._highest.get(batch.owner)
        if known is None or known.number < handle.number:
            self._highest[batch.owner] = handle
        if self.inbox or self.inbox.rest:
            if self._process.world.rng.random() < ACKNOWLEDGE_SHARE:
                self._say(handle)
            return
        highest, self._highest = self._highest, {}
        for last in highest.values():
            self._say(last)

    def _say(self, handle: AckHandle) -> None:
        if self._habit is not Habit.THREADED:
            handle.ack()
            return
        self._handles.append(handle)
        delay = int(self._rng.random() * THREAD_NS)
        self._process.world.after(delay, lambda: self._process.deliver(self._call))

    def _call(self) -> None:
        """What threads asked the event loop to do arrives in bursts, and in any order."""
        handles = [self._handles.popleft() for _ in range(self._rng.randint(0, len(self._handles)))]
        self._rng.shuffle(handles)
        for handle in handles:
            handle.ack()
        if self._handles:
            self._process.world.after(int(self._rng.random() * THREAD_NS), lambda: self._process.deliver(self._call))


def payloads_of(batch: Batch) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Return the numbers [first, stop) of a batch in runs, and what each payload says of itself."""
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
