"""A receiver's session with one life of one source: it feeds the machine and performs its effects."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, assert_never

import attrs

from stablecast.client.batch import ArrivalTime, AssembledBatch, Batch, Settlements
from stablecast.client.inbox import Inbox
from stablecast.client.observer import Observer
from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol.messages import Message, Role, SourceInfo
from stablecast.core.protocol.settings import Ordering, ReceiverConfig
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.core.subscription.succession import Succession
from stablecast.evidence.trace import recorder
from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.driver import Driven, Driver, describe
from stablecast.runtime.kept_runs import Continuity, Tokens
from stablecast.runtime.source_strings import is_source_string, source_string
from stablecast.transports import codec
from stablecast.transports.codec.fragments import FragmentReassembly
from stablecast.transports.codec.lbttcp import Run

BEFORE_DELIVERY = (ReceiverState.WAITING, ReceiverState.REGISTERING, ReceiverState.CHOOSING)
"""States of a session that has delivered nothing."""


class SessionOwner(Protocol):
    """The receiver of a session, which answers its questions and gets its messages."""

    inbox: Inbox[Batch]
    arrival: ArrivalTime

    @property
    def redeliverer(self) -> Settlements: ...

    def deliver(self, batch: Batch) -> None: ...

    def choose_reg_id(self, question: fx.AskRegId, transport: str) -> int | None:
        """Return the RegID to ask a store for; None keeps the session from asking it."""

    def choose_low(self, question: fx.AskLow, session: "ClientSession") -> int | None:
        """Return the first number to deliver; None if there is no answer, so that nothing is delivered."""

    def on_notify(self, event: events.Event, source: str = "") -> None:
        """Report an event to the application; `source` is the place of the source that it is about."""

    def on_consumed(self, session: "ClientSession") -> None:
        """Note that the application has consumed all messages of an ended session."""

    def on_inherited(self) -> None:
        """Close ended sessions whose messages another session now answers for."""

    def fail(self, what: str, error: Exception) -> None:
        """End deliveries, because the session could not do what its machine decided."""


class ClientSession:
    """A session that drives one `ReceiverSession` and delivers to its owner.

    Attributes:
        ended: True once the stream ended. The session then only recovers, and its events are no longer reported.
        waiting: Delivered numbers that the application has not consumed.
        succession: The session's place among the sessions with its source.
        arrival: The time of the newest read from the network.
        redeliverer: The messages that the application settles one by one.
    """

    def __init__(
        self,
        receiver: SessionOwner,
        config: ReceiverConfig,
        pool: ConnectionPool,
        trace: Path | None,
        transport: str,
        *,
        later: bool = False,
    ) -> None:
        """Make a session that has not started; `later`: the receiver had one before, and goes on without a trace.

        Raises TraceError.
        """
        self.config, self.incarnation = config, config.incarnation
        self.transport = transport
        self.ended, self.waiting = False, 0
        self._stopped = self._failed = self._closed = self._moved = False
        self._plain = True
        self._later = later
        self._earlier: Sequence[ClientSession] = ()
        self._ident, self._receiver = machine.threads.ident, receiver
        self._thread = self._ident()
        self._give: Callable[[Batch], None] = receiver.deliver
        self._observers: tuple[Observer, ...] = ()
        self.arrival, self.redeliverer = receiver.arrival, receiver.redeliverer
        self._pool = pool
        self._tokens, self._pieces = Tokens(), FragmentReassembly()
        self._stream = None if is_source_string(transport) else Continuity()
        self._left = asyncio.Event()
        self._consumed: tuple[int, int] | None = None
        self._unseen: tuple[int, int] | None = None
        self._machine = ReceiverSession.create(config)
        self._goes_on = self._machine.advance
        self._driver = self._drive(self._machine, trace)
        self.succession = Succession(self._machine, self._driver.feed, receiver.inbox)

    def _drive(self, machine: ReceiverSession, trace: Path | None) -> Driver[inputs.ReceiverInput, fx.ReceiverEffect]:
        """Make the driver of the machine. A simulator overrides this, because it has a clock of its own."""
        driven: Driven[inputs.ReceiverInput, fx.ReceiverEffect] = Driven(
            machine, recorder(Role.RECEIVER, self.config.topic, machine, trace, optional=self._later)
        )
        return Driver(driven, self._perform, self._on_failed, self._before_timer)

    def start(
        self,
        history: dict[int, list[tuple[int, int]]],
        earlier: "Sequence[ClientSession]" = (),
        confirmed: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Start with the `history` of consumed numbers [first, stop) by life, and stop the `earlier` sessions.

        Sessions before this one confirmed the numbers `confirmed` of its life.

        The earlier sessions are those with the same source. The new session inherits their unconsumed messages once the
        source has announced its numbers.
        """
        self._earlier = earlier
        self.succession.earlier = [session.succession for session in earlier]
        for session in earlier:
            session.stop()
        for incarnation, ranges in history.items():
            for first, stop in ranges:
                self._driver.feed(inputs.History(incarnation, first, stop - 1))
        for first, stop in confirmed:
            self._driver.feed(inputs.History(self.incarnation, first, stop - 1, confirmed=True))
        self._driver.feed(inputs.Start())

    def history(self) -> dict[int, list[tuple[int, int]]]:
        """Return the consumed numbers as [first, stop), by the life that sent them."""
        self.report_consumed()
        return self.succession.consumed()

    @property
    def confirmed(self) -> list[tuple[int, int]]:
        """Return the numbers [first, stop) that this session and those before it confirmed to the source."""
        return list(self._machine.status.confirmable)

    @property
    def topic(self) -> str:
        return self.config.topic

    @property
    def source_name(self) -> str:
        """Return the name of the source: its RegID at its first store, or its place if it has no stores."""
        info = self._machine.info
        if info is None or not info.stores:
            return source_string(self.transport)
        first = min(info.stores, key=lambda store: store.index)
        return f"{first.source_reg_id}@{first.address}"

    @property
    def info(self) -> SourceInfo | None:
        """Return the newest announcement of the source, None before the first."""
        return self._machine.info

    @property
    def settled(self) -> bool:
        """Return True if the session may end: its messages are consumed, or a later session answers for them."""
        if self.succession.heir is not None:
            return True
        owes = not self._stopped and self._machine.status.owes
        return not (self.waiting or self.recovering or owes) and self.succession.settled

    @property
    def recovering(self) -> bool:
        """Return True while the stores may still deliver messages."""
        machine = self._machine
        return not self._stopped and machine.state is ReceiverState.ACTIVE and machine.recovering

    def end(self) -> bool:
        """Note that the stream ended. Return whether this session replaced others in vain, because it never began."""
        self.ended = True
        if self._machine.info is not None:  # Its requests to stores may have been in vain since its source ended.
            self._driver.feed(inputs.Gone(self._machine.info.request))
        return self._machine.state in BEFORE_DELIVERY

    def stop(self) -> None:
        """Deliver no more, because the session with a new life does. Delivered messages may still be consumed."""
        self._stopped, self._plain = True, False

    @property
    def returning(self) -> bool:
        """Return True if a store knows how far the receiver is."""
        return self._machine.status.returning

    @property
    def begun(self) -> bool:
        """Return True once the session has begun to deliver."""
        return self._machine.state is ReceiverState.ACTIVE

    @property
    def withdrawn(self) -> bool:
        """Return True once the stores were asked to forget the receiver. Messages are still delivered."""
        return self._machine.state is ReceiverState.WITHDRAWN

    @property
    def leased(self) -> bool:
        """Return True while no other receiver can have this session id at enough stores."""
        return self._machine.status.leased(machine.clock.monotonic_ns())

    @property
    def contested(self) -> bool:
        """Return True if too few stores granted because another receiver has the session id at others."""
        return self._machine.status.contested

    def record(self) -> bool:
        """Return whether enough stores have recorded what was consumed; ask those again that have not shown it."""
        self.acknowledge_now()
        behind = self._machine.status.unrecorded
        for store in behind:
            self._driver.feed(inputs.Reset(store))
        return not behind

    def observe(self, observer: Observer) -> None:
        self._observers += (observer,)
        self._give = self._give_watched

    def _give_watched(self, batch: Batch) -> None:
        for one in self._observers:
            one.delivered(batch)
        self._receiver.deliver(batch)

    def move(self, transport: str) -> None:
        """Leave the stream, and go on at another place of the same life."""
        self.transport, self._moved = transport, True
        self._stream = None if is_source_string(transport) else Continuity()

    def go_on(self, run: Run) -> None:
        """Begin with a stream. What was sent between two streams, and came on neither, is lost."""
        awaited = self._machine.next_number if self._moved else None
        self._moved = False
        missing = 0 if awaited is None else serial.wire(run.first - awaited)
        if awaited is not None and 0 < missing < serial.HALF:
            self.miss(inputs.Lost(self.incarnation, serial.wire(awaited), missing))

    def miss(self, lost: inputs.Lost) -> None:
        """Feed a loss of the stream to the machine."""
        for one in self._observers:
            one.missing(lost)
        self._driver.feed(lost)

    def choose(self, question: fx.AskLow, low: int) -> None:
        self._driver.feed(inputs.LowChosen(self.succession.low(question, low)))

    def receive(self, event: inputs.ReceiverInput) -> None:
        self._driver.feed(event)

    def on_run(self, run: Run) -> None:
        """Process live data. A run that continues the stream is delivered at once; `feed_run` would do the same.

        The short way holds if nothing was lost before the run, the machine would only deliver it (`Arrivals.goes_on`),
        and no trace records the inputs. It saves nine calls, which is what a single message mostly costs.
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
                self._driver.during(self._give, Batch(run, 0, count, at, life, self))
                return
        self.feed_run(run)

    def feed_run(self, run: Run) -> None:
        """Feed live data to the machine, and the loss before it if the stream has a gap."""
        incarnation = self.incarnation
        token = self._tokens.keep(run, incarnation)
        lost = None if self._stream is None else self._stream.check(incarnation, run)
        self._driver.feed(inputs.Data(incarnation, incarnation, run.first, run.count, run.payload_bytes, False, token))
        if lost is not None:
            self.miss(lost)

    def on_recovered(self, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        self._driver.feed_all(self._tokens.keep_recovered(messages))

    def stores(self, index: int | None = None) -> list[str]:
        """Return the addresses of the stores of the session, or of the store with an index."""
        return self._machine.status.stores(index)

    def on_message(self, message: Message) -> None:
        """Feed a control message, and inherit if it was the source's first announcement."""
        self._driver.feed(inputs.Arrived(message))
        if self.succession.due:
            self._inherit()

    def close(self) -> None:
        """Acknowledge the consumed messages, and stop."""
        self.report_consumed()
        self._driver.feed(inputs.Finish())
        self._driver.close()
        self._closed = self.ended = True
        self._left.set()

    async def deregister(self) -> None:
        """Ask every store to forget this receiver, and wait until all have, or the session is over."""
        self.withdraw()
        await self._left.wait()

    def withdraw(self) -> None:
        """Acknowledge the consumed messages, and ask every store to forget this receiver."""
        self.acknowledge_now()  # A source that counts confirmations hears of none after this.
        self._driver.feed(inputs.Withdraw())

    def disown(self) -> None:
        """Refuse every later call, because this is a forked process."""
        self._thread = -1

    # ---------------------------------------------------------------------------------- consumption by the application

    def check_thread(self) -> None:
        """Raise MisuseError outside the thread of the event loop, because nothing here is safe for two threads."""
        if self._ident() != self._thread:
            raise MisuseError(
                f"a message of '{self.config.topic}' was consumed or acknowledged in another thread or process: "
                "use loop.call_soon_threadsafe"
            )

    def consumed(self, first: int, last: int) -> None:
        """Note that the application consumed messages `first` to `last`.

        The machine gets one report for many messages, after the data that arrived meanwhile was read.
        """
        self.waiting -= last - first + 1
        if self._observers:
            self._note_consumed(first, last)
        if self._consumed is None:
            self._consumed = (first, last)
            self._driver.settle_soon()
        elif self._consumed[1] + 1 == first:
            self._consumed = (self._consumed[0], last)
        else:
            self.report_consumed()
            self._consumed = (first, last)
            self.report_consumed()
        if self.succession.heir is not None:
            self.succession.on_consumed(first, last + 1)
            if not self.waiting:
                self._receiver.on_inherited()
        elif self.ended and (self._closed or not self.waiting):
            self._receiver.on_consumed(self)

    def pass_over(self, first: int, last: int) -> None:
        """Acknowledge messages `first` to `last` without the application, because they are for other shares."""
        self.waiting -= last - first + 1
        self._note_consumed(first, last)
        if self._unseen is not None and self._unseen[1] + 1 == first:
            first = self._unseen[0]
        else:
            self.report_consumed()
            self._driver.settle_soon()
        self._unseen = (first, last)
        if self.ended and not self.waiting:
            self._receiver.on_consumed(self)

    def _note_consumed(self, first: int, last: int) -> None:
        for one in self._observers:
            one.consumed(first, last)

    def report_consumed(self) -> None:
        """Feed the consumed numbers that were not fed yet."""
        while self._consumed is not None:
            (first, last), self._consumed = self._consumed, None
            if self._closed:
                self._machine.record_consumed(first, last + 1)
            else:
                self._driver.feed(inputs.Consumed(first, last))
        while self._unseen is not None:
            (first, last), self._unseen = self._unseen, None
            self._driver.feed(inputs.Consumed(first, last, unseen=True))

    def _before_timer(self) -> None:
        self.report_consumed()
        self.succession.claim()

    def acknowledge_now(self) -> None:
        self.report_consumed()
        self._driver.feed(inputs.Finish())
        if self.succession.heir is not None:  # The last one answers: a life before it may have ended, too.
            self.succession.end.feed(inputs.Finish())

    def acknowledge(self, first: int, number: int) -> None:
        """Acknowledge up to `number`, handed over from `first` on; raise MisuseError if one was not delivered."""
        if self._pieces.incomplete(number):
            raise MisuseError(f"acknowledged {number}, a piece of a message that is not delivered yet")
        if self.succession.heir is not None:
            self.succession.on_acknowledged(first, number)
        else:
            self.report_consumed()
            self._driver.feed(inputs.Acknowledge(number, first))
        # In arrival order a lower message that is still in hand may belong to another batch. It is not acknowledged.
        arrival = self._machine.config.ordering is Ordering.ARRIVAL
        self._receiver.inbox.settle_in_hand(self, first if arrival else 0, number)
        if self.succession.heir is None and self.ended and not self.waiting:
            self._receiver.on_consumed(self)

    def _on_failed(self, effect: object, error: Exception) -> None:
        """End this session, because its machine counts on an effect that did not happen.

        The messages consumed until now are acknowledged, and no others. The next receiver gets all others again.
        """
        if self._failed:
            return
        self._failed = self._stopped = True
        self.report_consumed()
        self._driver.feed(inputs.Finish())
        self._driver.close()
        self._left.set()
        self._receiver.fail(describe(effect), error)

    # -------------------------------------------------------------------------------------------------------- delivery

    def _inherit(self) -> None:
        for session in self._earlier:
            session.report_consumed()
        self._earlier = ()
        cut = self.succession.inherit()
        self._plain = False
        if cut:
            text = f"{cut} messages that waited have numbers that the source's next life uses again"
            self._receiver.on_notify(events.Oddity("dead-tail", text), self.transport)
        self._receiver.on_inherited()

    def dropped(self, count: int) -> None:
        self.waiting -= count

    def _fresh(self, sender: int, first: int, stop: int) -> list[tuple[int, int]]:
        """Return the ranges that the application gets of messages [first, stop), which the machine delivers."""
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
                    self._drop_useless()
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
                    self._driver.feed(inputs.RegIdChosen(effect.store_index, reg_id))
            case fx.AskLow():
                low = self._receiver.choose_low(effect, self)
                if low is not None:
                    self.choose(effect, low)
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _deliver(self, run: Run, effect: fx.Deliver, sender: int, first: int, stop: int) -> None:
        """Deliver plain messages [first, stop) of a run."""
        self.waiting += stop - first
        skip = effect.skip + first - effect.first
        self._give(Batch(run, skip, stop - first, first, sender, self, effect.recovered, effect.otr))

    def _on_notify(self, event: events.Event) -> None:
        if isinstance(event, events.DeregistrationComplete):
            self._left.set()
        if isinstance(event, events.RegistrationComplete):
            self.succession.begin(event.number)
        if isinstance(event, events.UnrecoverableLoss):
            self._on_lost(event)
        elif not self.ended:
            self._receiver.on_notify(self._pool.explained(event), self.transport)

    def _on_lost(self, event: events.UnrecoverableLoss) -> None:
        for first, stop in self.succession.lost(event.first, event.last + 1) if not self._stopped else ():
            self._receiver.on_notify(attrs.evolve(event, first=first, last=stop - 1), self.transport)
        self._pieces.lose(event.first, event.last + 1)
        self._drop_useless()

    def _assemble(self, run: Run, effect: fx.Deliver, sender: int) -> None:
        """Deliver the messages that a run of pieces completes."""
        self._pieces.floor = self._machine.start_number
        self._pieces.owed = self._machine.begins_at_proposal
        until = self.succession.parting(sender)
        wholes = self._pieces.add_run(run.block, effect.skip, effect.count, effect.first, effect.recovered, until)
        self._drop_useless()
        if not self._plain:
            wholes = [whole for whole in wholes if self._fresh(sender, whole.first, whole.last + 1)]
        if wholes:
            self.waiting += sum(whole.last + 1 - whole.first for whole in wholes)
            self._give(AssembledBatch(wholes, run, effect, sender, self))

    def _drop_useless(self) -> None:
        """Report the pieces that no message will come of. They are lost, and never confirmed as consumed (P-349)."""
        passed, lost = self._pieces.take_passed()
        for first, stop in passed:
            self._driver.feed(inputs.Useless(first, stop - 1))
        for low, high in lost:
            for first, stop in self.succession.lost(low, high):
                self._receiver.on_notify(events.UnrecoverableLoss(first, stop - 1), self.transport)
