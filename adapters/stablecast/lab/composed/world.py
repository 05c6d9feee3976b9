"""Add a receiver, losses of single messages, partial syncs and late acknowledgements to the world of `prove`.

A step of this world is finer. Each message of the stream may be lost on its way to any store, and to the receiver. A
store learns by an SRI what it missed, which is a step of its own. It syncs all of its writes or the first one only, and
its acknowledgements arrive at once or late, also after their life ended. With a delay of writes, messages are in memory
first. The receiver registers with the stores, asks them for what it missed, consumes, dies, and returns.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.core.protocol.inputs import Arrived, Data, Reset
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Message,
    Register,
    Registered,
    RetransmitRequest,
    SourceInfo,
    StableAck,
    StoreEntry,
)
from stablecast.lab.composed import guarantees
from stablecast.lab.composed.receivers import (
    RECEIVER_ID,
    ReceiverFate,
    ReceiverStates,
    ReceiverStep,
    ReceiverSummary,
    receiver_config,
)
from stablecast.lab.model.store_process import SOURCE_ID, data, store_address
from stablecast.lab.prove.instance import Instance
from stablecast.lab.prove.state import NOBODY, Action, Deed, Draft, Loss, State
from stablecast.lab.prove.stores import TOKENS, Step, StoreFate, StoreStates
from stablecast.lab.prove.world import ProofWorld

_FATES = {Deed.WAIT: ReceiverFate.TICK, Deed.CONSUME: ReceiverFate.CONSUME, Deed.QUIT: ReceiverFate.QUIT}
_LOCAL = (Deed.SYNC_FIRST, Deed.SYNC_LATE, Deed.HEAR, Deed.WRITE, *_FATES, Deed.ATTEND, Deed.LEARN)


@attrs.define
class ComposedWorld(ProofWorld):
    """Hold the cached states of all endpoints, the guarantees that judge it, and the steps that come first."""

    receivers: ReceiverStates = attrs.field(kw_only=True)
    rules: tuple[guarantees.Rule, ...] = attrs.field(kw_only=True)
    opening: tuple[Action, ...] = attrs.field(kw_only=True, default=())

    @classmethod
    def compose(
        cls,
        instance: Instance,
        rules: Iterable[guarantees.Rule],
        delay_ns: int = 0,
        opening: tuple[Action, ...] = (),
    ) -> "ComposedWorld":
        """Return the world of an instance, whose stores write messages `delay_ns` after they came."""
        plain = ProofWorld.create(instance)
        parts = {field.name: getattr(plain, field.name) for field in attrs.fields(ProofWorld)}
        parts["stores"] = StoreStates.create(
            instance.store_repairs, refill=instance.refills, fine=True, delay_ns=delay_ns
        )
        receivers = ReceiverStates.create(receiver_config(), len(plain.groups))
        plain.sources.fine = True
        return cls(**parts, receivers=receivers, rules=tuple(rules), opening=opening)

    def start(self) -> State:
        """Return the state after the opening; without one no source and no receiver ever ran."""
        late = ((),) * len(self.groups)
        state = attrs.evolve(super().start(), receiver=self.receivers.new(), late=late)
        for action in self.opening:
            state = self.do(state, action).done()
        return state

    def key(self, state: State) -> tuple[object, ...]:
        """Return a key of a state. Equal stores of a group are interchangeable."""
        common = self.receivers.parts[state.receiver][0]
        if not self.symmetric:
            return (super().key(state), common, state.receiver, state.late, state.emptied)
        return (super().key(state), common)

    def place(self, state: State, index: int) -> tuple[object, ...]:
        """Return what else distinguishes a store. A session asks the stores in their order."""
        _, each = self.receivers.parts[state.receiver]
        return (
            each[index],
            index if self.receiver(state).life else 0,
            tuple((ack.incarnation, ack.first, ack.last) for ack in state.late[index]),
            index == state.emptied,
        )

    def receiver(self, state: State | Draft) -> ReceiverSummary:
        """Return what the receiver and its application know."""
        return self.receivers.views[state.receiver]

    # Possible actions.

    def actions(self, state: State) -> Iterator[Action]:
        """Yield the possible actions; of equal stores only on the first one."""
        for action in super().actions(state):
            if action[0] is Deed.SEND:
                yield from ((Deed.SEND, missing) for missing in self._missing(state))
            else:
                yield action
        yield from ((deed, ()) for deed in self._receiver_deeds(state))
        for index in self._different(state):
            if state.late[index]:
                yield (Deed.HEAR, (index,))

    def _missing(self, state: State) -> Iterator[tuple[int, ...]]:
        """Yield who loses the next message of the stream."""
        source = self.source(state)
        assert source is not None
        attends = self.receiver(state).life == source.life
        for stores in self._choices(state, source.counting):
            yield stores
            if attends:
                yield (NOBODY, *stores)

    def _receiver_deeds(self, state: State) -> Iterator[Deed]:
        receiver, source = self.receiver(state), self.source(state)
        if source is not None and source.info is not None and source.life > receiver.life:
            yield Deed.ATTEND
        if receiver.life:
            yield Deed.QUIT
        if receiver.consumes:
            yield Deed.CONSUME
        if receiver.waits:
            yield Deed.WAIT
        informs = source is not None and source.info is not None and receiver.life == source.life
        if informs and source is not None and receiver.high < source.next - 1:
            yield Deed.LEARN

    def _deeds(self, state: State, index: int) -> Iterator[Deed]:
        store = self.store(state, index)
        yield from super()._deeds(state, index)
        if not store.up:
            return
        if store.rests > 1:
            yield Deed.SYNC_FIRST
        if store.dirty and not state.late[index]:
            yield Deed.SYNC_LATE
        if store.writes:
            yield Deed.WRITE

    def may_wipe(self, state: State, index: int) -> bool:
        """Return whether the disk of a store that is away may be lost now, as the README permits it.

        Between two refills a minority of the stores loses its disks, whoever else is away or lacks messages.
        """
        store, before = self.store(state, index), state.emptied
        if store.up or not store.used or state.wipes >= self.bounds.wipes:
            return False
        return before in (NOBODY, index) or self.whole(state, before)

    def uninformed(self, state: State, index: int) -> bool:
        """Return whether a registered store does not know where this life resumes, or what it sent."""
        store, source = self.store(state, index), self.source(state)
        if source is None or source.info is None or index not in source.counting or not store.up:
            return False
        return store.life != source.life or store.newest < source.next - 1

    def do(self, state: State, action: Action) -> Draft:
        """Return the draft of the state after an action."""
        deed, indices = action
        if deed not in _LOCAL:
            draft = super().do(state, action)
            draft.emptied = indices[0] if deed is Deed.WIPE else draft.emptied
            return draft
        draft = Draft.of(state)
        match deed:
            case Deed.SYNC_FIRST:
                self._take(draft, indices[0], StoreFate.SYNC_FIRST)
            case Deed.WRITE:
                self._take(draft, indices[0], StoreFate.WRITE)
            case Deed.SYNC_LATE:
                self._sync_late(draft, indices[0])
            case Deed.HEAR:
                self._hear_late(draft, indices[0])
            case Deed.ATTEND:
                self._feed(draft, self._info(draft))
            case Deed.LEARN:
                self._feed(draft, Arrived(self._info(draft)))
            case _:
                self._feed(draft, _FATES[deed])
        return draft

    # Consequences of an action.

    def _send(self, draft: Draft, missing: tuple[int, ...] = ()) -> None:
        source = self.source(draft)
        assert source is not None
        super()._send(draft, missing)
        message = data(source.life, source.next, False)
        if NOBODY not in missing and self.receiver(draft).life == source.life:
            self._feed(draft, attrs.evolve(message, token=TOKENS * source.life + source.next))

    def _sync_late(self, draft: Draft, index: int) -> None:
        store, sent = self.stores.take(draft.stores[index], StoreFate.SYNC)
        late = tuple(message for message in sent if isinstance(message, StableAck))
        draft.late = (*draft.late[:index], late, *draft.late[index + 1 :])
        self._put(draft, index, store, [message for message in sent if not isinstance(message, StableAck)])

    def _hear_late(self, draft: Draft, index: int) -> None:
        late, draft.late = draft.late[index], (*draft.late[:index], (), *draft.late[index + 1 :])
        for ack in late if draft.source != NOBODY else ():
            self._hear(draft, Arrived(attrs.evolve(ack, store_index=index)))

    def _inform(self, draft: Draft) -> None:
        """Leave SRIs to a step of their own."""

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
        for to, message in done.sent:
            index = self._index(to)
            if index is None or not self.store(draft, index).up:
                continue
            match message:
                case Register() | ConsumptionAck() | RetransmitRequest():
                    self._take(draft, index, message)

    def _index(self, address: str) -> int | None:
        known = [index for index in self.indices if store_address(index) == address]
        return known[0] if known else None

    def _put(self, draft: Draft, index: int, store: int, sent: Iterable[Message | Data]) -> None:
        """Replace a store; the source and the receiver get its messages."""
        others: list[Message | Data] = []
        ours: list[Message | Data] = []
        for message in sent:
            mine = isinstance(message, Data) or (isinstance(message, Registered) and message.reg_id == RECEIVER_ID)
            (ours if mine else others).append(message)
        super()._put(draft, index, store, others)
        for message in ours:
            if isinstance(message, Registered):
                generation = self.receivers.generation(draft.receiver, index)
                answer = attrs.evolve(message, store_index=index, generation=generation)
                self._feed(draft, Arrived(answer))
            elif isinstance(message, Data):
                self._feed(draft, message)

    def _take(self, draft: Draft, index: int, step: Step) -> None:
        """Perform a step of a store; its connection to the receiver breaks if it goes."""
        went = step in (StoreFate.LEAVE, StoreFate.CRASH) and self.store(draft, index).up
        super()._take(draft, index, step)
        if went:
            self._feed(draft, Reset(store_address(index)))

    # Properties.

    def loss_of_prove(self, state: State) -> Loss | None:
        """Return what `prove` would report."""
        return super().loss(state)

    def loss(self, state: State) -> Loss | None:
        """Return the first guarantee that a state breaks."""
        return next(filter(None, (rule(self, state) for rule in self.rules)), None)
