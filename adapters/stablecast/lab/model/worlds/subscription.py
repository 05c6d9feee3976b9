"""Drive the core's machines for `tla/Subscription`: one receiver of a topic, and the lives of its source.

The receiver is a whole `Subscription`, with a `ReceiverSession` and a `Succession` for each life that it follows
(`subscription_sessions`). The world adds the source, its stores as one, streams, the resolver, and the application.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.history import continued, owner
from stablecast.core.protocol.inputs import Arrived, Data
from stablecast.core.subscription import inputs as ev
from stablecast.core.subscription.consumption import ReceiverMemory
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.subscription import Followed, Subscription
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.worlds.subscription_sessions import (
    BLANK,
    SOURCE_REG_ID,
    STORE,
    Kept,
    SessionNode,
    Sessions,
    source_address,
)

TICK_NS = 500 * MILLISECOND
_NONE = record(ses=0, life=0, term=0)


@attrs.frozen
class SubscriptionConstants:
    """Hold the model's constants."""

    Messages: int
    Lives: int
    Proxies: frozenset[int]
    Gone: frozenset[int]
    Crashes: int
    Breaks: int
    Faults: frozenset[str]


@attrs.define
class SourceLife:
    """One life of the source, or a proxy. `first` and `sent` are numbers; `term` 0: it has not begun."""

    up: bool = False
    term: int = 0
    first: int = 0
    sent: int = 0
    lives: tuple[msg.Life, ...] = ()


@attrs.define
class SubscriptionWorld:
    """Drive one receiver.

    Attributes:
        lives: The lives of the source, by incarnation.
        current: The life that the stores take messages of; 0: none has begun.
        stored: The newest message that they hold.
        at: By life the next number on its stream, 0: the stream is not joined.
        kept: What sources, stores and application learned.
        subscription: The machine.
        now: The receiver's clock, in ns.
    """

    constants: SubscriptionConstants
    lives: dict[int, SourceLife]
    at: dict[int, int]
    kept: Kept
    crashes: int
    breaks: int
    subscription: SharedMachine[Subscription]
    nodes: dict[int, SessionNode] = attrs.field(factory=dict)
    current: int = 0
    term: int = 0
    stored: int = 0
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: the first life has sent one message, and the receiver knows nothing."""
        known = SubscriptionConstants(**constants)
        lives = range(1, known.Lives + 1)
        machine = SharedMachine(Subscription(ReceiverMemory()))
        every = {life: SourceLife() for life in lives}
        every[1] = SourceLife(True, 1, 1, 1, ((1, 1),))
        nothing = dict.fromkeys(lives, 0)
        return cls(known, every, nothing, Kept(), known.Crashes, known.Breaks, machine, current=1, term=1, stored=1)

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        """Yield the enabled actions."""
        begun = [life for life, one in self.lives.items() if one.term]
        if len(begun) < self.constants.Lives:
            yield ("Begin",)
        if self._sends:
            yield ("Send",)
        if self.current and self.stored < self.lives[self.current].sent and self.lives[self.current].up:
            yield ("Store",)
        for life in begun:
            yield from ((name, life) for name in self._of_life(life, begun))
        machine = self.subscription.machine
        for node in self.nodes.values():
            if node.closed or node.life != self.current:
                continue
            if node.registers:
                yield ("Register", node.name)
            if 0 < node.asked <= self.stored:
                yield ("Deny" if node.asked in self.constants.Gone else "Fetch", node.name)
        if machine.next_timeout() is not None:
            yield ("Tick",)
        if self.kept.hand:
            yield ("Consume",)
        elif self.kept.inbox:
            yield ("Take",)
        if self.crashes:
            yield ("Crash",)

    @property
    def _sends(self) -> bool:
        one = self.lives.get(self.current)
        proxy = self.current in self.constants.Proxies
        return one is not None and one.up and not proxy and one.sent == self.stored < self.constants.Messages

    def _of_life(self, life: int, begun: list[int]) -> Iterator[str]:
        """Yield what a life, its stream and the resolver may do."""
        one, machine = self.lives[life], self.subscription.machine
        joined, planned = self.at[life] > 0, str(life) in machine.plans
        if one.up and self._remains(life, begun):
            yield "End"
        if self._comes_back(life):
            yield "Return"
        if one.up and not joined and not planned:
            yield "Found"
        if not one.up and (joined or planned) and life not in machine.farewells:
            yield "Withdraw"
        if joined and one.up:
            yield "Announce"
            if self.breaks:
                yield "Break"
        if joined and not one.up:
            yield "Close"
        if joined and life in machine.sessions and self.at[life] <= one.sent:
            yield "Hear"

    def _comes_back(self, life: int, ends: int = 0) -> bool:
        """Return whether a cut-off life may be taken back, if the life `ends` is over."""
        if "back" not in self.constants.Faults or not self.current or life in (self.current, ends):
            return False
        last = self.lives[self.current]
        cut = life < self.current and self.stored < last.first
        return cut and self.lives[life].up and (not last.up or ends == self.current)

    def _remains(self, life: int, begun: list[int]) -> bool:
        """Return whether the source goes on when this life ends."""
        more = len(begun) < self.constants.Lives
        lives = life != self.current and self.lives[self.current].up
        return more or lives or any(self._comes_back(other, life) for other in begun)

    # Effects of actions.

    def do(self, action: Action) -> None:
        """Perform an action of the model."""
        name, *parameters = action
        which = parameters[0] if parameters else 0
        match name:
            case "Begin":
                self._begin()
            case "Send":
                self.lives[self.current].sent += 1
            case "Store":
                self.stored += 1
            case "End":
                self.lives[which].up = False
            case "Return":
                self.term += 1
                self.current, self.lives[which].term = which, self.term
            case "Crash":
                self.crashes -= 1
                self.subscription = SharedMachine(Subscription(ReceiverMemory()))
                self.at, self.nodes = dict.fromkeys(self.at, 0), {}
                self.kept.crash()
                self.now = 0
            case _:
                self._at_receiver(name, which)

    def _begin(self) -> None:
        """Let the next life begin behind what the stores hold."""
        life, first = 1 + sum(1 for one in self.lives.values() if one.term), self.stored + 1
        known = self.lives[self.current].lives if self.current else ()
        self.term += 1
        lives = tuple(continued(known, life, first))
        self.lives[life] = SourceLife(True, self.term, first, self.stored, lives)
        self.current = life

    def _at_receiver(self, name: str, which: int) -> None:
        """Perform an action that the receiver sees."""
        sessions = Sessions(self.subscription.own(), self.nodes, self.kept, self)
        place = Place(str(which), which, source_address(which))
        match name:
            case "Found":
                sessions.feed(ev.Found(place, which))
            case "Withdraw":
                sessions.feed(ev.Withdrawn(place.transport, which))
            case "Announce":
                sessions.feed(ev.Announced(self._info(which), place))
            case "Break" | "Close":
                self.breaks -= name == "Break"
                self.at[which] = 0
                sessions.feed(ev.StreamEnded(place.transport))
            case "Hear":
                number = self.at[which]
                self.at[which] += 1
                session = self.subscription.machine.sessions[which].session
                sessions.tell(session, Data(which, which, number, 1, 0, False, token=number))
            case "Register":
                sessions.tell(which, Arrived(self._granted(self.nodes[which])))
            case "Fetch":
                number = self.nodes[which].asked
                life = owner(self.lives[self.current].lives, number) or 0
                sessions.tell(which, Data(self.current, life, number, 1, 0, True, token=number))
            case "Deny":
                number, request = self.nodes[which].asked, self.nodes[which].request
                sessions.tell(which, Arrived(msg.LateJoinInfo(self.current, request, number + 1, self.stored, 0)))
            case "Tick":
                self.now += TICK_NS
                sessions.timeout()
            case "Take":
                self.kept.take()
            case "Consume":
                sessions.consume()
        sessions.settle()

    # What the receiver's machines are told and ask.

    def join(self, life: int) -> None:
        """Join a stream: what is sent from now on comes."""
        self.at[life] = self.at[life] or self.lives[life].sent + 1

    def leave(self, life: int) -> None:
        """Leave a stream."""
        self.at[life] = 0

    def acknowledge(self, life: int, number: int) -> None:
        """Let the stores count an acknowledgement, of what they hold and of the current life only."""
        if life == self.current:
            self.kept.acked = max(self.kept.acked, min(number, self.stored))

    def confirm(self, life: int, first: int, last: int) -> None:
        """Let a source count messages as consumed, if it lives."""
        if self.lives[life].up:
            self.kept.told |= {(life, number) for number in range(first, last + 1)}

    def owner(self, life: int, number: int) -> int:
        """Return the life whose message has this number in the history of `life`."""
        return owner(self.lives[life].lives, number) or 0

    def _info(self, life: int) -> msg.SourceInfo:
        one = self.lives[life]
        stores = (msg.StoreEntry(0, 0, STORE, SOURCE_REG_ID, 0),)
        high = self.at[life] - 1
        names = (source_address(life), (1,), True, stores, one.term, one.lives)
        return msg.SourceInfo(life, "topic", one.term, one.first, high, *names)

    def _granted(self, node: SessionNode) -> msg.Registered:
        """Return what the stores answer: they know the receiver if it acknowledged anything."""
        asked, acked = node.machine.status.registrations[0].request, self.kept.acked
        names = (msg.Role.RECEIVER, 0, asked.generation, 1, asked.incarnation)
        return msg.Registered(*names, acked > 0, acked + 1, self.stored, 0, 0)

    # The model's variables.

    def abstract(self) -> State:
        """Return the model's variables."""
        machine, kept = self.subscription.machine, self.kept
        lives = sorted(self.lives)
        return {
            "src": record(cur=self.current, term=self.term, stored=self.stored),
            "life": tuple(_life(self.lives[life]) for life in lives),
            "at": tuple(self.at[life] for life in lives),
            "plan": tuple(self._left(machine.plans.get(str(life), (None, 0))[1]) for life in lives),
            "bye": tuple(self._left(machine.farewells.get(life, ("", 0))[1]) for life in lives),
            "over": tuple(_passed(machine, life) for life in lives),
            "fol": tuple(_followed(machine.sessions.get(life)) for life in lives),
            "fin": tuple(one.session for one in machine.finished),
            "ses": tuple(self._session(name) for name in range(1, kept.sessions + 1)),
            "inbox": tuple((one.owner, one.life, one.number) for one in kept.inbox),
            "hand": kept.hand,
            "read": frozenset(kept.read),
            "handed": frozenset(kept.handed),
            "lost": frozenset(kept.lost),
            "ever": frozenset(kept.ever),
            "acked": kept.acked,
            "told": frozenset(kept.told),
            "left": record(crashes=self.crashes, breaks=self.breaks),
        }

    def _left(self, due: int) -> int:
        return (due - self.now) // TICK_NS if due else 0

    def _session(self, name: int) -> Value:
        node = self.nodes.get(name)
        return BLANK if node is None else node.abstract()


def _life(one: SourceLife) -> Fn:
    return record(up=one.up, term=one.term, first=one.first, sent=one.sent, lives=tuple(one.lives))


def _passed(machine: Subscription, life: int) -> Fn:
    info, _ = machine.passed_over.announcements.get(life, (None, None))
    return record(term=0, high=0) if info is None else record(term=info.term, high=info.high)


def _followed(one: Followed | None) -> Fn:
    if one is None:
        return record(ses=0, term=0, high=0, replaced=frozenset(), rival=_NONE)
    last = one
    while last.heir is not None:
        last = last.heir
    rival = _NONE if last is one else record(ses=last.session, life=last.info.incarnation, term=last.info.term)
    info, replaced = one.info, frozenset(one.replaced)
    return record(ses=one.session, term=info.term, high=info.high, replaced=replaced, rival=rival)
