"""Registration with one store: what is left of it, and clients that keep to no lease."""

import pytest

from stablecast.core.protocol.settings import RegistrationTimes
from stablecast.core.registration.store_registration import RegistrationTimer
from tests.core.registration.test_store_registration import TIMEOUT_NS, Store, in_state
from tests.core.samples import SECOND, drain


@pytest.mark.parametrize("again", [False, True])
def test_a_parked_store_that_granted_is_told_as_well(again: bool) -> None:
    store = in_state("UNRESPONSIVE")
    store.machine.park(40, store.out)
    if again:
        store.machine.start(50, 41, store.out)
        drain(store.out)
    store.machine.withdraw(42, store.out)
    assert store.farewell().reg_id == 50


def test_a_withdrawn_registration_moves_quietly() -> None:
    store = in_state("REGISTERED")
    store.machine.withdraw(40, store.out)
    drain(store.out)
    store.machine.move("elsewhere:1", 41, store.out)
    store.machine.withdraw(41, store.out)
    assert store.out == []
    store.time(50)
    store.farewell()


def test_without_the_lease_a_client_goes_on_for_ever() -> None:
    """The documented rule: nothing ends the use of a RegID, and a late grant is as good as any."""
    store = Store(RegistrationTimes(interval_ns=60 * SECOND, probe_ns=60 * SECOND, silence_ns=60 * SECOND))
    store.machine.leased = False
    store.start()
    assert store.grant(2 * TIMEOUT_NS)
    assert not store.machine.timers.armed(RegistrationTimer.LEASE)
