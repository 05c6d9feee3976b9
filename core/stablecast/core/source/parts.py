"""The parts of a source endpoint, made from its configuration, and small translations between them."""

import attrs

from stablecast.core.protocol import settings
from stablecast.core.protocol.events import ConfirmFlag, RegistrationFlag, RegistrationSuccess
from stablecast.core.protocol.messages import AckFlag, Pace, Registered, Role, Wishes
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.setting_relations import without_duplicates
from stablecast.core.protocol.settings import SourceConfig, register_request
from stablecast.core.registration.registration_set import RegistrationSet, Rotation
from stablecast.core.registration.store_registration import Registration
from stablecast.core.source.flight import Flight
from stablecast.core.source.retransmission import ProactiveRetransmission
from stablecast.core.source.stability import Notices, StabilityWindow


def enrollment_of(config: SourceConfig) -> RegistrationSet:
    """Return the registrations with all stores; round robin does not wait for the others."""
    if config.behavior is settings.StoreBehavior.RR:
        quorums = Rotation.quorums(len(config.stores))
    else:
        quorums = Quorums.of(config.groups, [store.group for store in config.stores])
    registrations = {index: _registration(index, config) for index in without_duplicates(config.stores)}
    asked = any(registration.request.reg_id for registration in registrations.values())
    return RegistrationSet(
        quorums,
        registrations,
        returning=wants_every_group(config, quorums) and (bool(config.session_id) or asked),
        rotation=Rotation() if config.behavior is settings.StoreBehavior.RR else None,
        everyone_votes=Repair.VOTE not in config.repairs or config.behavior is settings.StoreBehavior.RR,
    )


def _registration(index: int, config: SourceConfig) -> Registration:
    store = config.stores[index]
    # A session id replaces the RegIDs (U20).
    reg_id = 0 if config.session_id else store.reg_id
    request = register_request(Role.SOURCE, index, config, reg_id=reg_id, source_reg_id=0, transport=config.transport)
    request = attrs.evolve(request, wishes=wishes_of(config), wants_proxy=config.wants_proxy, election=config.election)
    return Registration(
        request,
        store.address,
        config.times,
        leased=Repair.LEASE in config.repairs,
        watched=config.groups.depends_on_active,
    )


def wishes_of(config: SourceConfig) -> Wishes:
    """Return what the source asks of its repositories: sizes and write delay at either pace (P-111, P-592)."""
    if config.pace is not Pace.RECEIVERS:
        # Only a paced repository acknowledges at reception (P-842).
        return attrs.evolve(config.wishes, ack_on_reception=False)
    # A paced repository must have room for one flight, so the store has to know its size.
    return attrs.evolve(config.wishes, flight_messages=config.flight_messages, flight_bytes=config.flight_bytes)


def wants_every_group(config: SourceConfig, quorums: Quorums) -> bool:
    """Return whether one group could be enough although every group must answer (formal design, 7.2)."""
    return Repair.EVERY_GROUP in config.repairs and quorums.any_group


def agrees(config: SourceConfig) -> bool:
    """Return whether the stores must agree on one term first; in round robin each store knows its own (7.3)."""
    return Repair.ONE_LIFE in config.repairs and config.behavior is not settings.StoreBehavior.RR


def ends(config: SourceConfig) -> bool:
    """Return whether a later life ends this one; in round robin a single store cannot tell (7.6)."""
    return Repair.LEASE in config.repairs and config.behavior is not settings.StoreBehavior.RR


def window_of(config: SourceConfig, quorums: Quorums) -> StabilityWindow:
    """Return an empty stability window."""
    window = StabilityWindow.create(quorums, retention_of(config), len(config.stores))
    window.stable_notices = _notices(config.stable_notification)
    window.confirmed_notices = _notices(config.confirmed_notification) if config.confirmations else NO_NOTICES
    return window


NO_NOTICES = Notices(numbers=False)


def _notices(wanted: settings.Notification) -> Notices:
    both = wanted is settings.Notification.BOTH
    return Notices(both or wanted is settings.Notification.FRAGMENTS, both or wanted is settings.Notification.MESSAGES)


def flight_of(config: SourceConfig) -> Flight:
    return Flight(config.flight_messages, config.flight_bytes, config.flight_behavior is settings.FlightBehavior.NOTIFY)


def proactive_of(config: SourceConfig) -> ProactiveRetransmission:
    """Return the proactive retransmission; a streaming source has none, because nobody acknowledges its messages."""
    return ProactiveRetransmission(config.stability_timeout_ns if config.stores else 0)


def offers_late_join(config: SourceConfig) -> bool:
    """Return whether late receivers are served; a source with stores always does, because recovery needs it (P-412)."""
    return config.late_join or bool(config.stores)


def retention_of(config: SourceConfig) -> settings.Retention:
    """Return the limits of retention.

    Only late receivers ask a streaming source for copies. Unless the configuration limits them, copies stay up to the
    byte limit (M-003).
    """
    rules = config.retention
    if config.stores or rules.threshold_bytes or rules.age_ns:
        return rules
    return attrs.evolve(rules, threshold_bytes=rules.limit_bytes)


def keeps_nothing(config: SourceConfig) -> bool:
    """Return whether sent messages are forgotten at once: a streaming source retains for late join only."""
    return not (config.stores or config.late_join)


def lifetime_of(config: SourceConfig) -> int:
    """Return the time (ns) after which an unstable message is given up, 0: never.

    Under RPP never: a message that a receiver has not consumed must not open the window (formal design, 7.8).
    """
    kept = config.pace is Pace.RECEIVERS and Repair.PACED in config.repairs
    return 0 if kept or not config.stores else config.stability_lifetime_ns


def acknowledging(enrollment: RegistrationSet) -> tuple[int, bool]:
    """Return the mask of active stores that acknowledge, and whether none of the counting ones ever does (P-321)."""
    mask = 0
    for index, registration in enrollment.registrations.items():
        if registration.active and registration.granted is not None and not registration.granted.no_cache:
            mask |= 1 << index
    # A store without a cache counts as registered, but will never acknowledge.
    silent = [
        registration.granted is not None and registration.granted.no_cache for registration in enrollment.counting
    ]
    return (mask, not enrollment or (bool(silent) and all(silent)))


def success(answer: Registered, registration: Registration, newest: int) -> RegistrationSuccess:
    """Return the event for a grant: the store's newest number, and flags (P-332, P-652, P-662)."""
    flags = RegistrationFlag.OLD if answer.old else RegistrationFlag.NONE
    flags |= RegistrationFlag.NO_ACKS if answer.no_cache else RegistrationFlag.NONE
    flags |= RegistrationFlag.RPP if answer.pace is Pace.RECEIVERS else RegistrationFlag.NONE
    return RegistrationSuccess(answer.store_index, registration.address, answer.reg_id, 0, newest, flags)


def confirm_flags(flags: AckFlag) -> ConfirmFlag:
    """Return the event flags for the flags of a confirmation (P-330)."""
    translated = ConfirmFlag.NONE
    for asked, flag in _CONFIRM_FLAGS:
        if flags & asked:
            translated |= flag
    return translated


_CONFIRM_FLAGS = (
    (AckFlag.EXPLICIT, ConfirmFlag.EXPLICIT),
    (AckFlag.USER_REG_ID, ConfirmFlag.USER_REG_ID),
    (AckFlag.ARRIVAL_ORDER, ConfirmFlag.OUT_OF_ORDER),
)
