"""A receiver's session with one life of one source: stream, machine, and the runs in between."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from stablecast.client.assembling import Assembled
from stablecast.client.message import Batch
from stablecast.client.source_identity import Place
from stablecast.core import effects as fx
from stablecast.core import serial
from stablecast.core.errors import MisuseError
from stablecast.core.events import DeregistrationComplete, UnrecoverableLoss
from stablecast.core.inputs import (
    Acknowledge,
    Arrived,
    Consumed,
    Data,
    Finish,
    History,
    LowChosen,
    ReceiverInput,
    RegIdChosen,
    Start,
    Withdraw,
)
from stablecast.core.messages import Message, Role, SourceInfo
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.core.settings import ReceiverConfig
from stablecast.net.driver import Driver
from stablecast.net.execution import describe
from stablecast.net.pool import Pool
from stablecast.net.runs import Continuity, Tokens
from stablecast.net.where import is_source_string
from stablecast.trace import Driven, recorder
from stablecast.transports import codec
from stablecast.transports.fragments import Reassembly
from stablecast.transports.lbttcp import Run

if TYPE_CHECKING:
    from stablecast.client.receiver import Receiver


def places_of(info: SourceInfo) -> set[Place]:
    """Return where the source that announces itself is registered, and under which RegID."""
    return {(store.address, store.source_reg_id) for store in info.stores}


class Session:
    """Drives one `ReceiverSession`; what it delivers goes to the receiver's queue."""

    def __init__(
        self, receiver: "Receiver", config: ReceiverConfig, pool: Pool, trace: Path | None, transport: str
    ) -> None:
        """A session that has not started."""
        self.config = config
        self.incarnation = config.incarnation
        self.transport = transport
        self.ended = False
        self._stopped = self._failed = False
        self.waiting = 0
        self._receiver = receiver
        self._pool = pool
        self._tokens = Tokens()
        self._pieces = Reassembly()
        self._stream = None if is_source_string(transport) else Continuity()
        self._left = asyncio.Event()
        self._consumed: tuple[int, int] | None = None
        self._acknowledged = -1
        self._machine = ReceiverSession.create(config)
        self._goes_on = self._machine.arrivals.goes_on
        driven: Driven[ReceiverInput, fx.ReceiverEffect] = Driven(
            self._machine, recorder(Role.RECEIVER, config.topic, self._machine, trace)
        )
        self._driver = Driver(driven, self._perform, self._on_failed, self._tell_consumed)

    def start(self, history: dict[int, list[tuple[int, int]]]) -> None:
        """Begin, knowing what the application consumed in earlier sessions."""
        for incarnation, ranges in history.items():
            for first, stop in ranges:
                self._driver.feed(History(incarnation, first, stop - 1))
        self._driver.feed(Start())

    def history(self) -> dict[int, list[tuple[int, int]]]:
        """What was consumed, by the life that sent it."""
        self._tell_consumed()
        return {incarnation: list(ranges) for incarnation, ranges in self._machine.lives.consumed.items()}

    @property
    def recovering(self) -> bool:
        """Whether messages are still to be had from the stores."""
        machine = self._machine
        return machine.state is ReceiverState.ACTIVE and bool(machine.requests or machine.window.missing())

    @property
    def places(self) -> set[Place]:
        """Where the source is registered, and under which RegID."""
        return set() if self._machine.info is None else places_of(self._machine.info)

    def shares_source(self, info: SourceInfo) -> bool:
        """Whether this is the announcement of another life of the same source."""
        return bool(self.places & places_of(info))

    def stop(self) -> None:
        """Deliver no more: a new life's session does; what was delivered may still be consumed."""
        self._stopped = True

    def receive(self, event: ReceiverInput) -> None:
        """Feed the machine."""
        self._driver.feed(event)

    def on_run(self, run: Run) -> None:
        """Live data. What simply goes on is handed over at once: `feed_run` would come to the same.

        Then nothing was lost before it, to deliver it is all that the machine would want (`Arrivals.goes_on`), and
        nobody records what it is fed. Where little is sent every call costs, and this spares nine of them.
        """
        first, stream, life = run.first, self._stream, self.incarnation
        if (
            self._driver.idle
            and not (run.chained or self._pieces.partials or self._stopped)
            and (stream is None or stream.next.get(life) == first)
        ):
            count = run.count
            at = self._goes_on(first, count)
            if at is not None:
                if stream is not None:
                    stream.next[life] = (first + count) % serial.MODULUS
                self.waiting += count
                self._driver.during(self._receiver.deliver, Batch(run, 0, count, at, life, self))
                return
        self.feed_run(run)

    def feed_run(self, run: Run) -> None:
        """Live data that the machine is to judge."""
        incarnation = self.incarnation
        token = self._tokens.keep(run, incarnation)
        lost = None if self._stream is None else self._stream.check(incarnation, run)
        self._driver.feed(Data(incarnation, incarnation, run.first, run.count, run.payload_bytes, False, token))
        if lost is not None:
            self._driver.feed(lost)

    def on_recovered(self, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        """Retransmissions."""
        self._driver.feed_all(self._tokens.keep_recovered(messages))

    def on_message(self, message: Message) -> None:
        """A control message for this session."""
        self._driver.feed(Arrived(message))

    def close(self) -> None:
        """Acknowledge what was consumed, and stop."""
        self._tell_consumed()
        self._driver.feed(Finish())
        self._driver.close()
        self._left.set()

    async def deregister(self) -> None:
        """Ask every store to forget this receiver, and wait until all have, or the session is over."""
        self._tell_consumed()
        self._driver.feed(Withdraw())
        await self._left.wait()

    # What the application does with batches.

    def consumed(self, first: int, last: int) -> None:
        """It is done with these; the machine hears of all at once, after what has arrived meanwhile was read."""
        self.waiting -= last - first + 1
        if self._consumed is None:
            self._consumed = (first, last)
            self._driver.settle_soon()
        elif self._consumed[1] + 1 == first:
            self._consumed = (self._consumed[0], last)
        else:
            self._tell_consumed()
            self._driver.feed(Consumed(first, last))
        if self.ended and not self.waiting:
            self._receiver.on_consumed(self)

    def _tell_consumed(self) -> None:
        while self._consumed is not None:
            (first, last), self._consumed = self._consumed, None
            self._driver.feed(Consumed(first, last))

    def acknowledge(self, first: int, number: int) -> None:
        """It acknowledges all up to `number` itself, and was handed `first` to `number`.

        Raises MisuseError for what was not delivered.
        """
        if self._pieces.incomplete(number):
            raise MisuseError(f"acknowledged {number}, a piece of a message that is not delivered yet")
        self._tell_consumed()
        self._driver.feed(Acknowledge(number, first))
        self._acknowledged = max(self._acknowledged, number)

    def _on_failed(self, effect: object, error: Exception) -> None:
        """End this session: its machine counts on an effect that did not happen.

        What was consumed until now is acknowledged, and nothing else any more: whatever was not handed over comes
        again to the next receiver.
        """
        if self._failed:
            return
        self._failed = self._stopped = True
        self._tell_consumed()
        self._driver.feed(Finish())
        self._driver.close()
        self._left.set()
        self._receiver.fail(describe(effect), error)

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        match effect:
            case fx.Deliver():
                run, sender = self._tokens.use(effect.token, effect.done)
                if self._stopped:
                    return
                if run.chained:
                    self._assemble(run, effect, sender)
                    return
                if self._pieces.partials:
                    self._pieces.settle(effect.first, effect.first + effect.count)
                    self._pass()
                self.waiting += effect.count
                self._receiver.deliver(
                    Batch(run, effect.skip, effect.count, effect.first, sender, self, effect.recovered, effect.otr)
                )
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
            case fx.Discard():
                self._tokens.drop(effect.token)
            case fx.AskRegId():
                reg_id = self._receiver.choose_reg_id(effect, self.transport)
                if reg_id is not None:
                    self._driver.feed(RegIdChosen(effect.store_index, reg_id))
            case fx.AskLow():
                low = self._receiver.choose_low(effect)
                if low is not None:
                    self._driver.feed(LowChosen(low))
            case fx.Notify():
                if isinstance(effect.event, DeregistrationComplete):
                    self._left.set()
                if not self.ended or isinstance(effect.event, UnrecoverableLoss):
                    self._receiver.on_notify(effect.event)
                if isinstance(effect.event, UnrecoverableLoss):
                    self._pieces.lose(effect.event.first, effect.event.last + 1)
                    self._pass()
            case _:
                assert_never(effect)

    def _assemble(self, run: Run, effect: fx.Deliver, sender: int) -> None:
        """Deliver what a run completes."""
        self._pieces.floor = self._machine.window.start
        wholes = self._pieces.take(run.block, effect.skip, effect.count, effect.first, effect.recovered)
        self._pass()
        if wholes:
            self.waiting += sum(whole.last + 1 - whole.first for whole in wholes)
            self._receiver.deliver(Assembled(wholes, run, effect, sender, self))

    def _pass(self) -> None:
        """Pieces that no message will come of are done with; the application hears of their loss."""
        passed, lost = self._pieces.take_passed()
        for first, stop in passed:
            self._driver.feed(Consumed(first, stop - 1))
            if first <= self._acknowledged:  # As with what is lost: no acknowledgement waits for it.
                self._driver.feed(Acknowledge(min(stop - 1, self._acknowledged), first))
        for first, stop in lost:
            self._receiver.on_notify(UnrecoverableLoss(first, stop - 1))
