"""A run that simply goes on takes a short way through the session: the same state and effects as by the long one."""

from itertools import product
from typing import Any
from unittest.mock import patch

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.serial import MODULUS, wire
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Consumed, Data, History, Input, Lost, Tick, Withdraw
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, Ordering, OtrTimes
from stablecast.core.receiver.arrival import Arrivals
from tests.core.drivers import ReceiverDriver
from tests.core.samples import LIFE, OLDER_LIFE

START = MODULUS - 20
"""The numbers of the wire wrap on the way."""

REPAIRS = (Repair.ALL, Repair.ALL & ~Repair.TELL_LIVES)
"""Lives are told apart, or not."""

NEAR = st.one_of(st.just(0), st.just(0), st.integers(-6, 6))
"""Mostly where the stream goes on."""

STEP = st.one_of(
    st.tuples(st.just("live"), st.just(0), st.integers(1, 6)),
    st.tuples(st.just("live"), st.just(0), st.integers(1, 6)),
    st.tuples(st.sampled_from(["live", "recovered", "older", "foreign", "fill", "fill"]), NEAR, st.integers(1, 3)),
    st.tuples(
        st.sampled_from(["lost", "burst", "history", "consumed", "inform"]), st.integers(-6, 6), st.integers(1, 3)
    ),
    st.tuples(st.sampled_from(["tick", "withdraw"]), st.integers(0, 30), st.just(0)),
)


@attrs.define
class Both:
    """The same session by both ways; `token` is the last one, `now` the time."""

    short: ReceiverDriver
    long: ReceiverDriver
    token: int = 0
    now: int = 0

    @classmethod
    def of(cls, wish: int, **changes: Any) -> "Both":
        """Delivering from `wish` on."""
        place = {"low": START - 6, "high": START - 1}
        short, long = (ReceiverDriver.active(**place, wish=wish, **changes) for _ in range(2))
        return cls(short, long)

    def feed(self, event: Input) -> None:
        """Feed both, and compare."""
        self.short.feed(event, self.now)
        with patch.object(Arrivals, "goes_on", lambda *_: None):
            self.long.feed(event, self.now)
        assert self.short.effects == self.long.effects
        assert self.short.machine == self.long.machine

    def step(self, kind: str, place: int, count: int) -> None:
        """One thing that happens, at a place near the newest number."""
        machine = self.short.machine
        first = machine.arrivals.high + 1 + place
        match kind:
            case "live" | "recovered" | "older" | "foreign" | "fill":
                self.token += 1
                if kind == "fill":
                    first = (machine.window.next or 0) + place
                life = OLDER_LIFE if kind == "older" else LIFE
                session = OLDER_LIFE if kind == "foreign" else LIFE
                self.feed(Data(session, life, wire(first), count, 9, kind == "recovered", self.token))
            case "lost" | "burst":
                self.feed(Lost(LIFE, wire(first), count, kind == "burst"))
            case "history":
                self.feed(History(LIFE if count > 1 else OLDER_LIFE, first, first + count - 1))
            case "consumed":
                if machine.window.delivered(first, first + count):
                    self.feed(Consumed(first, first + count - 1))
            case "inform":
                for driver in (self.short, self.long):
                    driver.inform(1, 1, 1, high=first, now=self.now)
            case "tick":
                self.now += place
                self.feed(Tick())
            case _:
                if place == 0:
                    self.feed(Withdraw())


@pytest.mark.no_cover
@given(
    st.sampled_from(Ordering),
    st.sampled_from(REPAIRS),
    st.sampled_from(AckMode),
    st.integers(START - 6, START),
    st.lists(STEP, max_size=40),
)
@settings(max_examples=300)
def test_both_ways_come_to_the_same(
    ordering: Ordering, repairs: Repair, mode: AckMode, wish: int, steps: list[tuple[str, int, int]]
) -> None:
    changes = {"ordering": ordering, "repairs": repairs, "ack_mode": mode, "otr": OtrTimes(delay_ns=10)}
    both = Both.of(wish, proximity=12, burst=4, **changes)
    for step in steps:
        both.step(*step)


def test_a_stream_without_gaps_takes_the_short_way_only() -> None:
    """Every run of it, in both orders, lives told apart or not; the wrap of the numbers included."""
    for ordering, repairs in product(Ordering, REPAIRS):
        driver = ReceiverDriver.active(low=START, high=START - 1, ordering=ordering, repairs=repairs)
        driver.data(START, 1)
        with patch.object(Arrivals, "on_data", side_effect=AssertionError("the long way")):
            for number in range(START + 1, START + 41, 4):
                driver.data(number, 4)
                assert driver.effects == [fx.Deliver(driver.tokens, 0, 4, number, False, True, False)]


def test_the_short_way_delivers_no_message_of_an_earlier_session() -> None:
    """Its source says less than it has sent, and a run goes on where it says."""
    driver = ReceiverDriver.active(low=START, high=START - 1)
    driver.data(START, 1)
    driver.feed(History(LIFE, START + 2, START + 3))
    driver.data(START + 1, 4)
    assert driver.delivered == [START, START + 1, START + 4]
