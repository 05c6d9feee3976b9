"""Read a state of the world: its endpoints, what is true of them, and the key by which states are told apart."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Self

import attrs

from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.lab.model.store_process import store_address
from stablecast.lab.prove.bounds import ProofFault
from stablecast.lab.prove.endpoints import Parts
from stablecast.lab.prove.instance import Instance, ProofBounds
from stablecast.lab.prove.receivers import ReceiverStates, ReceiverSummary, receiver_config
from stablecast.lab.prove.sources import SourceStates, SourceSummary, reduced
from stablecast.lab.prove.state import NOBODY, Draft, Run, State
from stablecast.lab.prove.stores import StoreStates, StoreSummary
from stablecast.lab.quorum_judge import Judge


@attrs.define
class WorldView:
    """Hold the instance and the cached states of its endpoints. `symmetric`: stores of a group are interchangeable.

    `quorums` says what receivers may give up, and `judge` independently of the core what is on a quorum.
    `fine`: the grain of the steps, which `world` describes. `opening` comes before the first state.
    """

    instance: Instance
    fine: bool
    sources: SourceStates
    stores: StoreStates
    receivers: ReceiverStates
    symmetric: bool
    groups: list[int]
    indices: list[int]
    quorums: Quorums
    judge: Judge
    opening: Run = ()
    allowed: dict[tuple[int, ...], bool] = attrs.field(init=False, factory=dict)

    @classmethod
    def create(cls, instance: Instance, *, fine: bool = False, delay_ns: int = 0, opening: Run = ()) -> Self:
        """Return the world of an instance, whose stores write messages `delay_ns` after they came."""
        config = reduced(instance.source, instance.bounds.messages)
        sources = SourceStates.create(config, fine=fine)
        status = sources.states[sources.new(0)].endpoint.status
        groups = [store.group for store in config.stores]
        rotating = status.turn is not None
        stores = StoreStates.create(instance.store_repairs, refill=instance.refills, fine=fine, delay_ns=delay_ns)
        receivers = ReceiverStates(receiver_config(), places=len(groups), fine=fine)
        quorums = status.quorums if rotating else Quorums.of(GroupRules(config.groups.sizes), groups)
        indices = sorted(status.registrations)
        members = (
            frozenset(store_address(index) for index in indices if groups[index] == group)
            for group in range(len(config.groups.sizes))
        )
        judge = Judge(config.groups, tuple(members), rotating)
        return cls(instance, fine, sources, stores, receivers, not rotating, groups, indices, quorums, judge, opening)

    @property
    def bounds(self) -> ProofBounds:
        return self.instance.bounds

    def source(self, state: State | Draft) -> SourceSummary | None:
        return None if state.source < 0 else self.sources.views[state.source]

    def store(self, state: State | Draft, index: int) -> StoreSummary:
        return self.stores.views[state.stores[index]]

    def receiver(self, state: State | Draft) -> ReceiverSummary:
        return self.receivers.views[state.receiver]

    # The key of a state.

    def key(self, state: State) -> tuple[object, ...]:
        """Return a key of a state. Equal stores of a group are interchangeable."""
        rest = (state.lives, state.safe, state.wipes, state.takeovers, state.doubled)
        if not self.symmetric:
            return (state.source, state.aside, state.stores, rest, state.receiver, state.late, state.emptied)
        places = sorted(
            (self.groups[index], *place) for index, place in zip(self.indices, self._places(state), strict=True)
        )
        commons = (self._parts(state.source)[0], self._parts(state.aside)[0], self.receivers.parts[state.receiver][0])
        return (commons, tuple(places), rest)

    def _places(self, state: State) -> Iterator[tuple[object, ...]]:
        """Yield what distinguishes each store. A session asks the stores in their order."""
        each, beside = self._parts(state.source)[1], self._parts(state.aside)[1]
        if not self.fine:
            yield from ((state.stores[index], each[index], beside[index]) for index in self.indices)
            return
        read, asked = self.receivers.parts[state.receiver][1], self.receiver(state).life
        for index in self.indices:
            late = tuple((ack.incarnation, ack.first, ack.last) for ack in state.late[index])
            ours = (read[index], index if asked else 0, late, index == state.emptied)
            yield (state.stores[index], each[index], beside[index], *ours)

    def _parts(self, source: int) -> Parts:
        """Return what a process knows in general, and of each store."""
        return (NOBODY, (NOBODY,) * len(self.sources.config.stores)) if source < 0 else self.sources.parts[source]

    def classes(self, state: State, indices: Iterable[int]) -> list[list[int]]:
        """Return these stores, the equal ones together."""
        places = dict(zip(self.indices, self._places(state), strict=True))
        classes: dict[tuple[object, ...], list[int]] = {}
        for index in indices:
            place = self.groups[index] if self.symmetric else index
            classes.setdefault((place, *places[index]), []).append(index)
        return list(classes.values())

    def different(self, state: State) -> list[int]:
        """Return the first one of equal stores."""
        return [alike[0] for alike in self.classes(state, self.indices)]

    def choices(self, state: State, indices: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """Yield every choice among these stores, the largest first; of equal stores only their number matters."""
        classes = self.classes(state, indices)
        for counts in product(*(range(len(alike), -1, -1) for alike in classes)):
            chosen = (alike[:count] for alike, count in zip(classes, counts, strict=True))
            yield tuple(sorted(index for alike in chosen for index in alike))

    # What is true of a state.

    def asks(self, state: State, index: int) -> bool:
        """Return whether a store waits for an active source to say what it retains."""
        store, source = self.store(state, index), self.source(state)
        return store.question is not None and source is not None and source.active and store.life == source.life

    def may_wipe(self, state: State, index: int) -> bool:
        """Return whether the disk of a store that is away may be lost now.

        With `ProofFault.WIPE` an operator waits until the other stores lack nothing, as `stablecast store roll` does.
        In a fine world only the store that lost its disk before has to be whole again, whoever else is away or lacks
        messages. That is what the guarantees permit: between two refills a minority of the stores loses its disks.
        """
        store, before = self.store(state, index), state.emptied
        if store.up or not store.used or state.wipes >= self.bounds.wipes:
            return False
        if self.fine:
            return before in (NOBODY, index) or self.whole(state, before)
        careful = ProofFault.WIPE in (self.bounds.faults or ())
        return not careful or all(self.whole(state, other) for other in self.indices if other != index)

    def whole(self, state: State, index: int) -> bool:
        """Return whether a store reports that it lacks nothing, to an operator who sees that its source may send."""
        store, source = self.store(state, index), self.source(state)
        if source is None or not source.active or index not in source.counting or store.life != source.life:
            return False
        return not (store.dirty or store.lacking) and store.question is None

    def offered(self, state: State, index: int) -> bool:
        """Return whether another store of the same life has what a store lacks."""
        store, source = self.store(state, index), self.source(state)
        if not store.lacking or source is None or source.info is None or store.life != source.life:
            return False
        return any(not store.lacking.isdisjoint(self.store(state, other).content) for other in self.peers(state, index))

    def peers(self, state: State | Draft, index: int) -> list[int]:
        """Return the other stores at which the same life is current."""
        life = self.store(state, index).life
        return [other for other in self.indices if other != index and self.store(state, other).life == life]

    def uninformed(self, state: State, index: int) -> bool:
        """Return whether a registered store does not know where this life resumes, or in a fine world what it sent."""
        store, source = self.store(state, index), self.source(state)
        if source is None or source.info is None or index not in source.counting or not store.up:
            return False
        return store.life != source.life or (self.fine and store.newest < source.next - 1)

    def dirty(self, state: State, index: int) -> bool:
        """Return whether a store has unsynced writes."""
        return self.store(state, index).dirty

    def may_give_up(self, asked: tuple[int, ...]) -> bool:
        """Return whether a receiver that is registered with these stores gives up what none of them has."""
        known = self.allowed.get(asked)
        if known is None:
            mask = sum(1 << index for index in asked)
            known = bool(asked) and self.quorums.may_give_up(mask, self.instance.receiver_repairs)
            self.allowed[asked] = known
        return known
