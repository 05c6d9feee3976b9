"""The figures of a router as metrics. Names and labels of a metric never change."""

from collections.abc import Callable, Iterator, Mapping

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.router.views import PortalView, RouterView
from stablecast.text.open_metrics import END, head, kind_of, label


def _by_reason(counted: Mapping[str, int]) -> dict[str, int]:
    return {f'reason="{label(reason)}"': count for reason, count in counted.items()}


@attrs.frozen
class PortalMetric:
    """A metric of portals: its name, its help, and its samples as labels beside those of the portal, and values."""

    name: str
    help: str
    samples: Callable[[PortalView], dict[str, int]]


# fmt: off
PORTAL_METRICS = (
    PortalMetric("stablecast_router_portal_up", "1 unless something keeps the portal from its work.",
                 lambda one: {"": int(not one.trouble)}),
    PortalMetric("stablecast_router_portal_cost", "Cost of a path through the portal.", lambda one: {"": one.cost}),
    PortalMetric("stablecast_router_interest", "Topics and patterns that the portal's domain wants.", lambda one: {
        'kind="topic"': one.topics, 'kind="pcre"': one.pcre_patterns, 'kind="regex"': one.regex_patterns}),
    PortalMetric("stablecast_router_remote_interest", "Topics and patterns that other domains want from this one.",
                 lambda one: {'kind="topic"': one.remote_topics, 'kind="pattern"': one.remote_patterns}),
    PortalMetric("stablecast_router_proxies", "Topics joined in the domain, and sources offered there.",
                 lambda one: {'kind="receiver"': one.proxy_receivers, 'kind="source"': one.proxy_sources}),
    PortalMetric("stablecast_router_rejected", "Topics and sources that an access list keeps out.",
                 lambda one: {"": one.rejected}),
    PortalMetric("stablecast_router_disconnects_total", "Contexts told to connect again: what they sent may be lost.",
                 lambda one: {"": one.disconnects}),
    PortalMetric("stablecast_router_queue_bytes", "Data that wait to leave.", lambda one: {"": one.queue.now}),
    PortalMetric("stablecast_router_queue_peak_bytes", "Most data that ever waited.", lambda one: {"": one.queue.peak}),
    PortalMetric("stablecast_router_queue_limit_bytes", "Data that may wait.", lambda one: {"": one.queue.limit}),
    PortalMetric("stablecast_router_messages_total", "Messages through the portal.", lambda one: {
        'way="received",kind="topic"': one.received.messages, 'way="sent",kind="topic"': one.sent.messages,
        'way="received",kind="unicast"': one.unicast_received, 'way="sent",kind="unicast"': one.unicast_sent}),
    PortalMetric("stablecast_router_bytes_total", "Bytes of messages of topics through the portal.", lambda one: {
        'way="received"': one.received.bytes, 'way="sent"': one.sent.bytes}),
    PortalMetric("stablecast_router_lost_total", "Messages that transports of the domain lost before the portal.",
                 lambda one: {"": one.lost}),
    PortalMetric("stablecast_router_dropped_total", "Messages of topics that did not leave through the portal.",
                 lambda one: _by_reason(one.dropped)),
    PortalMetric("stablecast_router_unicast_dropped_total",
                 "Messages to single contexts that came in through the portal and went no further.",
                 lambda one: _by_reason(one.unicast_dropped)),
    PortalMetric("stablecast_router_unhandled_total", "Control messages that no router passes on.",
                 lambda one: {"": one.unhandled}),
    PortalMetric("stablecast_router_nameless_sources", "Sources without an identity, which are not forwarded.",
                 lambda one: {"": one.unidentified}),
    PortalMetric("stablecast_router_link_up", "1 while a portal is linked to another router.",
                 lambda one: {"": int(bool(one.link.router))} if one.link else {}),
    PortalMetric("stablecast_router_link_stray_total", "Messages that came over a link while another way counted.",
                 lambda one: {"": one.link.stray} if one.link else {}),
)
# fmt: on


def exposition(view: RouterView, *, openly: bool = False) -> Iterator[str]:
    """Yield the text of all metrics; `openly`: as OpenMetrics."""
    router = f'router="{label(view.name)}"'
    for metric in PORTAL_METRICS:
        yield head(metric.name, metric.help, kind_of(metric.name), openly)
        for portal in view.portals:
            labels = f'{router},portal="{label(portal.name)}",domain="{portal.domain}"'
            for more, value in metric.samples(portal).items():
                yield f"{metric.name}{{{','.join(filter(None, (labels, more)))}}} {value}\n"
    name = "stablecast_router_routes"
    yield head(name, "Domains that the router reaches.", kind_of(name), openly)
    yield f"{name}{{{router}}} {len(view.routes)}\n"
    name = "stablecast_router_link_trip_seconds"
    yield head(name, "Time to the router at the other end of a link and back.", kind_of(name), openly)
    for portal in view.portals:
        if portal.link is not None and portal.link.trips:
            figures = {
                "shortest": portal.link.shortest_ns,
                "mean": portal.link.mean_ns,
                "longest": portal.link.longest_ns,
            }
            for what, span in {**figures, "last": portal.link.last_ns}.items():
                labels = f'{router},portal="{label(portal.name)}",figure="{what}"'
                yield f"{name}{{{labels}}} {span / SECOND:.6f}\n"
    name = "stablecast_router_known_routers"
    yield head(name, "Routers of the network that are reached, with this one.", kind_of(name), openly)
    yield f"{name}{{{router}}} {len(view.routers)}\n"
    name = "stablecast_router_map_signature"
    yield head(name, "Checksum of the map of the network: equal on all routers that agree.", kind_of(name), openly)
    yield f"{name}{{{router}}} {view.signature}\n"
    if openly:
        yield END
