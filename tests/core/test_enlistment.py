"""Enlistment: with which stores of an SRI a receiver registers, and when again."""

from typing import Any

import attrs

from stablecast.core import effects as fx
from stablecast.core.enlistment import Enlistment
from stablecast.core.events import RegistrationChange
from stablecast.core.messages import Register
from stablecast.core.settings import ReceiverConfig
from tests.core.samples import LIFE, drain, events, info, registered, sends


def enlistment(**changes: Any) -> Enlistment:
    return Enlistment(ReceiverConfig("topic", LIFE, "me:1", **changes))


def test_the_application_is_asked_for_a_reg_id() -> None:
    machine, out = enlistment(), list[fx.Effect]()
    machine.begin(info(1, 1, group_size=3), 0, out)
    assert drain(out) == [fx.AskRegId(0, "store0:1", 50), fx.AskRegId(1, "store1:1", 50)]
    assert machine.enrollment.group.size == 3
    assert machine.enrollment.next() == machine.config.times.interval_ns
    machine.on_reg_id(1, 33, 5, out)
    [(to, message)] = sends(drain(out))
    assert isinstance(message, Register)
    assert (to, message.reg_id, message.source_reg_id) == ("store1:1", 33, 50)


def test_an_answer_that_nobody_asked_for_has_no_effect() -> None:
    machine, out = enlistment(), list[fx.Effect]()
    machine.begin(info(1), 0, out)
    machine.on_reg_id(0, 33, 5, out)
    drain(out)
    machine.on_reg_id(0, 34, 5, out)
    machine.on_reg_id(9, 34, 5, out)
    assert out == []


def test_a_session_id_stands_for_the_reg_ids() -> None:
    machine, out = enlistment(session_id=9), list[fx.Effect]()
    machine.begin(info(1, 1), 0, out)
    requests = [message for _, message in sends(out)]
    assert [(message.reg_id, message.session_id) for message in requests if isinstance(message, Register)] == [
        (0, 9),
        (0, 9),
    ]


def test_only_stores_that_changed_are_asked_again() -> None:
    machine, out = enlistment(session_id=9), list[fx.Effect]()
    machine.begin(info(1, 1, 1), 0, out)
    for index in range(3):
        machine.enrollment.on_answer(registered(store_index=index), 1, out)
    drain(out)
    machine.on_info(info(1, 2, 1, version=2), 5, out)
    assert [to for to, _ in sends(out)] == ["store1:1"]
    assert events(out) == [RegistrationChange("registering again with store 1 [store1:1]")]
    drain(out)
    machine.on_info(info(1, 2, 1, version=2), 6, out)
    assert out == []


def test_a_store_that_calls_the_source_otherwise_is_new() -> None:
    machine, out = enlistment(session_id=9), list[fx.Effect]()
    machine.begin(info(1), 0, out)
    machine.enrollment.on_answer(registered(), 1, out)
    drain(out)
    changed = info(2, version=2)
    entry = attrs.evolve(changed.stores[0], source_reg_id=51)
    machine.on_info(attrs.evolve(changed, stores=(entry,)), 5, out)
    assert not machine.enrollment.enough
    assert [message.source_reg_id for _, message in sends(out) if isinstance(message, Register)] == [51]
