"""Acknowledging: each store under its own RegID, the source under one for the session."""

from typing import Any

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import AckFlag, ConsumptionAck, Pace, ReceiverAlive
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, Ordering, ReceiverConfig, RegistrationTimes
from stablecast.core.receiver.consumption_acks import Acknowledger, AckTimer
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.registration.store_registration import Registration
from tests.core.samples import LIFE, drain, info, register, registered, sends

ASKING = info(confirmations=True)
DOCUMENTED = Repair.ALL & ~Repair.PREFIX


def acknowledger(**changes: Any) -> Acknowledger:
    return Acknowledger(ReceiverConfig("topic", LIFE, "me:1", **{"ack_interval_ns": 5, **changes}))


def registration(index: int) -> Registration:
    request = register(store_index=index, source_reg_id=50 + index, reg_id=70 + index)
    return Registration(request, f"store{index}:1", RegistrationTimes())


def window(*consumed: int) -> DeliveryWindow:
    """Nine messages in arrival order; 3 is missing."""
    window = DeliveryWindow(100, in_order=False)
    window.begin(0, [])
    window.on_run(0, 3, 1, False, [])
    window.on_run(4, 9, 2, False, [])
    for number in consumed:
        window.on_consumed(number, number + 1)
    return window


@pytest.mark.rows("P-303")
def test_every_store_is_told_under_the_names_it_knows() -> None:
    """C-29: and the source is not, unless it asks."""
    out: list[fx.Effect] = []
    acknowledger().acknowledge([registration(0), registration(2)], info(), (1 << 32) + 4, [(0, 5)], 0, out)
    assert sends(out) == [
        ("store0:1", ConsumptionAck(LIFE, 50, 70, 4)),
        ("store2:1", ConsumptionAck(LIFE, 52, 72, 4)),
    ]


@pytest.mark.rows("P-304", "P-329")
def test_a_source_that_asks_counts_each_receiver_once() -> None:
    """Another store answers first from now on, the receiver stays the same to the source."""
    machine, out = acknowledger(), list[fx.Effect]()
    machine.acknowledge([registration(1), registration(2)], ASKING, 4, [(3, 5)], 0, out)
    assert sends(drain(out))[-1] == ("source:1", ConsumptionAck(LIFE, 0, 71, 4, first=3))
    machine.acknowledge([registration(2)], ASKING, 5, [(5, 6)], 0, out)
    assert sends(drain(out))[-1] == ("source:1", ConsumptionAck(LIFE, 0, 71, 5, first=5))


@pytest.mark.rows("P-572")
@pytest.mark.parametrize(("low", "told"), [(3, True), (5, False), (9, False)])
def test_a_store_hears_where_a_receiver_that_sets_the_pace_began(low: int, told: bool) -> None:
    """Else it would keep for this receiver what another store let go of, and take nothing more in the end."""
    held, out = registration(1), list[fx.Effect]()
    held.granted = registered(store_index=1, low=low, high=20, pace=Pace.RECEIVERS)
    began = DeliveryWindow(100)
    began.begin(5, [])
    acknowledger(pace=Pace.RECEIVERS).catch_up(held, began, out)
    assert sends(drain(out)) == [("store1:1", ConsumptionAck(LIFE, 51, 71, 4))] * told
    acknowledger().catch_up(held, began, out)
    assert out == []
    began.acked = 7
    for pace in Pace.SOURCE, Pace.RECEIVERS:
        acknowledger(pace=pace).catch_up(held, began, out)
        assert sends(drain(out)) == [("store1:1", ConsumptionAck(LIFE, 51, 71, 7))]


@pytest.mark.rows("P-329")
def test_the_source_alone_is_told_the_session_id() -> None:
    """A receiver that returns may name another store's RegID."""
    out: list[fx.Effect] = []
    acknowledger(session_id=9).acknowledge([registration(0)], ASKING, 4, [(3, 5)], 0, out)
    assert sends(out) == [
        ("store0:1", ConsumptionAck(LIFE, 50, 70, 4)),
        ("source:1", ConsumptionAck(LIFE, 0, 70, 4, session_id=9, first=3)),
    ]


def test_a_receiver_may_refuse_confirmations() -> None:
    out: list[fx.Effect] = []
    acknowledger(confirm=False).acknowledge([registration(0)], ASKING, 4, [(3, 5)], 0, out)
    assert [to for to, _ in sends(out)] == ["store0:1"]


@pytest.mark.rows("P-349")
def test_lost_messages_are_in_no_confirmation() -> None:
    """T3: the stores hear one number, the source hears ranges with a gap; a repetition has the same gap."""
    machine, done, out = acknowledger(), window(0, 1, 2, 4, 5, 6, 7, 8), list[fx.Effect]()
    done.lose(3, 4, [])
    number = machine.number(done)
    assert number == 8
    machine.acknowledge([registration(0)], ASKING, number, done.confirmed(0, number + 1), 0, out)
    to_source = [ConsumptionAck(LIFE, 0, 70, last, first=first) for first, last in ((0, 2), (4, 8))]
    assert sends(drain(out)) == [
        ("store0:1", ConsumptionAck(LIFE, 50, 70, 8)),
        *(("source:1", confirmation) for confirmation in to_source),
    ]
    machine.on_broken(Reset("source:1"), [registration(0)], ASKING, done, 0, out)
    assert [message for _, message in sends(drain(out))] == to_source
    machine.acknowledge([registration(0)], ASKING, 9, [], 0, out)
    assert [to for to, _ in sends(out)] == ["store0:1"]


def test_nobody_is_told_without_a_registration() -> None:
    out: list[fx.Effect] = []
    acknowledger().acknowledge([], ASKING, 4, [(3, 5)], 0, out)
    assert out == []


@pytest.mark.rows("P-321", "P-329")
def test_a_confirmation_that_a_broken_connection_may_have_swallowed_is_repeated() -> None:
    """A source that waits for it, with a full flight, would send nothing more that could be confirmed."""
    machine, out = acknowledger(), list[fx.Effect]()
    held = [registration(0)]
    for address in ("store0:1", "source:1"):
        for event in (Gone(address), Reset(address)):
            machine.on_broken(event, held, None, window(0, 1), 0, out)
            machine.on_broken(event, held, ASKING, DeliveryWindow(100), 0, out)
            machine.on_broken(event, held, ASKING, window(0, 1), 0, out)
            assert out == []
    done = window(0, 1)
    done.acknowledge()
    for event in (Gone("source:1"), Reset("store0:1"), Reset("source:1")):
        machine.on_broken(event, held, ASKING, done, 0, out)
    assert sends(out) == [("source:1", ConsumptionAck(LIFE, 0, 70, 1, first=0))]


@pytest.mark.rows("P-330")
def test_the_number_of_a_user_stands_for_the_receiver() -> None:
    """Stores keep their own."""
    machine, out = acknowledger(user_reg_id=1234), list[fx.Effect]()
    machine.acknowledge([registration(0)], ASKING, 4, [(3, 5)], 0, out)
    machine.show_life([registration(0)], ASKING, 0, out)
    to_source = ConsumptionAck(LIFE, 0, 1234, 4, AckFlag.USER_REG_ID, first=3), ReceiverAlive(LIFE, 1234, 0, 0)
    assert [message for _, message in sends(out)] == [ConsumptionAck(LIFE, 50, 70, 4), *to_source]


@pytest.mark.rows("P-330")
@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, AckFlag.NONE),
        ({"ack_mode": AckMode.EXPLICIT}, AckFlag.EXPLICIT),
        ({"user_reg_id": True}, AckFlag.USER_REG_ID),
        ({"ordering": Ordering.ARRIVAL}, AckFlag.ARRIVAL_ORDER),
    ],
)
def test_a_confirmation_says_how_it_came_about(changes: dict[str, Any], flags: AckFlag) -> None:
    """The source shows it; stores need not know."""
    out: list[fx.Effect] = []
    acknowledger(**changes).acknowledge([registration(0)], ASKING, 4, [(3, 5)], 0, out)
    assert [message.flags for _, message in sends(out) if isinstance(message, ConsumptionAck)] == [AckFlag.NONE, flags]


@pytest.mark.rows("P-343", "P-346")
def test_consumption_is_acknowledged_at_once_or_an_interval_later_or_not_at_all() -> None:
    assert acknowledger(ack_mode=AckMode.IMMEDIATE).plan(10)
    machine = acknowledger()
    assert not machine.plan(10)
    assert not machine.plan(12)
    assert machine.timers.deadline(AckTimer.ACK) == 15
    machine = acknowledger(ack_mode=AckMode.EXPLICIT)
    assert not machine.plan(10)
    assert machine.timers.next() is None


@pytest.mark.rows("P-431")
def test_only_prefixes_are_acknowledged_whatever_the_order() -> None:
    """Formal design, 7.7."""
    for mode in (AckMode.IMMEDIATE, AckMode.BATCHED):
        machine = acknowledger(ack_mode=mode, ordering=Ordering.ARRIVAL)
        assert machine.number(window(0, 1, 5)) == 1


@pytest.mark.rows("P-431")
@pytest.mark.parametrize(
    ("mode", "ordering", "number"),
    [
        (AckMode.BATCHED, Ordering.ORDERED, 1),
        (AckMode.IMMEDIATE, Ordering.ORDERED, 5),
        (AckMode.BATCHED, Ordering.ARRIVAL, 5),
    ],
)
def test_the_documented_receiver_tells_the_highest_number(mode: AckMode, ordering: Ordering, number: int) -> None:
    """At once, unless it batches what it delivers in order."""
    machine = acknowledger(ack_mode=mode, ordering=ordering, repairs=DOCUMENTED)
    assert machine.plan(0) is (number == 5)
    assert machine.number(window(0, 1, 5)) == number


@pytest.mark.rows("P-346")
def test_only_the_application_acknowledges_in_explicit_mode() -> None:
    """Consumption alone acknowledges nothing."""
    machine, told = acknowledger(ack_mode=AckMode.EXPLICIT), window(0, 1, 2)
    assert machine.number(told) is None
    told.claim(1, 1)
    assert machine.number(told) == 1
    machine = acknowledger(ack_mode=AckMode.EXPLICIT, ordering=Ordering.ARRIVAL, repairs=DOCUMENTED)
    told.claim(6, 6)
    assert machine.number(told) == 6


@pytest.mark.rows("P-338")
def test_a_receiver_shows_that_it_lives_while_it_confirms_nothing() -> None:
    """An interval after the last confirmation; never without a RegID, never when it is off."""
    machine, out = acknowledger(liveness_ns=100, session_id=9, context=3), list[fx.Effect]()
    machine.watch(0)
    machine.acknowledge([registration(1)], ASKING, 4, [(3, 5)], 50, drain(out))
    machine.on_broken(Reset("source:1"), [registration(1)], ASKING, DeliveryWindow(100), 80, out)  # Nothing to confirm.
    assert machine.timers.pop_expired(149) == []
    assert machine.timers.pop_expired(150) == [AckTimer.ALIVE]
    machine.show_life([registration(2)], ASKING, 150, out)
    assert sends(drain(out)) == [("source:1", ReceiverAlive(LIFE, 71, 9, 3))]
    machine.show_life([], ASKING, 250, out)
    assert out == []
    assert machine.timers.next() == 350
    machine.stop()
    assert machine.timers.next() is None
    machine = acknowledger()
    machine.watch(0)
    assert machine.timers.next() is None
