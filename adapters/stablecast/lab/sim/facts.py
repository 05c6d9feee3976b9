"""What all checkers of one world know: what was sent, what is stable, who has it, and what nobody is promised any more.

They see what crosses the edge of the endpoints and the disks, and never ask a machine. There are two exceptions: R1
asks each client which registrations it counts on, S1 which stores count for the rules that speak of active ones.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.lab.sim.disk import Contents, Disk, Record
from stablecast.lab.sim.quorum_judge import Judge
from stablecast.lab.sim.rules import Violation
from stablecast.lab.sim.setup import STORES, Setup

Lives = dict[int, RangeSet]
"""Numbers by the life that sent them."""

NOBODY = 0
"""Stands for the life of numbers that went whoever sent them."""


@attrs.define
class Facts:
    """Of one world. `now` tells the time of a violation.

    `stable` has the life of each stable number; `order` counts lives, and proxies (`stand_ins`) as the newest life. By
    store: what it let go within the rules (`gone`), of a message that it need not show any more. `wiped`: what disks
    and memories that are lost had. `large` has first and last number of what was cut, by life and number. `farewell`:
    the source deregistered, with all that was its. `spoilt`: by store, life and number, what is bad on a disk and not
    found to be. `dropped`: by store, what it had no room for; `calm`: all faults are over.

    `terms` are those that lives said first, `granted` the stores that know a life's registration. Of `doubtful` lives
    no quorum does, because disks were lost, and `forked` are those that do not follow each other for that reason.
    """

    now: Callable[[], int]
    disks: Mapping[str, Disk]
    setup: Setup
    violations: list[Violation] = attrs.field(factory=list)
    counts: Counter[str] = attrs.field(factory=Counter)
    stable: dict[int, int] = attrs.field(factory=dict)
    stable_lives: Lives = attrs.field(factory=dict)
    order: dict[int, int] = attrs.field(factory=dict)
    stand_ins: list[int] = attrs.field(factory=list)
    excused: Lives = attrs.field(factory=dict)
    wiped: Lives = attrs.field(factory=dict)
    gone: dict[str, Lives] = attrs.field(factory=dict)
    large: dict[tuple[int, int], tuple[int, int]] = attrs.field(factory=dict)
    farewell: bool = False
    spoilt: set[tuple[str, int, int]] = attrs.field(factory=set)
    dropped: dict[str, RangeSet] = attrs.field(factory=dict)
    calm: bool = False
    terms: dict[int, int] = attrs.field(factory=dict)
    granted: dict[int, set[str]] = attrs.field(factory=dict)
    doubtful: set[int] = attrs.field(factory=set)
    forked: set[int] = attrs.field(factory=set)
    judge: Judge = attrs.field(default=attrs.Factory(lambda self: _judge(self.setup), takes_self=True))

    def report(self, rule: str, text: str) -> None:
        """A rule is broken."""
        self.violations.append(Violation(rule, self.now(), text))

    def holders(self, life: int, number: int) -> list[str]:
        """The stores that have a message synced, or had it and let it go within the rules."""
        return [store for store in self.disks if self.holds(store, life, number)]

    def holds(self, store: str, life: int, number: int) -> bool:
        """Whether a store is one of them."""
        disk = self.disks[store]
        if shows(disk.durable, life, number) or (self.setup.volatile and shows(disk.memory, life, number)):
            return True
        gone = self.gone.get(store, {})
        return any(number in gone[sender] for sender in (life, NOBODY) if sender in gone)

    def had(self, life: int, number: int) -> bool:
        """Whether a message was on a disk, or in a memory, that is lost."""
        return any(number in self.wiped[sender] for sender in (life, NOBODY) if sender in self.wiped)

    def whole(self, life: int, number: int) -> bool:
        """Whether the message that has this number is stable, all of it: of one that is not nothing is promised."""
        first, last = self.large.get((life, number), (number, number))
        return self.stable_lives.get(life, RangeSet()).contiguous_from(first) > last

    def excuse(self, life: int, number: int) -> None:
        """A stable message need not be anywhere any more."""
        self.stable_lives[life].remove(number, number + 1)
        self.excused.setdefault(life, RangeSet()).add(number, number + 1)

    def on_lost(self, store: str, *, disk: bool) -> None:
        """A memory, or a disk with it, is replaced by an empty one: what a quorum does not survive is not promised.

        With its disk a store forgets what it let go, and may be asked for it as if it had never come. It also forgets
        which lives registered there.
        """
        for number, life in list(self.stable.items()):
            self._on_held_no_more(store, life, number)
        contents = self.disks[store].durable if disk else self.disks[store].memory
        for numbers in contents.values():
            for number, record in numbers.items():
                self.wiped.setdefault(record.tag, RangeSet()).add(number, number + 1)
        for life, gone in self.gone.pop(store, {}).items() if disk else ():
            for low, high in gone:
                self.wiped.setdefault(life, RangeSet()).add(low, high)
        for life, stores in self.granted.items() if disk else ():
            if store in stores:
                stores.discard(store)
                if life in self.terms and not self.judge.registered(stores):
                    self.doubtful.add(life)

    def on_told(self, life: int, term: int) -> None:
        """A life says the first time where it begins, and under which term.

        Later lives have higher terms because two quorums share a store that remembers. If no quorum remembers a life,
        the one that follows may know nothing of it. Then nobody can tell which of the two is right, and as long as both
        live each may undo what the other did: neither is promised anything.
        """
        if life in self.terms:
            return
        self.terms[life] = term
        for other in [other for other in self.doubtful if term <= self.terms[other]]:
            self.counts["forks"] += 1
            self.forked |= {life, other}
            for number in [number for number, owner in self.stable.items() if owner == other]:
                self._forget(other, number)

    def on_damaged(self, store: str, record: Record) -> None:
        """A record is about to go bad: what a quorum does not survive is not promised."""
        self.counts["damaged"] += 1
        for number, shown in self.disks[store].durable[record.stream].items():
            if shown is record:
                self._on_held_no_more(store, record.tag, number)
                self.spoilt.add((store, record.tag, number))
                self.wiped.setdefault(record.tag, RangeSet()).add(number, number + 1)

    def on_damage_found(self, store: str, first: int, stop: int) -> None:
        """A store knows that these numbers are bad: it may not say that it has them before it has them again."""
        self.counts["damage found"] += 1
        self.spoilt = {bad for bad in self.spoilt if bad[0] != store or not first <= bad[2] < stop}

    def on_restart(self, store: str) -> None:
        """A store verified all that is on its disk."""
        self.spoilt = {bad for bad in self.spoilt if bad[0] != store}

    def _on_held_no_more(self, store: str, life: int, number: int) -> None:
        holders = self.holders(life, number) if self.stable.get(number) == life else []
        if store in holders and not self.judge.recoverable(other for other in holders if other != store):
            self._forget(life, number)

    def on_turn(self, store: str) -> None:
        """It is a store's turn: what it does not have went with those before it (P-505)."""
        for number, life in list(self.stable.items()):
            if not self.holds(store, life, number):
                self._forget(life, number)

    def _forget(self, life: int, number: int) -> None:
        del self.stable[number]
        self.excuse(life, number)


def _judge(setup: Setup) -> Judge:
    members = list(zip(STORES, setup.groups, strict=False))
    groups = range(len(setup.rules.sizes))
    return Judge(
        setup.rules, tuple(frozenset(store for store, own in members if own == group) for group in groups), setup.turns
    )


def shows(contents: Contents, life: int, number: int) -> bool:
    """Whether a message is there."""
    for numbers in contents.values():
        record = numbers.get(number)
        if record is not None and record.tag == life and not record.bad:
            return True
    return False


def without(parts: list[tuple[int, int]], sets: Iterable[RangeSet]) -> list[tuple[int, int]]:
    """The parts of ranges that are in none of the sets."""
    for known in sets:
        parts = [gap for low, high in parts for gap in known.missing(low, high)]
    return parts
