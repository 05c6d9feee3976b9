"""Drive the core's machines for `tla/Registration`: sources that claim one registration ID at one store.

Each client is a `RegistrationSet` of one `Registration`, the store a whole `StoreEndpoint`. The world adds what the
core leaves to its drivers. There is a connection for each client: two queues, which may break openly or silently. There
is the store's disk, whose unsynced part a crash loses, time in ticks, and processes that end.

Time passes only when nothing is due. Actions that are due at one instant happen in any order.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import Client, Effect, PersistClient
from stablecast.core.protocol.inputs import Arrived, Gone, Reset
from stablecast.core.protocol.messages import Keepalive, Message, Refused, Register, Registered
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.core.protocol.settings import RegistrationTimes, RepositoryConfig, StoreConfig
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.store_registration import (
    LEASE_MARGIN,
    Registration,
    RegistrationState,
    RegistrationTimer,
)
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.store_process import SOURCE_ID, DiskWrite, WorldStore, messages, registration

TICK_NS = (LEASE_MARGIN - 1) * MILLISECOND
"""A tick in ns.

A lease of n ticks results from an activity timeout of 8n ms, which ends at tick n + 1. Timeouts travel in whole ms.
"""
STORE = "store:1"
CONTEXT = 1
"""The context of the clients that share one."""
NONE = -1
"""A timer that is not armed, in the model."""


@attrs.frozen
class RegistrationConstants:
    """Hold the model's constants. Spans are in ticks, `Room` is that of a queue, and `Writes` that of the disk.

    `Lease` is how long a client relies on a grant, at most 7. The store's activity timeout is one tick longer. `Shared`
    are the clients that are lives of one context.
    """

    Clients: int
    Interval: int
    Probe: int
    Silence: int
    Lease: int
    Lifetime: int
    Room: int
    Writes: int
    Shared: frozenset[int]
    Faults: frozenset[str]


@attrs.define
class RegisteringClient:
    """Hold a client: its machine and the queues of its connection."""

    enrollment: RegistrationSet
    alive: bool = True
    to_store: list[Message] = attrs.field(factory=list)
    from_store: list[Message] = attrs.field(factory=list)

    @property
    def registration(self) -> Registration:
        return self.enrollment.registrations[0]


@attrs.define
class RegistrationWorld:
    constants: RegistrationConstants
    clients: list[RegisteringClient]
    shared: SharedMachine[WorldStore]
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: the store runs, nobody has asked it anything."""
        known = RegistrationConstants(**constants)
        clients = [RegisteringClient(_enrollment(known, number)) for number in range(1, known.Clients + 1)]
        config = _store_config(known)
        return cls(known, clients, SharedMachine(WorldStore(config, StoreEndpoint.create(config))))

    @property
    def store(self) -> StoreEndpoint | None:
        """The store while it is up; do not change it."""
        return self.shared.machine.machine

    @property
    def unsynced(self) -> list[DiskWrite]:
        """The unsynced writes of the store, oldest first."""
        return self.shared.machine.unsynced

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        room = len(self.unsynced) < self.constants.Writes
        faults = self.constants.Faults
        for number, client in enumerate(self.clients, 1):
            if client.alive and client.registration.state is RegistrationState.IDLE:
                yield ("Start", number)
            if client.to_store and (room or self.store is None):
                yield ("ToStore", number)
            if client.from_store:
                yield ("ToClient", number)
            if client.alive and self._due(client.enrollment.next()):
                yield ("ClientTimer", number)
            if "break" in faults and client.alive and client.registration.state is not RegistrationState.IDLE:
                yield ("Break", number)
            if "drop" in faults and (client.to_store or client.from_store):
                yield ("Drop", number)
            if "die" in faults and client.alive and client.registration.state is not RegistrationState.IDLE:
                yield ("Die", number)
        if self.store is not None and self._due(self.store.check_at):
            yield ("StoreTimer",)
        if self.unsynced:
            yield ("Sync",)
        if "crash" in faults:
            yield ("Crash",) if self.store is not None else ("Restart",)
        if not any(self._due(deadline) for deadline in self._deadlines()) and self._may_wait():
            yield ("Tick",)

    def do(self, action: Action) -> None:
        name, *parameters = action
        if parameters:
            self._client_action(name, self.clients[parameters[0] - 1])
        elif name == "Tick":
            self.now += TICK_NS
        elif name == "Crash":
            self.shared.own().end()
        else:
            self._store_action(name)

    def _store_action(self, name: str) -> None:
        process = self.shared.own()
        match name:
            case "Restart":
                self._answer(process.restart(self.now))
            case "Sync":
                self._answer(process.sync(self.now))
            case _:
                process.running.handle_timeout(self.now)
                self._answer(process.perform(self.now))

    def _client_action(self, name: str, client: RegisteringClient) -> None:
        out: list[Effect] = []
        match name:
            case "Start":
                client.registration.start(SOURCE_ID, self.now, out)
            case "ClientTimer":
                client.enrollment.handle_timeout(self.now, out)
            case "ToStore":
                self._to_store(client, client.to_store.pop(0), out)
            case "ToClient":
                self._to_client(client, client.from_store.pop(0), out)
            case "Die":
                client.alive, client.to_store = False, []
            case _:
                client.to_store, client.from_store = [], []
                if name == "Break":
                    client.enrollment.on_broken(Reset(STORE), self.now, out)
        for message in messages(out):
            self._put(client.to_store, message)

    def _to_store(self, client: RegisteringClient, message: Message, out: list[Effect]) -> None:
        """Deliver a message; a store that is down refuses the connection."""
        if self.store is None:
            client.enrollment.on_broken(Gone(STORE), self.now, out)
        else:
            self._answer(self.shared.own().receive(Arrived(message), self.now))

    def _to_client(self, client: RegisteringClient, message: Message, out: list[Effect]) -> None:
        """Deliver a message; the address of an ended client refuses the connection."""
        if client.alive:
            if isinstance(message, Keepalive):
                client.enrollment.on_keepalive(message, self.now, out)
            else:
                assert isinstance(message, Registered | Refused)
                client.enrollment.on_answer(message, self.now, out)
        elif self.store is not None and client.registration.request.incarnation not in self.constants.Shared:
            self._answer(self.shared.own().receive(Gone(client.registration.request.reply_to), self.now))

    def _answer(self, effects: Iterable[Effect]) -> None:
        """Send the store's messages to its clients."""
        for message in messages(effects):
            self._put(self.clients[message.incarnation - 1].from_store, message)

    def _put(self, queue: list[Message], message: Message) -> None:
        """Append a message; a full queue drops it."""
        if len(queue) < self.constants.Room:
            queue.append(message)

    def _deadlines(self) -> Iterator[int | None]:
        yield from (client.enrollment.next() for client in self.clients if client.alive)
        if self.store is not None:
            yield self.store.check_at

    def _may_wait(self) -> bool:
        """Return whether messages in flight may take another tick."""
        faults = self.constants.Faults
        asked = bool(self.unsynced) or any(client.to_store for client in self.clients)
        answered = any(client.from_store for client in self.clients)
        return "slow" in faults or not (asked or (answered and "lag" not in faults))

    def _due(self, deadline: int | None) -> bool:
        return deadline is not None and deadline <= self.now

    # The model's variables.

    def abstract(self) -> State:
        return {
            "client": tuple(self._client(client) for client in self.clients),
            "toStore": tuple(tuple(self._message(m) for m in client.to_store) for client in self.clients),
            "toClient": tuple(tuple(self._message(m) for m in client.from_store) for client in self.clients),
            "store": self._store(),
            "unsynced": self._unsynced(),
            "disk": _number(self.shared.machine.synced.source),
        }

    def _client(self, client: RegisteringClient) -> Fn:
        machine = client.registration
        state = machine.state
        # No rule of this model depends on active stores, so the core never sets the timer of a quiet one.
        assert not machine.timers.armed(RegistrationTimer.QUIET)
        kinds = [kind for kind in RegistrationTimer if kind is not RegistrationTimer.QUIET]
        left = {kind.name.lower(): self._left(machine.timers.deadline(kind)) for kind in kinds}
        if not client.alive:
            return record(state="DEAD", asked=0, probed=NONE, **dict.fromkeys(left, NONE))
        asking = state not in (RegistrationState.IDLE, RegistrationState.REGISTERED)
        return record(
            state=state.name,
            asked=min(self._age(machine.asked_at), self.constants.Lease) if asking else 0,
            probed=NONE if machine.probed_at is None else self._age(machine.probed_at),
            **left,
        )

    def _message(self, message: Message) -> Fn:
        match message:
            case Register():
                return record(kind="ask", fresh=self._fresh(message.incarnation, message.generation))
            case Registered():
                return record(kind="grant", fresh=self._fresh(message.incarnation, message.generation))
            case Refused():
                return record(kind="refuse", fresh=self._fresh(message.incarnation, message.generation))
            case Keepalive(respond=True):
                return record(kind="probe", fresh=True)
            case _:
                return record(kind="alive", fresh=True)

    def _fresh(self, number: int, generation: int) -> bool:
        return generation == self.clients[number - 1].registration.request.generation

    def _store(self) -> Fn:
        if self.store is None:
            return record(up=False, holder=0, active=False, age=0, check=NONE)
        holder = self.store.status.clients.get(SOURCE_ID)
        check = self._left(self.store.check_at)
        if holder is None:
            return record(up=True, holder=0, active=False, age=0, check=check)
        age = self._age(holder.heard_at)
        return record(up=True, holder=holder.client.incarnation, active=holder.active, age=age, check=check)

    def _unsynced(self) -> tuple[Value, ...]:
        """Return each write, and whether the answer that waits for it belongs to the newest request."""
        if self.store is None:
            return ()
        fresh = {due.ticket: self._fresh(due.incarnation, due.generation) for due in self.store.status.waiting}
        return tuple(
            record(
                holder=_number(write.client) if isinstance(write, PersistClient) else 0,
                fresh=fresh.get(write.ticket, False),
            )
            for write in self.unsynced
        )

    def _left(self, deadline: int | None) -> int:
        return NONE if deadline is None else (deadline - self.now) // TICK_NS

    def _age(self, at: int) -> int:
        return (self.now - at) // TICK_NS


def _number(client: Client | None) -> int:
    return 0 if client is None else client.incarnation


def _enrollment(constants: RegistrationConstants, number: int) -> RegistrationSet:
    shared = number in constants.Shared
    request = registration(number, "shared:1" if shared else f"client:{number}", f"stream:{number}")
    request = attrs.evolve(request, context=CONTEXT if shared else 0)
    times = RegistrationTimes(constants.Interval * TICK_NS, constants.Probe * TICK_NS, constants.Silence * TICK_NS)
    return RegistrationSet(Quorums.of(GroupRules((1,)), [0]), {0: Registration(request, STORE, times)})


def _store_config(constants: RegistrationConstants) -> StoreConfig:
    kept = RepositoryConfig(
        source_activity_ns=constants.Lease * LEASE_MARGIN * MILLISECOND,
        source_lifetime_ns=constants.Lifetime * TICK_NS,
        receiver_lifetime_ns=0,
    )
    return StoreConfig(STORE, 1, repository=kept, check_ns=TICK_NS, keepalive_ns=0, refill=False)
