"""Configure each endpoint of a world. Times are the documented defaults, three to ten times shorter."""

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import settings
from stablecast.core.protocol.messages import UNSET, Pace, Wishes
from stablecast.core.protocol.quorum import Consensus
from stablecast.core.protocol.repairs import Repair
from stablecast.lab.sim.setup import RECEIVERS, STORES, WorldSetup

TOPIC = "sim"
HOSTS = {name: f"10.0.0.{number}" for number, name in enumerate(("source", *RECEIVERS, *STORES), 1)}
STORE_PORTS = (14567, 14580)
STORE_ADDRESSES = tuple(f"{HOSTS[store]}:{STORE_PORTS[0]}" for store in STORES)
_STORE_HOSTS = frozenset(HOSTS[store] for store in STORES)

TIMES = settings.RegistrationTimes(150 * MILLISECOND, 400 * MILLISECOND, 1200 * MILLISECOND)
ACTIVITY_NS = 2 * SECOND
LIFETIME_NS = 600 * SECOND
"""Lifetime of a source's state in ns, longer than any world."""

BRIEF_ACTIVITY_NS = 1 * SECOND
PROXY_INTERVAL_NS = 300 * MILLISECOND
"""A shorter activity timeout, for worlds with proxies or with claimants that follow each other often."""

RETRY_NS = 150 * MILLISECOND
GIVE_UP_NS = 10 * SECOND
CHECK_NS = 100 * MILLISECOND
ACK_NS = 60 * MILLISECOND
STABILITY_LIFETIME_NS = 3 * SECOND
LIMITED_GIVE_UP_NS = 4 * SECOND
"""Time in ns until source and receivers give up messages that limits deleted.

It ends before the runner reports a world that does not settle.
"""

PACED_FLIGHT_BYTES = 240
"""Bytes in flight under RPP: twenty messages. A store has room for three times as many, or no limit."""

LATE_JOIN_BYTES = 2400
"""Bytes that a streaming source retains for late joiners."""


def store_config(
    setup: WorldSetup, address: str, seed: int, receiver_lifetime: int, name: str = ""
) -> settings.StoreConfig:
    default = settings.StoreConfig("", 0)
    return settings.StoreConfig(
        address,
        seed,
        repository=repository_config(setup, receiver_lifetime),
        check_ns=CHECK_NS,
        request_rate=setup.request_rate or default.request_rate,
        allow_proxy=setup.proxies,
        proxy_interval_ns=PROXY_INTERVAL_NS,
        proxy_quorum=setup.quorate,
        retry_ns=RETRY_NS,
        give_up_ns=GIVE_UP_NS,
        repairs=_repairs(setup),
        refill=setup.refills(name),
    )


def place_of(address: str) -> str:
    """Return where an endpoint is: a store is the same at each of its ports."""
    host, _, port = address.partition(":")
    return host if host in _STORE_HOSTS and int(port) in range(*STORE_PORTS) else address


def _repairs(setup: WorldSetup) -> Repair:
    return Repair.NONE if setup.documented else Repair.ALL


def _consensus(setup: WorldSetup) -> Consensus:
    return Consensus.MAJORITY if setup.documented else Consensus.HIGHEST


def repository_config(setup: WorldSetup, receiver_lifetime: int) -> settings.RepositoryConfig:
    default = settings.RepositoryConfig()
    return settings.RepositoryConfig(
        kind=settings.RepositoryType.MEMORY if setup.memory else settings.RepositoryType.DISK,
        size_threshold=setup.size_threshold or default.size_threshold,
        size_limit=setup.size_limit or default.size_limit,
        disk_limit=setup.disk_limit or default.disk_limit,
        ack_interval_ns=ACK_NS,
        ack_minimum=setup.ack_minimum,
        forwarding=setup.forwarding,
        allow_rpp=setup.paced,
        allow_ack_on_reception=setup.on_reception,
        write_delay_ns=setup.write_delay_ms * MILLISECOND,
        source_activity_ns=BRIEF_ACTIVITY_NS if setup.proxies or setup.brief else ACTIVITY_NS,
        source_lifetime_ns=LIFETIME_NS,
        receiver_activity_ns=BRIEF_ACTIVITY_NS if setup.brief else ACTIVITY_NS,
        receiver_lifetime_ns=receiver_lifetime,
    )


def source_config(
    setup: WorldSetup, incarnation: int, reply_to: str, transport: str, context: int, flight: int
) -> settings.SourceConfig:
    default = settings.SourceConfig("", 0, "", "")
    threshold, limit = setup.retained
    return settings.SourceConfig(
        TOPIC,
        incarnation,
        reply_to,
        transport,
        _stores(setup),
        setup.rules,
        behavior=settings.StoreBehavior.RR if setup.turns else settings.StoreBehavior.QC,
        session_id=1,
        context=context,
        times=TIMES,
        flight_messages=flight,
        flight_bytes=PACED_FLIGHT_BYTES if setup.paced else 0,
        flight_behavior=settings.FlightBehavior.NOTIFY if setup.notify else settings.FlightBehavior.BLOCK,
        retention=settings.Retention(
            threshold if setup.rules.sizes else LATE_JOIN_BYTES, limit or default.retention.limit_bytes, setup.unique
        ),
        confirmations=bool(setup.unique),
        stability_timeout_ns=setup.stability_ms * MILLISECOND or default.stability_timeout_ns,
        stability_lifetime_ns=STABILITY_LIFETIME_NS if setup.limited else default.stability_lifetime_ns,
        check_ns=CHECK_NS,
        late_join=not setup.forgetful,
        sri_interval_ns=50 * MILLISECOND,
        sri_maximum=3,
        pace=Pace.RECEIVERS if setup.paced else Pace.SOURCE,
        wishes=Wishes(
            write_delay_ms=setup.write_delay_ms if setup.paced else UNSET, ack_on_reception=setup.on_reception
        ),
        wants_proxy=setup.proxies,
        consensus=_consensus(setup),
        repairs=_repairs(setup),
    )


def _stores(setup: WorldSetup) -> tuple[settings.StoreSpec, ...]:
    return tuple(
        settings.StoreSpec("" if setup.named else address, group=group, name=name if setup.named else "")
        for name, address, group in zip(STORES, STORE_ADDRESSES, setup.groups, strict=False)
    )


def receiver_config(setup: WorldSetup, name: str, reply_to: str, context: int) -> settings.ReceiverConfig:
    give_up = LIMITED_GIVE_UP_NS if setup.limited else GIVE_UP_NS
    paced = Pace.NON_BLOCKING if setup.non_blocking and name == RECEIVERS[-1] else Pace.RECEIVERS
    return settings.ReceiverConfig(
        TOPIC,
        0,
        reply_to,
        session_id=2 + RECEIVERS.index(name),
        context=context,
        times=TIMES,
        retry_ns=RETRY_NS,
        give_up_ns=give_up,
        otr=settings.OtrTimes(give_up_ns=give_up),
        ordering=settings.Ordering.ARRIVAL if setup.arrival else settings.Ordering.ORDERED,
        ack_mode=setup.ack_mode,
        ack_interval_ns=40 * MILLISECOND,
        sri_request_interval_ns=200 * MILLISECOND,
        pace=paced if setup.paced else Pace.SOURCE,
        consensus=_consensus(setup),
        repairs=_repairs(setup),
    )
