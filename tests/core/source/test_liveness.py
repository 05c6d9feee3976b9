"""Liveness: the receivers that are still there."""

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import LivenessFlag, ReceiverGone
from stablecast.core.source import liveness
from stablecast.core.source.liveness import Liveness
from tests.core.samples import drain, events

TIMEOUT = 100


@pytest.mark.rows("P-338", "P-340")
def test_a_silent_receiver_is_gone() -> None:
    """Confirmations and signs of life count alike; told once."""
    machine, out = Liveness(TIMEOUT), list[fx.Effect]()
    machine.on_alive(70, 9, 5, 0)
    machine.on_alive(71, 8, 5, 10)
    machine.on_confirmed(70, 9, 50)
    assert machine.next() == 10 + TIMEOUT
    machine.handle_timeout(10 + TIMEOUT - 1, out)
    assert out == []
    machine.handle_timeout(10 + TIMEOUT, out)
    assert events(drain(out)) == [ReceiverGone(71, 8, LivenessFlag.TIMEOUT)]
    machine.handle_timeout(10**9, out)
    assert events(drain(out)) == [ReceiverGone(70, 9, LivenessFlag.TIMEOUT)]
    assert machine.next() is None


@pytest.mark.rows("P-338", "P-679")
def test_receivers_whose_connection_ended_are_gone() -> None:
    """All of that process, at once."""
    machine, out = Liveness(TIMEOUT), list[fx.Effect]()
    machine.on_alive(70, 9, 5, 0)
    machine.on_alive(71, 8, 6, 0)
    machine.on_alive(72, 7, 5, 0)
    machine.on_departed(5, out)
    assert events(drain(out)) == [ReceiverGone(70, 9, LivenessFlag.END), ReceiverGone(72, 7, LivenessFlag.END)]
    machine.on_departed(5, out)
    assert out == []


def test_a_confirmation_is_a_sign_of_life() -> None:
    machine, out = Liveness(TIMEOUT), list[fx.Effect]()
    machine.on_confirmed(70, 6, 0)
    machine.handle_timeout(TIMEOUT, out)
    assert events(out) == [ReceiverGone(70, 6, LivenessFlag.TIMEOUT)]


@pytest.mark.rows("P-338")
def test_a_receiver_that_confirms_is_still_one_of_its_process() -> None:
    """A confirmation does not name the process, so what its sign of life said counts on."""
    machine, out = Liveness(TIMEOUT), list[fx.Effect]()
    machine.on_alive(70, 9, 5, 0)
    machine.on_confirmed(70, 9, 10)
    machine.on_confirmed(71, 8, 10)
    machine.on_departed(5, out)
    assert events(drain(out)) == [ReceiverGone(70, 9, LivenessFlag.END)]


@pytest.mark.rows("P-341")
def test_the_two_false_cases() -> None:
    """A path that failed looks like a death, and whoever is heard again is watched again; a receiver that was
    deleted while its process lives is seen by its silence only.
    """
    machine, out = Liveness(TIMEOUT), list[fx.Effect]()
    machine.on_alive(70, 9, 5, 0)
    machine.handle_timeout(TIMEOUT, out)
    assert len(out) == 1, "the silence is reported as a death"
    machine.on_alive(70, 9, 5, TIMEOUT + 1)
    assert machine.next() == 2 * TIMEOUT + 1


def test_a_timeout_of_0_watches_nobody() -> None:
    machine = Liveness(0)
    machine.on_alive(70, 9, 5, 0)
    assert machine.next() is None


def test_receivers_beyond_the_bound_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "MAX_RECEIVERS", 1)
    machine = Liveness(TIMEOUT)
    machine.on_alive(70, 9, 5, 0)
    machine.on_alive(71, 9, 5, 0)
    machine.on_alive(70, 9, 5, 7)
    assert list(machine.watched) == [(70, 9)]
    assert machine.next() == 7 + TIMEOUT


def test_receivers_with_one_number_of_their_users_are_told_apart_by_their_sessions() -> None:
    machine, out = Liveness(TIMEOUT), list[fx.Effect]()
    machine.on_alive(77, 9, 5, 0)
    machine.on_confirmed(77, 8, 10)
    machine.handle_timeout(TIMEOUT, out)
    assert events(drain(out)) == [ReceiverGone(77, 9, LivenessFlag.TIMEOUT)]
