"""What in the configurations of stores and clients does not go together, though each value is allowed.

Each piece of advice has a stable code, a level and a place. An *error* means that something will not work or that
messages get lost against what was asked for; a *warning* that it will be slow, fragile or exposed; *advice* that people
usually want something else. `spec/store_daemon.md` lists the codes.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import attrs

from stablecast.config import placement
from stablecast.config.liveness_checks import liveness
from stablecast.config.plan import Plan, StorePlan, TopicPlan
from stablecast.config.transport_checks import transport_relations
from stablecast.config.transport_options import TransportConfig
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.setting_relations import recovery_relations, relations
from stablecast.core.protocol.settings import (
    STATE_FOR_EVER,
    PatternType,
    ReceiverConfig,
    RegistrationTimes,
    RepositoryType,
    SourceConfig,
)

BURST_ENOUGH = 1_000_000
"""A burst limit below it declares lost what could be recovered (T30)."""
PERCENT_OF_DISK = 90
"""Of the disk limit that the size limit may be, at the receivers' pace."""
CHECKS_PER_TIMEOUT = 5
"""Looks at a store that fit into the timeout for it."""
KEEPALIVES_PER_TIMEOUT = 2
ACK_SHARE = 2
"""An acknowledgement should be for at most one part in so many of a flight."""
EVERYTHING = ("", ".*", "^", "^.*", "^.*$")
"""Expressions that match every topic."""
RESOLVERS = "set resolver_unicast_daemon, resolver_service or resolver_multicast_interface"
QUORUM = "proxy-source-repo-quorum-required"
ON_DISK = (RepositoryType.DISK, RepositoryType.REDUCED_FD)


class Level(Enum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@attrs.frozen
class Advice:
    """One thing that was found."""

    code: str
    level: Level
    where: str
    text: str


@attrs.frozen
class Client:
    """What an option file makes of a source, of a receiver, and of what carries the data."""

    path: str
    source: SourceConfig
    receiver: ReceiverConfig
    transport: TransportConfig = TransportConfig()


Found = Iterator[tuple[str, Level, str]]
"""Code, level, text."""


def check(plans: Sequence[Plan], clients: Sequence[Client]) -> list[Advice]:
    """All that is found: in each daemon, in each client, and between clients and the topics that they may use."""
    advice: list[Advice] = []
    for plan in plans:
        advice += _at(plan.path, _daemon(plan))
        advice += _at(plan.path, _neighbours(plan))
        for store in plan.stores:
            advice += _at(f'{plan.path}: store "{store.name}"', _store(store))
            for topic in store.topics:
                where = f'{plan.path}: store "{store.name}" topic "{topic.rule.pattern}"'
                advice += _at(where, _topic(store, topic))
                for client in clients:
                    advice += _at(f"{client.path} at {where}", _between(store, topic, client))
    for client in clients:
        advice += _at(client.path, _client(client))
        for shared in placement.of_client(plans, client):
            advice += _at(shared.where, _one_fault(shared))
    return advice


def _at(where: str, found: Iterable[tuple[str, Level, str]]) -> list[Advice]:
    return [Advice(code, level, where, text) for code, level, text in found]


def _daemon(plan: Plan) -> Found:
    monitor = plan.daemon.monitor
    if monitor is not None and not ipaddress.ip_address(monitor.host).is_loopback:
        text = f"the monitor listens at {monitor.host}: whoever reaches it sees topics and addresses"
        yield ("monitor-exposed", Level.WARNING, f"{text}; listen at 127.0.0.1, or give it a token")
        if monitor.writable and monitor.token_file is None:
            text = "anybody who reaches the monitor could change things"
            yield ("monitor-writable", Level.ERROR, f"{text}: it will not start; give it a token or make it read-only")
    if plan.daemon.log.path is None and plan.daemon.pidfile is not None:
        yield ("no-log-file", Level.ADVICE, "a daemon with a pidfile should have a log file: nobody reads a console")
    for what, path in (("log", plan.daemon.log.path), ("pidfile", plan.daemon.pidfile)):
        if path is not None and not path.parent.is_dir():
            yield ("no-directory", Level.ERROR, f"the directory of the {what} {path} is missing; create it")
    if plan.daemon.statistics is not None and plan.stores and not _found_by(plan.stores[0]):
        text = "statistics are published, and there is no resolver through which anybody could find them"
        yield ("statistics-unfindable", Level.WARNING, f"{text}: {RESOLVERS} for the first store")


def _neighbours(plan: Plan) -> Found:
    """Which sources name its stores a daemon does not know, so this is advice."""
    if len(plan.stores) > 1:
        text = f"{len(plan.stores)} stores in one daemon end together, and so does a quorum of them"
        yield ("stores-together", Level.ADVICE, f"{text}: let no group of a source name two of them")
    for shared in placement.of_daemon(plan):
        text = f"{_names(shared)} have their journals on one file system, and run out of room together"
        yield ("stores-together", Level.ADVICE, f"{text}: let no group of a source name two of them")


def _one_fault(shared: placement.Shared) -> Found:
    """A fault that takes several stores of one group."""
    if shared.daemon:
        text = f"{_names(shared)} are stores of one daemon, {shared.what}: they end together"
        yield ("quorum-in-one-daemon", Level.WARNING, f"{text}; give each a daemon on a host of its own")
    else:
        text = f"{_names(shared)} have their journals on one file system, that of {shared.what}"
        yield ("quorum-on-one-disk", Level.WARNING, f"{text}: it fails and fills for all; give each its own")


def _names(shared: placement.Shared) -> str:
    return " and ".join(f'"{name}"' for name in shared.stores)


def _found_by(store: StorePlan) -> bool:
    """Whether what the store publishes, or its proxies, can be found by others."""
    return bool(store.resolver or store.resolver_service or _multicast(store))


def _multicast(store: StorePlan) -> bool:
    return any(name.startswith("resolver_multicast_") for name in store.resolution)


def _store(store: StorePlan) -> Found:
    config = store.config
    for what, path in (("cache", store.cache_directory), ("state", store.state_directory)):
        if not path.is_dir():
            yield ("no-directory", Level.ERROR, f"disk-{what}-directory {path} is missing; create it")
    if config.burst < BURST_ENOUGH:
        text = f"a gap of {config.burst} messages counts as lost at once, though the source may still have them"
        yield ("burst-limit", Level.WARNING, f"{text}: raise delivery_control_maximum_burst_loss")
    if config.allow_proxy and not _found_by(store):
        text = "proxies are allowed, and there is no resolver through which receivers could find one"
        yield ("proxy-unfindable", Level.ERROR, f"{text}: {RESOLVERS}")
    if config.proxy_quorum and not config.allow_proxy:
        text = f"{QUORUM} without allow-proxy-source: this store only refuses proxies of sources that it does not know"
        yield ("quorum-without-proxies", Level.ADVICE, text)
    for index, topic in enumerate(store.topics):
        if any(_covers(earlier, topic) for earlier in store.topics[:index]):
            text = f'pattern "{topic.rule.pattern}" is never reached: an earlier one matches all its topics'
            yield ("unreached-pattern", Level.WARNING, text)


def _covers(earlier: TopicPlan, later: TopicPlan) -> bool:
    """Whether a pattern certainly matches all that a later one does."""
    everything = earlier.rule.kind is not PatternType.DIRECT and earlier.rule.pattern in EVERYTHING
    return everything or (earlier.rule.pattern, earlier.rule.kind) == (later.rule.pattern, later.rule.kind)


def _topic(store: StorePlan, topic: TopicPlan) -> Found:
    yield from _sizes(topic)
    yield from _spans(store, topic)
    kept = topic.rule.repository
    if store.config.proxy_quorum and store.config.proxy_interval_ns <= _registration_ns(topic):
        text = f"proxy-election-interval {store.config.proxy_interval_ns // MILLISECOND} ms is not above the"
        remedy = "a proxy ends before it can know that a store is away; raise it"
        yield ("election-short", Level.WARNING, f"{text} ume_registration_interval of proxies: {remedy}")
    if kept.kind is RepositoryType.NO_CACHE:
        yield ("keeps-nothing", Level.WARNING, "repository-type no-cache keeps no message: nothing is persistent here")
    if not kept.allow_rpp:
        for value, name in (
            (kept.write_delay_ns, "repository-disk-write-delay"),
            (kept.allow_ack_on_reception, "repository-allow-ack-on-reception"),
        ):
            if value:
                text = f"{name} is for receiver-paced persistence, which is not allowed"
                yield ("needs-receiver-pacing", Level.WARNING, text)
        return
    if kept.kind is RepositoryType.MEMORY:
        text = "receiver-paced persistence in memory: a store that ends forgets what receivers still wait for"
        yield ("paced-in-memory", Level.WARNING, text)
    if kept.allow_ack_on_reception and kept.kind in ON_DISK:
        text = "acknowledged at reception: a crash of the store loses what was reported stable there"
        yield ("ack-on-reception", Level.WARNING, text)


def _registration_ns(topic: TopicPlan) -> int:
    said = topic.proxy_options.get("ume_registration_interval")
    return RegistrationTimes().interval_ns if said is None else int(said) * MILLISECOND


def _sizes(topic: TopicPlan) -> Found:
    kept, disk = topic.rule.repository, topic.disk
    threshold, limit = kept.size_threshold, kept.size_limit
    if kept.kind is RepositoryType.MEMORY and not limit:
        text = "repository-size-limit 0: a repository in memory grows until its host has none left; set a limit"
        yield ("memory-unbounded", Level.WARNING, text)
    if disk.preallocate and kept.kind not in ON_DISK:
        text = "repository-disk-file-preallocate has no effect: nothing of this topic is on a disk"
        yield ("needs-disk", Level.WARNING, text)
    if limit and threshold >= limit:
        text = f"repository-size-threshold {threshold} is not below repository-size-limit {limit}"
        yield ("threshold-above-limit", Level.ERROR, f"{text}: new messages are dropped before old ones go (P-121)")
    if kept.kind in ON_DISK and 3 * disk.buffer_bytes > kept.disk_limit:
        text = f"repository-disk-file-size-limit {kept.disk_limit} has no room for three buffers of {disk.buffer_bytes}"
        yield ("buffer-above-limit", Level.WARNING, text)
    if not kept.allow_rpp:
        return
    capacity = min(size for size in (limit, kept.disk_limit if kept.kind in ON_DISK else 0, 1 << 62) if size)
    if kept.flight_bytes_maximum > capacity:
        text = f"source-flight-size-bytes-maximum {kept.flight_bytes_maximum} is more than the {capacity} bytes kept"
        yield ("flight-above-repository", Level.ERROR, f"{text}: sources that ask for it are refused")
    if threshold and threshold <= kept.flight_bytes_maximum:
        text = f"repository-size-threshold {threshold} should lie above source-flight-size-bytes-maximum"
        yield ("threshold-below-flight", Level.WARNING, text)
    if kept.kind in ON_DISK and 100 * limit > PERCENT_OF_DISK * kept.disk_limit:
        text = f"repository-size-limit {limit} is more than {PERCENT_OF_DISK} % of the disk limit {kept.disk_limit}"
        yield ("limit-near-disk", Level.WARNING, text)


def _spans(store: StorePlan, topic: TopicPlan) -> Found:
    kept, config = topic.rule.repository, store.config
    for who, activity, lifetime in (
        ("source", kept.source_activity_ns, kept.source_lifetime_ns),
        ("receiver", kept.receiver_activity_ns, kept.receiver_lifetime_ns),
    ):
        shown = activity // MILLISECOND
        if 0 < lifetime < activity:
            text = f"{who}-state-lifetime {lifetime // MILLISECOND} ms is below {who}-activity-timeout {shown} ms"
            yield ("lifetime-below-activity", Level.WARNING, f"{text}: state goes at the activity timeout all the same")
        if activity < KEEPALIVES_PER_TIMEOUT * config.keepalive_ns:
            text = f"{who}-activity-timeout {shown} ms is less than twice keepalive-interval"
            yield ("activity-below-keepalive", Level.WARNING, f"{text}: one lost keepalive ends a registration")
        if activity < config.check_ns:
            text = f"{who}-activity-timeout {shown} ms is shorter than source-check-interval: it is noticed late"
            yield ("activity-below-check", Level.WARNING, text)
        if kept.kind is not RepositoryType.NO_CACHE:
            yield from _lifetime(who, activity, lifetime, kept.allow_rpp)
    if not kept.rollback:
        text = "receiver-new-registration-rollback 0: a new receiver gets nothing that was stored before it came"
        yield ("no-rollback", Level.ADVICE, text)


def _lifetime(who: str, activity: int, lifetime: int, paced: bool) -> Found:
    """A lifetime of 0 loses what is stable; without an end a paced receiver may hold its source up (P-124, U18)."""
    name = f"{who}-state-lifetime"
    if not lifetime:
        lost = "its stable messages are deleted, and their numbers are used again"
        if who == "receiver":
            lost = "the store forgets what it acknowledged"
        text = f"{name} is 0: when a {who} is away for {activity / SECOND:g} s, {lost}"
        yield ("no-lifetime", Level.WARNING, f"{text}; the profile safe keeps its state, {name} 4294967295")
    elif lifetime >= STATE_FOR_EVER and paced and who == "receiver":
        text = f"{name} has no end: at the receivers' pace a receiver that never comes back holds up its source"
        yield (
            "unlimited-lifetime",
            Level.ADVICE,
            f"{text} until an operator evicts it; set {name} if age is to end it",
        )


def _client(client: Client) -> Found:
    source = client.source
    for finding in (*relations(source), *recovery_relations(client.receiver, len(source.stores))):
        yield (finding.code, Level.ERROR if finding.fatal else Level.ADVICE, finding.text)
    for code, fatal, text in transport_relations(client.transport):
        yield (code, Level.ERROR if fatal else Level.WARNING, text)
    for text in liveness(source, client.receiver):
        yield ("liveness", Level.ERROR, text)
    if not source.stores:
        yield ("no-stores", Level.ADVICE, "no stores are named: what this source sends is not persistent")
    if source.times.silence_ns < CHECKS_PER_TIMEOUT * source.check_ns:
        text = f"ume_store_activity_timeout should be {CHECKS_PER_TIMEOUT} times ume_store_check_interval or more"
        yield ("store-timeout-short", Level.WARNING, text)
    if 0 < source.stability_lifetime_ns <= source.stability_timeout_ns:
        text = "ume_message_stability_lifetime ends before ume_message_stability_timeout: nothing is ever sent again"
        yield ("stability-lifetime-short", Level.WARNING, text)
    if len(source.groups.sizes) > 1 and source.groups.intergroup.name == "ANY":
        text = "stable in any one of several groups: a restart that meets another group resumes below (formal, 7.2)"
        yield ("any-of-groups", Level.WARNING, text)
    batching = client.transport.batching
    if batching.span_ns and 0 < source.flight_bytes < batching.minimum_bytes:
        text = f"a batch of {batching.minimum_bytes} bytes does not fit the flight of {source.flight_bytes}"
        yield ("batch-above-flight", Level.WARNING, f"{text}: it leaves when the flight is full")


def _between(store: StorePlan, topic: TopicPlan, client: Client) -> Found:
    """What a client would meet at this store."""
    kept, source = topic.rule.repository, client.source
    if kept.ack_minimum > 1 and kept.ack_minimum > source.flight_messages // ACK_SHARE:
        text = f"stability-ack-minimum-number {kept.ack_minimum} against ume_flight_size {source.flight_messages}"
        yield (
            "stop-and-go",
            Level.WARNING,
            f"{text}: sending waits for the interval again and again (P-840)",
        )
    if source.times.silence_ns <= store.config.keepalive_ns:
        text = "ume_store_activity_timeout must be longer than the store's keepalive-interval"
        yield ("store-timeout-below-keepalive", Level.ERROR, text)
    wishes = source.wishes
    for wish, most, name in (
        (wishes.size_threshold, kept.size_threshold, "repository-size-threshold"),
        (wishes.size_limit, kept.size_limit, "repository-size-limit"),
        (wishes.disk_limit, kept.disk_limit, "repository-disk-file-size-limit"),
    ):
        if most and wish > most:
            text = f"the source asks for a {name} of {wish} and the store allows {most}: it is refused"
            yield ("wish-above-store", Level.ERROR, text)
    if source.pace.name == "RECEIVERS" and not kept.allow_rpp:
        text = "the source asks for receiver-paced persistence, which the store does not allow: it is refused"
        yield ("pacing-refused", Level.ERROR, text)
    if source.pace.name == "RECEIVERS" and source.flight_bytes > kept.flight_bytes_maximum:
        text = f"ume_flight_size_bytes {source.flight_bytes} is above the store's {kept.flight_bytes_maximum}: refused"
        yield ("flight-above-store", Level.ERROR, text)
    if source.wants_proxy and not store.config.allow_proxy:
        yield ("proxy-refused", Level.WARNING, "the source wants a proxy, and the store does not stand in for any")
