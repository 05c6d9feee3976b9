"""A receiver's session in a world: the client's own, on the world's clock, watched by the checkers."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stablecast.client import session as client
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, RegistrationComplete, RegistrationSuccess, UnrecoverableLoss
from stablecast.core.protocol.inputs import LowChosen, ReceiverInput
from stablecast.core.protocol.messages import ConsumptionAck
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.lab.sim.coded_messages import encode
from stablecast.lab.sim.process import Driver
from stablecast.lab.sim.source import HESITATE_NS
from stablecast.runtime.driven_machine import Driven
from stablecast.transports.codec.fragments import FragmentReassembly
from stablecast.transports.codec.lbttcp import Run

if TYPE_CHECKING:
    from stablecast.lab.sim.receiver import ReceiverProcess

T = TypeVar("T")


class ClientDriver(Driver[ReceiverInput, fx.ReceiverEffect]):
    """What the client's session needs of its driver (`runtime.driver`), in virtual time.

    `before` is called at the end of each turn of the event loop in which something was fed, and before a timer rings.
    """

    def __init__(
        self,
        process: "ReceiverProcess",
        driven: Driven[ReceiverInput, fx.ReceiverEffect],
        perform: Callable[[fx.ReceiverEffect], None],
        before: Callable[[], None],
    ) -> None:
        """Drive a machine and hand its effects to `perform`."""
        super().__init__(process, driven, perform)
        self._before = before
        self._unseen = driven.recorder is None
        self._settling = False

    @property
    def idle(self) -> bool:
        """Whether nothing is being done, and nobody records what is fed."""
        return self._unseen and not (self._busy or self._closed)

    def feed(self, event: ReceiverInput) -> None:
        """Feed one input, and settle when the turn ends."""
        super().feed(event)
        self.settle_soon()

    def feed_all(self, events: Iterable[ReceiverInput]) -> None:
        """Feed several inputs."""
        for event in events:
            self.feed(event)

    def during(self, act: Callable[[T], None], what: T) -> None:
        """Do what follows from a question to the machine, as if it were an effect; only while `idle`."""
        self._busy = True
        act(what)
        self._drain()
        self._busy = False
        self.rearm()

    def settle_soon(self) -> None:
        """Do what was put off when the turn ends."""
        if self._settling or self._closed:
            return
        self._settling = True
        self._process.world.after(0, lambda: self._process.deliver(self._settle))

    def _settle(self) -> None:
        self._settling = False
        if not self._closed:
            self._before()

    def _tick(self) -> None:
        self._before()
        super()._tick()


class Watched(FragmentReassembly):
    """Puts pieces together as the client does, and tells which of them no message will come of."""

    def __init__(self, on_passed: Callable[[list[tuple[int, int]], list[tuple[int, int]]], None]) -> None:
        """`on_passed` gets what is passed over, and what of it the application is told of."""
        super().__init__()
        self._on_passed = on_passed

    def take_passed(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """As `FragmentReassembly` does."""
        self.check_invariants()
        passed, lost = super().take_passed()
        self._on_passed(passed, lost)
        return passed, lost


class Session(client.ClientSession):
    """A session with one life of the source."""

    def __init__(self, process: "ReceiverProcess", config: ReceiverConfig, transport: str) -> None:
        """It has not started."""
        self._process = process
        self._reading = process.checkers.receivers
        self._senders: dict[int, int] = {}
        receiver: Any = process.recipient
        pool: Any = process.pool
        super().__init__(receiver, config, pool, None, transport)
        self._pieces = Watched(self._on_passed)
        if process.lossy:
            self._stream = None  # The transport itself tells what it lost.

    def _drive(self, machine: ReceiverSession, _: Path | None) -> Any:
        driven: Driven[ReceiverInput, fx.ReceiverEffect] = Driven(machine, self._process.record(machine))
        return ClientDriver(self._process, driven, self._perform, self._before_timer)

    @property
    def machine(self) -> ReceiverSession:
        """What it drives."""
        return self._machine

    @property
    def left(self) -> bool:
        """Whether it deregistered, and no store knows it any more."""
        return self._left.is_set()

    def start(self, history: dict[int, list[tuple[int, int]]], earlier: Any = ()) -> None:
        """Begin, knowing what the application consumed in earlier sessions."""
        self._reading.on_session(self._process.receiver, self._process.name, self.incarnation, history)
        super().start(history, earlier)

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        match effect:
            case fx.Send():
                if isinstance(effect.message, ConsumptionAck):
                    who = (self._process.receiver, self._process.name, self.incarnation)
                    self._reading.on_consumption_ack(*who, effect.message.number)
                self._process.pool.send(effect.to, encode(effect.message))
            case fx.AskLow() if self._process.hesitates:
                chosen = LowChosen(self.succession.low(effect, effect.low))
                world, process = self._process.world, self._process
                delay = int(world.rng.random() * HESITATE_NS)
                world.after(delay, lambda: process.deliver(lambda: self.receive(chosen)))
            case _:
                super()._perform(effect)

    def _on_notify(self, event: Event) -> None:
        process = self._process
        process.recipient.speaker = self
        match event:
            case RegistrationSuccess():
                process.checkers.on_registered(process, event.store_index, event.reg_id)
            case RegistrationComplete():
                self._reading.on_begin(process.receiver, process.name, self.incarnation, event.number)
            case UnrecoverableLoss():
                self._reading.on_given_up_run(process.name, self.incarnation, event.first, event.last + 1)
            case _:
                process.checkers.on_oddity(event)
        super()._on_notify(event)

    def _assemble(self, run: Run, effect: fx.Deliver, sender: int) -> None:
        self._senders |= dict.fromkeys(range(effect.first, effect.first + effect.count), sender)
        super()._assemble(run, effect, sender)

    def _on_passed(self, passed: list[tuple[int, int]], lost: list[tuple[int, int]]) -> None:
        self._process.recipient.speaker = self
        told = RangeSet(lost)
        for first, stop in passed:
            for number in range(first, stop):
                who = (self._process.receiver, self._process.name, self.incarnation, self._senders.pop(number))
                self._reading.on_given_up(*who, number, told=number in told)
