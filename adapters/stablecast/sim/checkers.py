"""Outside checkers: they see what crosses the edge of the endpoints and the disks, and never ask a machine.

The one exception is R1, which asks each client which registrations it counts on.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import attrs

from stablecast.core import serial
from stablecast.core.events import Event, Oddity
from stablecast.core.quorum import quorum_of
from stablecast.core.ranges import RangeSet
from stablecast.core.registration import Registration
from stablecast.sim.disk import Contents, Disk
from stablecast.sim.rules import Violation

Lives = dict[int, RangeSet]
"""Numbers by the life that sent them."""


class Client(Protocol):
    """A process that registers: what the checkers need of it."""

    name: str
    alive: bool
    frozen: bool

    def registrations(self) -> Iterable[Registration]:
        """All of them."""


@attrs.define
class Session:
    """What one session of one process was told to deliver, from `begin` on."""

    order: int
    history: Lives
    begin: int | None = None
    next: int = 0
    delivered: Lives = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)

    def passed(self, first: int, stop: int) -> list[tuple[int, int]]:
        """The parts of [first, stop) that may not be passed over: neither lost nor consumed before."""
        return _without([(first, stop)], [self.lost, *self.history.values()])


@attrs.define
class Ledger:
    """What one receiver consumed, whatever processes it had: its application's own memory."""

    consumed: Lives = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    last: Session | None = None


@attrs.define
class Checkers:
    """Watches one world. `now` tells the time of a violation."""

    now: Callable[[], int]
    disks: Mapping[str, Disk]
    receivers: Mapping[str, Ledger]
    clients: list[Client] = attrs.field(factory=list)
    violations: list[Violation] = attrs.field(factory=list)
    counts: Counter[str] = attrs.field(factory=Counter)
    stable: dict[int, int] = attrs.field(factory=dict)
    stable_lives: Lives = attrs.field(factory=dict)
    order: dict[int, int] = attrs.field(factory=dict)
    sent: Lives = attrs.field(factory=dict)
    forced: Lives = attrs.field(factory=dict)
    excused: Lives = attrs.field(factory=dict)
    wiped: list[Contents] = attrs.field(factory=list)
    released: dict[int, int] = attrs.field(factory=dict)
    sessions: dict[tuple[str, int], Session] = attrs.field(factory=dict)

    def report(self, rule: str, text: str) -> None:
        """A rule is broken."""
        self.violations.append(Violation(rule, self.now(), text))

    # Sources.

    def on_life(self, life: int, first: int) -> None:
        """A life of the source may send, from `first` on."""
        self.counts["lives"] += 1
        self.order[life] = len(self.order)
        self.released[life] = first
        reused = [number for number in self.stable if number >= first]
        if reused:
            self.report("S2", f"life {life:#x} begins at {first}, number {max(reused)} is stable for an earlier one")

    def on_sent(self, life: int, first: int, stop: int) -> None:
        """Messages leave."""
        self.counts["sent"] += stop - first
        self.sent.setdefault(life, RangeSet()).add(first, stop)

    def on_stable(self, life: int, first: int, stop: int) -> None:
        """The source's application is told so."""
        needed = quorum_of(len(self.disks))
        self.counts["stable"] += stop - first
        self.stable_lives.setdefault(life, RangeSet()).add(first, stop)
        for number in range(first, stop):
            holders = self.holders(life, number)
            if len(holders) < needed and any(_shows(wiped, life, number) for wiped in self.wiped):
                self._excuse(life, number)
                continue
            if len(holders) < needed:
                self.report("S1", f"number {number} is called stable and synced at {holders}, it needs {needed}")
            other = self.stable.setdefault(number, life)
            if other != life:
                self.report("S2", f"number {number} is stable for life {other:#x} and for life {life:#x}")

    def on_forced(self, life: int, first: int, stop: int) -> None:
        """The source's limit forced copies out."""
        self.forced.setdefault(life, RangeSet()).add(first, stop)

    def on_release(self, life: int, stop: int) -> None:
        """The source lets go of its copies below `stop`."""
        first, self.released[life] = self.released[life], stop
        allowed = [lives[life] for lives in (self.stable_lives, self.forced, self.excused) if life in lives]
        for low, high in _without([(first, stop)], allowed):
            self.report("C1", f"the copies of {low}..{high - 1} are gone, they are not stable yet")

    # Stores.

    def holders(self, life: int, number: int) -> list[str]:
        """The stores whose disks have a message synced."""
        return [name for name, disk in self.disks.items() if holds(disk, life, number)]

    def on_granted(self, store: str, reg_id: int, life: int) -> None:
        """A store grants a registration."""
        if self.disks[store].clients.get(reg_id) != life:
            self.report("P1", f"{store} grants RegID {reg_id} to life {life:#x}, which is not synced")

    def on_acknowledged(self, store: str, life: int, first: int, stop: int) -> None:
        """A store acknowledges messages as synced."""
        disk = self.disks[store]
        for number in range(first, stop):
            if not holds(disk, life, number):
                self.report("P1", f"{store} acknowledges number {number} of life {life:#x}, which is not synced")
                return

    def on_cut(self, store: str, stream: int, first: int) -> None:
        """A store is about to forget a stream from `first` on."""
        for number, record in self.disks[store].contents.get(stream, {}).items():
            if number >= first and self.stable.get(number) == record.tag:
                self.report("S3", f"{store} cuts number {number} of life {record.tag:#x}, which is stable")
                return

    def on_store_failed(self, store: str) -> None:
        """A store stops because its disk failed."""
        self.counts["disks failed"] += 1

    def on_wipe(self, store: str) -> None:
        """A disk is replaced by an empty one: what its quorum does not survive is no longer promised."""
        needed = quorum_of(len(self.disks))
        for number, life in list(self.stable.items()):
            holders = self.holders(life, number)
            if store in holders and len(holders) - 1 < needed:
                del self.stable[number]
                self._excuse(life, number)
        self.wiped.append(self.disks[store].durable)

    def _excuse(self, life: int, number: int) -> None:
        self.stable_lives[life].remove(number, number + 1)
        self.excused.setdefault(life, RangeSet()).add(number, number + 1)

    # Registrations.

    def on_registered(self, client: Client, store_index: int, reg_id: int) -> None:
        """A store granted a RegID."""
        self.counts["registrations"] += 1
        for other in self.clients:
            if other is client or not other.alive or other.frozen:
                continue
            for held in other.registrations():
                request = held.request
                if held.counts and request.store_index == store_index and request.reg_id == reg_id:
                    text = f"store {store_index} grants RegID {reg_id} to {client.name}, {other.name} counts on it"
                    self.report("R1", text)

    # Receivers.

    def on_session(self, receiver: str, process: str, life: int, history: dict[int, list[tuple[int, int]]]) -> None:
        """A process begins a session with a life; it says what it consumed before."""
        lives = {other: RangeSet(list(ranges)) for other, ranges in history.items()}
        session = Session(self.order.get(life, 0), lives)
        self.sessions[process, life] = self.receivers[receiver].last = session

    def on_begin(self, receiver: str, process: str, life: int, number: int) -> None:
        """The session will deliver from `number` on: nothing stable below may be unknown to the application."""
        session = self.sessions[process, life]
        session.begin = session.next = number
        for low, high, sender in self.missed(receiver, number):
            if self.order[sender] <= session.order:
                self.report("D1", f"{process} begins at {number}, {low}..{high - 1} of life {sender:#x} it never had")

    def on_delivered(self, process: str, life: int, sender: int, first: int, found: list[tuple[int, int]]) -> None:
        """Messages reach the application; `found` is what their payloads say of them."""
        session, stop = self.sessions[process, life], first + len(found)
        self.counts["delivered"] += len(found)
        if found != [(sender, serial.wire(number)) for number in range(first, stop)]:
            self.report("D1", f"{process} delivers {first}..{stop - 1} of life {sender:#x} with payloads of others")
        if session.begin is None or first < session.next:
            self.report("D1", f"{process} delivers {first}, {session.next} was next")
        for low, high in session.passed(session.next, first):
            self.report("D1", f"{process} delivers {first}, {low}..{high - 1} were passed over and not reported lost")
        if sender in session.history and session.history[sender].within(first, stop):
            self.report("D1", f"{process} delivers {first}..{stop - 1} of life {sender:#x} again")
        for number in range(first, stop):
            owner = self.stable.get(number, sender)
            if owner != sender and self.order[owner] <= session.order:
                self.report("D1", f"{process} delivers {number} of life {sender:#x}, that of {owner:#x} is stable")
        session.delivered.setdefault(sender, RangeSet()).add(first, stop)
        session.next = stop

    def on_consumed(self, receiver: str, sender: int, first: int, stop: int) -> None:
        """The application is done with messages."""
        self.receivers[receiver].consumed.setdefault(sender, RangeSet()).add(first, stop)

    def on_loss(self, receiver: str, process: str, life: int, first: int, stop: int) -> None:
        """A loss is reported to the application."""
        session = self.sessions[process, life]
        self.counts["lost"] += stop - first
        for low, high, sender in self.missed(receiver, stop):
            if high > first and self.order[sender] <= session.order:
                text = f"{process} reports {max(low, first)}..{high - 1} of life {sender:#x} lost, which are stable"
                self.report("S3", text)
        session.lost.add(first, stop)
        self.receivers[receiver].lost.add(first, stop)

    def on_consumption_ack(self, receiver: str, process: str, life: int, wire: int) -> None:
        """A receiver acknowledges everything up to a number."""
        session = self.sessions[process, life]
        consumed = self.receivers[receiver].consumed
        number = serial.extend(wire, session.next)
        if session.begin is None:
            self.report("A1", f"{process} acknowledges {number} before it began")
            return
        done = [session.lost, *session.history.values()]
        for sender, delivered in session.delivered.items():
            ours = consumed.get(sender, RangeSet())
            done.append(RangeSet([part for low, high in delivered for part in ours.within(low, high)]))
        for low, high in _without([(session.begin, number + 1)], done):
            self.report("A1", f"{process} acknowledges {number}, {low}..{high - 1} are not consumed")

    # At the end, and for everybody.

    def missed(self, receiver: str, stop: int) -> list[tuple[int, int, int]]:
        """The stable messages below `stop` that a receiver neither consumed nor reported lost: first, stop, life."""
        ledger = self.receivers[receiver]
        return [
            (low, min(high, stop), life)
            for life, numbers in self.stable_lives.items()
            for first, end in numbers
            if first < stop
            for low, high in _without([(first, min(end, stop))], [ledger.consumed.get(life, RangeSet()), ledger.lost])
        ]

    def at_the_end(self) -> None:
        """When all is quiet: every stable message is where it was said to be."""
        needed = quorum_of(len(self.disks))
        for number, life in self.stable.items():
            holders = self.holders(life, number)
            if len(holders) < needed:
                self.report("S3", f"number {number} of life {life:#x} was stable and is left at {holders}")
                return

    def on_oddity(self, event: Event) -> None:
        """Counts what machines drop."""
        if isinstance(event, Oddity):
            self.counts[event.code] += 1


def holds(disk: Disk, life: int, number: int) -> bool:
    """Whether a disk has a message synced."""
    return _shows(disk.durable, life, number)


def _shows(contents: Contents, life: int, number: int) -> bool:
    for numbers in contents.values():
        record = numbers.get(number)
        if record is not None and record.tag == life:
            return True
    return False


def _without(parts: list[tuple[int, int]], sets: Iterable[RangeSet]) -> list[tuple[int, int]]:
    for known in sets:
        parts = [gap for low, high in parts for gap in known.missing(low, high)]
    return parts
