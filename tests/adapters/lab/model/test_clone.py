"""Copies share nothing that changes."""

from collections import Counter, OrderedDict, deque
from enum import IntEnum

import attrs
import pytest

from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.clone import SharedMachine, alike, clone


class Colour(IntEnum):
    RED = 0


@attrs.frozen
class Fixed:
    number: int


@attrs.define
class Machine:
    fixed: Fixed
    colour: Colour = Colour.RED
    parts: list["Machine"] = attrs.field(factory=list)
    table: dict[int, list[int]] = attrs.field(factory=dict)
    queue: deque[list[int]] = attrs.field(factory=deque)
    pair: tuple[list[int], int] = ([], 0)
    seen: set[int] = attrs.field(factory=set)
    deeper: tuple[Fixed, ...] = ()
    counted: Counter[int] = attrs.field(factory=Counter)
    waiting: OrderedDict[int, list[int]] = attrs.field(factory=OrderedDict)


def test_a_copy_is_equal_and_its_own() -> None:
    machine = Machine(
        Fixed(1), parts=[Machine(Fixed(2))], table={1: [2]}, queue=deque([[3]], 5), pair=([4], 5), seen={6}
    )
    machine = attrs.evolve(machine, deeper=(Fixed(7),), counted=Counter({8: 1}), waiting=OrderedDict({9: [9]}))
    copy = clone(machine)
    assert type(copy.counted) is Counter
    assert type(copy.waiting) is OrderedDict
    copy.counted[8] -= 1
    copy.waiting[9].append(0)
    assert (machine.counted[8], machine.waiting[9]) == (1, [9])
    copy = clone(machine)
    assert copy == machine
    assert copy.fixed is machine.fixed
    assert copy.queue.maxlen == 5
    copy.parts[0].table[1] = []
    copy.table[1].append(0)
    copy.queue[0].append(0)
    copy.pair[0].append(0)
    copy.seen.add(0)
    assert machine.parts[0].table == {}
    assert (machine.table, machine.queue[0], machine.pair, machine.seen) == ({1: [2]}, [3], ([4], 5), {6})


def test_machines_are_alike_if_all_that_they_hold_is() -> None:
    """Also what `==` leaves out: an outbox, the order of a dict."""
    machine = Machine(Fixed(1), parts=[Machine(Fixed(2))], table={1: [2], 2: []}, queue=deque([[3]]), pair=([4], 5))
    assert alike(machine, clone(machine))
    assert alike(SharedMachine(clone(machine)), SharedMachine(machine))
    for changed in (
        attrs.evolve(machine, parts=[Machine(Fixed(3))]),
        attrs.evolve(machine, table={2: [], 1: [2]}),
        attrs.evolve(machine, queue=deque([[3], []])),
        attrs.evolve(machine, seen={1}),
        attrs.evolve(machine, counted=Counter({1: 1})),
        attrs.evolve(machine, waiting=OrderedDict({1: []})),
        attrs.evolve(machine, fixed=Fixed(2)),
    ):
        assert not alike(machine, changed)
    store = StoreEndpoint.create(StoreConfig("store:1", 1))
    other = clone(store)
    other.outbox.append(None)  # type: ignore[arg-type]  # Anything: `==` does not look at it.
    assert store == other
    assert not alike(store, other)


def test_an_endpoint_can_be_copied() -> None:
    store = StoreEndpoint.create(StoreConfig("store:1", 1))
    copy = clone(store)
    assert copy == store
    assert copy.clients.seeded is not store.clients.seeded
    assert copy.config is store.config


def test_what_copies_have_in_common_is_copied_by_who_changes_it() -> None:
    shared = SharedMachine(Machine(Fixed(1)))
    assert shared.own() is shared.machine
    other = clone(shared)
    assert other.machine is shared.machine
    assert alike(other, shared)
    other.own().table[1] = [2]
    assert shared.machine.table == {}
    assert not alike(other, shared)
    lent = clone(other)
    other.own().table[1] = [3]
    assert lent.machine.table == {1: [2]}


def test_what_is_no_state_of_a_machine_is_refused() -> None:
    with pytest.raises(TypeError, match="object is not the state of a machine"):
        clone(object())
