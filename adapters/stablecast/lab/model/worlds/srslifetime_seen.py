"""What the model `SrsLifetime` sees of its world, and what must hold of it."""

from collections.abc import Mapping, Sequence

from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.errors import ModelError
from stablecast.lab.model.explorer import Invariant, State
from stablecast.lab.model.worlds.srslifetime_parts import NONE, Constants, Node, instance_of, number_of, otid_of
from stablecast.transports.resolution.srs.client import ServiceClient
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.service import Matter, ResolutionService
from stablecast.transports.resolution.srs.service_link import LinkTimer, ServiceLink
from stablecast.transports.resolution.srs.session import ServiceSession

_NO_SESSION = record(state="none", age=NONE)
_NO_CLIENT = record(state="none", source=False, want=False, age=NONE)


def seen(constants: Constants, service: ResolutionService, nodes: Sequence[Node], left: int, now: int) -> State:
    """The model's variables."""
    return {
        "context": tuple(_context(node, service, now, constants) for node in nodes),
        "knows": tuple(_knows(node, len(nodes)) for node in nodes),
        "wire": tuple(
            record(
                there=tuple(said.seen for said in node.wire.there),
                back=tuple(said.seen for said in node.wire.back),
                hung=node.wire.hung,
            )
            for node in nodes
        ),
        "former": tuple(
            record(there=tuple(said.seen for said in node.former.there), ends=node.former.ends) for node in nodes
        ),
        "client": tuple(_client(constants, service.clients.get(instance_of(node.number)), now) for node in nodes),
        "session": tuple(
            record(
                now=_session(constants, service.sessions.get(node.wire.number), now),
                old=_session(constants, service.sessions.get(node.former.number), now),
            )
            for node in nodes
        ),
        "leave": tuple(_ticks(leave_of(service, node.number), now, constants) for node in nodes),
        "left": left,
    }


def leave_of(service: ResolutionService, number: int) -> int | None:
    """When the service looks whether the source of a context is still there."""
    return service.agenda.deadlines.get((Matter.LEAVE, otid_of(number)))


def records_over(client: ServiceClient, now: int) -> bool:
    """Whether records of a client were potentially down for their lifetime."""
    due = client.next_lapse()
    return due is not None and due <= now


def silent(session: ServiceSession, now: int) -> bool:
    """Whether a connection was silent for too long."""
    return now >= session.heard_at + session.lifetime


def _context(node: Node, service: ResolutionService, now: int, constants: Constants) -> Fn:
    if node.app != "up":
        return record(
            app=node.app,
            has=False,
            wants=False,
            link="WAITING",
            stale=0,
            settled="none",
            sweep=NONE,
            keepalive=NONE,
            silence=NONE,
        )
    context = node.context
    (link,) = context.links
    return record(
        app=node.app,
        has=bool(context.sources),
        wants=bool(context.topics),
        link=link.state.name,
        stale=sum(link.unanswered.values()) if link.told else 0,
        settled=_settled(link, service),
        sweep=_left(link, LinkTimer.SWEEP, now, constants),
        keepalive=_left(link, LinkTimer.KEEPALIVE, now, constants) if constants.Keepalive else NONE,
        silence=_left(link, LinkTimer.SILENCE, now, constants) if constants.Keepalive else NONE,
    )


def _settled(link: ServiceLink, service: ResolutionService) -> str:
    if not link.settled:
        return "none"
    return "this" if link.settled == service.epoch else "other"


def _left(link: ServiceLink, kind: LinkTimer, now: int, constants: Constants) -> int:
    return _ticks(link.timers.deadline(kind), now, constants)


def _ticks(deadline: int | None, now: int, constants: Constants) -> int:
    return NONE if deadline is None else (deadline - now) // constants.tick


def _knows(node: Node, contexts: int) -> tuple[Value, ...]:
    known = dict.fromkeys(range(1, contexts + 1), "no")
    if node.app == "up":
        known |= known_of(node.context)
    return tuple(known.values())


def known_of(context: SrsContext) -> dict[int, str]:
    """Sources of others, and whether the service named them on the connection of now."""
    (link,) = context.links
    current = link.connection if link.told else None
    return {
        number_of(entry.record.instance): "cur" if entry.holders[0] == current else "old"
        for entry in context.known.entries.values()
        if 0 in entry.holders
    }


def _client(constants: Constants, client: ServiceClient | None, now: int) -> Fn:
    if client is None:
        return _NO_CLIENT
    ages = {
        min((now - client.lost_at[mark]) // constants.tick, max(constants.SourceLifetime, constants.InterestLifetime))
        for mark in (*client.sources.values(), *client.interests.values())
        if mark in client.lost_at
    }
    if len(ages) > 1:
        raise ModelError("records of one client became potentially down at different times")
    return record(
        state=client.state.name,
        source=bool(client.sources),
        want=bool(client.interests),
        age=ages.pop() if ages else NONE,
    )


def _session(constants: Constants, session: ServiceSession | None, now: int) -> Fn:
    if session is None:
        return _NO_SESSION
    age = (now - session.heard_at) // constants.tick if constants.Keepalive else NONE
    return record(state="told" if session.stream else "registered", age=age)


def _parts(value: Value) -> tuple[Fn, ...]:
    assert isinstance(value, tuple)
    return tuple(part for part in value if isinstance(part, Fn))


def _state(part: Fn, end: str) -> Value:
    session = part[end]
    assert isinstance(session, Fn)
    return session["state"]


def _one_connection(state: State) -> bool:
    """N2: a context is registered on one connection."""
    return all("none" in (_state(part, "now"), _state(part, "old")) for part in _parts(state["session"]))


def _kept(state: State) -> bool:
    """N1: a service that was told all has what the context has, nothing else."""
    rows = zip(*(_parts(state[name]) for name in ("context", "client", "wire", "session")), strict=True)
    return all(
        (client["state"], client["source"], client["want"]) == ("CURRENT", context["has"], context["wants"])
        for context, client, wire, session in rows
        if _state(session, "now") == "told" and not wire["hung"] and wire["there"] == ()
    )


INVARIANTS: Mapping[str, Invariant] = {"Kept": _kept, "OneConnection": _one_connection}
