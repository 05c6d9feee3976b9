"""View one message number at its source, as the source's trace shows it.

| view | meaning |
|---|---|
| `before` | below the number where this life resumed |
| `next`, `later` | not sent: the number to send next, or one above it |
| `sent, held by 1 of 2 and 0 of 1` | sent and not stable, with the number of acknowledging stores by group |
| `stable` | reported stable |
| `dropped` | released without having been stable |

Stores of one group are interchangeable. A trace is compared with the graphs of its own layout of groups and rules, and
with no other: a source with five stores is out of bounds.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import events
from stablecast.core.protocol.effects import Effect, Notify, Release, Send
from stablecast.core.protocol.inputs import Arrived, Gone, Input, Reset, Sent, Tick
from stablecast.core.protocol.messages import Incarnation, Pace, Register, Registered, Role, StableAck
from stablecast.core.protocol.settings import SourceConfig, StoreBehavior
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.quorums import extended
from stablecast.lab.model.clone import clone
from stablecast.lab.model.views.edges import Constants, Edge, ModelStep, Outside, Seen, State, TraceView
from stablecast.lab.model.views.numbers import bounds, changes
from stablecast.lab.model.worlds.stability_stores import LAYOUTS

REPAIRED = frozenset({"every_group", "holes", "one_life", "vote"})
AT_THE_SOURCE = ("Send", "ToSource", "Wait", "Crash")
STABLE, DROPPED = "stable", "dropped"
LATER = 1 << 62
"""Above every number."""


class SourceNumberView(TraceView):
    def scope(self, constants: Constants) -> str | None:
        """Return the layout of the groups and their rules."""
        if constants["Repairs"] != REPAIRED or constants["Consensus"] != "highest":
            return None
        sizes, groups = LAYOUTS[constants["Layout"]]
        inside, between = constants["Inside"], constants["Between"]
        return None if len(groups) != sum(sizes) else _scope(sizes, inside, between)

    def windows(self, constants: Constants) -> Iterable[int]:
        return range(1, constants["Numbers"] + 1)

    def step(self, constants: Constants, edge: Edge, window: int) -> ModelStep | None:
        if edge.action not in AT_THE_SOURCE or not _runs(edge.before) or not _runs(edge.after):
            return None
        groups = LAYOUTS[constants["Layout"]][1]
        before, after = (_shown(state, groups, window) for state in (edge.before, edge.after))
        action = edge.action
        if action == "ToSource":
            head = edge.before["back"][edge.parameters[0] - 1][0]
            action = f"ToSource({_heard(head['kind'] == 'acks', head['life'] == edge.before['source']['life'])})"
        return None if before == "later" else ModelStep(before, action, after)

    def watch(self, machine: Endpoint) -> "Numbers | Outside":
        assert isinstance(machine, SourceEndpoint)
        config = machine.config
        why = _unlike(config)
        return Outside(why) if why else Numbers.begin(machine)


def _scope(sizes: tuple[int, ...], inside: str, between: str) -> str:
    """Return the name of a layout with its rules. Rules between groups do not matter with one group."""
    layout = " and ".join(map(str, sizes))
    return f"groups of {layout}, {inside}" + (f", {between}" if len(sizes) > 1 else "")


def _unlike(config: SourceConfig) -> str:
    """Return why the model does not cover a source; empty if it does."""
    if not config.stores:
        return "the source has no stores"
    if config.behavior is StoreBehavior.RR:
        return "its stores take turns (round robin)"
    if config.pace is not Pace.SOURCE:
        return "its receivers set the pace"
    return (
        "" if len(config.stores) == sum(config.groups.sizes) else "its groups list more or fewer stores than their size"
    )


def _runs(state: State) -> bool:
    return state["source"]["state"] in ("ACTIVE", "SUSPENDED")


def _shown(state: State, groups: tuple[int, ...], number: int) -> str:
    source, window = state["source"], state["window"]
    if number < source["resume"]:
        return "before"
    if number >= window["next"]:
        return "next" if number == window["next"] else "later"
    if (source["life"], number) in state["safe"]:
        return STABLE
    holders = [store for store, acked in enumerate(window["acked"]) if number in acked]
    return DROPPED if number < window["trail"] else _held(holders, groups)


def _held(holders: Iterable[int], groups: tuple[int, ...]) -> str:
    counts = [0] * (max(groups) + 1)
    for store in holders:
        counts[groups[store]] += 1
    sizes = [groups.count(group) for group in range(len(counts))]
    return "sent, held by " + " and ".join(f"{count} of {size}" for count, size in zip(counts, sizes, strict=True))


def _heard(acks: bool, current: bool) -> str:
    return ("" if current else "late ") + ("acks" if acks else "grant")


@attrs.define
class Numbers:
    """Hold the numbers of one life, from `resume` to below `next`: acknowledged by which store, stable, dropped.

    Numbers in `outside` cannot be judged: they existed before the trace, or were given up.
    """

    scope: str
    life: Incarnation
    groups: tuple[int, ...]
    resume: int
    next: int
    begun: bool
    acked: list[RangeSet]
    stable: RangeSet = attrs.field(factory=RangeSet)
    dropped: RangeSet = attrs.field(factory=RangeSet)
    outside: RangeSet = attrs.field(factory=RangeSet)
    high: int = 0

    @classmethod
    def begin(cls, source: SourceEndpoint) -> "Numbers":
        config, rules, next_number = source.config, source.config.groups, source.next_number
        begun = source.state not in (SourceState.IDLE, SourceState.REGISTERING)
        scope = _scope(rules.sizes, rules.intragroup.name.lower(), rules.intergroup.name.lower())
        groups = tuple(store.group for store in config.stores)
        resume = source.resume_point if begun else 0
        numbers = cls(scope, config.incarnation, groups, resume, next_number, begun, [RangeSet() for _ in groups])
        numbers.outside.add(resume, next_number)
        return numbers

    def cuts(self) -> Iterable[int]:
        """Return the numbers where the view may change; one number above all known ones stands for the later ones."""
        yield from (0, self.resume, self.next, self.next + 1, self.high + 1, self.high + 2)
        yield from bounds(self.stable, self.dropped, self.outside, *self.acked)

    def shown(self, number: int) -> str | None:
        """Return the view of a number; None if it cannot be judged."""
        if number in self.outside:
            return None
        if number in self.stable or number in self.dropped:
            return STABLE if number in self.stable else DROPPED
        if number < self.resume:
            return "before"
        if number >= self.next:
            return "next" if number == self.next else "later"
        return _held((store for store, held in enumerate(self.acked) if number in held), self.groups)

    def take(self, event: Input, effects: Iterable[Effect]) -> Iterator[Seen | Outside]:
        if isinstance(event, Sent):
            yield from self._sent(event)
        before = clone(self)
        actions = self._hear(event)
        for effect in effects:
            match effect:
                case Notify(events.RegistrationComplete(number=number)) if not self.begun:
                    self.begun, self.resume, self.next = True, number, number
                    before = clone(self)
                case Notify(events.Stable(first=first, last=last, flags=flags)) if events.StableFlag.STABLE in flags:
                    self.stable.add(first, last + 1)
                    self.high = max(self.high, last)
                case Notify(events.NotStable(first=first, last=last, flags=flags)) if (
                    events.NotStableFlag.TIMEOUT in flags
                ):
                    yield self._give_up(first, last + 1, "its lifetime has ended")
                case Send(message=Register(lives_term=term)) if term:
                    yield self._give_up(self.resume, LATER, "the source continues under a newer term")
                case Notify(events.Reclaimed(first=first, last=last, forced=True)):
                    yield self._give_up(first, last + 1, "it is reclaimed by force")
                case Release(number=number):
                    for first, stop in self.stable.missing(self.resume, min(number, self.next)):
                        self.dropped.add(first, stop)
        yield from changes("the source's", before, self, actions)

    def _sent(self, event: Sent) -> Iterator[Seen]:
        """Yield the sent numbers, each with its turn: the model sends a run one by one."""
        first, stop = event.first, event.first + event.count
        self.high = max(self.high, stop - 1)
        turn = self.shown(first)
        if turn is not None:
            yield Seen("the source's", turn, frozenset({"Send"}), _held((), self.groups), first=first, stop=stop)
        self.next = max(self.next, stop)

    def _hear(self, event: Input) -> Iterable[str]:
        """Return the actions that the record may be."""
        match event:
            case Arrived(StableAck(nack=False) as ack):
                current = ack.incarnation == self.life
                if current and 0 <= ack.store_index < len(self.acked):
                    first, last = extended(ack.first, self.next), extended(ack.last, self.next)
                    self.acked[ack.store_index].add(max(first, self.resume), min(last + 1, self.next))
                return (f"ToSource({_heard(acks=True, current=current)})",)
            case Arrived(Registered() as grant):
                current = grant.incarnation == self.life
                if current and 0 <= grant.store_index < len(self.acked):
                    self.acked[grant.store_index].remove(extended(grant.high, self.next) + 1, self.next)
                return (f"ToSource({_heard(acks=False, current=current)})",)
            case Tick():
                return ("Wait",)
            case Reset() | Gone():
                return ("Crash",)
            case _:
                return ()

    def _give_up(self, first: int, stop: int, why: str) -> Outside:
        self.outside.add(first, stop)
        return Outside(why)


SOURCE = SourceNumberView("Stability.source", Role.SOURCE)
