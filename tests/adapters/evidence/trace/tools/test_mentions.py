"""The text search skips no frame that states something about a number."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine import serial
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.frames import Foot, Head, TraceFrame
from stablecast.evidence.trace.tools import mentions
from stablecast.evidence.trace.tools.mentions import Mentions
from stablecast.evidence.trace.tools.message_history import why

NUMBERS = st.one_of(
    st.integers(0, 200),
    st.integers(0, 10**6),
    st.integers(serial.MODULUS - 50, serial.MODULUS + 50),
    st.integers(0, 1 << 40),
)


def _frame(role: Role, record: str) -> TraceFrame:
    return TraceFrame(Head(0, role, "somebody", 0, 0, 0, b"{}"), record.encode() + b"\n", Foot(1, "", False))


def test_every_story_is_that_of_all_records(whole_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = (0, 1, 3, 9, 20, 47, 101)
    found = [why([whole_world], number) for number in numbers]
    assert any(found)
    monkeypatch.setattr(Mentions, "ranges_in", lambda *_: True)
    assert [why([whole_world], number) for number in numbers] == found


def test_most_frames_are_passed_over(whole_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, found = 0, 0
    inner = Mentions.ranges_in

    def counted(self: Mentions, frame: TraceFrame) -> bool:
        nonlocal asked, found
        there = inner(self, frame)
        asked, found = asked + 1, found + there
        return there

    monkeypatch.setattr(Mentions, "ranges_in", counted)
    why([whole_world], 3)
    assert found * 2 < asked


@given(NUMBERS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_range_is_found_as_it_stands_and_as_on_the_wire(number: int, before: int, after: int) -> None:
    first, last = max(0, number - before), number + after
    for low, high in ((first, last), (serial.wire(first), serial.wire(last))):
        for end in ("}", ',"nack":false}'):
            assert Mentions(number).ranges_in(_frame(Role.SOURCE, f'{{"first":{low},"last":{high}{end}'))


@given(NUMBERS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_run_is_found(number: int, before: int, after: int) -> None:
    first = max(0, number - before)
    count = number - first + 1 + after
    sent = _frame(Role.SOURCE, f'{{"_":"Sent","first":{first},"count":{count},"payload_bytes":1}}')
    kept = _frame(Role.STORE, f'{{"_":"PersistMessages","skip":0,"count":{count},"first":{first},"done":true}}')
    given = _frame(Role.RECEIVER, f'{{"_":"Deliver","skip":0,"count":{count},"first":{first},"recovered":false}}')
    assert all(Mentions(number).ranges_in(frame) for frame in (sent, kept, given))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers_are_compared_by_their_digits(number: int, other: int) -> None:
    assert bool(re.fullmatch(mentions._at_most(number), str(other))) == (other <= number)
    assert bool(re.fullmatch(mentions._at_least(number), str(other))) == (other >= number)


def test_ranges_before_or_after_the_number_are_not_found() -> None:
    for text in ('"first":0,"last":41}', '"first":43,"last":99}', '"first":430,"count":9}', '"first":420,"last":421}'):
        assert not Mentions(42).ranges_in(_frame(Role.SOURCE, text))


def test_an_acknowledgement_of_a_higher_number_covers_it() -> None:
    ack = '"message":{"_":"ConsumptionAck","incarnation":7,"source_reg_id":1,"receiver_reg_id":2,"number":%d,"flags":0}'
    heard, said = f'{{"_":"Arrived",{ack}}}', f'{{"_":"Send","to":"store:1",{ack}}}'
    for number, consumed in ((5, [(7, "2")]), (6, [(7, "2")]), (7, [])):
        assert list(Mentions(number).acks_in(_frame(Role.STORE, heard % 6))) == consumed
    assert list(Mentions(5).acks_in(_frame(Role.RECEIVER, said % 6))) == [(7, "store:1/2")]
    assert list(Mentions(serial.MODULUS + 5).acks_in(_frame(Role.STORE, heard % 6))) == [(7, "2")]
    assert list(Mentions(5).acks_in(_frame(Role.SOURCE, said % 6))) == []
