"""The loop that drives every traced endpoint: feed, record, drain, perform, re-arm."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input, Tick
from stablecast.runtime import machine
from stablecast.runtime.alarm import Alarm
from stablecast.runtime.driven_machine import Driven
from stablecast.runtime.effect_execution import describe, guard, perform_all

EventT_contra = TypeVar("EventT_contra", bound=Input, contravariant=True)
EffectT = TypeVar("EffectT", bound=Effect)
T = TypeVar("T")

_TICK = Tick()


class Driver(Generic[EventT_contra, EffectT]):
    """Drive one machine on the running event loop.

    Inputs that arise while effects are performed wait until those are done, so a machine is never re-entered. The timer
    is set once for all inputs of a turn of the loop, after everything else that arrived has been read. So a message
    does not wait for the bookkeeping of the message before it.
    """

    def __init__(
        self,
        driven: Driven[EventT_contra, EffectT],
        perform: Callable[[EffectT], None],
        failed: Callable[[object, Exception], None],
        before: Callable[[], None] | None = None,
    ) -> None:
        """Drive a machine and hand its effects to `perform`.

        `failed` gets each effect that `perform` raised on, with the exception. The machine counts on the effect, so
        `failed` feeds it the failure, or ends the endpoint and reports why. All other effects are performed.
        `before` runs before the timer is armed and before it fires; use it to feed deferred inputs.
        """
        self._driven = driven
        self._perform = perform
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._inputs: deque[EventT_contra] = deque()
        self.idle = self._unseen = driven.recorder is None
        self._busy = False
        self._closed = False
        self._before = before
        self._settling = False
        self._alarm = Alarm(self._wake)

    def feed(self, event: EventT_contra) -> None:
        """Feed one input and perform its effects, then those of inputs fed meanwhile; do nothing once closed."""
        if self._closed:
            return
        if self._busy:
            self._inputs.append(event)
            return
        self._busy, self.idle = True, False
        try:
            effects = self._driven.feed(event, machine.clock.monotonic_ns())
            if effects:
                perform_all(effects, self._perform, self._failed)
            if self._inputs:
                self._feed_waiting()
        finally:
            self._end()
            if not self._settling:
                self.settle_soon()

    def during(self, act: Callable[[T], None], what: T) -> None:
        """Call `act(what)` as if `what` were an effect; call this only while the driver is `idle`.

        An idle driver performs no effect, and no recorder needs its inputs. The timer stays as it is.
        """
        self._busy, self.idle = True, False
        try:
            try:
                act(what)
            except Exception as error:  # noqa: BLE001 - handled like the failure of an effect
                guard(f"handling the failure of {describe(what)} failed", self._failed, what, error)
            if self._inputs:
                self._feed_waiting()
                self.settle_soon()
        finally:
            self._end()

    def _feed_waiting(self) -> None:
        while self._inputs:
            guard("an input that had to wait was refused", self._feed_next)

    def _feed_next(self) -> None:
        # The caller of this input has returned already and can catch nothing: `guard` reports what is raised here.
        perform_all(
            self._driven.feed(self._inputs.popleft(), machine.clock.monotonic_ns()), self._perform, self._failed
        )

    def _end(self) -> None:
        self._busy = False
        self.idle = self._unseen and not self._closed
        if self._closed:
            self._driven.close()  # An effect may have closed this driver; the trace ends after the last effect.

    def feed_all(self, events: Iterable[EventT_contra]) -> None:
        """Feed several inputs, one after the other."""
        for event in events:
            self.feed(event)

    def close(self) -> None:
        """Ignore further inputs, and end the trace after those fed before are done."""
        if self._closed:
            return
        self._closed, self.idle = True, False
        self._rearm()
        if not self._busy:
            self._driven.close()

    def settle_soon(self) -> None:
        """Call `before` and set the timer, after everything that arrived in this turn of the loop was read."""
        if not self._settling:
            self._settling = True
            # Two turns of `call_soon`: sockets that are readable in the next turn are read before `_settle` runs.
            self._loop.call_soon(self._loop.call_soon, self._settle)

    def _settle(self) -> None:
        try:
            if self._before is not None:
                self._before()
        finally:
            self._settling = False
            self._rearm()

    def _rearm(self) -> None:
        self._alarm.set(None if self._closed else self._driven.machine.next_timeout())

    def _wake(self) -> None:
        if self._before is not None:
            self._before()
        due = self._driven.machine.next_timeout()
        if due is not None and machine.clock.monotonic_ns() < due:
            self._rearm()
        else:
            self.feed(_TICK)  # type: ignore[arg-type]  # every union of inputs has this one
