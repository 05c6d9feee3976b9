"""The loop of a machine that keeps no trace: feed, drain, perform, re-arm."""

import time
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from stablecast.runtime.alarm import Alarm
from stablecast.runtime.effect_execution import perform_all

InputT_contra = TypeVar("InputT_contra", contravariant=True)
EffectT_co = TypeVar("EffectT_co", covariant=True)
InputT = TypeVar("InputT")
EffectT = TypeVar("EffectT")


class Machine(Protocol[InputT_contra, EffectT_co]):
    """The machine contract."""

    def receive(self, event: InputT_contra, now: int) -> None:
        """Feed one input."""

    def handle_timeout(self, now: int) -> None:
        """Do what is due."""

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due."""

    def take_effects(self) -> Sequence[EffectT_co]:
        """What to do, in order."""


class Timed(Generic[InputT, EffectT]):
    """Drives one machine on the running event loop; `perform` may feed it again."""

    def __init__(
        self,
        machine: Machine[InputT, EffectT],
        perform: Callable[[EffectT], None],
        failed: Callable[[object, Exception], None],
    ) -> None:
        """Hand the effects of a machine to `perform`.

        `failed` gets each effect that `perform` raised on, with the exception, and must make it good: the machine
        counts on it. All other effects are performed.
        """
        self.machine = machine
        self._perform = perform
        self._failed = failed
        self._alarm = Alarm(self.wake)
        self._busy = False
        self._closed = False
        self._rearm()

    def feed(self, event: InputT) -> None:
        """Feed one input and perform what follows; does nothing once closed. Raises what the machine raises."""
        if not self._closed:
            try:
                self.machine.receive(event, time.monotonic_ns())
            finally:
                self._drain()  # A machine that refuses an input may have effects of others.

    def wake(self) -> None:
        """Do what is due now, without waiting for the timer."""
        if not self._closed:
            self.machine.handle_timeout(time.monotonic_ns())
            self._drain()

    def close(self) -> None:
        """Nothing happens any more."""
        self._closed = True
        self._rearm()

    def _drain(self) -> None:
        if self._busy:
            return  # Whoever performs effects now takes these too.
        self._busy = True
        try:
            while effects := self.machine.take_effects():
                perform_all(effects, self._perform, self._failed)
        finally:
            self._busy = False
            self._rearm()

    def _rearm(self) -> None:
        self._alarm.set(None if self._closed else self.machine.next_timeout())
