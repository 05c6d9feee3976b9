"""Announcements: the time and the contents of an SRI."""

import pytest

from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol.messages import StoreEntry
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.core.protocol.settings import RegistrationTimes, Retention, SourceConfig, StoreSpec
from stablecast.core.registration.registration_set import RegistrationSet, Rotation
from stablecast.core.registration.store_registration import Registration, RegistrationState
from stablecast.core.source.lineage import Lineage
from stablecast.core.source.transmission import Announcements
from tests.core.drivers import SourceDriver
from tests.core.samples import LIFE, register, registered

STORES = (StoreSpec("store0:1"), StoreSpec("store1:1", group=1), StoreSpec("store2:1", group=1))
CONFIG = SourceConfig(
    "topic", LIFE, "source:1", "stream:1", STORES, GroupRules((1, 2)), sri_interval_ns=100, sri_maximum=3
)


def enrolled() -> RegistrationSet:
    """The first two stores granted."""
    machine = RegistrationSet(Quorums.of(CONFIG.groups, [0, 1, 1]))
    for index, store in enumerate(STORES):
        registration = Registration(register(generation=0, store_index=index), store.address, RegistrationTimes())
        registration.start(0, 0, [])
        if index < 2:
            registration.on_answer(registered(store_index=index, reg_id=50 + index), 0, [])
        machine.registrations[index] = registration
    return machine


@pytest.mark.rows("P-221", "P-222")
def test_several_go_out_after_each_change() -> None:
    machine = Announcements(CONFIG)
    assert not machine.take_due(0)
    machine.on_change(10)
    assert [now for now in range(0, 1000, 10) if machine.take_due(now)] == [10, 110, 210]
    machine.on_change(1000)
    assert machine.take_due(1000)
    machine.on_change(1050)
    assert [now for now in range(1050, 2000, 10) if machine.take_due(now)] == [1050, 1150, 1250]
    assert machine.version == 3


@pytest.mark.rows("P-219", "P-220")
def test_the_sri_says_where_receivers_register() -> None:
    """Store and group index, address, RegID and version of every store that granted."""
    machine, enrollment = Announcements(CONFIG, version=4), enrolled()
    lineage = Lineage(resume_point=MODULUS + 5, term=2, lives=[(6, 3), (LIFE, MODULUS + 5)])
    info = machine.info(enrollment, lineage, MODULUS + 9)
    assert info.stores == (StoreEntry(0, 0, "store0:1", 50, 1), StoreEntry(1, 1, "store1:1", 51, 1))
    assert (info.version, info.group_sizes, info.low, info.high, info.term) == (4, (1, 2), 5, 9, 2)
    assert (info.lives, info.late_join) == (((6, 3), (LIFE, 5)), True)


@pytest.mark.rows("P-502")
def test_in_turn_only_the_store_whose_turn_it_is_is_named() -> None:
    machine, enrollment = Announcements(CONFIG), enrolled()
    enrollment.rotation = Rotation(1)
    enrollment.registrations[0].state = RegistrationState.UNRESPONSIVE
    enrollment.registrations[0].park(0, [])
    assert [entry.index for entry in machine.info(enrollment, Lineage(), 0).stores] == [1]


def test_a_release_that_waits_for_confirmations_asks_for_them() -> None:
    """The documented sample sets `ume_retention_unique_confirmations` alone; receivers confirm only when asked."""
    for asks, driver in (
        (True, SourceDriver.active(retention=Retention(unique_confirmations=1))),
        (True, SourceDriver.active(confirmations=True)),
        (False, SourceDriver.active()),
    ):
        assert driver.machine.info().confirmations is asks
