"""L2: sources that wait for their transport, or for credit, and what excuses them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.client import Context
from stablecast.config.option_kinds import Value
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.effects import Notify
from stablecast.core.protocol.events import (
    Reclaimed,
    RegistrationComplete,
    RegistrationFlag,
    Stable,
    StableFlag,
    Wakeup,
)
from stablecast.core.protocol.inputs import Arrived, Blocked, Held, Sent, Tick
from stablecast.core.protocol.messages import Keepalive, Pace, Role, StableAck
from stablecast.core.protocol.settings import Retention
from stablecast.evidence.trace import progress_rule
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.flight_rule import FlightKept
from stablecast.evidence.trace.frames import frames_from
from stablecast.evidence.trace.progress_rule import GoesOn
from stablecast.evidence.trace.quorums import Acknowledged
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.runtime.reliable_stream import ReliableStream
from tests.adapters.evidence.trace.rule_probe import ask
from tests.adapters.evidence.trace.test_endpoint_rules import LIFE, source
from tests.support.network import Network, network, until

TURN = 500 * MILLISECOND
ALL = StableFlag.STABLE
GROUP = "239.192.7.12"


class Trace:
    """A trace of one source over LBT-RM that is judged while it is told; its clock moves on by hand."""

    def __init__(self, transport: str = "LBTRM:1.2.3.4:14390:00000001:239.1.1.1:14400", **more: Any) -> None:
        machine = source(**more)
        machine.config = attrs.evolve(machine.config, transport=transport)
        self.stores = Acknowledged.begin(machine)
        self.flight = FlightKept.begin(machine)
        self.rule = GoesOn.begin(machine, self.stores, self.flight)
        self.now = 10**12
        self.record = 0
        self.found: list[str] = []

    def tell(self, *facts: Any) -> None:
        for fact in facts:
            text = self.rule.at(self.record, self.now)
            self.found += [] if text is None else [text]
            if isinstance(fact, Sent):
                self.stores.on_sent(fact)
            if isinstance(fact, Arrived) and isinstance(fact.message, StableAck):
                self.stores.on_acked(fact.message)
            assert ask(self.flight, fact) is None
            assert ask(self.rule, fact) is None
            self.record += 1

    def run(self, seconds: float, *each: Any) -> None:
        """So much time with a record each half second, of these and a tick."""
        for _ in range(int(seconds * SECOND) // TURN):
            self.now += TURN
            self.tell(*each, Tick())

    def stop(self, seconds: int) -> None:
        self.now += seconds * SECOND


def alive(*stores: int) -> list[Arrived]:
    return [Arrived(Keepalive(Role.STORE, LIFE, 5, respond=False, store_index=store)) for store in stores]


def acked(store: int, first: int, last: int, **more: Any) -> Arrived:
    return Arrived(StableAck(store, LIFE, first, last, **more))


BEGUN = (Notify(RegistrationComplete(0, RegistrationFlag.NONE)), Sent(0, 10, 1000))
FULL = Blocked(100)


def stuck(on: str, trace: Trace) -> bool:
    return len(trace.found) == 1 and trace.found[0].endswith(on)


def test_a_transport_that_never_lets_a_source_go_on() -> None:
    trace = Trace()
    trace.tell(*BEGUN, Held(held=True))
    trace.run(30.5)
    assert trace.found == []
    trace.run(100)
    waits = "it waits for its transport, which takes nothing and lets nothing go"
    assert trace.found == [f"the source is stuck since record 2, for 31 s in which it ran: {waits}"]


def test_a_transport_that_is_slow_is_excused_by_what_waits_for_it() -> None:
    """And a source that is let go on now and then is not stuck."""
    trace = Trace()
    trace.tell(BEGUN[0], Sent(0, 1, 100_000), Held(held=True))
    trace.run(120)
    assert trace.found == []
    for _ in range(10):
        trace.tell(Held(held=False), Held(held=True))
        trace.run(20)
    assert trace.found == []
    trace.run(200)
    assert len(trace.found) == 1


def test_a_trace_that_ends_soon_after_is_none_and_time_in_which_it_did_not_run_does_not_count() -> None:
    trace = Trace()
    trace.tell(*BEGUN, Held(held=True), FULL)
    for _ in range(5):
        trace.run(3)
        trace.stop(1000)
    trace.tell(Tick())
    assert trace.found == []


def test_a_receiver_over_tcp_may_hold_its_source() -> None:
    trace = Trace("10.0.0.1:14371")
    trace.tell(*BEGUN, Held(held=True))
    trace.run(1000, *alive(0, 1, 2))
    assert trace.found == []


def test_credit_that_does_not_come_back_although_stores_acknowledged() -> None:
    trace = Trace()
    trace.tell(*BEGUN, FULL, acked(0, 0, 9))
    trace.run(30, *alive(0, 2))
    assert trace.found == [], "one of three is not enough"
    trace.tell(acked(1, 0, 9))
    trace.run(30)
    assert stuck("credit, although enough stores acknowledged everything that it sent", trace)
    assert "since record 2, for 40 s" in trace.found[0]


def test_credit_that_comes_back_is_a_wakeup() -> None:
    trace = Trace()
    trace.tell(*BEGUN, FULL, acked(0, 0, 9), acked(1, 0, 9), Notify(Stable(0, 9, 0, ALL)), Notify(Wakeup()))
    trace.run(500, *alive(0, 1, 2))
    assert trace.found == []


def test_stores_that_answer_and_never_acknowledge() -> None:
    trace = Trace()
    trace.tell(*BEGUN, acked(0, 0, 9), FULL)
    trace.run(59, *alive(0, 1))
    assert trace.found == []
    trace.run(5, *alive(0, 1))
    assert stuck("message 0, which stores [1] do not acknowledge although they answer", trace)


@pytest.mark.parametrize(
    "excuse",
    [
        pytest.param({"alive": (0,)}, id="too few stores are there"),
        pytest.param({"more": {"pace": Pace.RECEIVERS, "flight_bytes": 10_000}}, id="receivers set the pace"),
        pytest.param({"more": {"confirmations": True}}, id="receivers confirm"),
        pytest.param({"more": {"retention": Retention(unique_confirmations=1)}}, id="so many receivers confirm"),
        pytest.param({"more": {"stability_timeout_ns": 200 * SECOND}}, id="it is sent again seldom"),
        pytest.param({"first": acked(1, 5, 9, nack=True)}, id="a store refuses it"),
        pytest.param({"each": acked(0, 0, 0)}, id="stores acknowledge all the time"),
    ],
)
def test_unstable_messages_have_excuses(excuse: dict[str, Any]) -> None:
    trace = Trace(**excuse.get("more", {}))
    trace.tell(*BEGUN, acked(0, 1, 9), FULL)
    first, each = excuse.get("first"), excuse.get("each")
    for _ in range(100):
        trace.run(4, *([each] if each else []), *alive(*excuse.get("alive", (0, 1))), *([first] if first else []))
    assert trace.found == []


def test_a_store_that_was_away_has_time_when_it_is_back() -> None:
    trace = Trace()
    trace.tell(*BEGUN, acked(0, 0, 9), FULL)
    for _ in range(10):
        trace.run(30, *alive(0, 1))
        trace.run(30, *alive(0))
    assert trace.found == []


def test_reclaimed_messages_are_not_waited_for() -> None:
    trace = Trace()
    trace.tell(*BEGUN, FULL, Notify(Reclaimed(0, 9, forced=True)), Notify(Wakeup()))
    trace.run(500, *alive(0, 1, 2))
    assert trace.found == []


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Network]:
    async with network(tmp_path) as started:
        yield started


@pytest.fixture
def where(tmp_path: Path) -> Path:
    directory = tmp_path / "traces"
    directory.mkdir()
    return directory


async def test_a_source_that_its_transport_forgot_is_named(
    net: Network, where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old fault planted again, on real sockets: a source that was held once never goes on."""
    push = ReliableStream._push

    def push_unless_held(stream: ReliableStream) -> None:
        if not stream._held:
            push(stream)

    monkeypatch.setattr(progress_rule, "HELD_NS", 100 * MILLISECOND)
    monkeypatch.setattr(progress_rule, "SLOWEST", 1_000_000)
    monkeypatch.setattr(ReliableStream, "_push", push_unless_held)
    options: dict[str, Value] = {
        "transport": "lbtrm",
        "transport_lbtrm_multicast_address": GROUP,
        "transport_lbtrm_data_rate_limit": 100_000,
    }
    store = await net.store()
    async with Context(trace=where) as context:
        source = await context.source("orders", stores=[store], options=options)
        sending = asyncio.ensure_future(source.send_many([bytes(500)] * 20))
        await until(lambda: source._out.held)
        await asyncio.sleep(1.2)  # A record comes at least each half second, and that is what is judged.
        sending.cancel()
    summary = verify_paths(find([where]))
    assert [one.rule for one in summary.violations] == ["L2"]
    assert "it waits for its transport" in summary.violations[0].text


async def test_a_source_that_reaches_its_rate_limit_again_and_again_is_clean(
    net: Network, where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_rule, "HELD_NS", 10 * SECOND)
    options: dict[str, Value] = {
        "transport": "lbtrm",
        "transport_lbtrm_multicast_address": GROUP,
        "transport_lbtrm_data_rate_limit": 200_000,
    }
    store = await net.store()
    async with Context(trace=where) as context:
        source = await context.source("orders", stores=[store], options=options)
        last = await source.send_many([bytes(500) for _ in range(100)])
        assert last is not None
        await source.wait_stable_through(last)
    summary = verify_paths(find([where]))
    assert summary.clean
    inputs = [line["in"]["_"] for path in find([where]) for frame, _ in frames_from(path) for line in frame.records]
    assert inputs.count("Held") >= 10
