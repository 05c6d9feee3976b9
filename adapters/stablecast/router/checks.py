"""Checks of routers: of one alone, of several against each other, and against the stores and clients beside them.

Files that are checked in one call are taken for those of one network. `spec/router_daemon.md` lists the codes.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from stablecast.config import checks
from stablecast.config.checks import Advice, AdviceLevel, ClientOptions, Found, at
from stablecast.config.plan import Plan
from stablecast.config.resolution_options import ResolutionSettings, with_old_relay
from stablecast.config.transport_checks import transport_relations
from stablecast.config.transport_options import Transport, TransportConfig
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.settings import UseOtr
from stablecast.router.config import PeerConfig, PortalConfig, RouterConfig
from stablecast.transports.resolution.udp.settings import PhasePace
from stablecast.transports.routing.access import AccessEntry, AccessList, Subject

TCP_BYTES = 65_535
"""Bytes of the largest fragment over TCP, the documented default."""

ROUTE_TIMES = 3
"""Messages about routes that must be lost before a router counts as gone."""

PlacedPortal = tuple[RouterConfig, PortalConfig]

_OF_TRANSPORTS = {
    Subject.GROUP: {"lbt-rm"},
    Subject.UDP_DESTINATION: {"lbt-rm"},
    Subject.UDP_SOURCE: {"lbt-rm", "lbt-ru"},
    Subject.TCP_SOURCE: {"tcp"},
    Subject.SOURCE_ADDRESS: {"tcp", "lbt-rm", "lbt-ru"},
}
"""The transports whose sources have a property."""


def check(routers: Sequence[RouterConfig], plans: Sequence[Plan], clients: Sequence[ClientOptions]) -> list[Advice]:
    """Return the findings about the routers of a network, its daemons of stores, and its clients."""
    portals = [(router, portal) for router in routers for portal in router.portals]
    found: list[Advice] = []
    for router in routers:
        # The process of a router is like that of stores, of which it has none.
        found += checks.check([Plan(router.path, router.daemon, (), elsewhere=router.elsewhere)], ())
        found += at(router.path, _router(router))
        found += at(router.path, _request_ports(router))
        for portal in router.portals:
            found += at(_named((router, portal)), _portal(portal))
        for peer in router.peers:
            found += at(f'{router.path}: portal "{peer.name}"', _peer(peer))
    found += at("routers", _names(routers))
    found += at("routers", _links(routers))
    for first, second in combinations(portals, 2):
        found += at(_named(second), _two(first, second))
    if routers:
        found += [one for client in clients for one in at(client.path, _client(client, routers, portals))]
        found += [one for plan in plans for one in _plan(plan, routers, portals)]
    return found


def resolves(settings: ResolutionSettings) -> frozenset[str]:
    """Return the places where a context looks for sources: relays, services, and the group of multicast."""
    settings = with_old_relay(settings)
    group = settings.multicast
    over_udp = set(settings.relays)
    if group is not None and not over_udp:  # A relay switches multicast off.
        over_udp = {f"{group.group}:{group.port}"}
    return frozenset({*(over_udp if settings.udp else ()), *settings.services})


def deaf(router: RouterConfig) -> list[str]:
    """Return a sentence for each portal that has no way to find sources, so that the router cannot begin."""
    return [
        f'portal "{portal.name}" has no way to find sources: {checks.RESOLVERS}'
        for portal in router.portals
        if not resolves(portal.resolution)
    ]


def _named(placed: PlacedPortal) -> str:
    return f'{placed[0].path}: portal "{placed[1].name}"'


# ------------------------------------------------------------------------------------------------------------- alone


def _router(router: RouterConfig) -> Found:
    for text in deaf(router):
        yield ("no-resolver", AdviceLevel.ERROR, text)
    routes = router.routes
    if routes.timeout_ns < ROUTE_TIMES * routes.interval_ns + routes.check_ns:
        text = f"timeout of route-info is below {ROUTE_TIMES} propagation intervals and a check"
        yield ("route-timeout", AdviceLevel.WARNING, f"{text}: lost messages make a router count as gone")


def _request_ports(router: RouterConfig) -> Found:
    """Find ranges of request ports that are too small for the portals that share them."""
    shared: dict[tuple[str, tuple[int, int]], list[str]] = {}
    for portal in router.portals:
        context = portal.context
        if not context.request_port:
            shared.setdefault((context.interface, context.ports), []).append(portal.name)
    for (_, (low, high)), names in shared.items():
        if (ports := high - low + 1) < len(names):
            text = f"{len(names)} portals share {ports} request ports, {low} to {high}, and each needs one"
            yield ("few-ports", AdviceLevel.WARNING, f"{text}: widen request_tcp_port_low and request_tcp_port_high")


def _portal(portal: PortalConfig) -> Found:
    number = portal.resolution.config.domains.number
    if number not in (0, portal.domain):
        text = f"resolver_domain_id {number} contradicts domain-id {portal.domain}, which counts"
        yield ("domain-id", AdviceLevel.ERROR, f"{text}: leave it out")
    for code, fatal, text in transport_relations(portal.transport()):
        yield (code, AdviceLevel.ERROR if fatal else AdviceLevel.WARNING, text)
    for way, entries in (("inbound", portal.inbound), ("outbound", portal.outbound)):
        yield from _access(way, entries)
    ends = portal.receiving().chosen.receiver.activity_ns if portal.transport().kind is not Transport.TCP else 0
    if 0 < ends <= portal.source_deletion_delay_ns:
        text = f"source-deletion-delay {portal.source_deletion_delay_ns // MILLISECOND} ms is not below the"
        text = f"{text} activity timeout {ends // MILLISECOND} ms"
        yield ("deletion-delay", AdviceLevel.WARNING, f"{text}: receivers lose a source before the portal lets it go")
    for name, uses in (("topic", portal.times.topic_uses), ("pattern", portal.times.pattern_uses)):
        if uses.interval_ns <= uses.tries * uses.timeout_ns:
            text = f"periodic-interval of {name}-use-query is not above its tries together"
            yield (
                "use-queries",
                AdviceLevel.WARNING,
                f"{text}: the next question comes before the last one is decided",
            )


def _peer(peer: PeerConfig) -> Found:
    if peer.signs.timeout_ns < ROUTE_TIMES * peer.signs.interval_ns:
        text = f"timeout of gateway-keepalive is below {ROUTE_TIMES} intervals"
        yield ("link-timeout", AdviceLevel.WARNING, f"{text}: signs of life that come late end the link")
    for way, entries in (("inbound", peer.inbound), ("outbound", peer.outbound)):
        yield from _access(way, entries)
        for number, entry in enumerate(entries or (), 1):
            if any(not one.subject.outbound and one.comparison != "ne" for one in entry.conditions):
                text = f"{way} entry {number} never applies: what comes over a link has no transport of its own"
                yield ("access-never", AdviceLevel.ERROR, text)


def _access(way: str, entries: AccessList | None) -> Found:
    """Find entries that never apply, and lists that let nothing pass."""
    if entries is None:
        return
    for number, entry in enumerate(entries, 1):
        if reason := _never(entry):
            yield ("access-never", AdviceLevel.ERROR, f"{way} entry {number} never applies: {reason}")
    if not any(entry.accept for entry in entries):
        text = f"the {way} list accepts nothing, and what no entry accepts is rejected"
        yield ("access-nothing", AdviceLevel.WARNING, f"{text}: nothing passes")
    for number, entry in enumerate(entries[:-1], 1):
        if not entry.conditions:
            text = f"{way} entry {number} has no condition, so it applies to everything"
            yield ("access-unreached", AdviceLevel.WARNING, f"{text}: no later entry is ever reached")
            return


def _never(entry: AccessEntry) -> str:
    """Return why the conditions of an entry contradict each other; empty: they do not."""
    exact: dict[Subject, set[str | int]] = {}
    transports = {"tcp", "lbt-rm", "lbt-ru"}
    for one in entry.conditions:
        if one.subject is Subject.TRANSPORT:
            transports = {kind for kind in transports if (kind == one.value) is (one.comparison == "eq")}
        elif one.subject in _OF_TRANSPORTS and one.comparison != "ne":
            transports &= _OF_TRANSPORTS[one.subject]
        if one.comparison == "eq" and one.subject not in (Subject.PCRE, Subject.REGEX):
            exact.setdefault(one.subject, set()).add(one.value)
    for subject, values in exact.items():
        if len(values) > 1:
            return f"its conditions are joined by and, and no source has two values of {subject.value}"
    return "" if transports else "no transport has all the properties that it names"


# ------------------------------------------------------------------------------------------------------------ together


def _names(routers: Sequence[RouterConfig]) -> Found:
    seen: dict[str, str] = {}
    for router in routers:
        other = seen.setdefault(router.name, router.path)
        if other != router.path:
            text = f'{other} and {router.path} both name their router "{router.name}"'
            yield ("router-name", AdviceLevel.ERROR, f"{text}: names are unique in a network")


def _links(routers: Sequence[RouterConfig]) -> Found:
    """Find links that cannot work: to the router itself, or a second one between two routers."""
    listening = {(peer.interface, peer.port): router for router in routers for peer in router.peers if not peer.address}
    seen: dict[frozenset[str], str] = {}
    for router in routers:
        for peer in router.peers:
            other = listening.get((peer.address, peer.port))
            if not peer.address or other is None:
                continue
            named = f'{router.path}: portal "{peer.name}"'
            if other is router:
                text = f"{named} connects to {peer.address}:{peer.port}, where the same router listens"
                yield ("link-to-itself", AdviceLevel.ERROR, f"{text}: name the address of another router")
                continue
            first = seen.setdefault(frozenset((router.path, other.path)), named)
            if first != named:
                text = f"{named} is a second link between the routers of {first}"
                yield ("second-link", AdviceLevel.ERROR, f"{text}: one of the two carries nothing, so take it out")


def _two(first: PlacedPortal, second: PlacedPortal) -> Found:
    """Find what is wrong between two portals of a network."""
    (router, portal), (other_router, other) = first, second
    shared = resolves(portal.resolution) & resolves(other.resolution)
    if shared and portal.domain != other.domain:
        text = f"it resolves topics at {min(shared)} like {_named(first)}, so both are in one domain,"
        text = f"{text} but their numbers are {other.domain} and {portal.domain}"
        yield ("domain-twice", AdviceLevel.ERROR, text)
    if router is not other_router and portal.domain == other.domain:
        if shared:
            text = f"domain {portal.domain} has another router, {_named(first)}: the later one of the two stands aside"
            yield ("second-router", AdviceLevel.WARNING, text)
        elif resolves(portal.resolution) and resolves(other.resolution):
            text = f"it shares no place of resolution with {_named(first)}, but both are numbered {portal.domain}"
            yield ("domain-number", AdviceLevel.ERROR, f"{text}: two domains have one number, or one cannot be reached")
    if portal.resolution.config.datagrams != other.resolution.config.datagrams:
        text = f"its resolver_datagram_max_size differs from that of {_named(first)}"
        yield ("datagram-sizes", AdviceLevel.WARNING, f"{text}: records that one sends may be too large for the other")
    sizes = {_size(one.transport()) for one in (portal, other)} - {TCP_BYTES}
    if len(sizes) > 1:
        text = f"its datagrams and those of {_named(first)} have {max(sizes)} and {min(sizes)} bytes"
        yield ("datagram-sizes", AdviceLevel.WARNING, f"{text}: set one size everywhere")


def _fits(transport: TransportConfig, portals: Sequence[PlacedPortal]) -> Found:
    """Find fragments of a source that are too large for a portal: a router neither joins nor cuts them (R-160)."""
    came, placed = _size(transport), min(portals, key=lambda one: _size(one[1].transport()), default=None)
    if placed is not None and (leaves := _size(placed[1].transport())) < came:
        text = f"its fragments have up to {came} bytes, and {_named(placed)} sends datagrams of {leaves} bytes"
        yield (
            "fragments-too-large",
            AdviceLevel.WARNING,
            f"{text}: larger messages are dropped there, so send smaller ones, or use the same transport there",
        )


def _size(config: TransportConfig) -> int:
    return TCP_BYTES if config.kind is Transport.TCP else config.chosen.source.datagram_max


def _client(client: ClientOptions, routers: Sequence[RouterConfig], portals: Sequence[PlacedPortal]) -> Found:
    source, receiver = client.source, client.receiver
    if source.liveness_ns or receiver.liveness_ns:
        text = "ume_receiver_liveness_interval follows a connection, which ends at a router"
        yield ("liveness-with-router", AdviceLevel.ERROR, f"{text}: leave it out in a network with routers")
    if not client.resolution.udp or not (client.resolution.relays or client.resolution.multicast):
        pass  # A service tells routers of interest itself.
    elif _silent(client.query.pace):
        text = "queries of receivers are off, and routers hear what is wanted by nothing else over UDP"
        yield ("queries-off", AdviceLevel.ERROR, f"{text}: let a few slow sustaining queries go on")
    if receiver.otr.use is UseOtr.OFF:
        text = "a router may drop messages, and off-transport recovery would get them from the stores"
        yield ("no-recovery-with-router", AdviceLevel.ADVICE, f"{text}: leave use_otr at its default")
    if source.stores:
        yield from _heals("ume_store_activity_timeout", source.times.silence_ns, routers)
    yield from _fits(client.transport, portals)


def _silent(pace: PhasePace) -> bool:
    return not (pace.sustain or (pace.shortest and pace.longest))


def _heals(name: str, timeout_ns: int, routers: Sequence[RouterConfig]) -> Found:
    longest = max(router.healing_ns for router in routers)
    if 0 < timeout_ns <= longest:
        text = f"{name} {timeout_ns / SECOND:g} s is not above the {longest / SECOND:g} s in which routes may heal"
        yield ("below-healing", AdviceLevel.WARNING, f"{text}: after the crash of a router it ends what would go on")


def _plan(plan: Plan, routers: Sequence[RouterConfig], portals: Sequence[PlacedPortal]) -> Iterator[Advice]:
    for store in plan.stores:
        where = f'{plan.path}: store "{store.name}"'
        if not checks.takes_part(store):
            text = "it takes no part in resolution, so it hears no router and cannot answer clients of other domains"
            yield Advice("store-without-routes", AdviceLevel.ERROR, where, f"{text}: {checks.RESOLVERS}")
        for topic in store.topics:
            kept = topic.rule.repository
            topic_at = f'{where} topic "{topic.rule.pattern}"'
            yield from at(topic_at, _heals("source-activity-timeout", kept.source_activity_ns, routers))
            yield from at(topic_at, _heals("receiver-activity-timeout", kept.receiver_activity_ns, routers))
        if store.config.allow_proxy:
            yield from at(where, _fits(store.transports, portals))
