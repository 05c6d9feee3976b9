"""Round robin: one store at a time, round and round."""

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.settings import RegistrationTimes
from stablecast.core.registration.registration_set import Rotation
from stablecast.core.registration.store_registration import Registration
from tests.core.samples import drain, register, registered, sends
from tests.support.abstract_states import abstract

TIMES = RegistrationTimes(interval_ns=10, probe_ns=100, silence_ns=300)


class Stores:
    """Registrations in turn, and who was asked."""

    def __init__(self, *addresses: str) -> None:
        self.machine = Rotation()
        self.registrations = {
            index: Registration(register(generation=0, store_index=index, reg_id=150 + index), address, TIMES)
            for index, address in enumerate(addresses)
        }
        self.out: list[fx.Effect] = []

    def review(self, now: int = 0) -> list[str]:
        self.machine.review(self.registrations, now, self.out)
        return [to for to, _ in sends(drain(self.out))]

    def time(self, now: int) -> list[str]:
        self.registrations[self.machine.turn].handle_timeout(now, [])
        return self.review(now)

    def grant(self, now: int) -> None:
        registration = self.registrations[self.machine.turn]
        assert registration.on_answer(registered(generation=registration.request.generation, reg_id=60), now, [])


@pytest.mark.rows("P-502", "P-504")
def test_the_next_store_is_tried_when_one_does_not_answer() -> None:
    """In the order of the list, and from the last to the first."""
    stores = Stores("a", "b", "c")
    assert stores.review() == ["a"]
    assert stores.review() == []
    asked = [to for now in (10, 20, 30, 40) for to in stores.time(now)]
    assert asked == ["b", "c", "a", "b"]


@pytest.mark.rows("P-502")
def test_a_store_that_answers_keeps_its_turn_until_it_stays_away() -> None:
    """It is silent, asked again, and given up after another interval."""
    stores = Stores("a", "b")
    stores.review()
    stores.grant(5)
    assert stores.time(105) == stores.time(305) == []
    assert stores.time(315) == ["b"]
    assert abstract(stores.registrations[0]) == ("IDLE", 60, 2)


def test_a_store_that_had_its_turn_is_asked_for_the_reg_id_it_gave() -> None:
    stores = Stores("a", "b")
    stores.review()
    stores.grant(5)
    for now in (105, 305, 315, 325):
        stores.time(now)
    assert abstract(stores.registrations[0]) == ("REGISTERING", 60, 3)


def test_a_single_store_is_asked_again_and_again() -> None:
    stores = Stores("a")
    stores.review()
    assert stores.time(10) == []
    assert abstract(stores.registrations[0])[0] == "REGISTERING"


@pytest.mark.rows("P-203")
def test_stores_that_are_nowhere_yet_are_passed_over() -> None:
    stores = Stores("", "")
    assert stores.review() == []
    stores.registrations[1].address = "b"
    assert stores.review() == ["b"]


def test_one_store_is_enough_and_the_one_registered_must_have_it() -> None:
    quorums = Rotation.quorums(3)
    assert quorums.needed == 1
    assert quorums.stable(0b010, 0b010)
    assert not quorums.stable(0b001, 0b010)
