"""The outbox: blocks as columns, credit that is never exceeded, and when a block leaves."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import OversizeError
from stablecast.core.protocol.inputs import Blocked, Sent
from stablecast.core.protocol.messages import StableAck
from stablecast.core.protocol.settings import FlightBehavior
from stablecast.core.source.outbox import (
    FLUSH_BYTES,
    FULL,
    MAX_BLOCK_BYTES,
    PLAN,
    PROMPT,
    PROMPT_MESSAGES,
    REFUSED,
    TURN_MESSAGES,
    WAITS,
    Block,
    Extra,
    Outbox,
)
from tests.core.drivers import SourceDriver
from tests.core.samples import LIFE

LONGEST = 60_000
CUT = Extra(0, None, 3)
NAMED = Extra(4, None, 1)


def outbox(first: int = 0, longest: int = LONGEST, stores: int = 0, **changes: Any) -> tuple[Outbox, SourceDriver]:
    """An outbox and the machine that grants it credit."""
    driver = SourceDriver.active(stores=stores, **changes)
    driver.machine.window.begin(first)
    out = Outbox(driver.machine)
    out.limit(longest)
    out.begin(first)
    return out, driver


def taken(out: Outbox) -> list[Block]:
    blocks = []
    while out.waiting:
        blocks.append(out.take())
    return blocks


@given(st.lists(st.binary(max_size=3), min_size=1, max_size=300), st.integers(0, 1 << 33), st.integers(1, 400))
def test_a_list_makes_the_block_that_its_messages_make_one_by_one(
    contents: list[bytes], first: int, credit: int
) -> None:
    out, _ = outbox(first, stores=1, flight_messages=credit)
    block = out.block_of(contents, 0)
    single, _ = outbox(first, stores=1, flight_messages=credit)
    single.collects = True
    acts = [single.offer(content) for content in contents]
    assert [block] == taken(single)
    assert acts == [WAITS] * min(credit, len(contents)) + [REFUSED] * max(0, len(contents) - credit)
    assert out.report() == single.report()
    assert out.next == single.next == first + min(credit, len(contents))


def test_a_message_that_must_go_alone_makes_no_block() -> None:
    """No credit, no room in bytes, no message, too long a message, or many that are longer than the first."""
    none, _ = outbox(stores=1)
    none.hold(True)
    assert none.block_of([b"a", b"b"], 0) is None
    assert outbox(stores=1, flight_bytes=1)[0].block_of([b"a", b"b"], 0) is None
    assert outbox(longest=1)[0].block_of([b"a", b"bb"], 0) is None
    for content in (bytearray(b"a"), "a"):
        assert outbox()[0].block_of([content], 0) is None
        assert outbox()[0].block_of([b"a", content], 0) is None
    out, _ = outbox()
    assert out.block_of([b"", *[bytes(LONGEST)] * 9], 0) is None
    assert out.next == 0


def test_blocks_are_bounded() -> None:
    out, _ = outbox()
    many = out.block_of([b"x"] * 9999, 0)
    large = out.block_of([bytes(1000)] * 999, 0)
    assert many is not None
    assert large is not None
    assert many.count == TURN_MESSAGES
    assert large.payload_bytes <= FLUSH_BYTES + 2000 < MAX_BLOCK_BYTES


@given(st.lists(st.sampled_from([None, NAMED, CUT]), max_size=12))
def test_blocks_are_plain_or_not_and_as_long_as_they_can_be(kinds: list[Extra | None]) -> None:
    out, _ = outbox(5)
    out.collects = True
    for place, extra in enumerate(kinds):
        assert out.add(bytes(place), extra) == WAITS
    blocks = taken(out)
    assert [len(payload) for block in blocks for payload in block.payloads] == list(range(len(kinds)))
    numbers = [number for block in blocks for number in range(block.first, block.first + block.count)]
    assert numbers == list(range(5, out.next))
    assert [extra for block in blocks for extra in block.extras] == [extra for extra in kinds if extra]
    assert all(last - first == 2 for block in blocks for first, last in block.large)
    assert sum(len(block.large) for block in blocks) == kinds.count(CUT)
    assert all(bool(one.extras) != bool(other.extras) for one, other in pairwise(blocks))
    assert out.longest == LONGEST
    sent = out.report()
    assert (sent is None) == (not kinds)
    assert sent is None or sent.payload_bytes == sum(range(len(kinds)))


ACTS = st.one_of(
    st.tuples(st.sampled_from(["offer", "cut"]), st.integers(0, 9)),
    st.tuples(st.sampled_from(["flush", "report", "settle"]), st.just(0)),
)


@given(st.integers(1, 6), st.sampled_from([0, 20]), st.lists(ACTS, max_size=80))
def test_credit_is_never_exceeded_and_not_lost(flight: int, size: int, acts: list[tuple[str, int]]) -> None:
    """The machine may learn late of what left; a message that was cut counts once."""
    out, driver = outbox(stores=1, flight_messages=flight, flight_bytes=size)
    out.collects = True
    queued: list[Sent | None] = []
    unsettled: list[tuple[int, int]] = []
    """Last numbers and bytes of the messages that are taken and not stable."""
    for act, length in acts:
        match act:
            case "offer" | "cut":
                extra = CUT if act == "cut" else None
                full = len(unsettled) >= flight or (size and sum(octets for _, octets in unsettled) + length > size)
                assert not (out.fits(length) and full)
                assert out.fits(length) or full or size or queued
                if out.fits(length):
                    if extra or out.mixes(None):
                        out.add(bytes(length), extra)
                    else:
                        assert out.offer(bytes(length)) in (WAITS, FULL)
                    unsettled.append((out.next - 1, length))
            case "flush":
                while out.waiting:
                    queued.append(out.report(out.take().large))
            case "report":
                for sent in filter(None, queued):
                    driver.feed(sent)
                queued.clear()
            case _ if driver.machine.next_number:
                newest = driver.machine.next_number - 1
                driver.hear(StableAck(0, LIFE, 0, newest))
                unsettled = [(last, octets) for last, octets in unsettled if last > newest]


@pytest.mark.parametrize("config", [{"stores": 0}, {"stores": 1, "flight_behavior": FlightBehavior.NOTIFY}])
def test_who_waits_for_no_room_has_no_limit(config: dict[str, Any]) -> None:
    out, _ = outbox(flight_messages=1, flight_bytes=1, **config)
    out.collects = True
    assert [out.offer(bytes(5)) for _ in range(4)] == [WAITS] * 4
    out.check_size(1 << 30)


def test_a_message_that_never_fits_is_refused() -> None:
    out, _ = outbox(stores=1, flight_bytes=10)
    out.check_size(10)
    with pytest.raises(OversizeError):
        out.check_size(11)


def test_the_first_messages_of_a_turn_leave_at_once() -> None:
    out, _ = outbox()
    for calm in (False, True):
        acts = []
        for _ in range(PROMPT_MESSAGES + 2 - 2 * calm):
            acts.append(out.offer(b"x"))
            if acts[-1] & PROMPT:
                assert out.take().count == 1
        assert acts == [PLAN | PROMPT, *[PROMPT] * (PROMPT_MESSAGES - 1), *[WAITS] * (2 - 2 * calm)]
        assert out.end_turn() == (PLAN if calm else FULL)
        assert out.calm is calm
        taken(out)
        out.report()
        assert out.end_turn() == WAITS


def test_an_interval_is_planned_once_and_a_long_block_ends_it() -> None:
    out, _ = outbox()
    out.collect(30, 1000)
    for _ in range(2):
        assert [out.offer(b"x"), out.offer(b"x"), out.offer(b"x")] == [PLAN, WAITS, FULL]
        assert [block.count for block in taken(out)] == [3]
        out.end_interval()
    assert out.offer(bytes(99)) == PLAN | FULL


def test_a_batch_of_the_application_collects_until_it_ends() -> None:
    out, _ = outbox()
    out.collect(30, 1000)
    out.open_batch()
    out.open_batch()
    assert {out.offer(b"x") for _ in range(9)} == {WAITS}
    out.end_interval()
    assert out.end_turn() == WAITS
    assert not out.close_batch()
    assert out.offer(bytes(FLUSH_BYTES)) == FULL
    assert out.close_batch()
    taken(out)
    assert out.offer(b"x") == PLAN


def test_a_message_joins_no_others_and_others_join_no_message() -> None:
    out, _ = outbox()
    out.collects = True
    assert not out.mixes(None)
    out.add(b"x", NAMED)
    assert out.offer(b"x") == REFUSED
    assert (out.mixes(None), out.mixes(NAMED)) == (True, False)
    taken(out)
    out.offer(b"x")
    assert (out.mixes(None), out.mixes(NAMED)) == (False, True)


def test_who_was_turned_away_by_the_transport_is_woken_when_it_goes_on() -> None:
    out, _ = outbox(stores=1)
    assert out.refuse(5) == Blocked(5)
    assert not out.hold(True)
    assert (out.credit, out.offer(b"x"), out.refuse(5)) == (0, REFUSED, None)
    assert out.hold(False)
    assert out.credit > 0
    assert not out.hold(True)
    assert not out.hold(False)


def test_nothing_is_taken_before_the_first_number_is_known_or_after_the_end() -> None:
    driver = SourceDriver.active()
    out = Outbox(driver.machine)
    assert (out.may_send, out.fits(0)) == (False, False)
    out.begin(0)
    assert out.may_send
    out.ended = True
    assert (out.may_send, out.credit) == (False, 0)
