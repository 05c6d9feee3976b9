"""View one client at one store, as its own trace shows it: the state of its chart, its inputs and its messages.

| view | model | trace |
|---|---|---|
| `IDLE` | `IDLE` | no request yet |
| `REGISTERING` | `REGISTERING` | a request, but never a grant |
| `REGISTERED` | `REGISTERED` | the newest request was granted or confirmed |
| `AWAY` | `RENEWING`, `UNRESPONSIVE` | a newer request; no record shows whether the lease has ended |

The name of an action includes what arrives: `ToClient(grant)`, or `ToClient(late grant)` of an earlier request. Edges
of the model count only where the connection has room for all messages of the client.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import RegistrationError, RegistrationSuccess
from stablecast.core.protocol.inputs import Arrived, Gone, Input, Located, Reset, Start, Tick, Withdraw
from stablecast.core.protocol.settings import StoreBehavior
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.converter import Endpoint
from stablecast.lab.model.views.edges import Constants, Edge, ModelStep, Outside, Seen, TraceView

AWAY = "AWAY"
SHOWN = {"RENEWING": AWAY, "UNRESPONSIVE": AWAY}
TIMED_SAYS = 2
"""Messages that a client's timers may send at one instant; any other action sends one."""
GRANTED = "ToClient(grant)"
AGREES = "it registers again, because another store counts more lives"
OWN = ("Start", "ToStore", "ToClient", "ClientTimer", "Break")
HEARD = {"grant": "grant", "refuse": "refusal", "alive": "sign", "probe": "question"}


class ClientView(TraceView):
    def windows(self, constants: Constants) -> Iterable[int]:
        return range(constants["Clients"])

    def step(self, constants: Constants, edge: Edge, window: int) -> ModelStep | None:
        before, after = edge.before["client"][window], edge.after["client"][window]
        refused = edge.action != "ToStore" or not edge.before["store"]["up"]
        if edge.action not in OWN or edge.parameters != (window + 1,) or not refused or before["state"] == "DEAD":
            return None
        queue = edge.before["toStore"][window]
        there = 0 if edge.action == "Break" else len(queue) - (edge.action == "ToStore")
        most = TIMED_SAYS if edge.action == "ClientTimer" else 1
        if there + most > constants["Room"]:
            return None
        said = {message["kind"] for message in edge.after["toStore"][window][there:]}
        action = f"ToClient({_heard(edge.before['toClient'][window][0])})" if edge.action == "ToClient" else edge.action
        states = [SHOWN.get(client["state"], client["state"]) for client in (before, after)]
        return ModelStep(states[0], action, states[1], "+".join(sorted(said)))

    def watch(self, machine: Endpoint) -> "FollowedClients | Outside":
        assert isinstance(machine, SourceEndpoint)
        if machine.config.behavior is StoreBehavior.RR:
            return Outside("its stores take turns (round robin)")
        watched = {index: FollowedClient.begin(one) for index, one in machine.status.registrations.items()}
        return FollowedClients(watched) if watched else Outside("the source has no stores")


@attrs.define
class FollowedClient:
    address: msg.Address
    state: str
    generation: int

    @classmethod
    def begin(cls, registration: RegistrationStatus) -> "FollowedClient":
        state = registration.state.name if registration.state < RegistrationState.WITHDRAWING else "IDLE"
        return cls(registration.address, SHOWN.get(state, state), registration.request.generation)


@attrs.define
class FollowedClients:
    """Hold a source's registrations by store. One with a step out of bounds is no longer followed."""

    watched: dict[int, FollowedClient]
    scope: str = "any"

    def take(self, event: Input, effects: Iterable[Effect]) -> Iterator[Seen | Outside]:
        out = list(effects)
        for index, client in list(self.watched.items()):
            seen = _take(index, client, event, out)
            if isinstance(seen, Outside):
                del self.watched[index]
            if seen is not None:
                yield seen


def _take(index: int, client: FollowedClient, event: Input, effects: list[Effect]) -> Seen | Outside | None:
    actions = _actions(index, client, event)
    before, said, granted = client.state, set[str](), False
    for effect in effects:
        match effect:
            case Send(message=msg.Register() as asked) if asked.store_index == index:
                client.address = effect.to
                said.add("ask")
                if granted:
                    return Outside(AGREES)
                if asked.generation != client.generation:
                    client.generation = asked.generation
                    client.state = {"IDLE": "REGISTERING", "REGISTERING": "REGISTERING"}.get(client.state, AWAY)
            case Send(message=msg.Keepalive(store_index=of) as sign) if (
                of in (index, msg.ANY_STORE) and effect.to == client.address
            ):
                said.add("probe" if sign.respond else "alive")
            case Send(message=msg.Deregister(store_index=of)) if of == index:
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


def _actions(index: int, client: FollowedClient, event: Input) -> set[str]:
    """Return the actions that the record may be for this registration."""
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
        case Arrived(msg.Registered(store_index=of) | msg.Refused(store_index=of) as answer) if of == index:
            kind = "grant" if isinstance(answer, msg.Registered) else "refuse"
            return {f"ToClient({_told(kind, answer.generation == client.generation)})"}
        case Arrived(msg.Keepalive(role=msg.Role.STORE, store_index=of) as sign) if of in (index, msg.ANY_STORE):
            return {f"ToClient({HEARD['probe' if sign.respond else 'alive']})"}
        case _:
            return set()


def _why(event: Input) -> str:
    match event:
        case Located():
            return "its store moved"
        case Withdraw():
            return "it deregisters"
        case Arrived(msg.Registered()):
            return AGREES
        case _:
            return f"no action of the model sends this on {type(event).__name__}"


def _heard(message: dict[str, object]) -> str:
    return _told(str(message["kind"]), bool(message["fresh"]))


def _told(kind: str, fresh: bool) -> str:
    return HEARD[kind] if fresh else f"late {HEARD[kind]}"


CLIENT = ClientView("Registration.client", msg.Role.SOURCE)
