"""A machine and its recorder: every input that is fed is in the trace."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input, Tick

InputT_contra = TypeVar("InputT_contra", bound=Input, contravariant=True)
EffectT_co = TypeVar("EffectT_co", bound=Effect, covariant=True)

_TICK = Tick()


class Machine(Protocol[InputT_contra, EffectT_co]):
    """What an endpoint promises (`stablecast.core` package docs)."""

    def receive(self, event: InputT_contra, now: int) -> None:
        """Feed one input."""

    def handle_timeout(self, now: int) -> None:
        """Do what is due."""

    def next_timeout(self) -> int | None:
        """When `handle_timeout` wants to be called."""

    def take_effects(self) -> Sequence[EffectT_co]:
        """What the driver must do, in order."""


class InputRecorder(Protocol):
    """Keep the inputs of a machine with their effects; `stablecast.evidence.trace.Recorder` is the one for files."""

    def record(self, event: Input, now: int, effects: Sequence[Effect]) -> None:
        """Keep one step. The list must not change afterwards."""

    def close(self) -> None:
        """End the record."""


class Driven(Generic[InputT_contra, EffectT_co]):
    """A machine and, if it is traced, its recorder."""

    def __init__(self, machine: Machine[InputT_contra, EffectT_co], recorder: InputRecorder | None = None) -> None:
        self.machine = machine
        self.recorder = recorder

    def feed(self, event: InputT_contra, now: int) -> Sequence[EffectT_co]:
        """Feeds one input and returns what to do about it. Raises MisuseError like `receive`."""
        machine = self.machine
        machine.receive(event, now)
        effects = machine.take_effects()
        if self.recorder is not None:
            self.recorder.record(event, now, effects)
        return effects

    def timeout(self, now: int) -> Sequence[EffectT_co]:
        """Lets the machine do what is due, and returns what to do about it."""
        machine = self.machine
        machine.handle_timeout(now)
        effects = machine.take_effects()
        if self.recorder is not None:
            self.recorder.record(_TICK, now, effects)
        return effects

    def close(self) -> None:
        """Ends the trace."""
        if self.recorder is not None:
            self.recorder.close()
