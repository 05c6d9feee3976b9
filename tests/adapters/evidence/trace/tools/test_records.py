"""Records as they stand in the files, and which of them are asked for."""

from pathlib import Path

import attrs
import pytest

from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.tools.records import (
    RecordFilter,
    TraceRecord,
    kinds,
    names,
    read_records,
    sentence,
    shown,
)
from tests.adapters.evidence.trace.traced import first_trace, put_together, take_apart

RECORD = TraceRecord("store", "10.0.0.1:1", 3, 2_000_000_005, {"_": "Persisted", "ticket": 1}, [], Path("a.sct"), 0)


def test_every_record_of_every_trace_comes_once(traces: Path) -> None:
    found = [list(records) for records in read_records([traces])]
    assert len(found) == len(list(traces.glob("*.sct")))
    for trace in found:
        assert [record.number for record in trace] == list(range(len(trace)))
        assert len({(record.role, record.endpoint) for record in trace}) == 1


@pytest.mark.parametrize(
    ("wanted", "does"),
    [
        (RecordFilter(), True),
        (RecordFilter(endpoint="store 10"), True),
        (RecordFilter(endpoint="source"), False),
        (RecordFilter(kind="persist"), True),
        (RecordFilter(kind="Sent"), False),
        (RecordFilter(since=2_000_000_006), False),
        (RecordFilter(until=2_000_000_004), False),
        (RecordFilter(since=2_000_000_005, until=2_000_000_005), True),
        (RecordFilter(number=1), False),
    ],
)
def test_a_filter_passes_the_wanted_records(wanted: RecordFilter, does: bool) -> None:
    assert (RECORD in wanted) is does


@pytest.mark.parametrize(
    ("value", "number", "does"),
    [
        ({"first": 3, "last": 5}, 5, True),
        ({"first": 3, "last": 5}, 6, False),
        ({"first": 3, "count": 2}, 4, True),
        ({"first": 3, "count": 2}, 5, False),
        ({"first": 3}, 3, True),
        ({"first": 3, "last": None}, 4, False),
        ({"number": 7}, 7, True),
        ({"message": {"number": 7}}, 7, True),
        ([7], 7, False),
    ],
)
def test_numbers_are_named_alone_and_in_ranges(value: object, number: int, does: bool) -> None:
    assert names(value, number) is does


def test_kinds_are_those_of_what_is_inside_too() -> None:
    assert list(kinds({"_": "Send", "to": "a", "message": {"_": "StableAck", "first": 1}})) == ["Send", "StableAck"]


def test_a_record_for_people_has_a_line_for_each_effect() -> None:
    record = attrs.evolve(RECORD, effects=[{"_": "Send", "to": "b", "message": {"_": "Keepalive", "by": 1}}])
    first, second = sentence(record)
    assert first == "      3 2.000000005 store 10.0.0.1:1  <- Persisted(ticket=1)"
    assert second.endswith('-> Send(to="b", message=Keepalive(by=1))')
    assert shown({"_": "Long", "text": "x" * 1000}).endswith("...)")
    assert record.as_json()["n"] == 3


def test_a_line_that_is_no_record_is_told(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(traces, "source"))
    frames = [max(frames, key=len)]
    frames[0][1] = {"n": 0}
    path = put_together(tmp_path / "bad.sct", frames)
    with pytest.raises(TraceError, match="byte 0: a line is no record"):
        list(next(read_records([path])))
