"""Rules across endpoints: the traces of different endpoints must agree.

`evidence.rules.judges.TRACES_TOGETHER` lists them.

S2 and S3 do not judge numbers that a store had and began again without, because a disk was lost or damaged, or a memory
was. They are not promised where no quorum survives, and traces do not always show how many stores survived. Nor do they
judge a life that asked to be deregistered, or those before it: stores forget the source, one after the other, and its
numbers begin again. A killed life may have asked so, if a store does not show what became of it.

The rules compare no clocks of different hosts. A rule decides only where the traces of all witnesses are there and
complete; elsewhere it reports that it cannot be decided. Violations are *suspects* first, which point to a frame;
`trace_judge` finds the record.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import Address, Incarnation, Role
from stablecast.evidence.trace.cross_ground import Ground, Key, Told, Witness, all_complete
from stablecast.evidence.trace.facts import UNCOUNTED
from stablecast.evidence.trace.frames import LIMIT

LOSSES: Final = ("S2", "S3")
"""Rules that do not judge numbers that a store lost."""

_NONE: Final = RangeSet()
_ALL: Final = RangeSet([(0, LIMIT)])

WORDS: Final = {"wrote": "kept by a store"}
"""Kinds of facts that a sentence names in other words."""


@attrs.frozen(order=True)
class Suspect:
    """A fact that breaks a rule at `number`: its kind, its frame, and the record after which it was stated.

    `senders` are the addresses from which a control message may have come. `missing` are all numbers of the fact that
    nothing covers, as first and last; `number` is the lowest of them.
    """

    path: str
    record: int
    rule: str
    number: int
    kind: str
    life: Incarnation
    peer: str
    offset: int
    senders: tuple[Address, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class CrossFinding:
    """The verdict of all rules; `untold` has one sentence for each question that cannot be decided."""

    suspects: list[Suspect]
    untold: list[str]


@attrs.define
class _Visits:
    """The records at which a trace lost the connection to an address, and at which a client there named itself.

    A port that its program left is free for another one, such as a reader, which registers nowhere and may leave no
    trace.
    """

    parted: dict[tuple[str, Address], list[int]] = attrs.field(factory=lambda: defaultdict(list))
    named: dict[tuple[str, Address], list[int]] = attrs.field(factory=lambda: defaultdict(list))

    def stranger(self, told: Told) -> bool:
        """Return whether a message came over a connection on which nobody had given a name."""
        key, record = (told.trace, told.fact.peer), told.fact.record
        left = max((one for one in self.parted.get(key, ()) if one < record), default=-1)
        return left >= 0 and not any(left < one <= record for one in self.named.get(key, ()))


@attrs.define
class Across(Ground):
    suspects: list[Suspect] = attrs.field(factory=list)
    untold: set[str] = attrs.field(factory=set)

    def judge(self) -> CrossFinding:
        self.suspects += [*self.proxies(), *self.messages()]
        unseen = self._unseen()
        safe, may_be = self._safe({}), self._safe(unseen)
        self._covered("S1", "stable", safe, may_be)
        self._covered("S1", "turned", safe, may_be)
        stores, readers = self.stores(), self.readers()
        gave, confirmed, sent = self._numbers("said", "held"), self._numbers("confirmed"), self._numbers("sent")
        places = self.places()
        acked = dict[Key, RangeSet]()
        for life, store in self._keys("acked"):
            some = [(life, place) for place in places.get((life, store), (store,))]
            if store in stores:
                acked[life, store] = _union(gave.get(key, _NONE) for key in some)
                whole = all(place in stores for _, place in some)
                unseen[life, store] = _union(unseen.get(key, _NONE) for key in some) if whole else _ALL
        self._covered("P6", "acked", acked, unseen)
        self._covered("D1", "delivered", {(life, ""): sent[life, ""] for life in self.sources()})
        self._covered("H1", "wrote", {(life, ""): sent[life, ""] for life in self.sources()})
        self._covered("A3", "heard", {key: confirmed[key] for key in self._keys("heard") if key in readers})
        stable = self._stable()
        self._no_reuse(stable)
        self._nothing_stable_cut(stable)
        return CrossFinding(sorted(self.suspects), sorted(self.untold))

    def proxies(self) -> list[Suspect]:
        """Return the suspects of E4."""
        stores = {one.trace: one for one in self.witnesses if one.role is Role.STORE and one.complete}
        retired = {(told.trace, told.fact.first): told.fact.record for told in self.facts["retired"]}
        lasting: dict[str, list[Told]] = defaultdict(list)
        for told in self.facts["proxy"]:
            store, fact = stores.get(told.trace), told.fact
            gone = retired.get((told.trace, fact.first), -1) > fact.record
            if store is not None and not gone and store.ended - fact.time > store.patience:
                lasting[fact.peer].append(told)
        return [
            _suspect("E4", told, told.fact.first)
            for proxies in lasting.values()
            for told in sorted(proxies, key=lambda told: (told.path, told.fact.record))[1:]
        ]

    def messages(self) -> list[Suspect]:
        """Return the suspects of H1 among control messages and announcements: nobody sent what arrived."""
        return [*self._unspoken(), *self._unreached()]

    def _unspoken(self) -> Iterator[Suspect]:
        said: dict[Address, set[int]] = defaultdict(set)
        for told in self.facts["spoke"]:
            said[told.fact.peer].add(told.fact.first)
        asked: dict[tuple[str, str], set[Address]] = defaultdict(set)
        for told in self.facts["asked"]:
            asked[told.trace, f"#{told.fact.first}"].add(told.fact.peer)
        stores, clients, visits = self._only_stores(), self._known_clients(), self._visits()
        for told in self.facts["listened"]:
            sender, number = told.fact.peer, told.fact.first
            of_store = sender.startswith("#")
            senders = asked[told.trace, sender] if of_store else {sender}
            known = bool(senders) and senders <= (stores if of_store else clients)
            if not of_store and visits.stranger(told):
                continue
            if known and not any(said[one] & {number, UNCOUNTED} for one in senders):
                yield attrs.evolve(_suspect("H1", told, number), senders=tuple(sorted(senders)))

    def _visits(self) -> "_Visits":
        visits = _Visits()
        for told in self.facts["parted"]:
            visits.parted[told.trace, told.fact.peer].append(told.fact.record)
        for told in self.facts["context"]:
            visits.named[told.trace, told.fact.peer].append(told.fact.record)
        return visits

    def _only_stores(self) -> set[Address]:
        """Return the addresses at which one complete trace has all that a store did.

        A store that knew clients when its trace began had an earlier life, whose trace may be lost. So had one whose
        generation counts an earlier start, and one that does not know a source that it registered.
        """
        earlier = {store for _, store in self.unaccounted()}
        began: dict[Address, list[bool]] = defaultdict(list)
        for told in self.facts["began"]:
            began[told.fact.peer].append(told.fact.first == 0 and told.fact.last <= 1)
        return {address for address in self.stores() - earlier if began[address] == [True]}

    def _known_clients(self) -> set[Address]:
        """Return the addresses of clients of which every endpoint that a store heard of has a complete trace."""
        stores = {one.trace for one in self.witnesses if one.role is Role.STORE}
        spoken: dict[Address, set[tuple[int, int]]] = defaultdict(set)
        heard: dict[Address, set[tuple[int, int]]] = defaultdict(set)
        for told in self.facts["context"]:
            (heard if told.trace in stores else spoken)[told.fact.peer].add((told.fact.life, told.fact.first))
        complete = all_complete((one.address, one.complete) for one in self.witnesses if one.role is not Role.STORE)
        return {address for address in complete if heard[address] <= spoken[address]}

    def _unreached(self) -> Iterator[Suspect]:
        reach: dict[Incarnation, int] = {}
        for told in self.facts["reach"]:
            reach[told.fact.life] = max(reach.get(told.fact.life, -1), told.fact.last)
        sources = self.sources()
        for told in self.facts["announced"]:
            life = told.fact.life
            if life in sources and life in reach and told.fact.last > reach[life]:
                yield _suspect("H1", told, told.fact.last)

    def _covered(
        self, rule: str, kind: str, cover: dict[Key, RangeSet], unseen: Mapping[Key, RangeSet] = MappingProxyType({})
    ) -> None:
        """Check that the cover of their key has all numbers of these facts, or report that it is missing.

        What is missing is not decided if `unseen` has it.
        """
        for told in self.facts[kind]:
            fact = told.fact
            key = fact.life, fact.peer
            known = cover.get(key)
            missing = [] if known is None else known.missing(fact.first, fact.last + 1)
            denied = [gap for one in missing for gap in unseen.get(key, _NONE).missing(*one)]
            if known is None or (missing and not denied):
                self.untold.add(untold(rule, kind, fact.life, fact.peer))
            elif denied:
                number = denied[0][0]  # "Up to" a number begins at -1, and there is no such message.
                suspect = _suspect(rule, told, min(max(number, 0), fact.last))
                gaps = tuple((first, stop - 1) for first, stop in denied)
                self.suspects.append(attrs.evolve(suspect, missing=gaps))

    def _unseen(self) -> dict[Key, RangeSet]:
        """Return the numbers that a store may have had, and acknowledged, in a trace that is lost."""
        first = self.unseen() | dict.fromkeys(self.unaccounted() | self.unnamed(), 0)
        return {key: RangeSet([(number, LIMIT)]) for key, number in first.items()}

    def _safe(self, unseen: Mapping[Key, RangeSet]) -> dict[Key, RangeSet]:
        """Return the numbers of each life that enough stores hold, by complete traces, or may have held `unseen`."""
        held = self._numbers("held")
        needs, enough = self.needs()
        groups: dict[Incarnation, list[RangeSet]] = defaultdict(list)
        for need in needs:
            keys = [[(need.life, address) for address in sorted(store)] for store in need.stores]
            stores = [_union(ranges.get(key, _NONE) for key in some for ranges in (held, unseen)) for some in keys]
            groups[need.life].append(at_least(stores, need.needed))
        return {(life, ""): at_least(groups[life], count) for life, count in enough.items()}

    def _stable(self) -> dict[Key, RangeSet]:
        """Return the stable numbers without those that a store lost, for which S2 and S3 are undecidable."""
        stable, lost = self._numbers("stable"), self.lost()
        for told in self.facts["stable"]:
            life = told.fact.life
            if life in lost and told.fact.last >= lost[life]:
                stable[life, ""].remove(lost[life], LIMIT)
                self.untold |= {untold(rule, "stable", life, "") for rule in LOSSES}
        return stable

    def _no_reuse(self, stable: dict[Key, RangeSet]) -> None:
        """Check rule S2."""
        kin: dict[Incarnation, list[Incarnation]] = defaultdict(list)
        for life, other in sorted(self.kin()):
            kin[life].append(other)
        began: dict[Incarnation, tuple[int, str]] = {}
        for told in self.facts["stable"]:
            instant = told.fact.time, told.path
            began[told.fact.life] = min(began.get(told.fact.life, instant), instant)
        for told in self.facts["stable"]:
            fact = told.fact
            earlier = [life for life in kin[fact.life] if life in began and began[life] < began[fact.life]]
            hits = [hit[0][0] for life in earlier if (hit := stable[life, ""].within(fact.first, fact.last + 1))]
            if hits:
                self.suspects.append(_suspect("S2", told, min(hits)))

    def _nothing_stable_cut(self, stable: dict[Key, RangeSet]) -> None:
        """Check rule S3."""
        for told in self.facts["cut"]:
            hit = stable[told.fact.life, ""].within(told.fact.first, told.fact.last + 1)
            if hit:
                self.suspects.append(_suspect("S3", told, hit[0][0]))

    def _keys(self, kind: str) -> set[Key]:
        return {(told.fact.life, told.fact.peer) for told in self.facts[kind]}

    def _numbers(self, *kinds: str) -> dict[Key, RangeSet]:
        numbers: dict[Key, RangeSet] = defaultdict(RangeSet)
        for kind in kinds:
            for told in self.facts[kind]:
                numbers[told.fact.life, told.fact.peer].add(told.fact.first, told.fact.last + 1)
        return numbers


def by_kind(told: Iterable[Told]) -> dict[str, list[Told]]:
    facts: dict[str, list[Told]] = defaultdict(list)
    for one in told:
        facts[one.fact.kind].append(one)
    return facts


def judge_across(told: Iterable[Told], witnesses: Iterable[Witness]) -> CrossFinding:
    return Across(list(witnesses), by_kind(told)).judge()


def _suspect(rule: str, told: Told, number: int) -> Suspect:
    fact = told.fact
    return Suspect(told.path, fact.record, rule, number, fact.kind, fact.life, fact.peer, told.offset)


def untold(rule: str, kind: str, life: Incarnation, peer: str) -> str:
    """Return the sentence about a question that cannot be decided."""
    whose = f"{peer}, life {life:#x}" if peer else f"life {life:#x}"
    why = "the traces that could confirm them are missing or incomplete"
    if rule in LOSSES:
        why = "a store lost them, or their source deregistered or may have"
    return f"{rule} cannot be decided for numbers that are {WORDS.get(kind, kind)} ({whose}): {why}"


def at_least(sets: list[RangeSet], count: int) -> RangeSet:
    """Return the numbers that are in `count` of the sets or more."""
    steps: dict[int, int] = defaultdict(int)
    for one in sets:
        for start, stop in one:
            steps[start] += 1
            steps[stop] -= 1
    found, depth, points = RangeSet(), 0, sorted(steps)
    for point, after in pairwise(points):
        depth += steps[point]
        if depth >= count:
            found.add(point, after)
    return found


def _union(sets: Iterable[RangeSet]) -> RangeSet:
    union = RangeSet()
    for one in sets:
        union.update(one)
    return union
