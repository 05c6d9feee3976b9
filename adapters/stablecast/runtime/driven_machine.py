"""A machine and its recorder: the trace has every input that the machine receives."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input, Tick

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
        """Let the machine handle its timeout, and return the effects."""
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
