"""The selector of a simulated event loop: it blocks its thread until a simulated socket is ready.

A socket calls `changed` whenever it may have become ready. The selector keeps the sockets that may be ready, and asks
only those. It returns the ready ones in an order that the seed chooses.
"""

import selectors
from collections.abc import Callable
from typing import Any, Protocol

from stablecast.lab.world.kernel import Kernel, SimulatedThread

FREE_TURNS = 64
"""Turns of a loop that never waits until time passes for it. Releases of Python need different numbers of turns."""

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Selectable(Protocol):
    watcher: "Selector | None"

    @property
    def readable(self) -> bool:
        """Return whether a read returns at once."""

    @property
    def writable(self) -> bool:
        """Return whether a write is accepted at once."""


class SelectableSockets(Protocol):
    def selectable(self, descriptor: int) -> Selectable:
        """Return the socket of a descriptor. Raises OSError."""


class Selector(selectors._BaseSelectorImpl):
    """Wait for sockets of one process; registration and lookup are those of the other selectors."""

    _fd_to_key: dict[int, selectors.SelectorKey]

    def __init__(self, kernel: Kernel, descriptors: SelectableSockets, wait_ns: Callable[[float], int]) -> None:
        """Make a selector for the loop of one thread; `wait_ns` translates seconds of its host to ns of the world."""
        super().__init__()
        self._kernel = kernel
        self._wait_ns = wait_ns
        self._descriptors = descriptors
        self.candidates: dict[int, Selectable] = {}
        self._thread: SimulatedThread | None = None
        self.alarmed = False
        self.turns = 0

    def register(self, fileobj: Any, events: int, data: object = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        one = self._descriptors.selectable(key.fd)
        one.watcher = self
        self.candidates[key.fd] = one
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Stop watching a socket that is registered."""
        key = super().unregister(fileobj)
        self.candidates.pop(key.fd, None)
        return key

    def modify(self, fileobj: Any, events: int, data: object = None) -> selectors.SelectorKey:
        key = self.get_key(fileobj)
        self._fd_to_key[key.fd] = key = key._replace(events=events, data=data)
        self.candidates[key.fd] = self._descriptors.selectable(key.fd)
        return key

    def changed(self, descriptor: int, one: Selectable) -> None:
        """Note that a socket may be ready, and wake the thread."""
        if descriptor in self._fd_to_key:
            self.candidates[descriptor] = one
            if self._thread is not None:
                self._thread.wake()

    def alarm(self) -> None:
        """End the next `select`, or the one that blocks. Any thread may call this."""
        self.alarmed = True
        if self._thread is not None:
            self._thread.wake()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the ready sockets, and wait for them at most `timeout` seconds."""
        kernel = self._kernel
        self.turns += 1
        if self.turns >= FREE_TURNS:
            self.turns = 0
            kernel.pay()
        ready = self._ready() if self.candidates else []
        if not ready and not self.alarmed and (timeout is None or timeout > 0):
            deadline = None if timeout is None else kernel.now + self._wait_ns(timeout)
            self._thread = thread = kernel.current or kernel.running()
            thread.block(deadline)
            self._thread = None
            self.turns = 0
            ready = self._ready() if self.candidates else []
        self.alarmed = False
        return ready

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        found: list[tuple[selectors.SelectorKey, int]] = []
        keys, candidates = self._fd_to_key, self.candidates
        for descriptor, one in list(candidates.items()):
            key = keys[descriptor]
            wanted = key[2]
            events = READ if wanted & READ and one.readable else 0
            if wanted & WRITE and one.writable:
                events |= WRITE
            if events:
                found.append((key, events))
            else:
                del candidates[descriptor]
        if len(found) > 1:
            self._kernel.random.shuffle(found)
        return found
