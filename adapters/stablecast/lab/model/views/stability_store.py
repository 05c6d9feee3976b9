"""View one message number at a store, as the store's trace shows it.

    asked mine synced     the life registered, its first number is unknown; the number is held, of this life
    new mine told         a number that this life sent: synced and acknowledged
    old older synced      below the first number of this life, and left by an older one

The first word places the number: `asked` (first number not known yet), `old` (below it) or `new`. Then comes whether
the store holds the number and of which life, whether it is synced, and `told` if it was acknowledged. Stores know
nothing of groups, so a trace is compared with the graphs of all layouts. A number given up as lost is not held.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Arrived, Data, Input, Lost, Persisted, Tick
from stablecast.core.protocol.messages import Incarnation, LateJoinInfo, Pace, Register, Role, SourceInfo, StableAck
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.endpoint_rules import by_life
from stablecast.evidence.trace.quorums import extended
from stablecast.lab.model.clone import clone
from stablecast.lab.model.views.edges import Constants, Edge, ModelStep, Outside, Seen, TraceView
from stablecast.lab.model.views.numbers import bounds, changes
from stablecast.lab.model.views.stability import REPAIRED

AT_A_STORE = ("Ask", "Inform", "ToStore", "Fill", "Sync")
TELLING = (fx.CacheMessages, fx.Cut, fx.Forget, fx.PersistClient, fx.PersistMessages, fx.Reclaim, fx.Send)
"""Effects that may change the view."""
PACED = "its receivers set the pace"


class StoreNumberView(TraceView):
    def scope(self, constants: Constants) -> str | None:
        """Return the only scope: stores behave the same in all layouts."""
        return "any" if constants["Repairs"] == REPAIRED else None

    def windows(self, constants: Constants) -> Iterable[int]:
        return range(1, constants["Numbers"] + 1)

    def step(self, constants: Constants, edge: Edge, window: int) -> ModelStep | None:
        if edge.action not in AT_A_STORE:
            return None
        before, after = (state["store"][edge.parameters[0] - 1] for state in (edge.before, edge.after))
        return ModelStep(_shown(before, window), edge.action, _shown(after, window))

    def watch(self, machine: Endpoint) -> "Stored | Outside":
        """Follow every number of every source of a store."""
        assert isinstance(machine, StoreEndpoint)
        stored = Stored()
        for reg_id, repository in machine.status.repositories.items():
            stored.sources[reg_id] = FollowedSource.begin(repository)
        return stored


def _shown(store: dict[str, Any], number: int) -> str:
    content = store["content"][number - 1]
    known = None if store["resume"] == 0 else store["resume"]
    synced = number in store["synced"]
    told = synced and known is not None and known <= number < store["acked"]
    return _text(known, number, None if content == 0 else content == store["life"], synced, told)


def _text(resume: int | None, number: int, mine: bool | None, synced: bool, told: bool) -> str:
    place = "asked" if resume is None else "old" if number < resume else "new"
    held = "" if mine is None else " mine" if mine else " older"
    return f"{place}{held}{' synced' if synced else ''}{' told' if told else ''}"


@attrs.define
class FollowedSource:
    """Hold what a store has of one source, by life; `waiting` are unsynced runs with their tickets.

    Numbers in `gone` cannot be judged: they were deleted, or were unsynced when the trace began. `why` is the reason
    why nothing of this source can be judged.
    """

    life: Incarnation
    resume: int | None = None
    of: dict[Incarnation, RangeSet] = attrs.field(factory=dict)
    synced: RangeSet = attrs.field(factory=RangeSet)
    told: RangeSet = attrs.field(factory=RangeSet)
    gone: RangeSet = attrs.field(factory=RangeSet)
    waiting: list[tuple[int, int, int]] = attrs.field(factory=list)
    newest: int = 0
    why: str = ""
    past: set[Incarnation] = attrs.field(factory=set)

    @classmethod
    def begin(cls, repository: RepositoryStatus) -> "FollowedSource":
        kept = cls(repository.incarnation, repository.resume_point, dict(by_life(repository)))
        kept.why = PACED if repository.terms.paced else ""
        kept.newest = max(0, repository.newest)
        for first, stop in (held for numbers in kept.of.values() for held in numbers):
            kept.synced.add(first, stop)
        for first, stop in repository.held:
            for low, high in kept.synced.missing(first, stop):
                kept.gone.add(low, high)
        kept.gone.add(0, repository.trail)
        if kept.resume is not None:
            for first, stop in kept.synced.within(kept.resume, repository.acked):
                kept.told.add(first, stop)
        return kept

    def cuts(self) -> Iterable[int]:
        yield from bounds(self.synced, self.told, self.gone, *self.of.values())
        if self.resume is not None:
            yield self.resume

    def shown(self, number: int) -> str | None:
        """Return the view of a number; None if it cannot be judged."""
        if number in self.gone:
            return None
        life = next((life for life, held in self.of.items() if number in held), None)
        mine = None if life is None else life == self.life
        return _text(self.resume, number, mine, number in self.synced, number in self.told)

    def hear(self, event: Input) -> None:
        match event:
            case Arrived(SourceInfo() as info) if info.incarnation == self.life and self.resume is None:
                self.resume = extended(info.low, self.newest)
            case Persisted(ticket=ticket):
                for _, first, stop in [one for one in self.waiting if one[0] <= ticket]:
                    self.synced.add(first, stop)
                self.waiting = [one for one in self.waiting if one[0] > ticket]

    def begin_life(self, life: Incarnation) -> None:
        self.past.add(self.life)
        self.life, self.resume, self.told = life, None, RangeSet()

    def write(self, write: fx.PersistMessages) -> None:
        first, stop = write.first, write.first + write.count
        self.of.setdefault(write.incarnation, RangeSet()).add(first, stop)
        self.waiting.append((write.ticket, first, stop))
        self.newest = max(self.newest, stop - 1)

    def cut(self, number: int) -> None:
        """Remove the numbers from `number` on."""
        for held in (self.synced, self.told, *self.of.values()):
            held.remove(number, self.newest + 1)
        self.waiting = [(ticket, first, min(stop, number)) for ticket, first, stop in self.waiting if first < number]

    def acknowledge(self, ack: StableAck) -> None:
        first = extended(ack.first, self.newest)
        self.told.add(first, extended(ack.last, first) + 1)


@attrs.define
class Stored:
    """Hold all sources of one store, by registration ID."""

    sources: dict[int, FollowedSource] = attrs.field(factory=dict)
    scope: str = "any"

    def take(self, event: Input, effects: Iterable[fx.Effect]) -> Iterator[Seen | Outside]:
        out = [effect for effect in effects if isinstance(effect, TELLING)]
        if not (out or isinstance(event, Persisted) or _informs(event)):
            return
        before = {reg_id: clone(kept) for reg_id, kept in self.sources.items() if not kept.why}
        for kept in self.sources.values():
            kept.hear(event)
        for effect in out:
            yield from self._do(effect)
        for reg_id, old in before.items():
            new = self.sources.get(reg_id)
            if new is not None and not new.why:
                yield from changes(f"registration ID {reg_id},", old, new, _actions(event))

    def _do(self, effect: fx.Effect) -> Iterator[Outside]:
        if getattr(effect, "source_reg_id", None) not in (None, *self.sources):
            yield Outside("messages of a source that did not register")
            return
        match effect:
            case fx.PersistClient(client=client) if client.role is Role.SOURCE:
                kept = self.sources.setdefault(client.reg_id, FollowedSource(client.incarnation))
                if client.pace is not Pace.SOURCE:
                    kept.why = PACED
                    yield Outside(kept.why)
                if client.incarnation in kept.past and not kept.why:
                    kept.why = "a life that was replaced registers again"
                    yield Outside(kept.why)
                if client.incarnation != kept.life:
                    kept.begin_life(client.incarnation)
            case fx.PersistMessages(source_reg_id=reg_id):
                kept = self.sources[reg_id]
                kept.write(effect)
                if effect.incarnation != kept.life:
                    kept.gone.add(effect.first, effect.first + effect.count)
                    yield Outside("messages of an older life came back from another store")
            case fx.CacheMessages(source_reg_id=reg_id):
                self.sources[reg_id].why = "its messages are kept in memory first"
                yield Outside(self.sources[reg_id].why)
            case fx.Cut(source_reg_id=reg_id, number=number):
                kept = self.sources[reg_id]
                if kept.resume is not None and number < kept.resume:
                    kept.gone.add(number, kept.resume)
                    yield Outside("histories part below where a life begins")
                kept.cut(number)
            case fx.Reclaim(source_reg_id=reg_id, number=number):
                self.sources[reg_id].gone.add(0, number)
                yield Outside("messages are deleted")
            case fx.Forget(role=Role.SOURCE, reg_id=reg_id) if self.sources.pop(reg_id, None) is not None:
                yield Outside("its source is removed")
            case fx.Send(message=StableAck(nack=False) as ack):
                for kept in [kept for kept in self.sources.values() if kept.life == ack.incarnation]:
                    kept.acknowledge(ack)


def _informs(event: Input) -> bool:
    return isinstance(event, Arrived) and isinstance(event.message, SourceInfo)


def _actions(event: Input) -> Iterable[str]:
    """Return the actions that a record may be. A later tick may report, together with others, what a sync completed."""
    match event:
        case Arrived(Register()):
            return ("Ask",)
        case Arrived(SourceInfo()):
            return ("Inform",)
        case Arrived(LateJoinInfo()) | Lost():
            return ("Fill",)
        case Data(recovered=recovered):
            return ("Fill", "ToStore") if recovered else ("ToStore",)
        case Persisted():
            return ("Sync",)
        case Tick():
            return ("Fill", "Sync")
        case _:
            return ()


STORE = StoreNumberView("Stability.store", Role.STORE)
