"""Drive a receiver of a world, and its application.

The receiver has one session at a time, with one life of the source. Its application consumes messages in their order,
and acknowledges each at once. It dies without a word, and keeps nothing then: only the stores know how far it was.
"""

from collections.abc import Mapping

import attrs

from stablecast.core.errors import InvariantError
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import RegistrationComplete, UnrecoverableLoss
from stablecast.core.protocol.inputs import Arrived, Consumed, LowChosen, ReceiverInput, RegIdChosen
from stablecast.core.protocol.messages import Message, Register, RetransmitRequest, SourceInfo
from stablecast.core.protocol.request_window import OpenRequest, RequestWindow
from stablecast.core.protocol.settings import AckMode, OtrTimes, ReceiverConfig, RegistrationTimes
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.lab.model.store_process import LONG_NS
from stablecast.lab.prove.endpoints import EndpointStates
from stablecast.lab.prove.state import Deed
from stablecast.lab.prove.stores import TOKENS

RECEIVER_ID = 9
TICK_NS = 1
GIVE_UP_TICKS = 4
"""Longer than a request to each of three stores."""
TURNS = 6
"""Turns after which requests to one, two or three stores repeat."""
ADDRESS = "receiver:1"
_OPEN = (RegistrationState.REGISTERING, RegistrationState.RENEWING, RegistrationState.UNRESPONSIVE)


ReceiverStep = Deed | ReceiverInput | SourceInfo
"""An SRI begins a session with the life that it announces."""
Used = tuple[int, int]
"""A message by life and number."""


@attrs.frozen
class ReceiverSummary:
    """Summarize a receiver for other parts.

    `life` is that of the source in its session (0: none), `counting` the stores where it is registered. `high` is the
    newest number that it knows to exist. `read` and `lost` cover all sessions. `lost_now` was reported lost in the step
    to this state. `wrong` says what no receiver may do; empty: nothing.
    """

    life: int
    active: bool
    waits: bool
    consumes: bool
    start: int
    high: int
    counting: tuple[int, ...]
    read: frozenset[Used]
    lost: frozenset[Used]
    lost_now: frozenset[int]
    wrong: str


@attrs.define
class ReceiverLife:
    """Hold a session, its time in ns, and what the application got. `pending` is delivered and not consumed."""

    session: ReceiverSession | None = None
    now: int = 0
    pending: list[Used] = attrs.field(factory=list)
    newest: int = -1
    start: int = -1
    read: frozenset[Used] = frozenset()
    lost: frozenset[Used] = frozenset()
    lost_now: frozenset[int] = frozenset()
    wrong: str = ""

    def look(self) -> ReceiverSummary:
        session = self.session
        if session is None:
            return ReceiverSummary(0, False, False, False, -1, -1, (), self.read, self.lost, self.lost_now, self.wrong)
        status = session.status
        known = status.registrations
        requests = session.arrivals.requests
        waits = (
            status.ack_due
            or bool(requests.history or requests.gaps or requests.young)
            or any(one.state in _OPEN for one in known.values())
            or (session.state is ReceiverState.REGISTERING and not status.first_interval_over)
            or session.enlistment.patience is not None
        )
        counting = tuple(index for index, one in sorted(known.items()) if one.present)
        active = session.state is ReceiverState.ACTIVE
        facts = (self.read, self.lost, self.lost_now, self.wrong)
        known_high = session.arrivals.window.high
        high = -1 if known_high is None else known_high
        return ReceiverSummary(
            session.config.incarnation, active, waits, bool(self.pending), self.start, high, counting, *facts
        )

    def common(self) -> tuple[object, ...]:
        facts = (tuple(self.pending), self.newest, self.start, self.read, self.lost, self.lost_now, self.wrong)
        session = self.session
        if session is None:
            return facts
        arrivals, status = session.arrivals, session.status
        requests = (
            self._requests(arrivals.requests.history),
            self._requests(arrivals.requests.gaps),
            repr(arrivals.requests.young),
        )
        patience = session.enlistment.patience
        votes: tuple[object, ...] = (session.enlistment.impatient,)
        if patience is not None:
            votes = (patience - self.now, session.enlistment.again_at - self.now)
        times = (status.ack_due, status.first_interval_over, *votes)
        shown = (session.config.incarnation, session.state, repr(arrivals.window), repr(arrivals.lives), times)
        begins = (session.starting.low, session.starting.free, session.starting.certain, session.starting.first_held)
        return (*facts, *shown, requests, arrivals.resume_point, *begins)

    def _requests(self, one: RequestWindow) -> tuple[object, ...]:
        """Return open requests, and the turn: whom of up to three stores the next request goes to."""
        asked = (tuple(map(self._request, one.retrying)), tuple(map(self._request, one.asked)))
        return (tuple(one.wanted), *asked, one.turn % TURNS)

    def _request(self, one: OpenRequest) -> tuple[int, ...]:
        return (one.start, one.stop, one.deadline - self.now, one.since - self.now, one.turn % TURNS)

    def of(self, index: int) -> tuple[object, ...]:
        registration = None if self.session is None else self.session.status.registrations.get(index)
        if self.session is None or registration is None:
            return ()
        one = self.session.enlistment.enrollment.registrations[index]
        flags = (one.refused, one.passed_over, one.replaced)
        granted = registration.granted
        known = () if granted is None else (granted.old, granted.low, granted.high, granted.memory, granted.known)
        return (registration.state, registration.counts, registration.present, registration.failing, known, flags)


@attrs.frozen
class ReceiverReaction:
    """Hold the result of a step: the state, and messages with the address of the store."""

    state: int
    sent: tuple[tuple[str, Message], ...]


@attrs.define
class ReceiverStates(EndpointStates[ReceiverLife, ReceiverSummary, ReceiverStep, ReceiverReaction]):
    """Keep every state of a receiver by number, and the result of each step."""

    config: ReceiverConfig

    def new(self) -> int:
        return self.number(ReceiverLife())

    def registrations(self, endpoint: ReceiverLife) -> Mapping[int, RegistrationStatus]:
        return {} if endpoint.session is None else endpoint.session.status.registrations

    def perform(self, endpoint: ReceiverLife, step: ReceiverStep) -> ReceiverReaction:
        life = endpoint
        life.lost_now = frozenset()
        sent: list[tuple[str, Message]] = []
        match step:
            case Deed.QUIT:
                life.session, life.pending, life.newest, life.start = None, [], -1, -1
            case Deed.CONSUME:
                used = life.pending.pop(0)
                life.read |= {used}
                sent = self._feed(life, Consumed(used[1], used[1]))
            case Deed.WAIT:
                life.now += TICK_NS
                assert life.session is not None
                life.session.handle_timeout(life.now)
                sent = self._effects(life)
            case SourceInfo():
                life.pending, life.newest, life.start = [], -1, -1
                life.session = ReceiverSession.create(attrs.evolve(self.config, incarnation=step.incarnation))
                sent = self._feed(life, Arrived(step))
            case Deed():
                raise InvariantError(f"a receiver takes no such step: {step}")
            case _:
                sent = self._feed(life, step)
        return ReceiverReaction(self.number(life), tuple((to, _uncounted(message)) for to, message in sent))

    def _feed(self, life: ReceiverLife, event: ReceiverInput) -> list[tuple[str, Message]]:
        if life.session is None:
            return []
        life.session.receive(event, life.now)
        return self._effects(life)

    def _effects(self, life: ReceiverLife) -> list[tuple[str, Message]]:
        """Perform the effects; return the messages to stores. The application has no wish where to begin."""
        session = life.session
        assert session is not None
        sent: list[tuple[str, Message]] = []
        effects = [*session.take_effects()]
        while effects:
            match effects.pop(0):
                case fx.AskLow() as asked:
                    session.receive(LowChosen(asked.low), life.now)
                    effects += session.take_effects()
                case fx.AskRegId(store_index=index):
                    session.receive(RegIdChosen(index, RECEIVER_ID), life.now)
                    effects += session.take_effects()
                case fx.Deliver() as run:
                    for number in range(run.first, run.first + run.count):
                        _deliver(life, run.token // TOKENS, number)
                case fx.Send(to=to, message=message):
                    sent.append((to, message))
                case fx.Notify(event=UnrecoverableLoss() as loss):
                    numbers = frozenset(range(loss.first, loss.last + 1))
                    life.lost_now |= numbers
                    life.lost |= {(session.config.incarnation, number) for number in numbers}
                case fx.Notify(event=RegistrationComplete() as complete):
                    life.start = complete.number
        return sent


def _uncounted(message: Message) -> Message:
    """Return a message without its place among others, which matters to its sender only."""
    match message:
        case Register():
            return attrs.evolve(message, store_index=0, generation=0)
        case RetransmitRequest():
            return attrs.evolve(message, request=0)
    return message


def _deliver(life: ReceiverLife, writer: int, number: int) -> None:
    """Hand a message to the application, which notices what no receiver may do."""
    if number <= life.newest:
        life.wrong = f"{number} was delivered after {life.newest}"
    life.newest = max(life.newest, number)
    life.pending.append((writer, number))


def receiver_config() -> ReceiverConfig:
    """Return a receiver that recovers by requests to stores, in time and off the transport."""
    return ReceiverConfig(
        "topic",
        0,
        ADDRESS,
        times=RegistrationTimes(TICK_NS, LONG_NS, LONG_NS),
        retry_ns=TICK_NS,
        give_up_ns=GIVE_UP_TICKS * TICK_NS,
        otr=OtrTimes(0, GIVE_UP_TICKS * TICK_NS),
        ack_mode=AckMode.IMMEDIATE,
    )
