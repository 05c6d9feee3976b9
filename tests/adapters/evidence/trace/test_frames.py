"""The lines of a frame: what is written is read, and what is no frame gets one sentence."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import container
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.frames import (
    Foot,
    Head,
    TraceFrame,
    digest,
    first_line,
    frames_from,
    last_line,
    object_of,
    parse_frame,
)
from tests.adapters.evidence.trace.traced import (
    Frames,
    first_trace,
    put_together,
    read_frames,
    take_apart,
    with_records,
)

HEAD = Head(3, Role.STORE, "10.0.0.1:14567", 100, 7, 5_000, {"config": {"seed": 1}})
RECORDS: list[Json] = [{"n": 100, "t": 6_000, "in": {"_": "Tick"}, "out": []}]
BODY = b'{"n":100,"t":6000,"in":{"_":"Tick"},"out":[]}\n'
FOOT = Foot(1, digest({}), closed=True)


def write_frame(head: Head, body: bytes, foot: Foot) -> bytes:
    return first_line(head) + body + last_line(head.frame, foot)


def test_written_frames_are_read_back() -> None:
    found = parse_frame(write_frame(HEAD, BODY, FOOT))
    assert found == TraceFrame(HEAD, BODY, FOOT) == with_records(found, RECORDS)
    assert (found.records, found.count, found.end) == (RECORDS, 1, 6_000)
    empty = parse_frame(write_frame(HEAD, b"", FOOT))
    assert (empty, empty.records, empty.count, empty.end) == (TraceFrame(HEAD, b"", FOOT), [], 0, 5_000)


def test_the_lines_can_be_read_by_people() -> None:
    first, record, last = write_frame(HEAD, BODY, FOOT).decode().splitlines()
    assert first == (
        '{"frame":3,"version":7,"role":"store","endpoint":"10.0.0.1:14567","first":100,"gap":7,"time":5000,'
        '"snapshot":{"config":{"seed":1}}}'
    )
    assert record == '{"n":100,"t":6000,"in":{"_":"Tick"},"out":[]}'
    assert last == f'{{"end":3,"records":1,"digest":"{digest({})}","closed":true}}'


def test_a_frame_that_was_not_finished_may_lack_its_last_line() -> None:
    text = write_frame(HEAD, BODY, FOOT)
    lines = text.splitlines(keepends=True)
    assert parse_frame(text, finished=False) == TraceFrame(HEAD, BODY, FOOT)
    found = parse_frame(b"".join(lines[:2]), finished=False)
    assert found == TraceFrame(HEAD, BODY, Foot(1, "", closed=False))
    assert not found.foot.ends_known
    assert parse_frame(lines[0], finished=False) == TraceFrame(HEAD, b"", Foot(0, "", closed=False))
    with pytest.raises(TraceError, match="'end' should be"):
        parse_frame(b"".join(lines[:2]))


def test_an_endpoint_that_ends_its_trace_says_in_which_state() -> None:
    assert Foot(1, "", closed=True).ends_known


def test_the_order_in_a_snapshot_counts() -> None:
    """Machines walk through their tables in order: another order is another state."""
    assert digest({"a": 1, "b": 2}) != digest({"b": 2, "a": 1})


def edit(at: int, **fields: object) -> Callable[[Frames], None]:
    return lambda frames: frames[0][at].update(fields)


def drop(at: int, field: str) -> Callable[[Frames], None]:
    return lambda frames: frames[0][at].pop(field) and None


def one_line(frames: Frames) -> None:
    del frames[0][1:]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (edit(0, version=4), "the trace is of version 4 and this program reads version 7: verify it with the release"),
        (drop(0, "version"), "the trace is of version None"),
        (edit(0, role="oracle"), "role 'oracle' is unknown"),
        (edit(0, role=1), "'role' should be of type str, it is 1"),
        (edit(0, snapshot=[]), r"'snapshot' should be of type dict, it is \[\]"),
        (edit(0, gap=True), "'gap' should be of type int, it is True"),
        (edit(0, time=1 << 70), "'time' does not fit 64 bits"),
        (edit(-1, end=5), "begins as frame 0 and ends as frame 5"),
        (drop(-1, "digest"), "'digest' should be of type str, it is None"),
        (edit(-1, closed=0), "'closed' should be of type bool, it is 0"),
        (one_line, "has a first and a last line, this one has 1"),
    ],
)
def test_a_malformed_frame_gets_one_sentence(
    traces: Path, tmp_path: Path, damage: Callable[[Frames], None], sentence: str
) -> None:
    frames = take_apart(first_trace(traces, "store"))
    damage(frames)
    path = put_together(tmp_path / "odd.sct", frames)
    with pytest.raises(TraceError, match=f"odd.sct, frame 0: .*{sentence}"):
        list(read_frames(path))


@pytest.mark.parametrize("line", [b"no JSON", b"[1]", b"\xff", b"[" * 100_000, b"1" * 5000])
def test_lines_that_are_no_objects_get_one_sentence(line: bytes) -> None:
    with pytest.raises(TraceError, match="a line is not"):
        parse_frame(line + b"\n" + line)
    with pytest.raises(TraceError, match=r"^a line is not"):
        _ = TraceFrame(HEAD, line + b"\n", FOOT).records
    with pytest.raises(TraceError, match=r"^here: a line is not"):
        _ = TraceFrame(HEAD, BODY + line + b"\n", FOOT, "here").records


def test_frames_from_the_middle_name_their_place(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(traces, "store"))
    frames[2][0]["role"] = "oracle"
    path = put_together(tmp_path / "odd.sct", frames)
    starts = container.offsets(path)
    assert [offset for _, offset in frames_from(path, starts[3])] == starts[3:-1]
    with pytest.raises(TraceError, match=f"odd.sct, the frame at byte {starts[2]}: role 'oracle' is unknown"):
        list(frames_from(path, starts[2]))


def test_a_snapshot_is_read_when_it_is_asked_for() -> None:
    """However the line is written; only the recorder's own form is not read at once."""
    text = write_frame(HEAD, BODY, FOOT)
    spaced = text.replace(b',"snapshot":', b', "snapshot": ')
    moved = text.replace(b'{"frame":3,', b"{").replace(b"}},\n", b"}}\n").replace(b'}}\n{"n"', b'},"frame":3}\n{"n"')
    for one in (text, spaced, moved):
        found = parse_frame(one).head
        assert (found, found.snapshot, found.digest) == (HEAD, HEAD.snapshot, digest(HEAD.snapshot))
    broken = parse_frame(text.replace(b'{"config":', b'{"config",'))
    with pytest.raises(TraceError, match="a line is not JSON"):
        _ = broken.head.snapshot


TEXT = st.text(st.characters(exclude_characters="\x7f", exclude_categories=["Cs"]))
"""JSON may have DEL as it is or escaped: the two encoders differ there, and nowhere else."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(Role) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_a_digest_is_of_the_text_that_the_stdlib_writes(snapshot: dict[str, Any]) -> None:
    assert digest(snapshot) == sha256(json.dumps(snapshot, separators=(",", ":")).encode()).hexdigest()


@pytest.mark.parametrize("value", [b"{},", b"[],", b"[1],"])
def test_a_line_of_lists_takes_no_memory_out_of_proportion(value: bytes) -> None:
    """A list of three bytes takes 72 bytes of memory: 15 KB of trace became 4.7 GiB."""
    with pytest.raises(TraceError, match="lists and objects"):
        object_of(b'{"x":[' + value * 400_000 + b"1]}")
    assert len(object_of(b'{"x":[' + value * 200_000 + b"1]}")["x"]) == 200_001
