"""Drive the machines of the core for `tla/WorkSharing`: two members of a group that share a topic.

Each member is a whole `GroupMember` with one share. The world adds what the driver does of its effects, the application
that has a message in work, and a quorum of stores as one: the holder of the share, and how far it was acknowledged.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.sharing.member import GroupMember, Heard, Left, MemberConfig, MemberInput, MemberStart, Progress
from stablecast.core.sharing.share import Close, Drain, Open, Record, ShareEvent
from stablecast.lab.model.canonical import Value
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State

MEMBERS = (1, 2)
MOST_TIMES = 2
"""A message that was processed more often counts as processed twice."""


@attrs.frozen
class SharingConstants:
    Messages: int
    Turns: int
    Faults: frozenset[str]


@attrs.define
class MemberNode:
    """A member with its driver and application.

    Attributes:
        shared: The machine; None once the member is dead.
        asked: The name of the newest effect for the share, which the driver performs.
        leased: The lease goes on.
        work: The message in work, 0 for none.
        at: The newest message that was consumed, or was acknowledged before.
    """

    shared: SharedMachine[GroupMember] | None
    asked: str = "Open"
    leased: bool = False
    work: int = 0
    at: int = 0

    @classmethod
    def create(cls, number: int) -> Self:
        """Return a member that claims its share."""
        member = GroupMember(MemberConfig(number, shares=1, settle_ns=0), Seeded(number))
        node = cls(SharedMachine(member))
        node.feed(MemberStart())
        return node

    @property
    def machine(self) -> GroupMember | None:
        """The machine; do not change it."""
        return None if self.shared is None else self.shared.machine

    @property
    def knows(self) -> bool:
        """True if the member counts another one."""
        return self.machine is not None and bool(self.machine.others)

    @property
    def state(self) -> str:
        return "RELEASED" if self.machine is None else self.machine.shares[0].state.name

    def feed(self, event: MemberInput) -> None:
        """Feed one input, and note what the driver is to do."""
        assert self.shared is not None
        machine = self.shared.own()
        machine.receive(event, 0)
        for effect in machine.take_effects():
            if isinstance(effect, Open | Drain | Record | Close):
                self.asked = type(effect).__name__

    def die(self) -> None:
        """End the process: the machine is gone, with its message in work."""
        self.shared, self.asked, self.leased, self.work, self.at = None, "Close", False, 0, 0


@attrs.define
class WorkSharingWorld:
    """Drive two members. `times`: how often each message was processed; `left`: the remaining turns."""

    constants: SharingConstants
    nodes: list[MemberNode]
    times: list[int]
    left: int
    holder: int = 0
    acked: int = 0
    failed: bool = False

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: both members claim the share, and do not know each other."""
        known = SharingConstants(**constants)
        return cls(known, [MemberNode.create(number) for number in MEMBERS], [0] * known.Messages, known.Turns)

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        for number in MEMBERS:
            node, other = self.nodes[number - 1], self.nodes[2 - number]
            if node.machine is not None:
                yield from ((name, number) for name in self._of_group(node, other))
                yield from ((name, number) for name in self._of_share(node))
            if "pause" in self.constants.Faults and node.leased:
                yield ("Expire", number)
            if self.holder == number and not node.leased:
                yield ("Free", number)

    def _of_group(self, node: MemberNode, other: MemberNode) -> Iterator[str]:
        there = other.machine is not None
        if there and not node.knows:
            yield "Meet"
        if node.knows and (self.left > 0 or not there):
            yield "Miss"
        if "die" in self.constants.Faults and there:
            yield "Die"

    def _of_share(self, node: MemberNode) -> Iterator[str]:
        """Yield what the driver and the application may do, by the newest effect."""
        granted = node.asked == "Open" and node.state == "HELD"
        if node.asked == "Open" and not granted and self.holder == 0:
            yield "Grant"
        if granted and node.leased and not node.work and node.at < self.constants.Messages:
            yield "Hand"
        if node.work:
            yield "Settle"
        if (granted or node.asked in {"Drain", "Record"}) and node.at > self.acked:
            yield "Ack"
        if node.asked == "Drain" and not node.work:
            yield "Drained"
        if node.asked == "Record" and (self.acked >= node.at or not node.leased or "slow" in self.constants.Faults):
            yield "Recorded"
        if node.asked == "Close" and node.state != "RELEASED":
            yield "Closed"
        if granted and not node.leased:
            yield "Lose"

    # Effects of actions.

    def do(self, action: Action) -> None:
        name, number = action
        assert isinstance(number, int)
        node = self.nodes[number - 1]
        match name:
            case "Meet":
                node.feed(Heard(3 - number, shares=1))
            case "Miss":
                self.left -= self.nodes[2 - number].machine is not None
                node.feed(Left(3 - number))
            case "Grant":
                self.holder, node.leased, node.at = number, True, self.acked
                node.feed(Progress(0, ShareEvent.GRANTED))
            case "Hand":
                node.work = node.at + 1
            case "Settle":
                self.times[node.work - 1] = min(self.times[node.work - 1] + 1, MOST_TIMES)
                node.at, node.work = node.work, 0
            case "Ack":
                self.acked = node.at
            case "Drained":
                node.feed(Progress(0, ShareEvent.DRAINED))
            case "Recorded":
                self.failed |= self.acked < node.at
                node.feed(Progress(0, ShareEvent.RECORDED))
            case "Expire":
                node.leased, self.failed = False, True
            case "Free":
                self.holder = 0
            case "Lose":
                node.feed(Progress(0, ShareEvent.LOST))
            case _:
                self._release(number, node, dies=name == "Die")

    def _release(self, number: int, node: MemberNode, *, dies: bool) -> None:
        """Close the address of a share, or end the process."""
        if self.holder == number:
            self.holder = 0
        node.leased, node.at = False, 0
        if dies:
            node.die()
            self.failed = True
        else:
            node.feed(Progress(0, ShareEvent.CLOSED))

    # The model's variables.

    def abstract(self) -> State:
        return {
            "share": self._each("state"),
            "knows": self._each("knows"),
            "up": tuple(node.machine is not None for node in self.nodes),
            "leased": self._each("leased"),
            "work": self._each("work"),
            "at": self._each("at"),
            "holder": self.holder,
            "acked": self.acked,
            "times": tuple(self.times),
            "left": self.left,
            "failed": self.failed,
        }

    def _each(self, name: str) -> tuple[Value, ...]:
        return tuple(getattr(node, name) for node in self.nodes)
