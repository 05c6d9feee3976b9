"""A receiver's session with one life of one source: stream, machine, and the runs in between."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, assert_never

import attrs

from stablecast.client.message import Batch
from stablecast.client.precedence import outranks
from stablecast.client.reassembly import Assembled
from stablecast.client.source_identity import Place
from stablecast.client.succession import Succession
from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    DeregistrationComplete,
    Event,
    Oddity,
    RegistrationComplete,
    UnrecoverableLoss,
)
from stablecast.core.protocol.inputs import (
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
    Useless,
    Withdraw,
)
from stablecast.core.protocol.messages import Message, Role, SourceInfo
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.evidence.trace import recorder
from stablecast.runtime.connection_pool import Pool
from stablecast.runtime.driven_machine import Driven
from stablecast.runtime.driver import Driver
from stablecast.runtime.effect_execution import describe
from stablecast.runtime.kept_runs import Continuity, Tokens
from stablecast.runtime.source_strings import is_source_string
from stablecast.transports import codec
from stablecast.transports.codec.fragments import FragmentReassembly
from stablecast.transports.codec.lbttcp import Run

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
        self.waiting = 0
        self._stopped = self._failed = self._closed = False
        self._plain = True
        self._earlier: Sequence[Session] = ()
        self._thread = get_ident()
        self._receiver = receiver
        self._pool = pool
        self._tokens = Tokens()
        self._pieces = FragmentReassembly()
        self._stream = None if is_source_string(transport) else Continuity()
        self._left = asyncio.Event()
        self._consumed: tuple[int, int] | None = None
        self._machine = ReceiverSession.create(config)
        self._goes_on = self._machine.advance
        self._driver = self._drive(self._machine, trace)
        self.succession = Succession(self._machine, self._driver.feed, receiver.inbox)

    def _drive(self, machine: ReceiverSession, trace: Path | None) -> Driver[ReceiverInput, fx.ReceiverEffect]:
        """Make what feeds the machine and performs its effects; a simulator has another clock and event loop."""
        driven: Driven[ReceiverInput, fx.ReceiverEffect] = Driven(
            machine, recorder(Role.RECEIVER, self.config.topic, machine, trace)
        )
        return Driver(driven, self._perform, self._on_failed, self._before_timer)

    def start(self, history: dict[int, list[tuple[int, int]]], earlier: "Sequence[Session]" = ()) -> None:
        """Begin, knowing what the application consumed in earlier sessions.

        `earlier` are those with the same source: what they delivered is inherited once the source has told of itself.
        """
        self._earlier = earlier
        self.succession.earlier = [session.succession for session in earlier]
        for session in earlier:
            session.stop()
        for incarnation, ranges in history.items():
            for first, stop in ranges:
                self._driver.feed(History(incarnation, first, stop - 1))
        self._driver.feed(Start())

    def history(self) -> dict[int, list[tuple[int, int]]]:
        """What was consumed, by the life that sent it."""
        self.tell_consumed()
        return self.succession.consumed()

    @property
    def settled(self) -> bool:
        """Return whether the session may end: all it delivered is consumed, or a later session answers for it."""
        if self.succession.heir is not None:
            return True
        return not (self.waiting or self.recovering) and self.succession.settled

    @property
    def recovering(self) -> bool:
        """Whether messages are still to be had from the stores."""
        machine = self._machine
        return not self._stopped and machine.state is ReceiverState.ACTIVE and machine.recovering

    @property
    def places(self) -> set[Place]:
        """Where the source is registered, and under which RegID."""
        return set() if self._machine.info is None else places_of(self._machine.info)

    def shares_source(self, info: SourceInfo) -> bool:
        """Whether this is the announcement of the same life, or of another one of the same source."""
        if info.incarnation == self.incarnation or any(life == self.incarnation for life, _ in info.lives):
            return True
        known = self._machine.info
        if known is not None and any(life == info.incarnation for life, _ in known.lives):
            return True
        return bool(self.places & places_of(info))

    def outranks(self, info: SourceInfo) -> bool:
        """Return whether this session is with a later life of the source that announces itself."""
        return self._machine.info is not None and outranks(self._machine.info, info)

    def stop(self) -> None:
        """Deliver no more: a new life's session does; what was delivered may still be consumed."""
        self._stopped, self._plain = True, False

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
            and self._plain
            and not (run.chained or self._pieces.partials)
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
        if self.succession.due:
            self._inherit()

    def close(self) -> None:
        """Acknowledge what was consumed, and stop."""
        self.tell_consumed()
        self._driver.feed(Finish())
        self._driver.close()
        self._closed = True
        self._left.set()

    async def deregister(self) -> None:
        """Ask every store to forget this receiver, and wait until all have, or the session is over."""
        self.withdraw()
        await self._left.wait()

    def withdraw(self) -> None:
        """Ask every store to forget this receiver."""
        self.tell_consumed()
        self._driver.feed(Withdraw())

    # What the application does with batches.

    def own_thread(self) -> None:
        """Raise MisuseError in any thread but the event loop's: nothing here may be used by two at once."""
        if get_ident() != self._thread:
            raise MisuseError(
                f"a message of '{self.config.topic}' was consumed or acknowledged in another thread: "
                "use loop.call_soon_threadsafe"
            )

    def consumed(self, first: int, last: int) -> None:
        """It is done with these; the machine hears of all at once, after what has arrived meanwhile was read."""
        self.waiting -= last - first + 1
        if self._consumed is None:
            self._consumed = (first, last)
            self._driver.settle_soon()
        elif self._consumed[1] + 1 == first:
            self._consumed = (self._consumed[0], last)
        else:
            self.tell_consumed()
            self._consumed = (first, last)
            self.tell_consumed()
        if self.succession.heir is not None:
            self.succession.on_consumed(first, last + 1)
            if not self.waiting:
                self._receiver.on_inherited()
        elif self.ended and not self.waiting:
            self._receiver.on_consumed(self)

    def tell_consumed(self) -> None:
        """Feed what was consumed and not fed yet."""
        while self._consumed is not None:
            (first, last), self._consumed = self._consumed, None
            if self._closed:
                self._machine.record_consumed(first, last + 1)
            else:
                self._driver.feed(Consumed(first, last))

    def _before_timer(self) -> None:
        self.tell_consumed()
        if self.succession.inherited is not None:
            self.succession.claim()

    def acknowledge_now(self) -> None:
        """Acknowledge what is consumed, without waiting for the interval."""
        self.tell_consumed()
        self._driver.feed(Finish())
        if self.succession.heir is not None:
            self.succession.heir.feed(Finish())

    def acknowledge(self, first: int, number: int) -> None:
        """It acknowledges all up to `number` itself, and was handed `first` to `number`.

        Raises MisuseError for what was not delivered.
        """
        if self._pieces.incomplete(number):
            raise MisuseError(f"acknowledged {number}, a piece of a message that is not delivered yet")
        if self.succession.heir is not None:
            self.succession.on_acknowledged(first, number)
            return
        self.tell_consumed()
        self._driver.feed(Acknowledge(number, first))

    def _on_failed(self, effect: object, error: Exception) -> None:
        """End this session: its machine counts on an effect that did not happen.

        What was consumed until now is acknowledged, and nothing else any more: whatever was not handed over comes
        again to the next receiver.
        """
        if self._failed:
            return
        self._failed = self._stopped = True
        self.tell_consumed()
        self._driver.feed(Finish())
        self._driver.close()
        self._left.set()
        self._receiver.fail(describe(effect), error)

    # What earlier sessions with the source delivered.

    def _inherit(self) -> None:
        for session in self._earlier:
            session.tell_consumed()
        self._earlier = ()
        cut = self.succession.inherit()
        self._plain = False
        if cut:
            text = f"{cut} messages that waited have numbers that the source's next life uses again"
            self._receiver.on_notify(Oddity("dead-tail", text))
        self._receiver.on_inherited()

    def dropped(self, count: int) -> None:
        """Note that so many numbers that it delivered will not be consumed."""
        self.waiting -= count

    def _fresh(self, sender: int, first: int, stop: int) -> list[tuple[int, int]]:
        """Return what is to be handed over of messages that the machine delivers, where something is inherited."""
        fresh = self.succession.fresh(sender, first, stop)
        self._plain = self.succession.plain and not self._stopped
        return fresh

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
                if self._plain:
                    self._deliver(run, effect, sender, effect.first, effect.first + effect.count)
                else:
                    for first, stop in self._fresh(sender, effect.first, effect.first + effect.count):
                        self._deliver(run, effect, sender, first, stop)
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
                    self._driver.feed(LowChosen(self.succession.low(effect, low)))
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _deliver(self, run: Run, effect: fx.Deliver, sender: int, first: int, stop: int) -> None:
        """Deliver plain messages [first, stop) of a run."""
        self.waiting += stop - first
        skip = effect.skip + first - effect.first
        self._receiver.deliver(Batch(run, skip, stop - first, first, sender, self, effect.recovered, effect.otr))

    def _on_notify(self, event: Event) -> None:
        if isinstance(event, DeregistrationComplete):
            self._left.set()
        if isinstance(event, RegistrationComplete):
            self.succession.begin(event.number)
        if isinstance(event, UnrecoverableLoss):
            self._on_lost(event)
        elif not self.ended:
            self._receiver.on_notify(event)

    def _on_lost(self, event: UnrecoverableLoss) -> None:
        for first, stop in self.succession.lost(event.first, event.last + 1) if not self._stopped else ():
            self._receiver.on_notify(attrs.evolve(event, first=first, last=stop - 1))
        self._pieces.lose(event.first, event.last + 1)
        self._pass()

    def _assemble(self, run: Run, effect: fx.Deliver, sender: int) -> None:
        """Deliver what a run completes."""
        self._pieces.floor = self._machine.start_number
        self._pieces.owed = self._machine.begins_where_stores_said
        wholes = self._pieces.take(run.block, effect.skip, effect.count, effect.first, effect.recovered)
        self._pass()
        if not self._plain:
            wholes = [whole for whole in wholes if self._fresh(sender, whole.first, whole.last + 1)]
        if wholes:
            self.waiting += sum(whole.last + 1 - whole.first for whole in wholes)
            self._receiver.deliver(Assembled(wholes, run, effect, sender, self))

    def _pass(self) -> None:
        """Pieces that no message will come of are lost, and nobody is told that they were consumed."""
        passed, lost = self._pieces.take_passed()
        for first, stop in passed:
            self._driver.feed(Useless(first, stop - 1))
        for low, high in lost:
            for first, stop in self.succession.lost(low, high):
                self._receiver.on_notify(UnrecoverableLoss(first, stop - 1))
