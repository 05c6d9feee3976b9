"""Transmission: the window, the flight, retransmissions and watched receivers together."""

from typing import Any

import attrs
import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.serial import wire
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    Confirmed,
    ConfirmFlag,
    Event,
    FlightSize,
    NotStable,
    NotStableFlag,
    ReceiverGone,
    Reclaimed,
    SequenceNumberInfo,
    Stable,
    StableFlag,
    Wakeup,
)
from stablecast.core.protocol.inputs import Sent
from stablecast.core.protocol.messages import AckFlag, ConsumptionAck, StableAck
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import FlightBehavior, Retention, SourceConfig, StoreSpec
from stablecast.core.source.parts import enrollment_of
from stablecast.core.source.transmission import Transmission
from tests.core.samples import LIFE, drain, events, registered

STORES = (StoreSpec("store0:1"), StoreSpec("store1:1"), StoreSpec("store2:1"))
CONFIG = SourceConfig("topic", LIFE, "source:1", "stream:1", STORES, GroupRules((3,)), check_ns=10)
TWO_MESSAGES = ((0, 2), (4, 5))


class Flow:
    """Return the transmission of a source whose stores have all granted."""

    def __init__(self, **changes: Any) -> None:
        config = attrs.evolve(CONFIG, **changes)
        self.enrollment = enrollment_of(config)
        for index, registration in self.enrollment.registrations.items():
            registration.start(0, 0, [])
            registration.on_answer(registered(store_index=index), 0, [])
        self.machine = Transmission.create(config, self.enrollment.quorums)
        self.out: list[fx.Effect] = []
        self.machine.on_stores(self.enrollment, self.out)

    def told(self) -> list[Event]:
        return events(drain(self.out))

    def send(self, count: int, now: int = 0, large: tuple[tuple[int, int], ...] = ()) -> list[Event]:
        self.machine.window.now = now
        self.machine.on_sent(Sent(self.machine.window.next, count, 10 * count, large), now, self.out)
        return self.told()

    def ack(self, store: int, first: int, last: int, nack: bool = False) -> bool:
        return self.machine.on_stable(StableAck(store, LIFE, wire(first), wire(last), nack), 0, self.out)

    def time(self, now: int) -> list[fx.Effect]:
        self.machine.window.now = now
        self.machine.handle_timeout(self.enrollment, now, self.out)
        return drain(self.out)


def test_numbers_go_on_from_run_to_run() -> None:
    flow = Flow()
    flow.send(3)
    for wrong in (Sent(0, 3, 0), Sent(4, 1, 0), Sent(3, 0, 0)):
        with pytest.raises(MisuseError, match="expected a run from 3"):
            flow.machine.on_sent(wrong, 0, flow.out)


@pytest.mark.rows("P-334", "P-335", "P-678")
def test_large_messages_are_told_with_their_numbers() -> None:
    """U4."""
    assert Flow().send(6, large=TWO_MESSAGES) == [SequenceNumberInfo(0, 2), SequenceNumberInfo(4, 5)]
    assert Flow(stores=(), groups=GroupRules()).send(6, large=TWO_MESSAGES)[0] == SequenceNumberInfo(0, 2)


@pytest.mark.parametrize("large", [((0, 0),), ((4, 6),), ((0, 2), (2, 3)), ((-1, 2),)])
def test_large_messages_lie_in_their_run(large: tuple[tuple[int, int], ...]) -> None:
    flow = Flow()
    with pytest.raises(MisuseError, match=r"is not one in a run of 0\.\.5"):
        flow.send(6, large=large)
    assert (flow.machine.window.next, flow.out) == (0, [])


@pytest.mark.rows("P-302")
def test_acknowledgements_count_for_what_was_sent() -> None:
    """C-22."""
    flow = Flow()
    flow.send(3)
    for first, last in ((0, 3), (2, 1), (-1, 1)):
        assert not flow.ack(0, first, last)
    assert flow.told() == []
    assert flow.ack(0, 0, 2)
    assert flow.told() == [Stable(0, 2, 0, StableFlag.STORE)]
    assert flow.ack(1, 0, 1, nack=True)
    assert flow.told() == [NotStable(0, 1, 1, NotStableFlag.STORE | NotStableFlag.LOSS)]


@pytest.mark.rows("P-305", "P-307", "P-310", "P-312")
def test_stability_and_confirmations_free_the_flight() -> None:
    """Two stores of three and two receivers."""
    retention = Retention(unique_confirmations=2)
    flow = Flow(confirmations=True, retention=retention, flight_messages=3, flight_behavior=FlightBehavior.NOTIFY)
    assert flow.send(4) == [FlightSize(True)]
    flow.ack(0, 0, 3)
    flow.ack(1, 0, 3)
    flow.machine.on_confirmed(ConsumptionAck(LIFE, 0, 70, 3), 0, flow.out)
    assert FlightSize(False) not in flow.told()
    flow.machine.on_confirmed(ConsumptionAck(LIFE, 0, 71, 3, AckFlag.EXPLICIT), 0, flow.out)
    assert flow.told() == [
        Confirmed(0, 3, 71, ConfirmFlag.UNIQUE | ConfirmFlag.EXPLICIT),
        Reclaimed(0, 3, forced=False),
        FlightSize(False),
    ]


@pytest.mark.rows("P-521")
def test_a_blocked_send_is_woken_when_a_store_falls_silent() -> None:
    """T13: with one store of two gone, all-active asks the other one only."""
    flow = Flow(flight_messages=1)
    flow.send(1)
    flow.machine.on_blocked(1, 0, flow.out)
    flow.ack(0, 0, 0)
    assert Wakeup() not in flow.told()
    flow.ack(1, 0, 0)
    assert flow.told()[-1] == Wakeup()
    flow.machine.on_stores(flow.enrollment, flow.out)
    assert flow.out == []


@pytest.mark.rows("P-436")
def test_the_window_is_looked_at_while_there_is_something_in_it() -> None:
    """Sent again after the timeout, at the next check; nothing is due once all is settled."""
    flow = Flow(stability_timeout_ns=25)
    assert flow.machine.next() is None
    flow.send(3, now=3)
    flow.send(1, now=5)
    assert flow.machine.next() == 13
    flow.ack(0, 0, 3)
    assert [flow.time(now) for now in (13, 23)] == [[fx.Notify(Stable(0, 3, 0, StableFlag.STORE))], []]
    assert flow.time(28) == []
    resends = [fx.Resend(f"store{index}:1", LIFE, 0, 3, proactive=True) for index in (1, 2)]
    assert flow.time(33) == resends
    flow.ack(1, 0, 3)
    drain(flow.out)
    assert flow.time(43) == []
    assert flow.machine.next() is None


@pytest.mark.rows("P-324", "P-437", "P-438", "P-439")
def test_a_message_that_takes_too_long_is_given_up() -> None:
    flow = Flow(stability_timeout_ns=0, stability_lifetime_ns=50, flight_messages=3)
    flow.send(3)
    flow.machine.on_blocked(1, 0, flow.out)
    assert events(flow.time(49)) == []
    assert events(flow.time(59)) == [NotStable(0, 2, -1, NotStableFlag.TIMEOUT), Reclaimed(0, 2, True), Wakeup()]
    assert flow.machine.next() is None


def test_no_lifetime_gives_nothing_up() -> None:
    flow = Flow(stability_timeout_ns=0, stability_lifetime_ns=0)
    flow.send(3)
    assert flow.time(10**15) == []


@pytest.mark.rows("P-319")
def test_settled_messages_are_checked_until_they_are_old() -> None:
    flow = Flow(retention=Retention(age_ns=20))
    flow.send(3)
    flow.ack(0, 0, 2)
    flow.ack(1, 0, 2)
    drain(flow.out)
    assert events(flow.time(10)) == []
    assert events(flow.time(20)) == [Reclaimed(0, 2, forced=False)]
    assert flow.machine.next() is None


@pytest.mark.rows("P-028", "P-411")
def test_a_streaming_source_forgets_unless_late_join_retains() -> None:
    streaming: dict[str, Any] = {"stores": (), "groups": GroupRules()}
    flow = Flow(**streaming)
    assert flow.send(3) == []
    assert (flow.machine.window.trail, flow.machine.next()) == (3, None)
    flow = Flow(**streaming, late_join=True)
    flow.send(3)
    assert flow.machine.window.retained(0, 9) == (0, 3)
    assert flow.machine.flight.credit_messages(flow.machine.window) == 1000


@pytest.mark.rows("P-338")
def test_receivers_that_fall_silent_are_told_of() -> None:
    flow = Flow(liveness_ns=30)
    flow.machine.on_confirmed(ConsumptionAck(LIFE, 0, 70, 0), 5, flow.out)
    assert flow.machine.next() == 35
    [gone] = events(flow.time(35))
    assert isinstance(gone, ReceiverGone)
    flow.machine.on_confirmed(ConsumptionAck(LIFE, 0, 70, 0), 40, flow.out)
    flow.machine.stop()
    assert flow.machine.next() is None


@pytest.mark.parametrize(("liveness", "due"), [(30, 16), (3, 8)])
def test_messages_in_flight_and_receivers_are_each_looked_at_in_time(liveness: int, due: int) -> None:
    flow = Flow(liveness_ns=liveness)
    flow.machine.on_confirmed(ConsumptionAck(LIFE, 0, 70, 0), 5, flow.out)
    flow.send(1, now=6)
    assert flow.machine.next() == due
