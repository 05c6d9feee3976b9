"""The parts of a source, from its configuration."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol.events import ConfirmFlag, RegistrationFlag, RegistrationSuccess
from stablecast.core.protocol.messages import AckFlag, ElectionToken, Pace, Wishes
from stablecast.core.protocol.quorum import GroupRules, Intergroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import (
    FlightBehavior,
    Notification,
    Retention,
    SourceConfig,
    StoreBehavior,
    StoreSpec,
)
from stablecast.core.registration.registration_set import Rotation
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source.parts import (
    acknowledging,
    agrees,
    confirm_flags,
    enrollment_of,
    flight_of,
    keeps_nothing,
    lifetime_of,
    offers_late_join,
    proactive_of,
    retention_of,
    success,
    wants_every_group,
    window_of,
)
from stablecast.core.source.stability import Notices
from tests.core.samples import LIFE, registered

STORES = tuple(StoreSpec(f"store{index}:1", 40 + index) for index in range(3))
CONFIG = SourceConfig("topic", LIFE, "source:1", "stream:1", STORES, GroupRules((3,)))


def config(**changes: Any) -> SourceConfig:
    return attrs.evolve(CONFIG, **changes)


def asked(**changes: Any) -> list[int]:
    return [r.request.reg_id for r in enrollment_of(config(**changes)).registrations.values()]


@pytest.mark.rows("P-236", "P-241", "P-244")
def test_a_session_id_stands_for_the_reg_ids() -> None:
    """U20."""
    assert asked() == [40, 41, 42]
    assert asked(session_id=9) == [0, 0, 0]


def test_a_store_listed_twice_is_asked_once() -> None:
    assert list(enrollment_of(config(stores=(*STORES[:2], STORES[0]))).registrations) == [0, 1]


@pytest.mark.rows("P-561", "P-567", "P-568")
def test_a_request_for_rpp_names_the_flight() -> None:
    wishes = Wishes(size_limit=7, ack_on_reception=True)
    paced = config(pace=Pace.RECEIVERS, wishes=wishes, flight_messages=5, flight_bytes=50)
    request = enrollment_of(paced).registrations[0].request
    assert (request.pace, request.wishes) == (
        Pace.RECEIVERS,
        Wishes(size_limit=7, flight_messages=5, flight_bytes=50, ack_on_reception=True),
    )


@pytest.mark.rows("P-111", "P-562", "P-842")
def test_a_source_that_sets_the_pace_asks_for_sizes_and_write_delay() -> None:
    """Acknowledgement at reception is for paced repositories."""
    wishes = Wishes(1, 2, 3, write_delay_ms=4, ack_on_reception=True)
    (request, *_) = [one.request for one in enrollment_of(config(wishes=wishes)).registrations.values()]
    assert (request.pace, request.wishes) == (Pace.SOURCE, Wishes(1, 2, 3, write_delay_ms=4))
    assert enrollment_of(config(flight_messages=5, flight_bytes=50)).registrations[0].request.wishes == Wishes()


@pytest.mark.rows("P-550", "P-554")
def test_a_proxy_says_so() -> None:
    token = ElectionToken(5, 1)
    request = enrollment_of(config(election=token)).registrations[0].request
    assert (request.election, request.wants_proxy) == (token, False)
    assert enrollment_of(config(wants_proxy=True)).registrations[0].request.wants_proxy


@pytest.mark.parametrize(
    ("changes", "returning"),
    [
        ({}, True),
        ({"repairs": Repair.ALL & ~Repair.EVERY_GROUP}, False),
        ({"stores": (StoreSpec("a"), StoreSpec("b", group=1))}, False),
        ({"stores": (StoreSpec("a"), StoreSpec("b", group=1)), "session_id": 9}, True),
        ({"groups": GroupRules((2, 1), intergroup=Intergroup.MAJORITY)}, False),
        ({"groups": GroupRules((2, 1), intergroup=Intergroup.ALL_ACTIVE)}, True),
        ({"groups": GroupRules((3,)), "stores": STORES}, False),
    ],
)
def test_a_source_that_may_have_lived_before_needs_every_group(changes: dict[str, Any], returning: bool) -> None:
    """Formal design, 7.2."""
    two = (*STORES[:2], attrs.evolve(STORES[2], group=1))
    made = config(**{"stores": two, "groups": GroupRules((2, 1)), **changes})
    enrollment = enrollment_of(made)
    assert enrollment.returning is returning
    assert wants_every_group(made, enrollment.quorums) or not returning


def test_stores_must_know_one_term_where_histories_are_compared() -> None:
    """Formal design, 7.3; round robin asks one store at a time."""
    assert agrees(CONFIG)
    assert not agrees(config(repairs=Repair.ALL & ~Repair.ONE_LIFE))
    assert not agrees(config(behavior=StoreBehavior.RR))


def test_the_lease_is_a_repair() -> None:
    """Formal design, 7.6."""
    for repairs in (Repair.ALL, Repair.NONE):
        assert enrollment_of(config(repairs=repairs)).registrations[0].leased is bool(repairs)


@pytest.mark.rows("P-501", "P-502")
def test_round_robin_takes_one_store_at_a_time() -> None:
    enrollment = enrollment_of(config(behavior=StoreBehavior.RR))
    assert enrollment.rotation == Rotation()
    assert enrollment.quorums.needed == 1
    assert enrollment_of(CONFIG).rotation is None


@pytest.mark.rows("P-328")
@pytest.mark.parametrize(
    ("wanted", "notices"),
    [
        (Notification.NONE, Notices(False, False)),
        (Notification.FRAGMENTS, Notices(True, False)),
        (Notification.MESSAGES, Notices(False, True)),
        (Notification.BOTH, Notices(True, True)),
    ],
)
def test_the_events_of_the_application_are_configured(wanted: Notification, notices: Notices) -> None:
    quorums = enrollment_of(CONFIG).quorums
    window = window_of(config(stable_notification=wanted), quorums)
    assert (window.stable_notices, window.confirmed_notices) == (notices, Notices(False, False))
    asking = config(confirmations=True, confirmed_notification=wanted)
    assert window_of(asking, quorums).confirmed_notices == notices


@pytest.mark.rows("P-306", "P-309", "P-310", "P-315")
def test_the_flight_is_configured() -> None:
    flight = flight_of(config(flight_messages=5, flight_bytes=50))
    assert (flight.messages, flight.payload_bytes, flight.notify) == (5, 50, False)
    assert flight_of(config(flight_behavior=FlightBehavior.NOTIFY)).notify


@pytest.mark.rows("P-028", "P-439")
def test_a_streaming_source_waits_for_nobody() -> None:
    """It sends nothing again unasked, and retains for late join only."""
    streaming: dict[str, Any] = {"stores": (), "groups": GroupRules()}
    assert proactive_of(config(**streaming)).timeout_ns == 0
    assert proactive_of(CONFIG).timeout_ns == CONFIG.stability_timeout_ns
    assert lifetime_of(config(**streaming)) == 0
    assert keeps_nothing(config(**streaming))
    assert not keeps_nothing(config(**streaming, late_join=True))
    assert not keeps_nothing(CONFIG)


@pytest.mark.rows("M-003")
def test_copies_for_those_who_come_late_stay_as_told_or_up_to_the_limit() -> None:
    """With stores nothing is kept longer than it must be (T11)."""
    streaming: dict[str, Any] = {"stores": (), "groups": GroupRules(), "late_join": True}
    limit = Retention().limit_bytes
    assert retention_of(config(**streaming)) == Retention(threshold_bytes=limit)
    for told in (Retention(threshold_bytes=1), Retention(age_ns=1)):
        assert retention_of(config(**streaming, retention=told)) == told
    assert retention_of(CONFIG) == CONFIG.retention


@pytest.mark.rows("P-412")
def test_stores_switch_late_join_on() -> None:
    streaming: dict[str, Any] = {"stores": (), "groups": GroupRules()}
    assert [offers_late_join(config(late_join=late_join)) for late_join in (False, True)] == [True, True]
    assert [offers_late_join(config(**streaming, late_join=late_join)) for late_join in (False, True)] == [False, True]


def test_under_rpp_nothing_is_given_up() -> None:
    """Formal design, 7.8; the guide gives up there as elsewhere."""
    assert lifetime_of(CONFIG) == CONFIG.stability_lifetime_ns
    assert lifetime_of(config(pace=Pace.RECEIVERS)) == 0
    assert lifetime_of(config(pace=Pace.RECEIVERS, repairs=Repair.NONE)) == CONFIG.stability_lifetime_ns


@pytest.mark.rows("P-101", "P-321")
def test_stores_that_keep_nothing_do_not_acknowledge() -> None:
    enrollment = enrollment_of(CONFIG)
    assert acknowledging(enrollment) == (0, False)
    for index, registration in enrollment.registrations.items():
        registration.start(0, 0, [])
        registration.on_answer(registered(store_index=index, no_cache=index != 1), 0, [])
    assert acknowledging(enrollment) == (0b010, False)
    enrollment.registrations[1].state = RegistrationState.UNRESPONSIVE
    enrollment.registrations[1].park(0, [])
    assert acknowledging(enrollment) == (0, True)
    assert acknowledging(enrollment_of(config(stores=(), groups=GroupRules()))) == (0, True)


@pytest.mark.rows("P-521", "P-524")
def test_a_store_that_is_being_asked_again_does_not_hold_up_stability() -> None:
    """It still counts for the right to send."""
    enrollment = enrollment_of(CONFIG)
    registration = enrollment.registrations[0]
    registration.start(0, 0, [])
    registration.on_answer(registered(), 0, [])
    registration.renew(5, [])
    assert (enrollment.mask, acknowledging(enrollment)) == (0b001, (0, False))


@pytest.mark.rows("P-332", "P-652", "P-662")
@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, RegistrationFlag.NONE),
        ({"old": True}, RegistrationFlag.OLD),
        ({"no_cache": True}, RegistrationFlag.NO_ACKS),
        ({"old": True, "pace": Pace.RECEIVERS}, RegistrationFlag.OLD | RegistrationFlag.RPP),
    ],
)
def test_a_grant_is_told_with_its_flags(changes: dict[str, Any], flags: RegistrationFlag) -> None:
    registration = enrollment_of(CONFIG).registrations[2]
    told = success(registered(store_index=2, **changes), registration, 8)
    assert told == RegistrationSuccess(2, "store2:1", 50, 0, 8, flags)


@pytest.mark.rows("P-330")
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (AckFlag.NONE, ConfirmFlag.NONE),
        (AckFlag.EXPLICIT, ConfirmFlag.EXPLICIT),
        (AckFlag.USER_REG_ID, ConfirmFlag.USER_REG_ID),
        (AckFlag.ARRIVAL_ORDER | AckFlag.EXPLICIT, ConfirmFlag.OUT_OF_ORDER | ConfirmFlag.EXPLICIT),
    ],
)
def test_the_way_of_acknowledging_is_reported(flags: AckFlag, told: ConfirmFlag) -> None:
    assert confirm_flags(flags) == told
