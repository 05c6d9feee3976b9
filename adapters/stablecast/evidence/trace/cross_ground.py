"""Ground of the rules across endpoints: who bears witness, what became of lives, and which witnesses are missing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import attrs

from stablecast.core.protocol.messages import Address, Incarnation, Role
from stablecast.evidence.trace.facts import ALL_GROUPS, Fact
from stablecast.evidence.trace.frames import LIMIT

Key = tuple[Incarnation, str]


@attrs.frozen
class Told:
    """A fact with its origin: the part of the trace, and the `offset` of its frame in bytes."""

    trace: str
    path: str
    offset: int
    fact: Fact


@attrs.frozen
class Witness:
    """The value of a trace as evidence.

    Attributes:
        trace: The trace, by its first part.
        role: What its endpoint is.
        address: Where others find the endpoint.
        life: Of a source or of the source of a receiver.
        complete: Whether nothing is missing, from the first record to a proper end.
        ended: The clock at the last record, ns.
        patience: How long two proxies may overlap by this endpoint's clock, ns.
    """

    trace: str
    role: Role
    address: Address
    life: Incarnation
    complete: bool
    ended: int
    patience: int


@attrs.frozen
class Need:
    """The demand of S1 on one group: `needed` of the stores with complete traces, each with all its addresses."""

    life: Incarnation
    group: int
    needed: int
    stores: list[frozenset[Address]]


@attrs.define
class Ground:
    """The basis of the rules: the witnesses, and all facts by their kind."""

    witnesses: list[Witness]
    facts: dict[str, list[Told]]

    def stores(self) -> set[Address]:
        """Return the addresses at which every store was a complete witness."""
        return all_complete((one.address, one.complete) for one in self.witnesses if one.role is Role.STORE)

    def sources(self) -> set[Incarnation]:
        """Return the lives that state everything they sent."""
        return all_complete((one.life, one.complete) for one in self.witnesses if one.role is Role.SOURCE)

    def readers(self) -> set[Key]:
        """Return the complete receivers by life of the source and RegID at a store.

        A process that stores heard of may have left no trace. Another one of the same receiver does not know what that
        acknowledged.
        """
        readers = {one.trace: one.complete for one in self.witnesses if one.role is Role.RECEIVER}
        heard, spoken, own = self._contexts(readers)
        lost = {endpoint for _, endpoint in heard - spoken}
        return all_complete(
            ((one.fact.life, f"{one.fact.peer}/{one.fact.first}"), readers[one.trace] and not own[one.trace] & lost)
            for one in self.facts["holds"]
            if one.trace in readers
        )

    def _contexts(
        self, readers: Mapping[str, bool]
    ) -> tuple[set[tuple[int, int]], set[tuple[int, int]], dict[str, set[int]]]:
        """Return contexts with their endpoints: of which stores heard, of complete readers; and endpoints by trace."""
        stores = {one.trace for one in self.witnesses if one.role is Role.STORE}
        heard, spoken, own = set(), set(), defaultdict[str, set[int]](set)
        for told in self.facts["context"]:
            context, endpoint = told.fact.life, told.fact.first
            if told.trace in stores:
                heard.add((context, endpoint))
            elif told.trace in readers:
                own[told.trace].add(endpoint)
                if readers[told.trace]:
                    spoken.add((context, endpoint))
        return heard, spoken, own

    def needs(self) -> tuple[list[Need], dict[Incarnation, int]]:
        """Return the decidable demands of S1: of each group, and the number of groups for each life.

        A store with an incomplete trace may hold everything.
        """
        known = self.stores()
        asks: dict[Incarnation, dict[int, int]] = defaultdict(dict)
        for told in self.facts["asks"]:
            asks[told.fact.life][told.fact.first] = told.fact.last
        members: dict[tuple[Incarnation, int], dict[int, frozenset[Address]]] = defaultdict(dict)
        places = self.places()
        for told in self.facts["member"]:
            members[told.fact.life, told.fact.first][told.fact.last] = places[told.fact.life, told.fact.peer]
        needs, enough = [], {}
        for life, groups in asks.items():
            most = groups.pop(ALL_GROUPS, 0)
            some = []
            for group, holders in groups.items():
                stores = members[life, group].values()
                believed = [addresses for addresses in stores if addresses <= known]
                some.append(Need(life, group, holders - (len(stores) - len(believed)), believed))
            asked = [need for need in some if need.needed > 0]
            if most > len(some) - len(asked):
                needs += asked
                enough[life] = most - (len(some) - len(asked))
        return needs, enough

    def places(self) -> dict[Key, frozenset[Address]]:
        """Return for each life and the addresses of its stores all addresses of that store.

        A store that returned elsewhere acknowledges before the life knows its address. Its trace begins with the RegID
        that the life has at the old one.
        """
        members: dict[tuple[Incarnation, int, int], set[Address]] = defaultdict(set)
        named: dict[Incarnation, set[Address]] = defaultdict(set)
        for told in self.facts["member"]:
            members[told.fact.life, told.fact.first, told.fact.last].add(told.fact.peer)
            named[told.fact.life].add(told.fact.peer)
        returned: dict[tuple[Incarnation, int], set[Address]] = defaultdict(set)
        for told in self.facts["kept"]:
            returned[told.fact.life, told.fact.first].add(told.fact.peer)
        moved: dict[Key, set[Address]] = defaultdict(set)
        for told in self._registrations():
            life, here = told.fact.life, told.fact.peer
            moved[life, here] |= returned.get((life, told.fact.first), set()) - named[life]
        places: dict[Key, frozenset[Address]] = {}
        for (life, *_), addresses in members.items():
            everywhere = frozenset(addresses).union(*(moved.get((life, one), ()) for one in addresses))
            places |= {(life, one): everywhere | places.get((life, one), frozenset()) for one in addresses}
        return places

    def kin(self) -> set[tuple[Incarnation, Incarnation]]:
        """Return pairs of lives of one source: they had the same RegID at a store that never forgot it."""
        forgotten = {(told.fact.peer, told.fact.first) for told in self.facts["forgot"]}
        sources = {one.trace for one in self.witnesses if one.role is Role.SOURCE}
        lives: dict[tuple[str, int], set[Incarnation]] = defaultdict(set)
        for told in self.facts["holds"]:
            if told.trace in sources and (told.fact.peer, told.fact.first) not in forgotten:
                lives[told.fact.peer, told.fact.first].add(told.fact.life)
        return {(one, other) for some in lives.values() for one in some for other in some if one != other}

    def lost(self) -> dict[Incarnation, int]:
        """Return the first number of each life that a store lost: it had it, did not cut it, and began without it.

        A life that asked to be deregistered lost everything, and so did those before it.

        Traces of one store that know of a life follow each other by the store's clock. One that began without clients
        knows of each life that an earlier one had: the disk is new, unless the store forgot the source before. Lost
        numbers below others that remain do not affect S2 and S3: a life begins, and a tail is cut, after the last one.
        """
        had, kept, emptied, forgotten = self._had(), self._kept(), self._emptied(), self._forgotten_at()
        traces: dict[Key, list[str]] = defaultdict(list)
        known: dict[Address, set[Incarnation]] = defaultdict(set)
        for one in sorted(self.witnesses, key=lambda one: (one.ended, one.trace)):
            if one.role is Role.STORE:
                lives = had[one.trace].keys() | kept[one.trace].keys()
                if one.trace in emptied:
                    for life in known[one.address] - forgotten[one.address]:
                        kept[one.trace].setdefault(life, -1)
                        lives |= {life}
                known[one.address] |= lives
                for life in lives:
                    traces[life, one.address].append(one.trace)
        lost: dict[Incarnation, int] = {}
        for (life, _), some in traces.items():
            for before, after in pairwise(some):
                last = had[before].get(life, -1)
                first = kept[after].get(life, last) + 1
                if first <= last:
                    lost[life] = min(lost.get(life, first), first)
        return lost | dict.fromkeys(self._withdrawn(), 0)

    def _emptied(self) -> set[str]:
        """Return the traces that began without any client."""
        return {told.trace for told in self.facts["began"] if not told.fact.first}

    def _forgotten_at(self) -> dict[Address, set[Incarnation]]:
        """Return by store the lives that had a RegID which it forgot."""
        gone = {(told.fact.peer, told.fact.first) for told in self.facts["forgot"]}
        forgotten: dict[Address, set[Incarnation]] = defaultdict(set)
        for told in self.facts["holds"]:
            if (told.fact.peer, told.fact.first) in gone:
                forgotten[told.fact.peer].add(told.fact.life)
        return forgotten

    def _withdrawn(self) -> set[Incarnation]:
        """Return the lives that asked to be deregistered, or may have, and earlier ones that had a RegID of theirs.

        The request of a killed source may be in the lost ends of its trace and of a store's.
        """
        whole = self.sources()
        withdrawn = {told.fact.life for told in self.facts["withdrew"]}
        withdrawn |= {life for life, _ in self.unaccounted() | self.unnamed() if life not in whole}
        return withdrawn | {life for life, later in self._successors().items() if later & withdrawn}

    def _successors(self) -> dict[Incarnation, set[Incarnation]]:
        """Return for each life of a source the later ones that had one of its RegIDs."""
        began: dict[Incarnation, tuple[int, str]] = {}
        shared: dict[tuple[str, int], set[Incarnation]] = defaultdict(set)
        for told in self._registrations():
            life, instant = told.fact.life, (told.fact.time, told.path)
            began[life] = min(began.get(life, instant), instant)
            shared[told.fact.peer, told.fact.first].add(life)
        later: dict[Incarnation, set[Incarnation]] = defaultdict(set)
        for lives in shared.values():
            for life in lives:
                later[life] |= {other for other in lives if began[life] < began[other]}
        return later

    def _registrations(self) -> list[Told]:
        """Return what sources tell of their RegIDs."""
        sources = {one.trace for one in self.witnesses if one.role is Role.SOURCE}
        return [told for told in self.facts["holds"] if told.trace in sources]

    def unaccounted(self) -> set[Key]:
        """Return lives with the stores that registered them and do not show what became of their RegIDs.

        A store shows it in a trace that knows the RegID: it forgot it there, or knew a later life of the source, or the
        trace is complete and the store's last one.
        """
        knew: dict[tuple[Address, int], set[str]] = defaultdict(set)
        lives: dict[str, set[Incarnation]] = defaultdict(set)
        for told in (*self.facts["kept"], *self.facts["granted"]):
            knew[told.fact.peer, told.fact.first].add(told.trace)
            lives[told.trace].add(told.fact.life)
        forgotten = {(told.fact.peer, told.fact.first) for told in self.facts["forgot"]}
        stores = sorted(
            (one for one in self.witnesses if one.role is Role.STORE), key=lambda one: (one.ended, one.trace)
        )
        last = {one.address: one for one in stores}
        complete = {one.trace for one in last.values() if one.complete}
        later, places = self._successors(), self.places()

        def shown(life: Incarnation, store: Address, reg_id: int) -> bool:
            some = [(place, reg_id) for place in places.get((life, store), (store,))]
            traces = (trace for one in some for trace in knew[one])
            known = any(trace in complete or lives[trace] & later[life] for trace in traces)
            return known or any(one in forgotten for one in some)

        held = {(told.fact.life, told.fact.peer, told.fact.first) for told in self._registrations()}
        return {(life, store) for life, store, reg_id in held if not shown(life, store, reg_id)}

    def unnamed(self) -> set[Key]:
        """Return lives with the stores that registered them and name them in no trace, after one that is lost.

        A trace that begins with clients has one before it. A store that knows a source names all its lives; so it has
        forgotten the source where nobody sees it, and its numbers may have begun again.
        """
        began: dict[str, int] = {told.trace: told.fact.first for told in self.facts["began"]}
        first: dict[Address, str] = {}
        for one in sorted(self.witnesses, key=lambda one: (one.ended, one.trace)):
            if one.role is Role.STORE:
                first.setdefault(one.address, one.trace)
        after = {address for address, trace in first.items() if began.get(trace)}
        named = {(told.fact.life, told.fact.peer) for told in (*self.facts["kept"], *self.facts["granted"])}
        places = self.places()
        held = {(told.fact.life, told.fact.peer) for told in self._registrations()}
        return {
            (life, store)
            for life, store in held
            if store in after and named.isdisjoint((life, place) for place in places.get((life, store), (store,)))
        }

    def _had(self) -> dict[str, dict[Incarnation, int]]:
        """Return the last number of each life that a store had by this trace and did not cut."""
        had: dict[str, dict[Incarnation, int]] = defaultdict(dict)
        for told in self.facts["held"]:
            had[told.trace][told.fact.life] = max(had[told.trace].get(told.fact.life, -1), told.fact.last)
        for told in self.facts["cut"]:
            had[told.trace][told.fact.life] = min(had[told.trace].get(told.fact.life, -1), told.fact.first - 1)
        return had

    def _kept(self) -> dict[str, dict[Incarnation, int]]:
        """Return the last number of each known life that a store had when this trace began."""
        kept: dict[str, dict[Incarnation, int]] = defaultdict(dict)
        for told in sorted(self.facts["kept"], key=lambda told: told.fact.record, reverse=True):
            kept[told.trace][told.fact.life] = told.fact.last
        return kept

    def unseen(self) -> dict[Key, int]:
        """Return the first number of each life that a store may have acknowledged and cut in a trace that is lost.

        A store knew that a life had ended when a trace began, and no earlier trace of it names a later life.
        """
        reigns: dict[str, dict[int, dict[Incarnation, int]]] = defaultdict(lambda: defaultdict(dict))
        for told in self.facts["reign"]:
            reigns[told.trace][told.fact.first][told.fact.life] = told.fact.last if told.fact.last >= 0 else LIMIT
        named: dict[str, set[Incarnation]] = defaultdict(set)
        for kind in ("listened", "held", "said"):
            for told in self.facts[kind]:
                named[told.trace].add(told.fact.life)
        before: dict[Address, set[Incarnation]] = defaultdict(set)
        unseen: dict[Key, int] = {}
        for one in sorted(self.witnesses, key=lambda one: (one.ended, one.trace)):
            for lives in reigns[one.trace].values():
                for life, end in lives.items():
                    later = {other for other, until in lives.items() if until > end}
                    if later and not later & before[one.address]:
                        unseen[life, one.address] = min(end, unseen.get((life, one.address), end))
            before[one.address] |= named[one.trace]
        return unseen


def all_complete(those: Iterable[tuple[Any, bool]]) -> set[Any]:
    """Return the keys that are complete each time they occur."""
    complete: dict[Any, bool] = {}
    for key, whole in those:
        complete[key] = complete.get(key, True) and whole
    return {key for key, whole in complete.items() if whole}
