"""View one registration ID at one store: its holder, its unsynced writes, and its holder on disk.

    holder A, unsynced A, disk -      A registered and its record is written; no client is told before the sync

Clients are lives of sources; A is the first that a step names, B the next. No record shows whether the holder counts as
silent, so the view has it both ways. Edges of the model count only where every connection to a client has room.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.core.protocol.effects import Effect, Forget, PersistClient, Send
from stablecast.core.protocol.inputs import Arrived, Input, Persisted, Tick
from stablecast.core.protocol.messages import Deregister, Incarnation, Keepalive, Refused, Register, Registered, Role
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.converter import Endpoint
from stablecast.lab.model.views.edges import Constants, Edge, ModelStep, Outside, Seen, State, TraceView

MOST_WRITES = 2
"""Most unsynced writes in the models with one client; with two clients one."""
LETTERS = "ABC"

Kept = tuple[int, tuple[int, ...], int]
"""The holder, the owner of each unsynced write, and the holder on disk; 0: none."""


@attrs.define
class ClientLetters:
    """Name clients within a step."""

    known: dict[int, str] = attrs.field(factory=lambda: {0: "-"})

    def name(self, client: int) -> str:
        """Return the client's letter, the next one if it has none."""
        return self.known.setdefault(client, LETTERS[min(len(self.known), len(LETTERS)) - 1])

    def shown(self, kept: Kept) -> str:
        holder, writes, disk = kept
        unsynced = " ".join(map(self.name, writes)) or "-"
        return f"holder {self.name(holder)}, unsynced {unsynced}, disk {self.name(disk)}"

    @property
    def count(self) -> int:
        return len(self.known) - 1


def _named(
    before: Kept, action: str, actor: int, after: Kept, says: Iterable[tuple[str, int]]
) -> tuple[ModelStep, int]:
    """Return a step, and how many clients it names."""
    names = ClientLetters()
    shown = names.shown(before)
    told = f"{action} {names.name(actor)}" if actor else action
    step = ModelStep(
        shown, told, names.shown(after), "+".join(sorted(f"{kind} {names.name(who)}" for kind, who in says))
    )
    return step, names.count


class HolderView(TraceView):
    def windows(self, constants: Constants) -> Iterable[int]:
        """Return the only window: there is one store."""
        return (0,)

    def step(self, constants: Constants, edge: Edge, window: int) -> ModelStep | None:
        room, before, after = constants["Room"], edge.before, edge.after
        if not (before["store"]["up"] and after["store"]["up"]) or edge.action not in ("ToStore", "Sync", "StoreTimer"):
            return None
        if edge.action != "StoreTimer" and any(len(queue) >= room for queue in before["toClient"]):
            return None
        actor = edge.parameters[0] if edge.parameters else 0
        asks = actor and before["toStore"][actor - 1][0]["kind"] == "ask"
        says = {
            (message["kind"], client)
            for client, (then, now) in enumerate(zip(before["toClient"], after["toClient"], strict=True), 1)
            for message in now[len(then) :]
        }
        action = edge.action if not actor else "ToStore(ask)" if asks else "ToStore(sign)"
        return _named(_kept(before), action, actor, _kept(after), says)[0]

    def watch(self, machine: Endpoint) -> "FollowedHolders | Outside":
        """Follow each registration ID of sources."""
        assert isinstance(machine, StoreEndpoint)
        holders = FollowedHolders()
        for reg_id, record in machine.status.clients.items():
            if record.client.role is Role.SOURCE:
                holders.watched[reg_id] = (record.client.incarnation, (), record.client.incarnation)
                holders.sessions[record.client.session_id] = reg_id
        return holders


def _kept(state: State) -> Kept:
    return state["store"]["holder"], tuple(write["holder"] for write in state["unsynced"]), state["disk"]


@attrs.define
class FollowedHolders:
    """Hold the registration IDs of a store; `tickets` are those of the unsynced writes, in order.

    An ID with a step out of bounds that changes its holder is no longer followed (`left`). `sessions` are the IDs that
    the store chose for session ids.
    """

    watched: dict[int, Kept] = attrs.field(factory=dict)
    tickets: dict[int, list[int]] = attrs.field(factory=dict)
    left: set[int] = attrs.field(factory=set)
    sessions: dict[int, int] = attrs.field(factory=dict)
    scope: str = "any"

    def take(self, event: Input, effects: Iterable[Effect]) -> Iterator[Seen | Outside]:
        out = list(effects)
        match event:
            case Arrived(Register(role=Role.SOURCE) as asked):
                yield from self._asked(asked, out)
            case Arrived(Keepalive(role=Role.SOURCE) as sign) if sign.reg_id in self.watched:
                says = {("alive", sign.incarnation) for effect in out if _answers(effect, sign)}
                kept = self.watched[sign.reg_id]
                if says:
                    yield _seen(sign.reg_id, kept, "ToStore(sign)", sign.incarnation, kept, says)
            case Persisted(ticket=ticket):
                for reg_id in [one for one, waiting in self.tickets.items() if waiting and waiting[0] <= ticket]:
                    yield self._synced(reg_id, ticket, out)
            case _:
                yield from self._forgotten(event, out)

    def _asked(self, asked: Register, effects: list[Effect]) -> Iterator[Seen | Outside]:
        says: set[tuple[str, int]] = set()
        reg_id, written = asked.reg_id or self.sessions.get(asked.session_id, 0), None
        for effect in effects:
            match effect:
                case PersistClient(client=client) if (
                    client.role is Role.SOURCE and client.incarnation == asked.incarnation
                ):
                    reg_id, written = client.reg_id, effect.ticket
                    self.sessions[client.session_id] = reg_id
                case Send(message=Refused()):
                    says.add(("refuse", asked.incarnation))
                case Send(message=Registered() as grant) if grant.role is Role.SOURCE:
                    says.add(("grant", grant.incarnation))
                case Send(message=Keepalive(role=Role.STORE, respond=True) as probe):
                    says.add(("probe", probe.incarnation))
        before = self.watched.get(reg_id, (0, (), 0))
        if reg_id in self.left or not reg_id:
            yield Outside("it was out of bounds before" if reg_id else "a request that names no registration ID")
        elif asked.election is not None:
            self._drop(reg_id)
            yield Outside("a proxy registers")
        elif written is None and not any(kind == "refuse" for kind, _ in says):
            yield Outside("the store ignores a request")
        else:
            after = before
            if written is not None:
                self.tickets.setdefault(reg_id, []).append(written)
                after = self.watched[reg_id] = (asked.incarnation, (*before[1], asked.incarnation), before[2])
            yield _seen(reg_id, before, "ToStore(ask)", asked.incarnation, after, says)

    def _synced(self, reg_id: int, ticket: int, effects: list[Effect]) -> Seen | Outside:
        waiting, (holder, writes, _) = self.tickets[reg_id], self.watched[reg_id]
        before = self.watched[reg_id]
        done = sum(one <= ticket for one in waiting)
        after = self.watched[reg_id] = (holder, writes[done:], writes[done - 1])
        self.tickets[reg_id] = waiting[done:]
        grants = [
            effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Registered)
        ]
        says = {("grant", one.incarnation) for one in grants if one.role is Role.SOURCE and one.reg_id == reg_id}
        if after[1]:
            return Outside("a sync of a part of what was written")
        return _seen(reg_id, before, "Sync", 0, after, says)

    def _forgotten(self, event: Input, effects: list[Effect]) -> Iterator[Seen | Outside]:
        for effect in effects:
            match effect:
                case Forget(role=Role.SOURCE, reg_id=reg_id) if reg_id in self.watched:
                    if not isinstance(event, Tick):
                        farewell = isinstance(event, Arrived) and isinstance(event.message, Deregister)
                        self._drop(reg_id)
                        yield Outside("it deregisters" if farewell else "removed by force")
                        continue
                    before = self.watched[reg_id]
                    after = self.watched[reg_id] = (0, (*before[1], 0), before[2])
                    self.tickets.setdefault(reg_id, []).append(effect.ticket)
                    yield _seen(reg_id, before, "StoreTimer", 0, after, set())

    def _drop(self, reg_id: int) -> None:
        self.left.add(reg_id)
        self.watched.pop(reg_id, None)
        self.tickets.pop(reg_id, None)


def _seen(
    reg_id: int, before: Kept, action: str, actor: Incarnation, after: Kept, says: set[tuple[str, int]]
) -> Seen | Outside:
    step, named = _named(before, action, actor, after, says)
    most = MOST_WRITES if named <= 1 else 1
    asked_too_soon = action.startswith("ToStore") and len(before[1]) >= most
    if named > 2 or asked_too_soon or max(len(before[1]), len(after[1])) > most:
        return Outside("more clients or unsynced writes than the model has")
    return Seen(f"registration ID {reg_id}", step.before, frozenset({step.action}), step.after, step.says)


def _answers(effect: Effect, sign: Keepalive) -> bool:
    return isinstance(effect, Send) and isinstance(effect.message, Keepalive) and effect.message.reg_id == sign.reg_id


HOLDER = HolderView("Registration.store", Role.STORE)
