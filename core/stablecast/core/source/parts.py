"""The parts of a source endpoint, made from its configuration, and the small translations between them."""

import attrs

from stablecast.core.protocol.events import ConfirmFlag, RegistrationFlag, RegistrationSuccess
from stablecast.core.protocol.messages import AckFlag, Pace, Registered, Role, Wishes
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.setting_relations import without_duplicates
from stablecast.core.protocol.settings import (
    FlightBehavior,
    Notification,
    Retention,
    SourceConfig,
    StoreBehavior,
    register_request,
)
from stablecast.core.registration.registration_set import Enrollment
from stablecast.core.registration.round_robin import Rotation
from stablecast.core.registration.store_registration import Registration
from stablecast.core.source.flight import Flight
from stablecast.core.source.proactive_retransmission import Proactive
from stablecast.core.source.stability import Notices, StabilityWindow


def enrollment_of(config: SourceConfig) -> Enrollment:
    """The registrations with all stores; round robin does not wait for the others."""
    if config.behavior is StoreBehavior.RR:
        quorums = Rotation.quorums(len(config.stores))
    else:
        quorums = Quorums.of(config.groups, [store.group for store in config.stores])
    registrations = {index: _registration(index, config) for index in without_duplicates(config.stores)}
    asked = any(registration.request.reg_id for registration in registrations.values())
    return Enrollment(
        quorums,
        registrations,
        returning=wants_every_group(config, quorums) and (bool(config.session_id) or asked),
        rotation=Rotation() if config.behavior is StoreBehavior.RR else None,
    )


def _registration(index: int, config: SourceConfig) -> Registration:
    """A session id stands for the RegIDs (U20). A source that asks for RPP says how much it may have in flight."""
    store = config.stores[index]
    reg_id = 0 if config.session_id else store.reg_id
    request = register_request(Role.SOURCE, index, config, reg_id=reg_id, source_reg_id=0, transport=config.transport)
    wishes = Wishes()
    if config.pace is Pace.RECEIVERS:
        wishes = attrs.evolve(config.wishes, flight_messages=config.flight_messages, flight_bytes=config.flight_bytes)
    request = attrs.evolve(request, wishes=wishes, wants_proxy=config.wants_proxy, election=config.election)
    return Registration(request, store.address, config.times, leased=Repair.LEASE in config.repairs)


def wants_every_group(config: SourceConfig, quorums: Quorums) -> bool:
    """Whether one group could be enough where every group must be heard (formal design, 7.2)."""
    return Repair.EVERY_GROUP in config.repairs and quorums.any_group


def agrees(config: SourceConfig) -> bool:
    """Whether the stores must know one term before it may send; alone, as in round robin, each knows its own (7.3)."""
    return Repair.ONE_LIFE in config.repairs and config.behavior is not StoreBehavior.RR


def ends(config: SourceConfig) -> bool:
    """Whether a life is over when another came after it; alone, as in round robin, a store cannot tell (7.6)."""
    return Repair.LEASE in config.repairs and config.behavior is not StoreBehavior.RR


def window_of(config: SourceConfig, quorums: Quorums) -> StabilityWindow:
    """What was sent."""
    window = StabilityWindow.create(quorums, retention_of(config), len(config.stores))
    window.stable_notices = _notices(config.stable_notification)
    window.confirmed_notices = _notices(config.confirmed_notification)
    return window


def _notices(wanted: Notification) -> Notices:
    both = wanted is Notification.BOTH
    return Notices(both or wanted is Notification.FRAGMENTS, both or wanted is Notification.MESSAGES)


def flight_of(config: SourceConfig) -> Flight:
    """The limits of what may be in flight."""
    return Flight(config.flight_messages, config.flight_bytes, config.flight_behavior is FlightBehavior.NOTIFY)


def proactive_of(config: SourceConfig) -> Proactive:
    """What is sent again unasked; nobody waits for what a streaming source sends."""
    return Proactive(config.stability_timeout_ns if config.stores else 0)


def offers_late_join(config: SourceConfig) -> bool:
    """Whether those who come late are served; a source with stores always does, for recovery rests on it (P-412)."""
    return config.late_join or bool(config.stores)


def retention_of(config: SourceConfig) -> Retention:
    """What is retained.

    Nobody but late receivers asks a streaming source for copies: unless it is told when they may go, they stay up to
    the limit (M-003).
    """
    rules = config.retention
    if config.stores or rules.threshold_bytes or rules.age_ns:
        return rules
    return attrs.evolve(rules, threshold_bytes=rules.limit_bytes)


def keeps_nothing(config: SourceConfig) -> bool:
    """Whether what is sent is forgotten at once: a streaming source retains for late join only."""
    return not (config.stores or config.late_join)


def lifetime_of(config: SourceConfig) -> int:
    """After how long (ns) an unstable message is given up, 0: never.

    Under RPP never: a message that a receiver has not consumed must not open the window (formal design, 7.8).
    """
    kept = config.pace is Pace.RECEIVERS and Repair.PACED in config.repairs
    return 0 if kept or not config.stores else config.stability_lifetime_ns


def acknowledging(enrollment: Enrollment) -> tuple[int, bool]:
    """The stores that are there and acknowledge, and whether none of those that count ever does (P-321)."""
    mask = 0
    for index, registration in enrollment.registrations.items():
        if registration.present and registration.granted is not None and not registration.granted.no_cache:
            mask |= 1 << index
    silent = [
        registration.granted is not None and registration.granted.no_cache for registration in enrollment.counting
    ]
    return (mask, not enrollment or (bool(silent) and all(silent)))


def success(answer: Registered, registration: Registration, newest: int) -> RegistrationSuccess:
    """What the application is told of a grant: the store's newest number, and flags (P-332, P-652, P-662)."""
    flags = RegistrationFlag.OLD if answer.old else RegistrationFlag.NONE
    flags |= RegistrationFlag.NO_ACKS if answer.no_cache else RegistrationFlag.NONE
    flags |= RegistrationFlag.RPP if answer.pace is Pace.RECEIVERS else RegistrationFlag.NONE
    return RegistrationSuccess(answer.store_index, registration.address, answer.reg_id, 0, newest, flags)


def confirm_flags(flags: AckFlag) -> ConfirmFlag:
    """What the application is told of how a receiver acknowledges (P-330)."""
    told = ConfirmFlag.NONE
    for asked, flag in _CONFIRM_FLAGS:
        if flags & asked:
            told |= flag
    return told


_CONFIRM_FLAGS = (
    (AckFlag.EXPLICIT, ConfirmFlag.EXPLICIT),
    (AckFlag.USER_REG_ID, ConfirmFlag.USER_REG_ID),
    (AckFlag.ARRIVAL_ORDER, ConfirmFlag.OUT_OF_ORDER),
)
