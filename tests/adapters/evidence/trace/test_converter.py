"""Machines, inputs and effects survive the way to JSON and back; what does not fit the schema does not."""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import inputs
from stablecast.core.protocol.effects import Deliver, Notify, Send
from stablecast.core.protocol.events import RegistrationFlag, Stable, StableFlag
from stablecast.core.protocol.inputs import Arrived, Input
from stablecast.core.protocol.messages import Refusal, Refused, Role, SourceInfo, StableAck, StoreEntry
from stablecast.core.protocol.settings import SourceConfig, StoreConfig
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.extents import Extent, Extents
from stablecast.evidence.trace.converter import (
    MACHINES,
    Endpoint,
    Json,
    _converter,
    _structure,
    decode_effects,
    decode_input,
    encode_effect,
    encode_input,
    restore,
    snapshot,
)
from stablecast.evidence.trace.errors import SchemaError
from tests.adapters.evidence.trace.traced import TracedWorld, play, read_frames
from tests.support.invariants import check_invariants

NUMBERS = st.integers(0, 2**64)


@attrs.define(eq=False)
class Doubted:
    """A machine that is put to the test before each input: does a restored one do the same?"""

    role: Role
    machine: Any
    twin: Any = None

    def receive(self, event: Input, now: int) -> None:
        before = json.dumps(snapshot(self.machine))
        self.twin = restore(self.role, json.loads(before))
        assert self.twin == self.machine
        assert json.dumps(snapshot(self.twin)) == before
        assert decode_input(self.role, json.loads(json.dumps(encode_input(event)))) == event
        self.machine.receive(event, now)
        self.twin.receive(event, now)
        assert self.twin == self.machine

    def take_effects(self) -> list[Any]:
        effects: list[Any] = self.machine.take_effects()
        assert self.twin.take_effects() == effects
        encoded = json.loads(json.dumps([encode_effect(effect) for effect in effects]))
        assert decode_effects(self.role, encoded) == effects
        return effects

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)


@check_invariants.register
def _(machine: Doubted) -> None:
    check_invariants(machine.machine)


@pytest.mark.no_cover
def test_a_restored_machine_equals_and_behaves_like_the_original() -> None:
    play(TracedWorld(wrap=lambda role, node: Doubted(role, node.machine)))


def new_source() -> SourceEndpoint:
    return SourceEndpoint.create(SourceConfig("orders", 1, "a:1", "a:2"))


@pytest.mark.no_cover
def test_a_snapshot_does_not_change_with_its_machine() -> None:
    snapshots: list[tuple[Json, str]] = []

    class Watched(Doubted):
        def receive(self, event: Input, now: int) -> None:
            taken = snapshot(self.machine)
            snapshots.append((taken, json.dumps(taken)))
            Doubted.receive(self, event, now)

    play(TracedWorld(wrap=lambda role, node: Watched(role, node.machine)))
    assert all(json.dumps(taken) == text for taken, text in snapshots)


def test_an_outbox_is_part_of_a_snapshot_when_there_is_something_in_it() -> None:
    """A store that recovered has something to say before its first input."""
    source = new_source()
    assert "outbox" not in snapshot(source)
    source.receive(inputs.Start(), 0)
    restored = restore(Role.SOURCE, json.loads(json.dumps(snapshot(source))))
    assert restored.take_effects() == source.take_effects() != []
    assert "outbox" not in snapshot(source)


def test_keys_of_tables_are_numbers_in_their_plain_form(traces: Path) -> None:
    snapshots = (frame.head.snapshot for path in traces.glob("source-*") for frame in read_frames(path))
    value = next(one for one in snapshots if one["enrollment"]["registrations"])
    table = value["enrollment"]["registrations"]
    table["00"] = table.pop("0")
    with pytest.raises(SchemaError, match="not numbers in their plain form"):
        restore(Role.SOURCE, value)


def waiting_store() -> StoreEndpoint:
    """Return a store in whose queue requests of two receivers wait."""
    machine = StoreEndpoint.create(StoreConfig("127.0.0.1:14567", 1))
    machine.serving.waiting = {
        ("10.0.0.1:1", 7, 5): RangeSet([(1, 3), (5, 6)]),
        ("10.0.0.2:1", 7, 5): RangeSet([(2, 4)]),
    }
    return machine


def test_a_store_with_requests_in_its_queue_comes_back() -> None:
    """The keys of these requests are tuples, which JSON does not know."""
    machine = waiting_store()
    value = json.loads(json.dumps(snapshot(machine)))
    assert restore(Role.STORE, value) == machine
    machine.serving.waiting = {}
    assert snapshot(machine)["serving"]["waiting"] == {}


@pytest.mark.parametrize("pairs", [lambda found: found * 2, lambda found: [[1, found[0][1]]], lambda found: 7])
def test_malformed_requests_of_a_queue_are_refused(pairs: Callable[[Any], Any]) -> None:
    value = snapshot(waiting_store())
    value["serving"]["waiting"] = pairs(value["serving"]["waiting"])
    with pytest.raises(SchemaError):
        restore(Role.STORE, value)


def test_members_of_unions_are_named_and_enums_are_numbers() -> None:
    assert encode_input(Arrived(StableAck(1, 2, 3, 4))) == {
        "_": "Arrived",
        "message": {"_": "StableAck", "store_index": 1, "incarnation": 2, "first": 3, "last": 4, "nack": False},
    }
    refused = Refused(Role.SOURCE, 0, 1, 2, 3, Refusal.OTHER_TOPIC)
    (found,) = decode_effects(Role.STORE, [json.loads(json.dumps(encode_effect(Send("a:1", refused))))])
    assert isinstance(found, Send)
    assert isinstance(found.message, Refused)
    assert found.message.reason is Refusal.OTHER_TOPIC


@settings(max_examples=50)
@given(
    st.builds(
        SourceInfo,
        **dict.fromkeys(("incarnation", "version", "low", "high"), NUMBERS),
        group_sizes=st.lists(NUMBERS).map(tuple),
        topic=st.text(),
        request=st.text(),
        confirmations=st.booleans(),
        stores=st.lists(st.builds(StoreEntry, NUMBERS, NUMBERS, st.text(), NUMBERS, NUMBERS)).map(tuple),
    )
)
def test_any_message_comes_back(info: SourceInfo) -> None:
    event = Arrived(info)
    assert decode_input(Role.STORE, json.loads(json.dumps(encode_input(event)))) == event


@settings(max_examples=50)
@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from([StableFlag.STORE, StableFlag.STABLE | StableFlag.INTRAGROUP]))
def test_any_event_comes_back(first: int, last: int, store: int, flags: StableFlag) -> None:
    effect = Notify(Stable(first, last, store, flags))
    assert decode_effects(Role.SOURCE, [json.loads(json.dumps(encode_effect(effect)))]) == [effect]


GOOD: Json = {"_": "Sent", "first": 0, "count": 1, "payload_bytes": 2}


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        "Sent",
        None,
        {"_": "Sent"},
        {"_": "Unheard"},
        {"_": []},
        {**GOOD, "more": 1},
        {**GOOD, "first": "0"},
        {**GOOD, "first": 0.0},
        {**GOOD, "first": True},
        {**GOOD, "first": None},
        {"_": "Arrived", "message": {"_": "Sent", "first": 0, "count": 1, "payload_bytes": 2}},
        {"_": "Reset", "address": 1},
        {"_": "Persisted", "ticket": 1},
    ],
    ids=str,
)
def test_inputs_of_other_roles_are_refused(value: Json) -> None:
    assert decode_input(Role.SOURCE, GOOD) == inputs.Sent(0, 1, 2)
    with pytest.raises(SchemaError, match="not a "):
        decode_input(Role.SOURCE, value)


def test_effects_of_another_role_are_refused() -> None:
    value = encode_effect(Deliver(1, 0, 1, 0, recovered=False, done=True))
    assert decode_effects(Role.RECEIVER, [value])
    with pytest.raises(SchemaError):
        decode_effects(Role.SOURCE, [value])


def break_role(value: Json) -> None:
    value["state"] = 99


def break_range(value: Json) -> None:
    value["sending"]["window"]["stable"] = {"ranges": [[1]]}


def break_key(value: Json) -> None:
    value["enrollment"]["registrations"] = {"01": 5}


def break_table(value: Json) -> None:
    value["enrollment"]["registrations"] = {"one": 5}


def leave_out(value: Json) -> None:
    del value["config"]["topic"]


def bring_an_outbox(value: Json) -> None:
    value["outbox"] = [{"_": "Explode"}]


@pytest.mark.parametrize("damage", [break_role, break_range, break_key, break_table, leave_out, bring_an_outbox])
def test_a_snapshot_that_is_none_is_refused(damage: Callable[[Json], None]) -> None:
    value = json.loads(json.dumps(snapshot(new_source())))
    assert restore(Role.SOURCE, value) == new_source()
    damage(value)
    with pytest.raises(SchemaError, match="not a SourceEndpoint"):
        restore(Role.SOURCE, value)


@pytest.mark.parametrize("role", [Role.RECEIVER, Role.STORE])
def test_a_snapshot_of_another_role_is_refused(role: Role) -> None:
    with pytest.raises(SchemaError, match=f"not a {MACHINES[role].__name__}"):
        restore(role, snapshot(new_source()))


def test_every_endpoint_has_a_role() -> None:
    assert set(MACHINES.values()) == set(Endpoint.__args__)
    assert RegistrationFlag(3) == RegistrationFlag.OLD | RegistrationFlag.QUORUM


def test_runs_of_a_store_are_a_flat_list() -> None:
    extents = Extents()
    for number in range(3):
        extents.add(number, number + 1, 100, 10 * number)
    rows = deque[Extent]
    value = _converter().unstructure(extents.runs, rows)
    assert value == [0, 1, 100, 0, 1, 2, 100, 10, 2, 3, 100, 20]
    assert _structure(value, rows) == extents.runs
    assert type(_structure(value, rows)) is deque
    assert _structure([], rows) == deque()


@pytest.mark.parametrize("value", [[0, 1, 100], [0, 1, 100, True], [0, 1, 100, 1.0], [0, 1, 100, "1"], {}, None, [[]]])
def test_malformed_runs_are_refused(value: object) -> None:
    with pytest.raises(SchemaError, match="not numbers of Extent, 4 each"):
        _structure(value, deque[Extent])
