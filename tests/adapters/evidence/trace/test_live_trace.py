"""Machines that are judged while they run: each step at once, and all of them together in the end."""

from typing import Any

import attrs

from stablecast.core.protocol.inputs import Arrived, Input, Persisted, Sent, Tick
from stablecast.core.protocol.messages import Role, StableAck
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.live_trace import LiveLedger
from tests.adapters.evidence.trace.test_endpoint_rules import held, source, store, written

SENT = Sent(0, 3, 30)


@attrs.define
class Kept:
    """A recorder that keeps what it gets."""

    steps: list[tuple[Input, int, Any]] = attrs.field(factory=list)
    closed: bool = False

    def record(self, event: Input, now: int, effects: Any) -> None:
        self.steps.append((event, now, effects))

    def close(self) -> None:
        self.closed = True


@attrs.define
class Told:
    rules: list[str] = attrs.field(factory=list)

    def report(self, rule: str, _: str) -> None:
        self.rules.append(rule)

    def ledger(self) -> LiveLedger:
        return LiveLedger(self.report, lambda address: address.partition(":")[0])


def test_a_step_is_judged_when_it_is_made() -> None:
    told, kept = Told(), Kept()
    trace = told.ledger().follow(Role.STORE, "store0", store(), kept)
    for event, effects in ((Tick(), [written(1, 0, 3)]), (Persisted(1), [held(0, 2)])):
        trace.record(event, 5, effects)
        assert told.rules == []
    trace.record(Tick(), 6, [held(0, 3)])
    trace.close()
    assert told.rules == ["P1"]
    assert ([now for _, now, _ in kept.steps], kept.closed) == ([5, 5, 6], True)


def acknowledged(port: int, *, given: bool, promised: bool = True) -> list[str]:
    """Return what is told of an acknowledgement of a store, which the source knows at port 0."""
    told = Told()
    ledger = told.ledger()
    keeper = ledger.follow(Role.STORE, "store0", StoreEndpoint.create(StoreConfig(f"s:{port}", 1)))
    sender = ledger.follow(Role.SOURCE, "source", source())
    for event in (SENT, Arrived(StableAck(0, 7, 0, 2))):
        sender.record(event, 1, [])
    keeper.record(Tick(), 1, [written(1, 0, 3)] if given else [])
    keeper.record(Persisted(1), 2, [held(0, 2)] if given else [])
    ledger.judge(lambda _: promised)
    return told.rules


def test_all_traces_must_agree() -> None:
    assert acknowledged(0, given=True) == []
    assert acknowledged(0, given=False) == ["P6"]
    assert acknowledged(0, given=False, promised=False) == []


def test_a_store_at_another_port_is_the_same() -> None:
    assert acknowledged(2, given=True) == []
    assert acknowledged(2, given=False) == ["P6"]
