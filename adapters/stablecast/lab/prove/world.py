"""Combine one source, its stores, a receiver and all faults: the possible actions of a state, and their results.

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

**A fine world** has a receiver and smaller steps. Each message of the stream may be lost on its way to any store, and
to the receiver. A store learns by an SRI what it missed, which is a step of its own. It syncs all of its writes or the
first one only, and its acknowledgements arrive at once or late, also after their life ended. With a delay of writes,
messages are in memory first. The receiver registers with the stores, asks them for what it missed, consumes, dies, and
returns.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.core.protocol.events import Stable
from stablecast.core.protocol.inputs import Arrived, Data, Gone, Reset, Sent, SourceInput, Start, Tick
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    LateJoinInfo,
    Message,
    Refused,
    Register,
    Registered,
    RetransmitRequest,
    SourceInfo,
    StableAck,
    StoreEntry,
)
from stablecast.lab.model.store_process import SOURCE_ID, data, store_address
from stablecast.lab.prove.bounds import MAX_TAKEOVERS, ProofFault
from stablecast.lab.prove.receivers import RECEIVER_ID, ReceiverStep
from stablecast.lab.prove.state import NOBODY, REGISTERING, Action, Deed, Draft, State
from stablecast.lab.prove.stores import TOKENS, Step
from stablecast.lab.prove.view import WorldView


@attrs.define
class ProofWorld(WorldView):
    def start(self) -> State:
        """Return the state after the opening; without one no source and no receiver ever ran."""
        stores, late = (self.stores.new(),) * len(self.groups), ((),) * len(self.groups)
        state = State(NOBODY, 0, stores, receiver=self.receivers.new(), late=late)
        for action in self.opening:
            state = self.do(state, action).done()
        return state

    # Possible actions.

    def actions(self, state: State) -> Iterator[Action]:
        """Yield the possible actions; of equal stores only on the first one."""
        source = self.source(state)
        if source is None:
            if state.lives <= self.bounds.restarts:
                yield from ((Deed.BEGIN, there) for there in self.choices(state, self.indices) if there)
            yield from ((Deed.WIPE, (index,)) for index in self.different(state) if self.may_wipe(state, index))
            yield from self._takeovers(state)
            yield from self._fine_actions(state)
            return
        if self.may_stop(state):
            dirty = [index for index in self.indices if self.store(state, index).dirty]
            yield from ((Deed.STOP, lost) for lost in self.choices(state, dirty))
        if source.may_send and source.next < self.bounds.messages:
            yield from ((Deed.SEND, missing) for missing in self._missing(state, source.counting))
        for index in self.different(state):
            yield from ((deed, (index,)) for deed in self._deeds(state, index))
        yield from self._takeovers(state)
        yield from self._fine_actions(state)

    def may_stop(self, state: State) -> bool:
        """Return whether the source may crash: another process follows."""
        return state.lives <= self.bounds.restarts or state.aside != NOBODY

    def _takeovers(self, state: State) -> Iterator[Action]:
        """Yield what two live processes may do to each other. A process that has not begun is no rival."""
        source, faults = self.source(state), self.bounds.faults or ()
        may = state.takeovers < MAX_TAKEOVERS and (source is None or source.begun)
        if may and source is not None and state.aside == NOBODY and state.lives <= self.bounds.restarts:
            if ProofFault.RIVAL in faults:
                yield from ((Deed.TAKE_OVER, there) for there in self.choices(state, self.indices) if there)
            if ProofFault.TWIN in faults and source.active:
                yield (Deed.DOUBLE, ())
        if state.aside != NOBODY and (may or source is None):
            if state.doubled:
                yield (Deed.ALTERNATE, ())
            else:
                yield from ((Deed.COME_BACK, there) for there in self.choices(state, self.indices) if there)

    def _missing(self, state: State, counting: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield who loses the next message of the stream."""
        if not self.fine:
            yield ()
            return
        attends = self._attends(state)
        for stores in self.choices(state, counting):
            yield stores
            if attends:
                yield (NOBODY, *stores)

    def _attends(self, state: State | Draft) -> bool:
        source = self.source(state)
        return source is not None and self.receiver(state).life == source.life

    def _fine_actions(self, state: State) -> Iterator[Action]:
        """Yield what a receiver may do, and the arrivals of late acknowledgements."""
        if not self.fine:
            return
        receiver, source = self.receiver(state), self.source(state)
        if source is not None and source.info is not None and source.life > receiver.life:
            yield (Deed.ATTEND, ())
        if receiver.life:
            yield (Deed.QUIT, ())
        if receiver.consumes:
            yield (Deed.CONSUME, ())
        if receiver.waits:
            yield (Deed.WAIT, ())
        if source is not None and source.info is not None and self._attends(state) and receiver.high < source.next - 1:
            yield (Deed.LEARN, ())
        yield from ((Deed.HEAR, (index,)) for index in self.different(state) if state.late[index])

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
        if not self.fine:
            return
        if store.rests > 1:
            yield Deed.SYNC_FIRST
        if store.dirty and not state.late[index]:
            yield Deed.SYNC_LATE
        if store.writes:
            yield Deed.WRITE

    # Consequences of an action.

    def do(self, state: State, action: Action) -> Draft:
        deed, indices = action
        draft = Draft.of(state)
        match deed:
            case Deed.ATTEND:
                self._feed(draft, self._info(draft))
            case Deed.LEARN:
                self._feed(draft, Arrived(self._info(draft)))
            case Deed.WAIT | Deed.CONSUME | Deed.QUIT:
                self._feed(draft, deed)
            case Deed.HEAR:
                self._hear_late(draft, *indices)
            case Deed.SYNC_LATE:
                self._sync_late(draft, *indices)
            case Deed.SYNC_FIRST | Deed.WRITE:
                self._take(draft, indices[0], deed)
            case _:
                self._do_coarse(draft, deed, indices)
        return draft

    def _do_coarse(self, draft: Draft, deed: Deed, indices: tuple[int, ...]) -> None:
        """Let an action happen after which the source asks whom it waits for."""
        match deed:
            case Deed.BEGIN:
                self._begin(draft, indices)
            case Deed.STOP:
                draft.source = NOBODY
                if draft.doubled:  # One process has both sources.
                    draft.aside, draft.doubled = NOBODY, False
                for index in self.indices:
                    self._take(draft, index, Deed.CRASH if index in indices else Deed.LEAVE)
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
                self._take(draft, index, deed)
                if deed is Deed.WIPE:
                    draft.wipes += 1
                    draft.emptied = index if self.fine else NOBODY
                if deed in (Deed.LEAVE, Deed.CRASH):
                    self._miss(draft, index)
        if deed in REGISTERING:
            self._register(draft)
        self._ask(draft)
        self._bury(draft)

    def _begin(self, draft: Draft, there: tuple[int, ...], context: int = 0) -> None:
        for index in there:
            self._take(draft, index, Deed.RETURN)
        draft.lives += 1
        draft.source = self.sources.new(draft.lives, context)
        self._hear(draft, Start())

    def _cut_off(self, draft: Draft) -> None:
        """Partition the source until its leases end; it is aside then."""
        for index in self.indices:
            self._take(draft, index, Deed.LEAVE)
            self._miss(draft, index)
        draft.source, draft.aside, draft.takeovers = NOBODY, draft.source, draft.takeovers + 1

    def _come_back(self, draft: Draft, there: tuple[int, ...]) -> None:
        """Let the process that is aside reach stores."""
        back, draft.aside = draft.aside, NOBODY
        if draft.source != NOBODY:
            self._cut_off(draft)
        draft.source = back
        for index in there:
            self._take(draft, index, Deed.RETURN)

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
            self._take(draft, index, Deed.LEAVE)

    def _hear(self, draft: Draft, event: SourceInput) -> list[Message | Data]:
        """Pass an input to the source; return its answers for the store that asked."""
        life = self.sources.views[draft.source].life
        heard = self.sources.take(draft.source, event)
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
        """Perform a step of a store; its connection to the receiver breaks if it goes."""
        went = self.fine and step in (Deed.LEAVE, Deed.CRASH) and self.store(draft, index).up
        self._put(draft, index, *self.stores.take(draft.stores[index], step))
        if went:
            self._feed(draft, Reset(store_address(index)))

    def _put(self, draft: Draft, index: int, store: int, sent: Iterable[Message | Data]) -> None:
        """Replace a store; the source gets its messages and answers, then the receiver."""
        draft.put(index, store)
        ours: list[Message | Data] = []
        for message in sent:
            match message:
                case Data():
                    ours.append(message)
                case Registered(reg_id=reg_id) if reg_id == RECEIVER_ID:
                    ours.append(message)
                case StableAck():
                    self._hear(draft, Arrived(attrs.evolve(message, store_index=index)))
                case Registered() | Refused():
                    generation = self.sources.generation(draft.source, index)
                    self._hear(draft, Arrived(attrs.evolve(message, store_index=index, generation=generation)))
                case RetransmitRequest():
                    for answer in self._hear(draft, Arrived(message)):
                        assert isinstance(answer, Data | LateJoinInfo)
                        self._take(draft, index, answer)
        for message in ours:
            if isinstance(message, Registered):
                generation = self.receivers.generation(draft.receiver, index)
                self._feed(draft, Arrived(attrs.evolve(message, store_index=index, generation=generation)))
            elif isinstance(message, Data):
                self._feed(draft, message)

    def _send(self, draft: Draft, missing: tuple[int, ...]) -> None:
        """Send a message to the receiver and to every registered store, but for those that lose it."""
        source = self.source(draft)
        assert source is not None
        self._hear(draft, Sent(source.next, 1, 0))
        for index in source.counting:
            if index not in missing:
                self._take(draft, index, data(source.life, source.next, False))
        if NOBODY not in missing and self._attends(draft):
            sent = data(source.life, source.next, False)
            self._feed(draft, attrs.evolve(sent, token=TOKENS * source.life + source.next))

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
        peers = tuple(draft.stores[other] for other in self.peers(draft, index))
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
        if source is None or source.info is None or self.fine:
            return  # In a fine world an SRI is a step of its own.
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
        self._take(draft, index, Deed.SYNC)

    def _sync_late(self, draft: Draft, index: int) -> None:
        store, sent = self.stores.take(draft.stores[index], Deed.SYNC)
        late = tuple(message for message in sent if isinstance(message, StableAck))
        draft.late = (*draft.late[:index], late, *draft.late[index + 1 :])
        self._put(draft, index, store, [message for message in sent if not isinstance(message, StableAck)])

    def _hear_late(self, draft: Draft, index: int) -> None:
        late, draft.late = draft.late[index], (*draft.late[:index], (), *draft.late[index + 1 :])
        for ack in late if draft.source != NOBODY else ():
            self._hear(draft, Arrived(attrs.evolve(ack, store_index=index)))

    # The receiver.

    def _info(self, draft: Draft) -> SourceInfo:
        """Return the SRI of the source as the receiver gets it."""
        source = self.source(draft)
        assert source is not None
        assert source.info is not None
        entries = tuple(
            StoreEntry(index, self.groups[index], store_address(index), SOURCE_ID, 0) for index in self.indices
        )
        # A later SRI has a newer version, and says more only by its numbers.
        return attrs.evolve(source.info, stores=entries, version=source.next)

    def _feed(self, draft: Draft, step: ReceiverStep) -> None:
        """Let the receiver perform a step; stores that are up get its messages, and answer."""
        done = self.receivers.take(draft.receiver, step)
        draft.receiver = done.state
        index_at = {store_address(index): index for index in self.indices}
        for to, message in done.sent:
            index = index_at.get(to)
            if index is None or not self.store(draft, index).up:
                continue
            match message:
                case Register() | ConsumptionAck() | RetransmitRequest():
                    self._take(draft, index, message)
