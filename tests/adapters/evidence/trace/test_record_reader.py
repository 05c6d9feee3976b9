"""The fast reader reads exactly the values of the converter, for every class."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.protocol.inputs import Data, Input, Sent
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.converter import INPUTS, Json, decode_input
from stablecast.evidence.trace.record_reader import reader
from stablecast.evidence.trace.writer import input_text


def read(role: Role, text: str) -> tuple[int, int, Input, bytes]:
    reading = reader(INPUTS[role])
    (record,) = reading.records(f'{{"n":1,"t":2,"in":{text},"out":[ ]}}\n'.encode())
    return record.n, record.t, reading.inputs[type(record.event)](record.event), bytes(record.out)


@pytest.mark.parametrize("role", Role)
def test_inputs_are_read_as_the_converter_reads_them(role: Role) -> None:
    @settings(max_examples=200)
    @given(st.one_of([st.from_type(member) for member in get_args(INPUTS[role])]))
    def check(event: Input) -> None:
        text = input_text(event)
        found = read(role, text)
        assert found == (1, 2, event, b"[ ]")
        assert type(found[2]) is type(event)
        assert decode_input(role, json.loads(text)) == event
        assert input_text(found[2]) == text

    check()


def spoiled(event: Input) -> list[Json]:
    """Return the value with a field that is missing, unknown, or of another type."""
    value = json.loads(input_text(event))
    last = [*value][-1]
    return [
        {key: one for key, one in value.items() if key != last},
        {**value, "more": 1},
        {**value, last: 1.0},
        {**value, last: 1e300},
        {**value, last: "1"},
        {**value, last: None},
    ]


@pytest.mark.parametrize(
    "value",
    [
        *spoiled(Data(1, 2, 3, 4, 5, recovered=False, token=6)),
        *spoiled(Sent(1, 2, 3, ((1, 2),))),
        {**json.loads(input_text(Data(1, 2, 3, 4, 5, recovered=False, token=6))), "recovered": 0},
        {"_": "Sent", "first": 1, "count": 1, "payload_bytes": 1, "large": [[1]]},
        {"_": "Sent", "first": True, "count": 1, "payload_bytes": 1, "large": []},
        {"_": "Arrived", "message": {}},
        {"_": "Arrived", "message": {"_": "Nobody"}},
        {"_": "Nobody"},
        {},
    ],
)
def test_texts_that_no_writer_writes_are_refused(value: Json) -> None:
    role = Role.SOURCE if value.get("_") == "Sent" else Role.STORE
    with pytest.raises(msgspec.ValidationError):
        read(role, json.dumps(value))


@pytest.mark.parametrize(
    "line",
    [
        {"n": True, "t": 2, "in": {"_": "Start"}, "out": []},
        {"n": 1, "t": 2.0, "in": {"_": "Start"}, "out": []},
        {"n": 1, "t": 2, "in": {"_": "Start"}},
        {"n": 1, "t": 2, "in": {"_": "Start"}, "out": [], "more": 1},
    ],
)
def test_a_record_is_its_number_time_input_and_effects(line: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        reader(INPUTS[Role.STORE]).records(json.dumps(line).encode())


def test_a_record_is_a_line() -> None:
    """Also where as many lines as records are left."""
    record = b'{"n":1,"t":2,"in":{"_":"Start"},"out":[]}'
    broken = record.replace(b",", b",\n", 1)
    read = reader(INPUTS[Role.STORE]).records
    assert len(read(record + b"\n" + record)) == len(read(record + b"\n" + record + b"\n")) == 2
    for lines in (broken, record + record, broken + b"\n" + record + record, record + b"\n\n" + record):
        with pytest.raises(msgspec.MsgspecError):
            read(lines + b"\n")
