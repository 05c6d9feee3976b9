"""Drive the core's machines for `tla/ProxyElection`: stores that elect a proxy for an absent source.

Each store is an `Election` beside the record of the source, as the store endpoint keeps them. Registrations pass
`ClientTable.find` or `Election.admits` first. There is no time: a wait may end whenever it runs. The value of a token,
which is random, is a free choice. A live client may register at any time, so only registrations of dead ones are in
flight.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol.effects import Effect, StartProxy, StopProxy, StoreEffect
from stablecast.core.protocol.messages import ElectionToken, Refusal, Register, StoreEntry
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.core.store.clients import ClientRecord, ClientTable
from stablecast.core.store.proxy_election import Election, ElectionState, ElectionTimer
from stablecast.lab.model.canonical import Fn, record
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.store_process import SOURCE_ID, registration

INTERVAL_NS = 2
NOW = 0
"""Time of every input but the end of a wait."""


@attrs.define
class Draw(Seeded):
    """Replace the randomness of one machine by a free choice: the next token has the value `chosen`."""

    state: int = 0
    chosen: int = 0

    def below(self, n: int) -> int:
        return self.chosen

    def between(self, low: int, high: int) -> int:
        return low


@attrs.frozen
class ElectionConstants:
    Stores: int
    Values: int
    Lives: int
    Repaired: bool
    Quorum: bool
    Faults: frozenset[str]


@attrs.define
class Station:
    """Hold one store: the election, the records of its clients, its own proxy while it runs, and who granted it."""

    election: Election
    clients: ClientTable
    index: int
    proxy: ElectionToken | None = None
    granted: set[int] = attrs.field(factory=set)

    @property
    def client(self) -> ClientRecord:
        return self.clients.records[SOURCE_ID]

    def ended(self) -> frozenset[int]:
        """Return the values of this store's ended proxies."""
        return frozenset(token.value for token in self.election.ended)


Late = tuple[ElectionToken | int, int]
"""A registration of a proxy, or of a life of the source, and the number of the store that it goes to."""


@attrs.define
class ProxyElectionWorld:
    constants: ElectionConstants
    stations: list[Station]
    life: int = 1
    up: bool = True
    late: set[Late] = attrs.field(factory=set)

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: the source is registered with every store."""
        known = ElectionConstants(**constants)
        return cls(known, [_station(index, known) for index in range(known.Stores)])

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        for number, station in enumerate(self.stations, 1):
            state = station.election.state
            if station.client.lifetime.active and (self._gone(station) or "suspect" in self.constants.Faults):
                yield ("Silent", number)
            if station.election.ours:
                yield ("GiveUp", number)
            if station.election.ours and station.election.backed:
                yield ("Lapse", number)
            elif self.constants.Quorum and station.election.ours and 2 * len(station.granted) > len(self.stations):
                yield ("Gain", number)
            if any(to == number for _, to in self.late):
                yield ("Lose", number)
            if state is ElectionState.WAITING:
                values = range(1, self.constants.Values + 1)
                yield from (("Stand", number, value) for value in values if value not in station.ended())
            for token in sorted(self._tokens(number), key=attrs.astuple):
                yield ("Proxy", number, token.store_index + 1, token.value, token.life)
            for life in range(1, self.constants.Lives + 1):
                if (self.up and self.life == life) or (life, number) in self.late:
                    yield ("Original", number, life)
        if self.up:
            yield ("Die",)
        elif self.life < self.constants.Lives:
            yield ("Return",)

    def _gone(self, station: Station) -> bool:
        """Return whether the client that registered last with a store has ended."""
        client = station.client.client
        if client.election is None:
            return not (self.up and self.life == client.incarnation)
        return self.stations[client.election.store_index].proxy != client.election

    def _tokens(self, number: int) -> set[ElectionToken]:
        """Return the tokens of the proxies whose registration may reach a store."""
        running = {station.proxy for station in self.stations if station.proxy is not None}
        return running | {who for who, to in self.late if isinstance(who, ElectionToken) and to == number}

    def do(self, action: Action) -> None:
        name, *numbers = action
        if name == "Die":
            self.up = False
            self.late |= {(self.life, number) for number in range(1, len(self.stations) + 1)}
        elif name == "Return":
            self.life, self.up = self.life + 1, True
        elif name == "Lose":
            self.late = {one for one in self.late if one[1] != numbers[0]}
        else:
            self._station_action(name, *numbers)

    def _station_action(self, name: str, number: int, *rest: int) -> None:
        station = self.stations[number - 1]
        out: list[Effect] = []
        match name:
            case "Silent":
                station.client.lifetime.on_gone(NOW)
                station.election.check(station.client, NOW, out)
            case "Stand":
                assert isinstance(station.election.seeded, Draw)
                station.election.seeded.chosen = rest[0]
                self._wait_ends(station, out)
            case "GiveUp" if station.election.state is ElectionState.STANDING:
                self._wait_ends(station, out)
            case "GiveUp":
                assert station.proxy is not None
                station.election.on_over(station.proxy, station.client, NOW, out)
            case "Gain" | "Lapse":
                assert station.proxy is not None
                station.election.on_quorum(station.proxy, name == "Gain", station.client, NOW, out)
            case "Proxy":
                of, value, life = rest
                self._arrive(station, number, ElectionToken(value, of - 1, life), out)
            case _:
                self._arrive(station, number, rest[0], out)
        self._perform(station, out)

    def _wait_ends(self, station: Station, out: list[Effect]) -> None:
        turn = station.election.timers.deadline(ElectionTimer.WAIT)
        assert turn is not None
        station.election.check(station.client, turn, out)

    def _arrive(self, station: Station, number: int, who: ElectionToken | int, out: list[Effect]) -> None:
        """Deliver a registration to a store and admit it as the store endpoint does."""
        self.late.discard((who, number))
        token = who if isinstance(who, ElectionToken) else None
        life = station.client.client.incarnation if isinstance(who, ElectionToken) else who
        request = _request(station.index, life, token)
        if token is not None:
            if not station.election.admits(token):
                return
        elif station.client.client.election is None and isinstance(station.clients.find(request), Refusal):
            return
        client = station.client
        client.client = attrs.evolve(
            client.client, incarnation=life, election=token, reply_to=request.reply_to, transport=request.transport
        )
        client.lifetime.on_heard(NOW)
        station.election.on_registered(request, client, NOW, out)
        runs = None if token is None else self.stations[token.store_index]
        if runs is not None and runs.proxy == token and self.constants.Quorum:
            runs.granted.add(number)

    def _perform(self, station: Station, effects: list[StoreEffect] | list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, StartProxy):
                station.proxy = effect.election
            elif isinstance(effect, StopProxy) and station.proxy is not None:
                self.late |= {(station.proxy, number) for number in range(1, len(self.stations) + 1)}
                station.proxy = None
                station.granted.clear()

    # The model's variables.

    def abstract(self) -> State:
        late = ((_token(who) if isinstance(who, ElectionToken) else _source(who), to) for who, to in self.late)
        return {
            "store": tuple(_store(station) for station in self.stations),
            "proxy": tuple(_token(station.proxy) for station in self.stations),
            "granted": tuple(frozenset(station.granted) for station in self.stations),
            "source": record(life=self.life, up=self.up),
            "late": frozenset(record(token=token, to=to) for token, to in late),
        }


def _store(station: Station) -> Fn:
    election, client = station.election, station.client
    token = client.client.election
    return record(
        state=election.state.name,
        holder=_token(election.holder),
        by=_source(client.client.incarnation) if token is None else _token(token),
        active=client.lifetime.active,
        life=election.life,
        ended=station.ended(),
        backed=election.backed,
    )


def _token(token: ElectionToken | None) -> Fn:
    if token is None:
        return record(value=0, of=0, life=0)
    return record(value=token.value, of=token.store_index + 1, life=token.life)


def _source(life: int) -> Fn:
    return record(value=0, of=0, life=life)


def _station(index: int, known: ElectionConstants) -> Station:
    kept = RepositoryConfig(source_lifetime_ns=0)
    clients = ClientTable(StoreConfig(f"store:{index}", 1, repository=kept), Seeded(1))
    client = clients.add(_request(index, 1, None), NOW)
    stores = (StoreEntry(index, 0, f"store:{index}", SOURCE_ID, 1),)
    client.client = attrs.evolve(client.client, stores=stores, group_sizes=(1,))
    election = Election(
        seeded=Draw(), may_stand=True, repaired=known.Repaired, interval_ns=INTERVAL_NS, life=1, quorum=known.Quorum
    )
    return Station(election, clients, index)


def _request(index: int, life: int, token: ElectionToken | None) -> Register:
    who = f"source:{life}" if token is None else f"proxy:{token.store_index}"
    return attrs.evolve(registration(life, who, who, index), wants_proxy=True, election=token)
