"""A store as a number."""

import pytest

from stablecast.core.errors import InvariantError
from stablecast.core.protocol.inputs import Data
from stablecast.core.protocol.messages import Register, Registered, Role, SourceInfo, StableAck
from stablecast.core.protocol.repairs import Repair
from stablecast.lab.model.store_process import SOURCE_ID
from stablecast.lab.prove.receivers import ReceiverStates, receiver_config
from stablecast.lab.prove.state import Deed
from stablecast.lab.prove.stores import Step, StoreStates


def register(life: int) -> Register:
    return Register(Role.SOURCE, 0, 0, SOURCE_ID, life, 0, "topic", 0, "source:1", "stream:1", 0, 0)


def info(life: int, low: int, high: int) -> SourceInfo:
    return SourceInfo(life, "topic", 0, low % 2**32, high % 2**32, "source:1", (1,), False, (), life, ((life, low),))


def data(life: int, number: int) -> Data:
    return Data(life, life, number, 1, 0, False, token=0)


def through(stores: StoreStates, state: int, *steps: Step) -> int:
    for step in steps:
        state, _ = stores.take(state, step)
    return state


BEGUN = (Deed.RETURN, register(1), info(1, 0, -1), Deed.SYNC)


def test_states_that_are_alike_are_one() -> None:
    stores = StoreStates.create(Repair.ALL)
    new = stores.new()
    once = through(stores, new, *BEGUN)
    assert through(stores, new, *BEGUN) == once
    assert through(stores, once, register(1), Deed.SYNC) == once
    assert stores.new() == new


@pytest.mark.rows("P-302")
def test_what_is_synced_survives() -> None:
    """Acknowledged is what is synced."""
    stores = StoreStates.create(Repair.ALL)
    held = through(stores, stores.new(), *BEGUN, data(1, 0))
    assert (stores.views[held].dirty, stores.views[held].unsynced) == (True, frozenset({0}))
    synced, sent = stores.take(held, Deed.SYNC)
    assert [type(message) for message in sent] == [StableAck]
    assert stores.views[through(stores, held, Deed.CRASH)].content == {}
    for state in (through(stores, synced, Deed.CRASH), through(stores, held, Deed.LEAVE)):
        assert stores.views[state].content == {0: 1}
        assert stores.views[through(stores, state, Deed.LEAVE, Deed.WIPE)].content == {}


def test_a_store_tells_what_it_holds() -> None:
    stores = StoreStates.create(Repair.ALL)
    held = through(stores, stores.new(), *BEGUN, data(1, 0), Deed.LEAVE, Deed.RETURN)
    _, sent = stores.take(held, register(2))
    (answer,) = sent
    assert isinstance(answer, Registered)
    assert (answer.low, answer.high, answer.old) == (0, 0, True)


def test_a_dead_tail_is_cut_or_kept() -> None:
    """Formal design, 7.3."""
    for repairs, kept in ((Repair.ALL, {}), (Repair.NONE, {0: 1})):
        stores = StoreStates.create(repairs)
        state = through(stores, stores.new(), *BEGUN, data(1, 0), Deed.SYNC, register(2), info(2, 0, -1))
        assert stores.views[state].content == kept


def test_a_hole_is_asked_for() -> None:
    stores = StoreStates.create(Repair.ALL)
    state = through(stores, stores.new(), Deed.RETURN, register(1), info(1, 0, 1))
    view = stores.views[state]
    assert view.question is not None
    assert (view.newest, view.life, view.used) == (1, 1, True)


def test_what_others_do_is_refused() -> None:
    stores, receivers = StoreStates.create(Repair.ALL), ReceiverStates(receiver_config(), places=3)
    with pytest.raises(InvariantError):
        stores.take(stores.new(), Deed.SEND)
    with pytest.raises(InvariantError):
        receivers.take(receivers.new(), Deed.SYNC)
