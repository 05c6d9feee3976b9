"""Combine one source, its stores and all faults: the possible actions of a state, and their results.

Steps are coarse. What nothing can prevent happens at once: a store that is up is registered, learns where the source
resumes (and syncs that), and receives what is sent. What may fail or wait is a step of its own. A store syncs and
acknowledges. It is partitioned and keeps its writes, or crashes and loses unsynced ones. It returns, and recovers its
holes from the source, and with `ProofFault.WIPE` the rest from other stores. The source crashes, and each store may
lose what it had not synced then. It returns and reaches any of the stores. While no source runs, only the disks of
stores matter.

**Two live processes with one RegID.** A process is partitioned from every store, and another one replaces it. Or a
context makes a second source of its topic, and both continue. One of the two has the stores at a time. The other is
*aside*, and may return through any of them. From the first takeover on the SRI of a life reaches each store in a step
of its own, so a life may end before every store knows it.

**Loss.** A message that was reported stable (1) is at no store any more, (2) has a number that the source uses again,
or (3) is at none of the stores that a receiver can ask when it may give up.
"""

from collections.abc import Iterable, Iterator
from itertools import product

import attrs

from stablecast.core.protocol.events import Stable
from stablecast.core.protocol.history import owner
from stablecast.core.protocol.inputs import Arrived, Data, Gone, Reset, Sent, SourceInput, Start, Tick
from stablecast.core.protocol.messages import LateJoinInfo, Message, Refused, Registered, RetransmitRequest, StableAck
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.lab.model.store_process import data, store_address
from stablecast.lab.prove.bounds import MAX_TAKEOVERS, ProofFault
from stablecast.lab.prove.instance import Instance, ProofBounds
from stablecast.lab.prove.sources import SourceStates, SourceSummary, reduced
from stablecast.lab.prove.state import NOBODY, REGISTERING, Action, Deed, Draft, Loss, LossKind, State
from stablecast.lab.prove.stores import Step, StoreFate, StoreStates, StoreSummary


@attrs.define
class ProofWorld:
    """Hold the instance and the cached states of its endpoints. `symmetric`: stores of a group are interchangeable."""

    instance: Instance
    sources: SourceStates
    stores: StoreStates
    symmetric: bool
    groups: list[int]
    indices: list[int]
    quorums: Quorums
    allowed: dict[tuple[int, ...], bool] = attrs.field(factory=dict)

    @classmethod
    def create(cls, instance: Instance) -> "ProofWorld":
        """Return the world of an instance."""
        config = reduced(instance.source, instance.bounds.messages)
        sources = SourceStates(config)
        life = sources.states[sources.new(0)]
        status = life.endpoint.status
        groups = [store.group for store in config.stores]
        rotating = status.turn is not None
        told = status.quorums if rotating else Quorums.of(GroupRules(config.groups.sizes), groups)
        stores = StoreStates.create(instance.store_repairs, refill=instance.refills)
        return cls(instance, sources, stores, not rotating, groups, sorted(status.registrations), told)

    @property
    def bounds(self) -> ProofBounds:
        """The bounds of the search."""
        return self.instance.bounds

    def start(self) -> State:
        """Return the initial state: no source ever ran, and all stores are empty."""
        return State(NOBODY, 0, (self.stores.new(),) * len(self.sources.config.stores))

    def key(self, state: State) -> tuple[object, ...]:
        """Return a key of a state. Equal stores of a group are interchangeable."""
        rest = (state.lives, state.safe, state.wipes, state.takeovers, state.doubled)
        if not self.symmetric:
            return (state.source, state.aside, state.stores, rest)
        common, each = self._parts(state.source)
        other, beside = self._parts(state.aside)
        places = sorted(
            (self.groups[index], state.stores[index], each[index], beside[index], *self.place(state, index))
            for index in self.indices
        )
        return (common, other, tuple(places), rest)

    def place(self, state: State, index: int) -> tuple[object, ...]:
        """Return what else distinguishes a store."""
        return ()

    def _parts(self, source: int) -> tuple[int, tuple[int, ...]]:
        """Return what a process knows in general, and of each store."""
        return (NOBODY, (NOBODY,) * len(self.sources.config.stores)) if source < 0 else self.sources.parts[source]

    def source(self, state: State | Draft) -> SourceSummary | None:
        """Return the running source, if there is one."""
        return None if state.source < 0 else self.sources.views[state.source]

    def store(self, state: State | Draft, index: int) -> StoreSummary:
        """Return the store with an index."""
        return self.stores.views[state.stores[index]]

    # Possible actions.

    def actions(self, state: State) -> Iterator[Action]:
        """Yield the possible actions; of equal stores only on the first one."""
        source = self.source(state)
        if source is None:
            if state.lives <= self.bounds.restarts:
                yield from ((Deed.BEGIN, there) for there in self._choices(state, self.indices) if there)
            yield from ((Deed.WIPE, (index,)) for index in self._different(state) if self.may_wipe(state, index))
            yield from self._takeovers(state)
            return
        if self.may_stop(state):
            dirty = [index for index in self.indices if self.store(state, index).dirty]
            yield from ((Deed.STOP, lost) for lost in self._choices(state, dirty))
        if source.may_send and source.next < self.bounds.messages:
            yield (Deed.SEND, ())
        for index in self._different(state):
            yield from ((deed, (index,)) for deed in self._deeds(state, index))
        yield from self._takeovers(state)

    def may_stop(self, state: State) -> bool:
        """Return whether the source may crash: another process follows."""
        return state.lives <= self.bounds.restarts or state.aside != NOBODY

    def _takeovers(self, state: State) -> Iterator[Action]:
        """Yield what two live processes may do to each other. A process that has not begun is no rival."""
        source, faults = self.source(state), self.bounds.faults or ()
        may = state.takeovers < MAX_TAKEOVERS and (source is None or source.begun)
        if may and source is not None and state.aside == NOBODY and state.lives <= self.bounds.restarts:
            if ProofFault.RIVAL in faults:
                yield from ((Deed.TAKE_OVER, there) for there in self._choices(state, self.indices) if there)
            if ProofFault.TWIN in faults and source.active:
                yield (Deed.DOUBLE, ())
        if state.aside != NOBODY and (may or source is None):
            if state.doubled:
                yield (Deed.ALTERNATE, ())
            else:
                yield from ((Deed.COME_BACK, there) for there in self._choices(state, self.indices) if there)

    def _classes(self, state: State, indices: Iterable[int]) -> list[list[int]]:
        each, beside = self._parts(state.source)[1], self._parts(state.aside)[1]
        classes: dict[tuple[object, ...], list[int]] = {}
        for index in indices:
            place = self.groups[index] if self.symmetric else index
            key = (place, state.stores[index], each[index], beside[index], *self.place(state, index))
            classes.setdefault(key, []).append(index)
        return list(classes.values())

    def _different(self, state: State) -> list[int]:
        return [alike[0] for alike in self._classes(state, self.indices)]

    def _choices(self, state: State, indices: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """Yield every choice among these stores, the largest first; of equal stores only their number matters."""
        classes = self._classes(state, indices)
        for counts in product(*(range(len(alike), -1, -1) for alike in classes)):
            chosen = (alike[:count] for alike, count in zip(classes, counts, strict=True))
            yield tuple(sorted(index for alike in chosen for index in alike))

    def _deeds(self, state: State, index: int) -> Iterator[Deed]:
        store = self.store(state, index)
        if not store.up:
            yield Deed.RETURN
            if self.may_wipe(state, index):
                yield Deed.WIPE
            return
        if store.dirty:
            yield Deed.SYNC
            yield Deed.CRASH
        if self.asks(state, index):
            yield Deed.FILL
        if self.offered(state, index):
            yield Deed.REFILL
        if self.uninformed(state, index):
            yield Deed.INFORM
        yield Deed.LEAVE

    def asks(self, state: State, index: int) -> bool:
        """Return whether a store waits for an active source to say what it retains."""
        store, source = self.store(state, index), self.source(state)
        return store.question is not None and source is not None and source.active and store.life == source.life

    def may_wipe(self, state: State, index: int) -> bool:
        """Return whether the disk of a store that is away may be lost now.

        With `ProofFault.WIPE` an operator waits until the other stores lack nothing, as `stablecast store roll` does.
        """
        store = self.store(state, index)
        if store.up or not store.used or state.wipes >= self.bounds.wipes:
            return False
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
        return any(
            not store.lacking.isdisjoint(self.store(state, other).content) for other in self._peers(state, index)
        )

    def _peers(self, state: State | Draft, index: int) -> list[int]:
        life = self.store(state, index).life
        return [other for other in self.indices if other != index and self.store(state, other).life == life]

    def uninformed(self, state: State, index: int) -> bool:
        """Return whether a registered store does not know where this life resumes."""
        store, source = self.store(state, index), self.source(state)
        if source is None or source.info is None or index not in source.counting:
            return False
        return store.up and store.life != source.life

    def dirty(self, state: State, index: int) -> bool:
        """Return whether a store has unsynced writes."""
        return self.store(state, index).dirty

    def do(self, state: State, action: Action) -> Draft:
        """Return the draft of the state after an action."""
        deed, indices = action
        draft = Draft.of(state)
        match deed:
            case Deed.BEGIN:
                self._begin(draft, indices)
            case Deed.STOP:
                draft.source = NOBODY
                if draft.doubled:  # One process has both sources.
                    draft.aside, draft.doubled = NOBODY, False
                for index in self.indices:
                    self._take(draft, index, StoreFate.CRASH if index in indices else StoreFate.LEAVE)
            case Deed.TAKE_OVER:
                self._cut_off(draft)
                self._begin(draft, indices)
            case Deed.COME_BACK:
                self._come_back(draft, indices)
            case Deed.DOUBLE:
                draft.aside, draft.doubled, draft.takeovers = draft.source, True, draft.takeovers + 1
                self._begin(draft, (), self.sources.views[draft.source].context)
            case Deed.ALTERNATE:
                draft.source, draft.aside, draft.takeovers = draft.aside, draft.source, draft.takeovers + 1
                self._renew(draft)
            case Deed.INFORM:
                self._tell(draft, *indices)
            case Deed.SEND:
                self._send(draft, indices)
            case Deed.FILL:
                self._fill(draft, *indices)
            case Deed.REFILL:
                self._refill(draft, *indices)
            case _:
                (index,) = indices
                self._take(draft, index, StoreFate[deed.name])
                draft.wipes += deed is Deed.WIPE
                if deed in (Deed.LEAVE, Deed.CRASH):
                    self._miss(draft, index)
        if deed in REGISTERING:
            self._register(draft)
        self._ask(draft)
        self._bury(draft)
        return draft

    # Consequences of an action.

    def _begin(self, draft: Draft, there: tuple[int, ...], context: int = 0) -> None:
        for index in there:
            self._take(draft, index, StoreFate.RETURN)
        draft.lives += 1
        draft.source = self.sources.new(draft.lives, context)
        self._hear(draft, Start())

    def _cut_off(self, draft: Draft) -> None:
        """Partition the source until its leases end; it is aside then."""
        for index in self.indices:
            self._take(draft, index, StoreFate.LEAVE)
            self._miss(draft, index)
        draft.source, draft.aside, draft.takeovers = NOBODY, draft.source, draft.takeovers + 1

    def _come_back(self, draft: Draft, there: tuple[int, ...]) -> None:
        """Let the process that is aside reach stores."""
        back, draft.aside = draft.aside, NOBODY
        if draft.source != NOBODY:
            self._cut_off(draft)
        draft.source = back
        for index in there:
            self._take(draft, index, StoreFate.RETURN)

    def _renew(self, draft: Draft) -> None:
        """Let the other source of a context find out which stores are up, and that its connections broke."""
        for index in self.indices:
            if not self.store(draft, index).up:
                self._miss(draft, index)
        for index in self.indices:
            if self.store(draft, index).up:
                self._hear(draft, Reset(store_address(index)))

    def _bury(self, draft: Draft) -> None:
        """End a replaced life. Of two sources of one context the other one continues."""
        source = self.source(draft)
        if source is None or not source.over:
            return
        if draft.doubled:
            draft.source, draft.aside, draft.doubled = draft.aside, NOBODY, False
            self._renew(draft)
            self._register(draft)
            self._ask(draft)
            self._bury(draft)
            return
        draft.source = NOBODY
        for index in self.indices:
            self._take(draft, index, StoreFate.LEAVE)

    def _hear(self, draft: Draft, event: SourceInput) -> list[Message | Data]:
        """Pass an input to the source; return its answers for the store that asked."""
        life = self.sources.views[draft.source].life
        heard = self.sources.hear(draft.source, event)
        draft.source = heard.state
        answers: list[Message | Data] = []
        for answer in heard.answers:
            if isinstance(answer, LateJoinInfo):
                answers.append(answer)
            else:
                answers += [data(life, number, True) for number in range(answer.first, answer.last + 1)]
        for event_told in heard.told:
            draft.told.append((life, event_told))
            if isinstance(event_told, Stable):
                numbers = range(event_told.first, event_told.last + 1)
                draft.safe |= {(life, number) for number in numbers}
        return answers

    def _take(self, draft: Draft, index: int, step: Step) -> None:
        """Perform a step of a store; the source gets its messages and answers."""
        self._put(draft, index, *self.stores.take(draft.stores[index], step))

    def _put(self, draft: Draft, index: int, store: int, sent: Iterable[Message | Data]) -> None:
        """Replace a store; the source gets its messages and answers."""
        draft.put(index, store)
        for message in sent:
            match message:
                case StableAck():
                    self._hear(draft, Arrived(attrs.evolve(message, store_index=index)))
                case Registered() | Refused():
                    generation = self.sources.generation(draft.source, index)
                    self._hear(draft, Arrived(attrs.evolve(message, store_index=index, generation=generation)))
                case RetransmitRequest():
                    for answer in self._hear(draft, Arrived(message)):
                        assert isinstance(answer, Data | LateJoinInfo)
                        self._take(draft, index, answer)

    def _send(self, draft: Draft, missing: tuple[int, ...] = ()) -> None:
        """Send a message to every registered store; in finer worlds some lose it."""
        source = self.source(draft)
        assert source is not None
        self._hear(draft, Sent(source.next, 1, 0))
        for index in source.counting:
            if index not in missing:
                self._take(draft, index, data(source.life, source.next, False))

    def _fill(self, draft: Draft, index: int) -> None:
        """Let a store ask the source what it retains, and request it."""
        question = self.store(draft, index).question
        assert question is not None
        for answer in self._hear(draft, Arrived(attrs.evolve(question, reply_to=store_address(index)))):
            assert isinstance(answer, LateJoinInfo)
            self._take(draft, index, answer)

    def _refill(self, draft: Draft, index: int) -> None:
        """Let a store ask the others until it has nothing more to ask."""
        source = self.source(draft)
        assert source is not None
        assert source.info is not None
        peers = tuple(draft.stores[other] for other in self._peers(draft, index))
        self._put(draft, index, *self.stores.refill(draft.stores[index], source.info, peers))

    def _miss(self, draft: Draft, index: int) -> None:
        """Let the source find that a store is down, and wait an interval."""
        self._hear(draft, Gone(store_address(index)))
        self._hear(draft, Tick())

    def _register(self, draft: Draft) -> None:
        """Register the source with the stores that are up, and wait for the others as long as the rules say."""
        for _ in range(len(self.indices) + 1):
            self._ask(draft)
            source = self.source(draft)
            if source is None or source.active or source.over:
                break
            self._hear(draft, Tick())
        self._ask(draft)
        self._inform(draft)

    def _ask(self, draft: Draft) -> None:
        source = self.source(draft)
        for index, request in () if source is None else source.waits:
            if self.store(draft, index).up:
                self._take(draft, index, request)

    def _inform(self, draft: Draft) -> None:
        source = self.source(draft)
        if source is None or source.info is None:
            return
        for index in source.counting:
            store = self.store(draft, index)
            known = store.life == source.life
            if store.newest < source.next - 1 if known else not draft.takeovers:
                self._tell(draft, index)

    def _tell(self, draft: Draft, index: int) -> None:
        """Deliver an SRI to a store, which syncs it."""
        source = self.source(draft)
        assert source is not None
        assert source.info is not None
        self._take(draft, index, source.info)
        self._take(draft, index, StoreFate.SYNC)

    # Properties.

    def loss(self, state: State) -> Loss | None:
        """Return a message that was reported stable and is lost, if there is one."""
        if not state.safe:
            return None
        source = self.source(state)
        active = source is not None and source.active
        for life, number in sorted(state.safe):
            if not any(self._holds(state, index, life, number) for index in self.indices):
                return Loss(LossKind.GONE, life, number)
            if source is not None and active and owner(source.lives, number) not in (None, life):
                return Loss(LossKind.REUSED, life, number)
        if source is None or not active:
            return None
        for life, number in sorted(state.safe) if self._may_give_up(source.counting) else ():
            if not any(self._holds(state, index, life, number) for index in source.counting):
                return Loss(LossKind.UNRECOVERABLE, life, number)
        return None

    def _holds(self, state: State, index: int, life: int, number: int) -> bool:
        return self.store(state, index).content.get(number) == life

    def _may_give_up(self, asked: tuple[int, ...]) -> bool:
        """Return whether a receiver that is registered with these stores gives up what none of them has."""
        known = self.allowed.get(asked)
        if known is None:
            mask = sum(1 << index for index in asked)
            known = bool(asked) and self.quorums.may_give_up(mask, self.instance.receiver_repairs)
            self.allowed[asked] = known
        return known
