"""Checks of the configurations of stores and clients, whose values are allowed but do not fit together.

Each finding has a stable code, a level and a place. An *error* means that something will not work, or that messages are
lost against the configuration. A *warning* means that it will be slow, fragile or exposed. *Advice* means that users
usually want another value. `spec/store_daemon.md` lists the codes.
"""

import ipaddress
from collections.abc import Iterator, Sequence
from enum import Enum

import attrs

from stablecast.config import placement
from stablecast.config.context_options import NO_REQUEST_PORT
from stablecast.config.findings import ConfigProblem
from stablecast.config.plan import Plan, StorePlan, TopicPlan
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.config.transport_checks import transport_relations
from stablecast.config.transport_options import TransportConfig
from stablecast.core.machine.units import MILLISECOND, SECOND, milliseconds
from stablecast.core.protocol import settings
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.setting_relations import recovery_relations, relations
from stablecast.runtime import machine
from stablecast.transports.resolution.udp.settings import QueryOptions

BURST_ENOUGH = 1_000_000
"""Smallest burst limit; a smaller one declares recoverable messages lost (T30)."""
PERCENT_OF_DISK = 90
"""Largest size limit with receiver-paced persistence, in percent of the disk limit."""
CHECKS_PER_TIMEOUT = 5
"""Checks of a store that must fit into its activity timeout."""
KEEPALIVES_PER_TIMEOUT = 2
LIVENESS_FACTOR = 5
"""Intervals of a receiver that the liveness timeout of a source must have (P-340)."""
ACK_SHARE = 2
"""An acknowledgement should cover at most this part of a flight."""

DEAF = "new messages are refused before old ones are deleted"
"""The effect of a threshold above its limit."""
EVERYTHING = ("", ".*", "^", "^.*", "^.*$")
"""Expressions that match every topic."""
RESOLVERS = "set resolver_unicast_daemon, resolver_service or resolver_multicast_interface"
QUORUM = "proxy-source-repo-quorum-required"
ON_DISK = (settings.RepositoryType.DISK, settings.RepositoryType.REDUCED_FD)


class AdviceLevel(Enum):
    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@attrs.frozen
class Advice:
    """One finding: its code, its level, its place and its sentence."""

    code: str
    level: AdviceLevel
    where: str
    text: str


@attrs.frozen
class ClientOptions:
    """The configurations of a source, a receiver and their transport that one option file gives, with its notices.

    `binds` is false if the context has no request port. `resolution` is that of the context, `query` of the receiver.
    """

    path: str
    source: settings.SourceConfig
    receiver: settings.ReceiverConfig
    transport: TransportConfig = TransportConfig()
    notices: tuple[ConfigProblem, ...] = ()
    binds: bool = True
    resolution: ResolutionSettings = ResolutionSettings()
    query: QueryOptions = QueryOptions()


Found = Iterator[tuple[str, AdviceLevel, str]]
"""Code, level and sentence of each finding."""


def check(plans: Sequence[Plan], clients: Sequence[ClientOptions]) -> list[Advice]:
    """Return the findings of each daemon, of each client, and between clients and the topics that they may use."""
    advice: list[Advice] = []
    for plan in plans:
        advice += at(plan.path, _daemon(plan))
        advice += at(plan.path, _neighbours(plan))
        for store in plan.stores:
            advice += at(f'{plan.path}: store "{store.name}"', _store(store, _of_host(plan)))
            for topic in store.topics:
                where = f'{plan.path}: store "{store.name}" topic "{topic.rule.pattern}"'
                advice += at(where, _topic(store, topic))
                for client in clients:
                    advice += at(f"{client.path} at {where}", _between(store, topic, client))
    for client in clients:
        advice += at(client.path, _client(client))
        for shared in placement.of_client(plans, client.path, client.source):
            advice += at(shared.where, _one_fault(shared))
    return advice


def at(where: str, found: Found) -> list[Advice]:
    return [Advice(code, level, where, text) for code, level, text in found]


def _daemon(plan: Plan) -> Found:
    monitor = plan.daemon.monitor
    if monitor is not None and not ipaddress.ip_address(monitor.host).is_loopback:
        text = f"the monitor listens at {monitor.host} and shows topics and addresses to everyone who reaches it"
        yield ("monitor-exposed", AdviceLevel.WARNING, f"{text}; listen at 127.0.0.1, or give it a token")
        if monitor.writable and monitor.token_file is None:
            text = "the monitor does not start, because everyone who reaches it could change the store"
            yield ("monitor-writable", AdviceLevel.ERROR, f"{text}: give it a token or make it read-only")
    if plan.daemon.log.path is None and plan.daemon.pidfile is not None:
        text = "a daemon with a pidfile should have a log file, because it has no console"
        yield ("no-log-file", AdviceLevel.ADVICE, text)
    for what, path in (("log", plan.daemon.log.path), ("pidfile", plan.daemon.pidfile)):
        if path is not None and not machine.files.is_directory(path.parent):
            yield ("no-directory", _of_host(plan), f"the directory of the {what} {path} is missing; create it")
    if plan.daemon.statistics is not None and plan.stores and not takes_part(plan.stores[0]):
        text = "statistics are published, but receivers cannot find them without a resolver"
        yield ("statistics-unfindable", AdviceLevel.WARNING, f"{text}: {RESOLVERS} for the first store")


def _neighbours(plan: Plan) -> Found:
    """Find stores with a common fault; only advice, because a daemon does not know which sources use its stores."""
    if len(plan.stores) > 1:
        text = f"{len(plan.stores)} stores of one daemon end together, and so would a quorum of them"
        yield ("stores-together", AdviceLevel.ADVICE, f"{text}: do not put two of them into one group of a source")
    for shared in placement.of_daemon(plan):
        text = f"{_names(shared)} have their journals on one file system, which fills for all of them"
        yield ("stores-together", AdviceLevel.ADVICE, f"{text}: do not put two of them into one group of a source")


def _one_fault(shared: placement.SharedFault) -> Found:
    if shared.daemon:
        text = f"{_names(shared)} are stores of one daemon, {shared.what}: they end together"
        yield ("quorum-in-one-daemon", AdviceLevel.WARNING, f"{text}; give each a daemon on a host of its own")
    else:
        text = f"{_names(shared)} have their journals on one file system, that of {shared.what}"
        text = f"{text}: it fails or fills for all of them; give each its own"
        yield ("quorum-on-one-disk", AdviceLevel.WARNING, text)


def _names(shared: placement.SharedFault) -> str:
    return " and ".join(f'"{name}"' for name in shared.stores)


def takes_part(store: StorePlan) -> bool:
    """Return whether a store takes part in resolution: others find its statistics and proxies, and it hears routers."""
    return bool(store.resolver or store.resolver_service or _multicast(store))


def _multicast(store: StorePlan) -> bool:
    return any(name.startswith("resolver_multicast_") for name in store.resolution)


def _of_host(plan: Plan) -> AdviceLevel:
    """Return the level of what this host lacks."""
    return AdviceLevel.ADVICE if plan.elsewhere else AdviceLevel.ERROR


def _store(store: StorePlan, missing: AdviceLevel) -> Found:
    config = store.config
    for what, path in (("cache", store.cache_directory), ("state", store.state_directory)):
        if not machine.files.is_directory(path):
            yield ("no-directory", missing, f"disk-{what}-directory {path} is missing; create it")
    if config.burst < BURST_ENOUGH:
        text = f"a gap of {config.burst} messages counts as lost at once, although the source may still have them"
        yield ("burst-limit", AdviceLevel.WARNING, f"{text}: raise delivery_control_maximum_burst_loss")
    if config.allow_proxy and not takes_part(store):
        text = "proxies are allowed, but receivers cannot find them without a resolver"
        yield ("proxy-unfindable", AdviceLevel.ERROR, f"{text}: {RESOLVERS}")
    if config.proxy_quorum and not config.allow_proxy:
        text = f"with {QUORUM} but not allow-proxy-source, this store only refuses proxies of unknown sources"
        yield ("quorum-without-proxies", AdviceLevel.ADVICE, text)
    for index, topic in enumerate(store.topics):
        if any(_covers(earlier, topic) for earlier in store.topics[:index]):
            text = f'pattern "{topic.rule.pattern}" is never used, because an earlier pattern matches all its topics'
            yield ("unreached-pattern", AdviceLevel.WARNING, text)


def _covers(earlier: TopicPlan, later: TopicPlan) -> bool:
    """Return whether a pattern certainly matches every topic of a later one."""
    everything = earlier.rule.kind is not settings.PatternType.DIRECT and earlier.rule.pattern in EVERYTHING
    return everything or (earlier.rule.pattern, earlier.rule.kind) == (later.rule.pattern, later.rule.kind)


def _topic(store: StorePlan, topic: TopicPlan) -> Found:
    yield from _sizes(topic)
    yield from _spans(store, topic)
    kept = topic.rule.repository
    if store.config.proxy_quorum and store.config.proxy_interval_ns <= _registration_ns(topic):
        text = f"proxy-election-interval {store.config.proxy_interval_ns // MILLISECOND} ms is not above the"
        remedy = "a proxy ends before it can detect a missing store; raise it"
        yield ("election-short", AdviceLevel.WARNING, f"{text} ume_registration_interval of proxies: {remedy}")
    if kept.kind is settings.RepositoryType.NO_CACHE:
        yield ("keeps-nothing", AdviceLevel.WARNING, "with repository-type no-cache the store keeps no message")
    if not kept.allow_rpp:
        for value, name in (
            (kept.write_delay_ns, "repository-disk-write-delay"),
            (kept.allow_ack_on_reception, "repository-allow-ack-on-reception"),
        ):
            if value:
                text = f"{name} has no effect, because receiver-paced persistence is not allowed"
                yield ("needs-receiver-pacing", AdviceLevel.WARNING, text)
        return
    if kept.kind is settings.RepositoryType.MEMORY:
        text = "with receiver-paced persistence in memory, a restart loses messages that receivers have not consumed"
        yield ("paced-in-memory", AdviceLevel.WARNING, text)
    if kept.allow_ack_on_reception and kept.kind in ON_DISK:
        text = "with acknowledgement at reception, a crash of the store loses messages that it reported stable"
        yield ("ack-on-reception", AdviceLevel.WARNING, text)


def _registration_ns(topic: TopicPlan) -> int:
    configured = topic.proxy_options.get("ume_registration_interval")
    return settings.RegistrationTimes().interval_ns if configured is None else int(configured) * MILLISECOND


def _sizes(topic: TopicPlan) -> Found:
    kept, disk = topic.rule.repository, topic.disk
    threshold, limit = kept.size_threshold, kept.size_limit
    if kept.kind is settings.RepositoryType.MEMORY and not limit:
        text = "with repository-size-limit 0, a repository in memory grows until the host has no memory; set a limit"
        yield ("memory-unbounded", AdviceLevel.WARNING, text)
    if disk.preallocate and kept.kind not in ON_DISK:
        text = "repository-disk-file-preallocate has no effect, because this topic is not kept on disk"
        yield ("needs-disk", AdviceLevel.WARNING, text)
    if limit and threshold >= limit:
        text = f"repository-size-threshold {threshold} is not below repository-size-limit {limit}"
        yield ("threshold-above-limit", AdviceLevel.ERROR, f"{text}: {DEAF}")
    if kept.kind in ON_DISK and 3 * disk.buffer_bytes > kept.disk_limit:
        text = f"repository-disk-file-size-limit {kept.disk_limit} is less than three buffers of {disk.buffer_bytes}"
        yield ("buffer-above-limit", AdviceLevel.WARNING, text)
    if not kept.allow_rpp:
        return
    capacity = min(size for size in (limit, kept.disk_limit if kept.kind in ON_DISK else 0, 1 << 62) if size)
    if kept.flight_bytes_maximum > capacity:
        text = f"source-flight-size-bytes-maximum {kept.flight_bytes_maximum} is more than the {capacity} bytes kept"
        yield ("flight-above-repository", AdviceLevel.ERROR, f"{text}: sources that ask for it are refused")
    if threshold and threshold <= kept.flight_bytes_maximum:
        text = f"repository-size-threshold {threshold} should lie above source-flight-size-bytes-maximum"
        yield ("threshold-below-flight", AdviceLevel.WARNING, text)
    if kept.kind in ON_DISK and 100 * limit > PERCENT_OF_DISK * kept.disk_limit:
        text = f"repository-size-limit {limit} is more than {PERCENT_OF_DISK} % of the disk limit {kept.disk_limit}"
        yield ("limit-near-disk", AdviceLevel.WARNING, text)


def _spans(store: StorePlan, topic: TopicPlan) -> Found:
    kept, config = topic.rule.repository, store.config
    for who, activity, lifetime in (
        ("source", kept.source_activity_ns, kept.source_lifetime_ns),
        ("receiver", kept.receiver_activity_ns, kept.receiver_lifetime_ns),
    ):
        shown = activity // MILLISECOND
        if 0 < lifetime < activity:
            text = f"{who}-state-lifetime {lifetime // MILLISECOND} ms is below {who}-activity-timeout {shown} ms"
            yield ("lifetime-below-activity", AdviceLevel.WARNING, f"{text}: state is deleted at the activity timeout")
        if activity < KEEPALIVES_PER_TIMEOUT * config.keepalive_ns:
            text = f"{who}-activity-timeout {shown} ms is less than twice keepalive-interval"
            yield ("activity-below-keepalive", AdviceLevel.WARNING, f"{text}: one lost keepalive ends a registration")
        if activity < config.check_ns:
            text = f"{who}-activity-timeout {shown} ms is shorter than source-check-interval, so it is detected late"
            yield ("activity-below-check", AdviceLevel.WARNING, text)
        if kept.kind is not settings.RepositoryType.NO_CACHE:
            yield from _lifetime(who, activity, lifetime, kept.allow_rpp)
    if not kept.rollback:
        text = "with receiver-new-registration-rollback 0, a new receiver gets no message that was stored before it"
        yield ("no-rollback", AdviceLevel.ADVICE, text)


def _lifetime(who: str, activity: int, lifetime: int, paced: bool) -> Found:
    """Find lifetimes that lose stable messages, or that let a lost receiver block its source (P-124, U18)."""
    name = f"{who}-state-lifetime"
    if not lifetime:
        lost = "its stable messages are deleted, and their numbers are used again"
        if who == "receiver":
            lost = "the store forgets its acknowledgements"
        text = f"{name} is 0: when a {who} is silent for {activity / SECOND:g} s, {lost}"
        yield ("no-lifetime", AdviceLevel.WARNING, f"{text}; the profile safe keeps its state with {name} 4294967295")
    elif lifetime >= settings.STATE_FOR_EVER and paced and who == "receiver":
        text = f"{name} has no end: with receiver-paced persistence a receiver that never returns blocks its source"
        remedy = f"until an operator evicts it; set {name} to limit that time"
        yield ("unlimited-lifetime", AdviceLevel.ADVICE, f"{text} {remedy}")


def liveness(source: settings.SourceConfig, receiver: settings.ReceiverConfig) -> tuple[str, ...]:
    """Return the conflicts of receiver liveness, which needs five options of two endpoints (P-339, P-340)."""
    timeout, interval = source.liveness_ns, receiver.liveness_ns
    if not timeout and not interval:
        return ()
    found = []
    if timeout != LIVENESS_FACTOR * interval:
        found.append(f"ume_source_liveness_timeout must be {LIVENESS_FACTOR} times ume_receiver_liveness_interval")
    if not source.confirmations or not receiver.confirm:
        found.append("receiver liveness needs confirmed delivery: set ume_confirmed_delivery_notification")
    if not receiver.user_reg_id:
        found.append("receiver liveness needs ume_user_receiver_registration_id")
    if not receiver.session_id:
        found.append("receiver liveness needs ume_session_id")
    return tuple(found)


def _client(client: ClientOptions) -> Found:
    source = client.source
    for finding in (*relations(source), *recovery_relations(client.receiver, len(source.stores))):
        yield (finding.code, AdviceLevel.ERROR if finding.fatal else AdviceLevel.ADVICE, finding.text)
    for code, fatal, text in transport_relations(client.transport):
        yield (code, AdviceLevel.ERROR if fatal else AdviceLevel.WARNING, text)
    for text in liveness(source, client.receiver):
        yield ("liveness", AdviceLevel.ERROR, text)
    if source.stores and not client.binds:
        yield ("no-request-port", AdviceLevel.ERROR, NO_REQUEST_PORT)
    if not source.stores:
        yield ("no-stores", AdviceLevel.ADVICE, "no stores are named, so messages of this source are not persistent")
    if source.times.silence_ns < CHECKS_PER_TIMEOUT * source.check_ns:
        text = f"ume_store_activity_timeout should be {CHECKS_PER_TIMEOUT} times ume_store_check_interval or more"
        yield ("store-timeout-short", AdviceLevel.WARNING, text)
    if 0 < source.stability_lifetime_ns <= source.stability_timeout_ns:
        text = "ume_message_stability_lifetime ends before ume_message_stability_timeout, so no message is sent again"
        yield ("stability-lifetime-short", AdviceLevel.WARNING, text)
    if len(source.groups.sizes) > 1 and source.groups.intergroup.name == "ANY":
        text = "messages are stable in any one group: a restart that reaches another group may reuse their numbers"
        yield ("any-of-groups", AdviceLevel.WARNING, text)
    batching = client.transport.batching
    if batching.span_ns and 0 < source.flight_bytes < batching.minimum_bytes:
        text = f"a batch of {batching.minimum_bytes} bytes does not fit the flight of {source.flight_bytes}"
        yield ("batch-above-flight", AdviceLevel.WARNING, f"{text}: it is sent when the flight is full")


def _wished(kept: settings.RepositoryConfig, source: settings.SourceConfig) -> Found:
    """Yield what a repository does not grant of the wishes of a source, or what does not fit together (P-111, P-592).

    A store refuses a paced source for it. Without pacing by receivers the wish has no effect.
    """
    wishes, most_ms = source.wishes, milliseconds(kept.write_delay_ns)
    paced = source.pace is Pace.RECEIVERS
    level = AdviceLevel.ERROR if paced else AdviceLevel.ADVICE
    effect = "and refuses it" if paced else "so it has no effect without receiver-paced persistence"
    for wish, beyond, ours, name, most in (
        (wishes.size_threshold, kept.size_threshold, "size_threshold", "size-threshold", kept.size_threshold),
        (wishes.size_limit, kept.size_limit, "size_limit", "size-limit", kept.size_limit),
        (wishes.disk_limit, kept.disk_limit, "disk_file_size_limit", "disk-file-size-limit", kept.disk_limit),
        (wishes.write_delay_ms, True, "", "disk-write-delay", most_ms),
    ):
        if beyond and wish > most:
            text = f"the source asks for {f'ume_repository_{ours}' if ours else 'ume_write_delay'} {wish}"
            yield ("wish-above-store", level, f"{text}, but the store allows repository-{name} {most}, {effect}")
    if wishes.ack_on_reception and not paced:
        text = "ume_repository_ack_on_reception has no effect without receiver-paced persistence"
        yield ("needs-receiver-pacing", AdviceLevel.ADVICE, text)
    threshold, limit = wishes.size_threshold or kept.size_threshold, wishes.size_limit or kept.size_limit
    if (wishes.size_threshold or wishes.size_limit) and 0 < limit <= threshold:
        text = f"with the sizes of the source, repository-size-threshold {threshold} is not below the limit {limit}"
        yield ("threshold-above-limit", AdviceLevel.ERROR, f"{text}: {DEAF}")


def _between(store: StorePlan, topic: TopicPlan, client: ClientOptions) -> Found:
    kept, source = topic.rule.repository, client.source
    if kept.ack_minimum > 1 and kept.ack_minimum > source.flight_messages // ACK_SHARE:
        text = f"stability-ack-minimum-number {kept.ack_minimum} against ume_flight_size {source.flight_messages}"
        yield ("stop-and-go", AdviceLevel.WARNING, f"{text}: the source waits for the interval again and again")
    limit = source.wishes.size_limit or kept.size_limit
    if 0 < limit < source.flight_bytes and source.pace.name == "SOURCE":
        text = f"ume_flight_size_bytes {source.flight_bytes} is more than the repository-size-limit {limit}"
        yield ("flight-above-limit", AdviceLevel.WARNING, f"{text}: the store drops messages and asks for them again")
    if source.times.silence_ns <= store.config.keepalive_ns:
        text = "ume_store_activity_timeout must be longer than the store's keepalive-interval"
        yield ("store-timeout-below-keepalive", AdviceLevel.ERROR, text)
    yield from _wished(kept, source)
    if source.pace.name == "RECEIVERS" and not kept.allow_rpp:
        text = "the source asks for receiver-paced persistence, which the store refuses"
        yield ("pacing-refused", AdviceLevel.ERROR, text)
    if source.pace.name == "RECEIVERS" and source.flight_bytes > kept.flight_bytes_maximum:
        text = f"the store refuses ume_flight_size_bytes {source.flight_bytes} above its {kept.flight_bytes_maximum}"
        yield ("flight-above-store", AdviceLevel.ERROR, text)
    if source.wants_proxy and not store.config.allow_proxy:
        yield ("proxy-refused", AdviceLevel.WARNING, "the source wants a proxy, but the store does not allow proxies")
