"""Acknowledging: each store under its own RegID, the source under one for the session."""

from stablecast.core import effects as fx
from stablecast.core.acknowledging import Acknowledger
from stablecast.core.messages import ConsumptionAck
from stablecast.core.registration import Registration, RegistrationTimes
from tests.core.samples import LIFE, drain, info, register, sends


def registration(index: int) -> Registration:
    request = register(store_index=index, source_reg_id=50 + index, reg_id=70 + index)
    return Registration(request, f"store{index}:1", RegistrationTimes())


def test_every_store_is_told_under_the_names_it_knows() -> None:
    out: list[fx.Effect] = []
    Acknowledger().tell([registration(0), registration(2)], info(), (1 << 32) + 4, out)
    assert sends(out) == [
        ("store0:1", ConsumptionAck(LIFE, 50, 70, 4)),
        ("store2:1", ConsumptionAck(LIFE, 52, 72, 4)),
    ]


def test_a_source_that_asks_counts_each_receiver_once() -> None:
    """P-329: another store answers first from now on, the receiver stays the same to the source."""
    machine, out, asking = Acknowledger(), list[fx.Effect](), info(confirmations=True)
    machine.tell([registration(1), registration(2)], asking, 4, out)
    assert sends(drain(out))[-1] == ("source:1", ConsumptionAck(LIFE, 0, 71, 4))
    machine.tell([registration(2)], asking, 5, out)
    assert sends(drain(out))[-1] == ("source:1", ConsumptionAck(LIFE, 0, 71, 5))


def test_nobody_is_told_without_a_registration() -> None:
    out: list[fx.Effect] = []
    Acknowledger().tell([], info(confirmations=True), 4, out)
    assert out == []
