"""A client at one store, as its own trace shows it: the client's chart, what it hears and what it says.

| view | model | trace |
|---|---|---|
| `IDLE` | `IDLE` | nothing asked yet |
| `REGISTERING` | `REGISTERING` | asked, never granted |
| `REGISTERED` | `REGISTERED` | granted what was asked for last, or told so, and not asked again since |
| `AWAY` | `RENEWING`, `UNRESPONSIVE` | asked again; whether its lease is over no record tells |

An action is told with what is heard: `ToClient(grant)`, `ToClient(late grant)` of an earlier request. Of the model only
edges count where the connection has room for all that the client may say.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import RegistrationError, RegistrationSuccess
from stablecast.core.protocol.inputs import Arrived, Gone, Input, Located, Reset, Start, Tick, Withdraw
from stablecast.core.protocol.messages import (
    ANY_STORE,
    Address,
    Deregister,
    Keepalive,
    Refused,
    Register,
    Registered,
    Role,
)
from stablecast.core.protocol.settings import StoreBehavior
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.converter import Endpoint
from stablecast.lab.model.views.edges import Constants, Edge, Outside, Seen, Step

AWAY = "AWAY"
SHOWN = {"RENEWING": AWAY, "UNRESPONSIVE": AWAY}
TIMED_SAYS = 2
"""Messages that a client's timers may send at one instant; any other action sends one."""
GRANTED = "ToClient(grant)"
AGREES = "it asks again, for another store counts more lives"
OWN = ("Start", "ToStore", "ToClient", "ClientTimer", "Break")
HEARD = {"grant": "grant", "refuse": "refusal", "alive": "sign", "probe": "question"}


@attrs.frozen
class ClientView:
    """See the module."""

    name: str = "Registration.client"
    model: str = "Registration"
    role: Role = Role.SOURCE
    most: int = 1

    def scope(self, constants: Constants) -> str | None:
        """Clients do not know how many there are, nor how long anything takes."""
        return "any"

    def windows(self, constants: Constants) -> Iterable[int]:
        """Each client."""
        count = constants["Clients"]
        assert isinstance(count, int)
        return range(count)

    def step(self, constants: Constants, edge: Edge, window: int) -> Step | None:
        """What a client does itself."""
        before, after = edge.before["client"][window], edge.after["client"][window]
        refused = edge.action != "ToStore" or not edge.before["store"]["up"]
        if edge.action not in OWN or edge.parameters != (window + 1,) or not refused or before["state"] == "DEAD":
            return None
        queue = edge.before["toStore"][window]
        there = 0 if edge.action == "Break" else len(queue) - (edge.action == "ToStore")
        most = TIMED_SAYS if edge.action == "ClientTimer" else 1
        if there + most > int(str(constants["Room"])):
            return None
        said = {message["kind"] for message in edge.after["toStore"][window][there:]}
        action = f"ToClient({_heard(edge.before['toClient'][window][0])})" if edge.action == "ToClient" else edge.action
        states = [SHOWN.get(client["state"], client["state"]) for client in (before, after)]
        return Step(states[0], action, states[1], "+".join(sorted(said)))

    def watch(self, machine: Endpoint) -> "Clients | Outside":
        """A source's registrations, each for itself."""
        assert isinstance(machine, SourceEndpoint)
        if machine.config.behavior is StoreBehavior.RR:
            return Outside("its stores take turns (round robin)")
        watched = {index: Client.begin(one) for index, one in machine.status.registrations.items()}
        return Clients(watched) if watched else Outside("the source has no stores")


@attrs.define
class Client:
    """One registration."""

    address: Address
    state: str
    generation: int

    @classmethod
    def begin(cls, registration: RegistrationStatus) -> "Client":
        """As a snapshot has it."""
        state = registration.state.name if registration.state < RegistrationState.WITHDRAWING else "IDLE"
        return cls(registration.address, SHOWN.get(state, state), registration.request.generation)


@attrs.define
class Clients:
    """A source's registrations, by store; those that a step was out of bounds at are not followed any more."""

    watched: dict[int, Client]
    scope: str = "any"

    def take(self, event: Input, effects: Iterable[Effect]) -> Iterator[Seen | Outside]:
        """What the record was to each of them."""
        out = list(effects)
        for index, client in list(self.watched.items()):
            seen = _take(index, client, event, out)
            if isinstance(seen, Outside):
                del self.watched[index]
            if seen is not None:
                yield seen


def _take(index: int, client: Client, event: Input, effects: list[Effect]) -> Seen | Outside | None:
    actions = _actions(index, client, event)
    before, said, granted = client.state, set[str](), False
    for effect in effects:
        match effect:
            case Send(message=Register() as asked) if asked.store_index == index:
                client.address = effect.to
                said.add("ask")
                if granted:
                    return Outside(AGREES)
                if asked.generation != client.generation:
                    client.generation = asked.generation
                    client.state = {"IDLE": "REGISTERING", "REGISTERING": "REGISTERING"}.get(client.state, AWAY)
            case Send(message=Keepalive(store_index=of) as sign) if (
                of in (index, ANY_STORE) and effect.to == client.address
            ):
                said.add("probe" if sign.respond else "alive")
            case Send(message=Deregister(store_index=of)) if of == index:
                return Outside("it deregisters")
            case Notify(RegistrationSuccess(store_index=of)) if of == index:
                client.state, granted = "REGISTERED", True
            case Notify(RegistrationError(store_index=of)) if of == index:
                said.add("error")
    if actions == {GRANTED} and not said:
        client.state = "REGISTERED"
    said.discard("error")
    if said and not actions:
        return Outside(_why(event))
    changed = before != client.state or said
    return (
        Seen(f"the client of store {index}", before, frozenset(actions), client.state, "+".join(sorted(said)))
        if changed
        else None
    )


def _actions(index: int, client: Client, event: Input) -> set[str]:
    """What the record may be to this registration."""
    match event:
        case Start():
            return {"Start"}
        case Located():
            return {"Start"} if client.state == "IDLE" else set()
        case Tick():
            return {"ClientTimer"}
        case Reset(address=address) | Gone(address=address):
            broken = "Break" if isinstance(event, Reset) else "ToStore"
            return {broken} if address == client.address else set()
        case Arrived(Registered(store_index=of) | Refused(store_index=of) as answer) if of == index:
            kind = "grant" if isinstance(answer, Registered) else "refuse"
            return {f"ToClient({_told(kind, answer.generation == client.generation)})"}
        case Arrived(Keepalive(role=Role.STORE, store_index=of) as sign) if of in (index, ANY_STORE):
            return {f"ToClient({HEARD['probe' if sign.respond else 'alive']})"}
        case _:
            return set()


def _why(event: Input) -> str:
    match event:
        case Located():
            return "its store moved"
        case Withdraw():
            return "it deregisters"
        case Arrived(Registered()):
            return AGREES
        case _:
            return f"nothing in the model says so on {type(event).__name__}"


def _heard(message: dict[str, object]) -> str:
    return _told(str(message["kind"]), bool(message["fresh"]))


def _told(kind: str, fresh: bool) -> str:
    return HEARD[kind] if fresh else f"late {HEARD[kind]}"


CLIENT = ClientView()
