"""Drive the core's machines for `tla/ReceiverVotes`: a receiver returns to stores that lost a disk, or lack messages.

The receiver is a whole `ReceiverSession`. The stores and their source are the world of `tla/Refill`. This world adds
the receiver's application, which consumes at once and forgets when it dies. It syncs all disks after each action, and
knows which were replaced.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import AskLow, Client, Deliver, Effect, Notify, Send, SendStored
from stablecast.core.protocol.events import UnrecoverableLoss
from stablecast.core.protocol.inputs import Arrived, Consumed, Data, LowChosen, ReceiverInput, Reset
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, OtrTimes, ReceiverConfig, RegistrationTimes, UseOtr
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.store_process import LONG_NS, SOURCE_ID, WorldJournal, WorldStore, numbers_of, store_address
from stablecast.lab.model.worlds import refill

IDS = (1, 2, 3)
FIRST_LIFE, LIFE = 1, 2
TICK_NS = MILLISECOND
SESSION_ID = 7

_RECEIVER = "receiver"


@attrs.frozen
class ReceiverVotesConstants:
    """Hold the model's constants: spans in ticks, everything else in messages."""

    Messages: int
    Old: int
    Acked: int
    Knows: frozenset[int]
    Away: frozenset[int]
    Votes: frozenset[str]
    GiveUp: int
    Stops: int
    Wipes: int
    Returns: int

    def repairs(self, who: str) -> Repair:
        return Repair.ALL if who in self.Votes else Repair.ALL & ~Repair.VOTE


@attrs.define
class ReceiverVotesWorld:
    """Drive one receiver, and three stores with their source. `now` is the receiver's clock, in ns."""

    constants: ReceiverVotesConstants
    group: refill.RefillWorld
    shared: SharedMachine[ReceiverSession] | None = None
    read: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    wiped: frozenset[int] = frozenset()
    returns: int = 0
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: one life of the source is over, and so is one session of the receiver."""
        known = ReceiverVotesConstants(**constants)
        stops = known.Stops + len(known.Away)
        group = refill.RefillConstants(len(IDS), known.Messages, LIFE, stops, known.Wipes, Healing=True, Careful=False)
        world = cls(known, refill.RefillWorld.of(group, known.repairs("stores")), returns=known.Returns)
        world._live()
        return world

    def _live(self) -> None:
        """Let the first life of the source send, and the receiver consume some of it."""
        self.group.do(("Begin",))
        for store in sorted(self.constants.Away):
            self.group.do(("Stop", store))
        for _ in range(self.constants.Old):
            self.group.do(("Send",))
        for store in sorted(self.constants.Knows):
            asked = attrs.evolve(_request(store, self.constants), incarnation=FIRST_LIFE)
            (granted,) = self._grants(store, asked)
            ack = msg.ConsumptionAck(FIRST_LIFE, SOURCE_ID, granted.reg_id, self.constants.Acked - 1)
            self._hear(store, ack)
        self.read = frozenset(range(self.constants.Acked))
        self._sync()

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        session = self.shared.machine if self.shared else None
        up = [store for store in IDS if self._store(store).machine is not None]
        old = set(range(self.constants.Old))
        if self._life == FIRST_LIFE and any(old <= self._store(store).written.messages.keys() for store in up):
            yield ("Begin",)
        if session is None:
            if self._life == LIFE and self.group.upcoming < self.constants.Messages:
                yield ("Send",)
            if self._life == LIFE and self.returns:
                yield ("Return",)
        else:
            fetchable = self._fetchable(session)
            if fetchable:
                yield ("Fetch",)
            elif self._waits(session):
                yield ("Tick",)
            yield ("Die",)
            yield from (("Register", store) for store in up if _registration(session, store) != "REGISTERED")
        for name, *parameters in self.group.actions():
            if name in ("Stop", "Replace") or (name == "Refill" and self._life == LIFE):
                yield (name, *parameters)
            elif name == "Start":
                yield ("Restart", *parameters)

    def _waits(self, session: ReceiverSession) -> bool:
        """Return whether a tick would change anything but the clock."""
        registering = session.state is ReceiverState.REGISTERING
        waits = registering and (not session.status.first_interval_over or session.status.patience is not None)
        return waits or bool(session.status.asked) or any(_registration(session, one) == "RENEWING" for one in IDS)

    def _fetchable(self, session: ReceiverSession) -> dict[int, int]:
        """Return the store to ask for each requested message that a registered one has."""
        there = [store for store in IDS if _registration(session, store) == "REGISTERED"]
        return {
            number: store
            for asked in session.status.asked
            for number in range(asked.start, asked.stop)
            for store in there
            if number in self._store(store).written.messages
        }

    def do(self, action: Action) -> None:
        name, *parameters = action
        store = parameters[0] if parameters else 0
        match name:
            case "Return":
                self.returns -= 1
                self.shared = SharedMachine(ReceiverSession.create(_config(self.constants)))
                self._tell(Arrived(_info(self.group.upcoming, self.constants.Old)))
            case "Register":
                for answer in self._grants(store, self._running.machine.status.registrations[store - 1].request):
                    self._tell(Arrived(answer))
            case "Fetch":
                number, store = min(self._fetchable(self._running.machine).items())
                for run in self._retransmitted(store, number):
                    self._tell(run)
            case "Tick":
                self.now += TICK_NS
                session = self._running.own()
                session.handle_timeout(self.now)
                self._perform(session)
            case "Die":
                self.shared = None
            case "Restart":
                self.group.do(("Start", store))
                if self._life == LIFE:
                    self.group.do(("Join", store))
            case _:
                self.group.do(action)
                if name == "Replace":
                    self.wiped |= {store}
                elif name == "Stop" and self.shared is not None:
                    self._tell(Reset(store_address(store - 1)))
        self._sync()

    # The stores and their source.

    @property
    def _life(self) -> int:
        return len(self.group.history)

    def _store(self, store: int) -> WorldStore:
        return self.group.keepers[store - 1].machine

    def _sync(self) -> None:
        for store in IDS:
            if self._store(store).machine is not None and self._store(store).unsynced:
                self.group.keepers[store - 1].own().sync(self.group.now)

    def _hear(self, store: int, message: msg.Message) -> Sequence[Effect]:
        """Deliver a message to a store; one that is down hears nothing."""
        if self._store(store).machine is None:
            return ()
        return self.group.keepers[store - 1].own().receive(Arrived(message), self.group.now)

    def _grants(self, store: int, request: msg.Register) -> list[msg.Registered]:
        """Deliver a registration, sync it and return the answers."""
        effects = [*self._hear(store, request), *self.group.keepers[store - 1].own().sync(self.group.now)]
        sent = [effect.message for effect in effects if isinstance(effect, Send) and effect.to == _RECEIVER]
        return [message for message in sent if isinstance(message, msg.Registered)]

    def _retransmitted(self, store: int, number: int) -> Iterator[Data]:
        request = msg.RetransmitRequest(msg.Role.RECEIVER, LIFE, SOURCE_ID, 0, number, number, _RECEIVER)
        for effect in self._hear(store, request):
            if isinstance(effect, SendStored):
                life = self._store(store).written.messages[number]
                yield Data(effect.session, life, number, 1, 0, recovered=True, token=0)

    # The receiver.

    @property
    def _running(self) -> SharedMachine[ReceiverSession]:
        assert self.shared is not None
        return self.shared

    def _tell(self, event: ReceiverInput) -> None:
        session = self._running.own()
        session.receive(event, self.now)
        self._perform(session)

    def _perform(self, session: ReceiverSession) -> None:
        """Perform the receiver's effects. The application has no wish where to begin, and consumes at once."""
        effects: list[Effect] = [*session.take_effects()]
        while effects:
            effect = effects.pop(0)
            match effect:
                case AskLow():
                    session.receive(LowChosen(effect.low), self.now)
                case Deliver():
                    last = effect.first + effect.count - 1
                    self.read |= frozenset(range(effect.first, last + 1))
                    session.receive(Consumed(effect.first, last), self.now)
                case Send(message=msg.ConsumptionAck() as ack):
                    self._hear(IDS[int(effect.to.removeprefix("store:")) - 1], ack)
                case Notify(event=UnrecoverableLoss() as loss):
                    self.lost |= frozenset(range(loss.first, loss.last + 1))
            effects += session.take_effects()

    # The model's variables.

    def abstract(self) -> State:
        return {
            "source": record(life=self._life, next=self.group.upcoming),
            "store": tuple(map(self._stored, IDS)),
            "rcv": _down(self.constants) if self.shared is None else self._receiver(self.shared.machine),
            "read": self.read,
            "lost": self.lost,
            "left": record(stops=self.group.stops, wipes=self.group.wipes, returns=self.returns),
        }

    def _stored(self, store: int) -> Fn:
        process = self._store(store)
        client = _client(process.synced)
        return record(
            up=process.machine is not None,
            forgot=store in self.wiped,
            met=process.synced.source is not None and process.synced.source.incarnation == LIFE,
            holds=frozenset(process.synced.messages),
            first=0 if process.repository is None else process.repository.trail,
            client="none" if client is None else "old" if client.has_acknowledged else "new",
            ack=-1 if client is None else client.acknowledged,
        )

    def _receiver(self, session: ReceiverSession) -> Fn:
        status = session.status
        active = session.state is ReceiverState.ACTIVE
        patience = status.patience
        ages = dict.fromkeys(range(self.constants.Messages), -1)
        for asked in status.asked:
            ages.update(dict.fromkeys(range(asked.start, asked.stop), (self.now - asked.since) // TICK_NS))
        return record(
            state=session.state.name,
            reg=tuple(_registration(session, store) for store in IDS),
            grants=tuple(_NO_GRANT if active else _grant(session, store) for store in IDS),
            over=not active and status.first_interval_over,
            wait=0 if patience is None else (patience - self.now) // TICK_NS,
            hasty=not active and status.impatient,
            certain=active and status.certain,
            start=session.start_number,
            next=session.next_number or 0,
            held=numbers_of(status.held),
            gone=numbers_of(status.lost),
            acked=status.acknowledged if active else -1,
            asked=Fn(ages),
        )


_NO_GRANT = record(old=False, low=-1, lacks=-1, vote=False)


def _down(constants: ReceiverVotesConstants) -> Fn:
    return record(
        state="DOWN",
        reg=("IDLE",) * len(IDS),
        grants=(_NO_GRANT,) * len(IDS),
        asked=Fn(dict.fromkeys(range(constants.Messages), -1)),
        acked=-1,
        **dict.fromkeys(("wait", "start", "next"), 0),
        **dict.fromkeys(("over", "hasty", "certain"), False),
        **dict.fromkeys(("held", "gone"), frozenset[Value]()),
    )


def _registration(session: ReceiverSession, store: int) -> str:
    return session.status.registrations[store - 1].state.name


def _grant(session: ReceiverSession, store: int) -> Fn:
    """Return what a counting store offers to the receiver."""
    registration = session.status.registrations[store - 1]
    granted = registration.granted
    if not registration.counts or granted is None:
        return _NO_GRANT
    lacks = -1 if granted.old or granted.known is None else granted.known
    return record(old=granted.old, low=granted.low, lacks=lacks, vote=granted.memory is msg.StoreMemory.KEPT)


def _client(journal: WorldJournal) -> Client | None:
    """Return what a disk knows of the receiver."""
    return next((one for one in journal.clients.values() if one.role is msg.Role.RECEIVER), None)


def _info(upcoming: int, first: int) -> msg.SourceInfo:
    """Return the SRI of the second life, which names all stores."""
    stores = tuple(msg.StoreEntry(store - 1, 0, store_address(store - 1), SOURCE_ID, 0) for store in IDS)
    return msg.SourceInfo(LIFE, "topic", first, first, upcoming - 1, "source:1", (len(IDS),), False, stores)


def _request(store: int, constants: ReceiverVotesConstants) -> msg.Register:
    """Return the first request of a session to a store."""
    session = ReceiverSession.create(_config(constants))
    session.receive(Arrived(_info(constants.Old, constants.Old)), 0)
    return session.status.registrations[store - 1].request


def _config(constants: ReceiverVotesConstants) -> ReceiverConfig:
    return ReceiverConfig(
        "topic",
        LIFE,
        _RECEIVER,
        session_id=SESSION_ID,
        times=RegistrationTimes(TICK_NS, LONG_NS, LONG_NS),
        retry_ns=TICK_NS,
        give_up_ns=constants.GiveUp * TICK_NS,
        otr=OtrTimes(use=UseOtr.OFF),
        ack_mode=AckMode.IMMEDIATE,
        repairs=constants.repairs("receiver"),
    )
