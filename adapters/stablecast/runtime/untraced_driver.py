"""The loop that drives a machine without a trace: feed, drain, perform, re-arm."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from stablecast.runtime import machine
from stablecast.runtime.alarm import Alarm
from stablecast.runtime.driven_machine import Machine
from stablecast.runtime.effect_execution import perform_all

InputT = TypeVar("InputT")
EffectT = TypeVar("EffectT")


class UntracedDriver(Generic[InputT, EffectT]):
    """Drive one machine on the running event loop; `perform` may feed it again."""

    def __init__(
        self,
        machine: Machine[InputT, EffectT],
        perform: Callable[[EffectT], None],
        failed: Callable[[object, Exception], None],
    ) -> None:
        """Hand the effects of a machine to `perform`.

        `failed` gets each effect that `perform` raised on, with the exception. It must repair the failure, because the
        machine counts on the effect. All other effects are performed.
        """
        self.machine = machine
        self._perform = perform
        self._failed = failed
        self._alarm = Alarm(self.wake)
        self._busy = False
        self._closed = False
        self._rearm()

    def feed(self, event: InputT) -> None:
        """Feed one input and perform its effects; do nothing once closed. Raises what the machine raises."""
        if not self._closed:
            try:
                self.machine.receive(event, machine.clock.monotonic_ns())
            finally:
                self._drain()  # A machine that refuses an input may have effects of earlier ones.

    def feed_all(self, events: Iterable[InputT]) -> None:
        """Feed the inputs of one read and perform their effects together. Raises like `feed`."""
        if self._closed:
            return
        receive = self.machine.receive
        try:
            for event in events:
                receive(event, machine.clock.monotonic_ns())
        finally:
            self._drain()

    def wake(self) -> None:
        """Let the machine handle its timeout now, without waiting for the timer."""
        if not self._closed:
            self.machine.handle_timeout(machine.clock.monotonic_ns())
            self._drain()

    def close(self) -> None:
        """Ignore all further inputs and timeouts."""
        self._closed = True
        self._rearm()

    def _drain(self) -> None:
        if self._busy:
            return  # The caller that performs effects now performs these after its own: machines are not re-entered.
        self._busy = True
        try:
            while effects := self.machine.take_effects():
                perform_all(effects, self._perform, self._failed)
        finally:
            self._busy = False
            self._rearm()

    def _rearm(self) -> None:
        self._alarm.set(None if self._closed else self.machine.next_timeout())
