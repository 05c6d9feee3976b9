"""Record what all checkers of one world share: what was sent, what is stable, which stores hold it, what is excused.

Checkers observe the inputs and outputs of endpoints and disks, and never ask a machine. There are two exceptions. R1
asks each client which registrations it counts on. S1 asks which stores are active for rules about active stores.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.evidence.rules import RULES
from stablecast.lab.quorum_judge import Judge
from stablecast.lab.sim.disk import Contents, DiskRecord, VirtualDisk
from stablecast.lab.sim.setup import STORES, WorldSetup


@attrs.frozen
class Violation:
    """A broken rule; `at` in ns since the world began."""

    rule: str
    at: int
    text: str

    @property
    def name(self) -> str:
        return RULES[self.rule].title


Lives = dict[int, RangeSet]
"""Numbers by the life that sent them."""

NOBODY = 0
"""Stands for the life of numbers that were deleted, whichever life sent them."""


@attrs.define
class Facts:
    """Hold the facts of one world.

    Attributes:
        now: Returns the time of a violation.
        stable: Life of each stable number.
        order: Position of each life; a proxy (`stand_ins`) has that of the newest life.
        begins: First number of each life.
        gone: By store, what it deleted within the rules.
        wiped: What lost disks and memories held.
        lost_at: Time of the last loss of a disk, in ns.
        large: First and last number of large messages, by life and number.
        farewell: The source deregistered, with all its state.
        dropped: By store, what it had no room for.
        calm: All faults are over.
        terms: Term of each life, as first announced.
        renewed: Term of each life, as last announced.
        claimed: Term in which each stable number became so.
        granted: Stores that know a life's registration.
        holders_of: By store and RegID, the lives that got it, in order.
        announced: What a life was announced by: itself, the lives before it, and its address and RegID at each store.
        doubtful: Lives that no quorum knows, because disks were lost.
        forked: Lives that do not follow each other for that reason.
        copied: Stores that got an older copy of their disk, `undeclared` those of them to which nobody declared it.
        deprived: By store, what its disks lost; it may have no vote about these messages.
        forgotten: By store, what it lost without noticing, with a memory or to an undeclared copy: it has a vote.
        acknowledged: By store, what it acknowledged, whether or not that arrived.
    """

    now: Callable[[], int]
    disks: Mapping[str, VirtualDisk]
    setup: WorldSetup
    violations: list[Violation] = attrs.field(factory=list)
    counts: Counter[str] = attrs.field(factory=Counter)
    stable: dict[int, int] = attrs.field(factory=dict)
    stable_lives: Lives = attrs.field(factory=dict)
    order: dict[int, int] = attrs.field(factory=dict)
    begins: dict[int, int] = attrs.field(factory=dict)
    stand_ins: list[int] = attrs.field(factory=list)
    excused: Lives = attrs.field(factory=dict)
    wiped: Lives = attrs.field(factory=dict)
    gone: dict[str, Lives] = attrs.field(factory=dict)
    large: dict[tuple[int, int], tuple[int, int]] = attrs.field(factory=dict)
    farewell: bool = False
    lost_at: int = -1
    dropped: dict[str, RangeSet] = attrs.field(factory=dict)
    calm: bool = False
    terms: dict[int, int] = attrs.field(factory=dict)
    renewed: dict[int, int] = attrs.field(factory=dict)
    claimed: dict[int, int] = attrs.field(factory=dict)
    granted: dict[int, set[str]] = attrs.field(factory=dict)
    holders_of: dict[tuple[str, int], list[int]] = attrs.field(factory=dict)
    announced: dict[int, set[int | tuple[str, int]]] = attrs.field(factory=dict)
    doubtful: set[int] = attrs.field(factory=set)
    forked: set[int] = attrs.field(factory=set)
    copied: set[str] = attrs.field(factory=set)
    undeclared: set[str] = attrs.field(factory=set)
    deprived: dict[str, Lives] = attrs.field(factory=dict)
    forgotten: dict[str, Lives] = attrs.field(factory=dict)
    acknowledged: dict[str, Lives] = attrs.field(factory=dict)
    judge: Judge = attrs.field(default=attrs.Factory(lambda self: _judge(self.setup), takes_self=True))

    def report(self, rule: str, text: str) -> None:
        self.violations.append(Violation(rule, self.now(), text))

    def holders(self, life: int, number: int) -> list[str]:
        """Return the stores that have a message synced, or had it and deleted it within the rules."""
        return [store for store in self.disks if self.holds(store, life, number)]

    def holds(self, store: str, life: int, number: int) -> bool:
        gone = self.gone.get(store, {})
        return self.has(store, life, number) or any(number in gone[one] for one in (life, NOBODY) if one in gone)

    def has(self, store: str, life: int, number: int) -> bool:
        disk = self.disks[store]
        return shows(disk.durable, life, number) or (self.setup.volatile and shows(disk.memory, life, number))

    def had(self, life: int, number: int) -> bool:
        """Return whether a message was on a disk or in a memory that is lost."""
        return any(number in self.wiped[sender] for sender in (life, NOBODY) if sender in self.wiped)

    def lost(self, life: int, number: int) -> bool:
        """Return whether so many disks or memories lost a message that the others do not suffice.

        Of stores that forgot it and have a vote, only others that acknowledged it make up for the loss.
        """
        lost, forgotten, known = (
            {store for store, lives in by_store.items() if life in lives and number in lives[life]}
            for by_store in (self.deprived, self.forgotten, self.acknowledged)
        )
        left = known - forgotten if forgotten else set(self.disks)
        return not (self.judge.recoverable(left) and self.judge.recoverable(set(self.disks) - lost))

    def out_of_reach(self, life: int, sender: int, number: int) -> bool:
        """Return whether a receiver that follows `life` can get a message from no store that it may ask.

        A store of that life lost its copy, and those that have one never registered the life: they are away for it.
        """
        there = self.granted.get(life, set())
        lost = any(number in self.deprived.get(store, {}).get(sender, RangeSet()) for store in there)
        have = {store for store in self.disks if self.has(store, sender, number)}
        return lost and bool(have) and not have & there

    def whole(self, life: int, number: int) -> bool:
        """Return whether all of the message with this number is stable.

        Partly stable messages are promised to no receiver.
        """
        first, last = self.large.get((life, number), (number, number))
        return self.stable_lives.get(life, RangeSet()).contiguous_from(first) > last

    def excuse(self, life: int, number: int) -> None:
        """Release a stable message from all promises."""
        self.stable_lives[life].remove(number, number + 1)
        self.excused.setdefault(life, RangeSet()).add(number, number + 1)

    def on_lost(
        self,
        store: str,
        *,
        disk: bool,
        silent: bool = False,
        copy: VirtualDisk | None = None,
        released: Lives | None = None,
    ) -> None:
        """Handle the loss of a memory, with `disk` also of a disk: some messages are no longer promised.

        With its disk a store forgets what it deleted and which lives registered, and may be asked for both again. A
        `silent` store knows that it lost its disk, and has no vote. A `copy` of the disk stays, and with it what the
        store had `released` before.
        """
        if disk:
            self.lost_at = self.now()
        if copy is not None:
            self.copied.add(store)
            self.undeclared |= set() if silent else {store}
        for number, life in list(self.stable.items()):
            if copy is None or not shows(copy.durable, life, number):
                self._on_held_no_more(store, life, number, silent=silent)
        contents = self.disks[store].durable if disk else self.disks[store].memory
        for numbers in contents.values():
            for number, record in numbers.items():
                self._on_deprived(store, record.tag, number)
                if not silent:
                    self.forgotten.setdefault(store, {}).setdefault(record.tag, RangeSet()).add(number, number + 1)
        for life, gone in self.gone.pop(store, {}).items() if disk else ():
            self.wiped.setdefault(life, RangeSet()).update(gone)
        if copy is not None:
            trail = max(copy.trails().values(), default=0)
            self.gone[store] = {life: RangeSet(list(gone.within(0, trail))) for life, gone in (released or {}).items()}
        for life, stores in self.granted.items() if disk else ():
            if store in stores:
                stores.discard(store)
                if not (stores if silent else self.judge.registered(stores)):
                    self.doubtful.add(life)

    def on_granted(self, store: str, reg_id: int, life: int) -> None:
        self.granted.setdefault(life, set()).add(store)
        lives = self.holders_of.setdefault((store, reg_id), [])
        if lives[-1:] != [life]:
            lives.append(life)

    def strangers(self, life: int, other: int) -> bool:
        """Return whether no receiver can know that two lives are of one source.

        All stores of the first one lost their disks, and no announcement leads from it to the other. Receivers
        are promised something across lives only if a quorum of the stores keeps its disks.
        """
        known, found = self.announced.get(life, set()), set[int | tuple[str, int]]()
        while known - found:
            found = known
            known = found.union(*(names for names in self.announced.values() if names & found))
        return not self.granted.get(life) and other not in known

    def on_told(self, life: int, term: int) -> None:
        """Record an announcement of a life, with its term.

        Later lives have higher terms, because two quorums share a store that remembers. If no quorum remembers a life,
        its successor may not know it. Then neither life is wrong, and each may undo what the other did. So neither is
        promised anything.
        """
        self.renewed[life] = max(term, self.renewed.get(life, term))
        if life in self.terms:
            return
        self.terms[life] = term
        if self.judge.registered(self.granted.get(life, set())):
            self.doubtful.discard(life)  # It lost a grant while it registered, and has enough of them.
        for other in [other for other in self.doubtful if other != life and term <= self.terms.get(other, -1)]:
            self._fork(life, other)

    def on_claimed(self, life: int, stop: int) -> None:
        """Record that a life made numbers below `stop` stable. It may have come back behind a later one.

        The stores of the later life are a quorum no more, because one of them got an older copy that nobody declared,
        or all lost their disks. So the earlier life found a quorum that knows of no other.
        """
        for other in [other for other in self.doubtful if self.order.get(life, 0) < self.order.get(other, 0)]:
            if self.begins.get(other, stop) < stop and not self.judge.registered(self.granted[other]):
                self._fork(life, other)

    def _fork(self, life: int, other: int) -> None:
        self.counts["forks"] += 1
        self.forked |= {life, other}
        for number in [number for number, owner in self.stable.items() if owner == other]:
            self._forget(other, number)

    def on_damaged(self, store: str, record: DiskRecord) -> None:
        """Handle damage to a record: what no quorum retains is no longer promised."""
        self.counts["damaged"] += 1
        for number, shown in self.disks[store].durable[record.stream].items():
            if shown is record:
                self._on_held_no_more(store, record.tag, number, silent=True)
                self._on_deprived(store, record.tag, number)

    def _on_deprived(self, store: str, life: int, number: int) -> None:
        for lives in (self.wiped, self.deprived.setdefault(store, {})):
            lives.setdefault(life, RangeSet()).add(number, number + 1)

    def _on_held_no_more(self, store: str, life: int, number: int, *, silent: bool) -> None:
        """Release a message that a store loses, if too few others hold it; a `silent` store has no vote about it."""
        holders = self.holders(life, number) if self.stable.get(number) == life else []
        others = [other for other in holders if other != store]
        # A store that knows of its loss has no vote, and gets its messages back from any other that has them.
        saved = silent and any(self.has(other, life, number) for other in others)
        # Nobody notices an older copy of a disk that had lost the message before. Then the store has a vote again.
        lost = self.deprived.get(store, {}).get(life, RangeSet())
        votes = store in holders or (not silent and number in lost)
        if votes and not saved and not self.judge.recoverable(others):
            self._forget(life, number)

    def on_turn(self, store: str) -> None:
        """Release what the store whose turn begins does not hold; it went with the stores before (P-505)."""
        for number, life in list(self.stable.items()):
            if not self.holds(store, life, number):
                self._forget(life, number)

    def _forget(self, life: int, number: int) -> None:
        del self.stable[number]
        self.excuse(life, number)


def _judge(setup: WorldSetup) -> Judge:
    members = list(zip(STORES, setup.groups, strict=False))
    groups = range(len(setup.rules.sizes))
    return Judge(
        setup.rules, tuple(frozenset(store for store, own in members if own == group) for group in groups), setup.turns
    )


def shows(contents: Contents, life: int, number: int) -> bool:
    for numbers in contents.values():
        record = numbers.get(number)
        if record is not None and record.tag == life and not record.bad:
            return True
    return False


def without(parts: list[tuple[int, int]], sets: Iterable[RangeSet]) -> list[tuple[int, int]]:
    """Return the parts of ranges that are in none of the sets."""
    for known in sets:
        parts = [gap for low, high in parts for gap in known.missing(low, high)]
    return parts
