"""What the model `tla/Rpp` sees of a store and its journal, and its invariants over what it sees."""

from collections.abc import Iterable, Iterator, Mapping

from stablecast.core.protocol.inputs import Data
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.explorer import Invariant, State
from stablecast.lab.model.worlds.rpp_parts import NONE, RECEIVER_ID, SOURCE_ID, UNKNOWN, Journal


def acknowledged(store: StoreEndpoint, number: int) -> int:
    """What a receiver has acknowledged there."""
    known = store.status.clients.get(RECEIVER_ID + number)
    return UNKNOWN if known is None else known.client.acknowledged


def waiting(store: StoreEndpoint) -> frozenset[Value]:
    """Numbers that the disk was given and has not reported."""
    runs = [due for due in store.status.waiting if due.generation < 0 and due.farewell is None]
    return numbers_of((run.first, run.stop) for run in runs)


def granting(store: StoreEndpoint) -> bool:
    """Whether the source's registration waits for the disk."""
    wanted = (SOURCE_ID, store.status.repositories[SOURCE_ID].incarnation)
    return any(due.generation >= 0 and (due.reg_id, due.incarnation) == wanted for due in store.status.waiting)


def seen(store: StoreEndpoint | None, receivers: Iterable[int]) -> Fn:
    """A store, or that it is down."""
    if store is None:
        none = dict.fromkeys(("held", "synced", "delayed", "waiting", "owed", "lost", "wanted"), frozenset[Value]())
        flags = dict.fromkeys(("up", "asked", "paused", "granting"), False)
        rec = tuple(UNKNOWN for _ in receivers)
        return record(life=0, low=NONE, trail=0, acked=0, high=NONE, rec=rec, **none, **flags)
    kept = store.status.repositories[SOURCE_ID]
    low = kept.resume_point
    return record(
        up=True,
        life=kept.incarnation,
        low=NONE if low is None else low,
        trail=kept.trail,
        held=numbers_of(kept.held),
        synced=numbers_of(kept.synced),
        delayed=numbers_of(kept.delayed),
        waiting=waiting(store),
        owed=numbers_of(kept.owed),
        acked=0 if low is None else kept.acked,
        high=NONE if kept.high is None else kept.high,
        lost=numbers_of(kept.lost),
        wanted=numbers_of(kept.requested),
        asked=kept.late_join is not None,
        paused=kept.paused,
        granting=granting(store),
        rec=tuple(acknowledged(store, number) for number in receivers),
    )


def written(journal: Journal, receivers: Iterable[int]) -> Fn:
    """What a journal says."""
    client = journal.of(SOURCE_ID)
    assert client is not None
    known = [journal.of(RECEIVER_ID + number) for number in receivers]
    return record(
        life=client.incarnation,
        low=next((first for life, first in client.lives if life == client.incarnation), NONE),
        freed=client.freed,
        trail=journal.trail,
        messages=journal.messages,
        rec=tuple(UNKNOWN if reader is None else reader.acknowledged for reader in known),
    )


def numbers_of(ranges: Iterable[tuple[int, int]]) -> frozenset[Value]:
    """Ranges, number by number."""
    return frozenset(number for first, stop in ranges for number in range(first, stop))


def item(way: Data | SourceInfo) -> Fn:
    """What is on the stream."""
    if isinstance(way, Data):
        return record(kind="data", life=way.incarnation, number=way.wire_first, again=way.recovered)
    return record(kind="info", life=way.incarnation, low=way.low, high=signed(way.high))


def signed(wire: int) -> int:
    """The few numbers of a model are small; one below 0 is 32 ones on a message."""
    return wire if wire < 1 << 31 else wire - (1 << 32)


def _owed(state: State) -> Iterator[Value]:
    """What is stable and was offered to receivers that block; after a crash, what was sent since they registered."""
    stable, receivers = state["stable"], state["receiver"]
    assert isinstance(stable, frozenset)
    assert isinstance(receivers, tuple)
    for receiver in receivers:
        assert isinstance(receiver, Fn)
        consumed, since = receiver["consumed"], receiver["since"] if state["crashed"] else 0
        assert isinstance(consumed, int)
        assert isinstance(since, int)
        if receiver["blocks"] and receiver["state"] == "IN":
            yield from (number for number in stable if isinstance(number, int) and number >= max(since, consumed + 1))


def _part(state: State, variable: str, field: str) -> Value:
    whole = state[variable]
    assert isinstance(whole, Fn)
    return whole[field]


def _within(owed: Iterator[Value], numbers: Value) -> bool:
    assert isinstance(numbers, frozenset)
    return all(number in numbers for number in owed)


def _kept(state: State) -> bool:
    """P2: what is stable stays at the store until every registered receiver that blocks has consumed it."""
    return not _part(state, "store", "up") or _within(_owed(state), _part(state, "store", "held"))


def _synced(state: State) -> bool:
    """P1: and it is on disk."""
    return _within(_owed(state), _part(state, "disk", "messages"))


INVARIANTS: Mapping[str, Invariant] = {"PacedRetention": _kept, "SyncedFirst": _synced}
