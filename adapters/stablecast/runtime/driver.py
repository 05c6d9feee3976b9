"""The loop that drives a machine: feed, record if it has a trace, drain, perform, re-arm; and no effect is lost.

A machine counts on each effect that it returned. If performing one raises, the effects after it are still performed,
and the endpoint is notified. The endpoint feeds the failure to its machine, or ends and reports why.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input, Tick
from stablecast.runtime import machine
from stablecast.runtime.alarm import Alarm

AnyEffectT = TypeVar("AnyEffectT")


def perform_all(
    effects: Iterable[AnyEffectT], perform: Callable[[AnyEffectT], None], failed: Callable[[object, Exception], None]
) -> None:
    """Perform effects in order, and hand each one that raises to `failed`.

    If `failed` raises, the exception handler of the running loop gets that exception, and no effect is skipped.
    """
    left = iter(effects)
    while True:
        # One `try` for all effects: a turn without a failure pays only for the loop.
        effect: AnyEffectT | None = None
        try:
            for effect in left:
                perform(effect)
        except Exception as error:  # noqa: BLE001 - the other effects must be performed after any failure
            assert effect is not None
            guard(f"handling the failure of {describe(effect)} failed", failed, effect, error)
        else:
            return


def guard(text: str, act: Callable[..., None], *arguments: object) -> None:
    """Call `act`; report an exception that it raises, with this text."""
    try:
        act(*arguments)
    except Exception as error:  # noqa: BLE001 - `act` is one of several callbacks, and the others must be called
        report(text, error)


def report(text: str, error: Exception) -> None:
    """Hand an exception that nobody awaits to the exception handler of the running loop, which logs it."""
    asyncio.get_running_loop().call_exception_handler({"message": text, "exception": error})


def describe(effect: object) -> str:
    """Return the name of an effect for a sentence; a text is returned as it is."""
    return effect if isinstance(effect, str) else f"the effect '{type(effect).__name__}'"


AnyInput_contra = TypeVar("AnyInput_contra", contravariant=True)
AnyEffect_co = TypeVar("AnyEffect_co", covariant=True)
InputT_contra = TypeVar("InputT_contra", bound=Input, contravariant=True)
EffectT_co = TypeVar("EffectT_co", bound=Effect, covariant=True)

_TICK = Tick()


class Machine(Protocol[AnyInput_contra, AnyEffect_co]):
    """The contract of an endpoint (`stablecast.core` package docs); times are ns of one monotonic clock."""

    def receive(self, event: AnyInput_contra, now: int) -> None:
        """Process one input. Raises MisuseError."""

    def handle_timeout(self, now: int) -> None:
        """Do the work whose time has come."""

    def next_timeout(self) -> int | None:
        """Return the time of the next `handle_timeout`, or None."""

    def take_effects(self) -> Sequence[AnyEffect_co]:
        """Return the effects that the driver must perform, in order, and forget them."""


class InputRecorder(Protocol):
    """Record the inputs of a machine with their effects; `stablecast.evidence.trace.Recorder` writes them to a file."""

    def record(self, event: Input, now: int, effects: Sequence[Effect]) -> None:
        """Record one step; the caller must not change the effects afterwards."""

    def close(self) -> None:
        """End the record; no step follows."""


class Driven(Generic[InputT_contra, EffectT_co]):
    """A machine and, if it is traced, its recorder."""

    def __init__(self, machine: Machine[InputT_contra, EffectT_co], recorder: InputRecorder | None = None) -> None:
        self.machine = machine
        self.recorder = recorder

    def feed(self, event: InputT_contra, now: int) -> Sequence[EffectT_co]:
        """Feed one input and return its effects. Raises MisuseError like `receive`."""
        machine = self.machine
        machine.receive(event, now)
        effects = machine.take_effects()
        if self.recorder is not None:
            self.recorder.record(event, now, effects)
        return effects

    def timeout(self, now: int) -> Sequence[EffectT_co]:
        # A replay cannot know when a timer fired, so the trace records it as an input of its own.
        machine = self.machine
        machine.handle_timeout(now)
        effects = machine.take_effects()
        if self.recorder is not None:
            self.recorder.record(_TICK, now, effects)
        return effects

    def close(self) -> None:
        """End the trace, if there is one."""
        if self.recorder is not None:
            self.recorder.close()


EffectT = TypeVar("EffectT", bound=Effect)
T = TypeVar("T")


class Driver(Generic[InputT_contra, EffectT]):
    """Drive one machine on the running event loop.

    Inputs that arise while effects are performed wait until those are done, so a machine is never re-entered. The timer
    is set once for all inputs of a turn of the loop, after everything else that arrived has been read. So a message
    does not wait for the bookkeeping of the message before it.
    """

    def __init__(
        self,
        driven: Driven[InputT_contra, EffectT],
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
        self._inputs: deque[InputT_contra] = deque()
        self.idle = self._unseen = driven.recorder is None
        self._busy = False
        self._closed = False
        self._before = before
        self._settling = False
        self._alarm = Alarm(self._wake)

    def feed(self, event: InputT_contra) -> None:
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

    def feed_all(self, events: Iterable[InputT_contra]) -> None:
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


InputT = TypeVar("InputT")


class UntracedDriver(Generic[InputT, AnyEffectT]):
    """Drive one machine on the running event loop; `perform` may feed it again."""

    def __init__(
        self,
        machine: Machine[InputT, AnyEffectT],
        perform: Callable[[AnyEffectT], None],
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
