"""Elements of the file of a router that have no effect, each with the reason, and those that are refused."""

_ALONE = "routers tell each other changes at once, and all of it when they are linked"
_LINK = "a link has no context: there is nothing to set"
_FIGURES = "the web-monitor has the figures: /api/router and /metrics"
_TABLES = "tables grow as needed"
UNUSED = {
    "topicmap": _TABLES,
    "patternmap": _TABLES,
    "monitor": _FIGURES,
    "daemon-monitor": _FIGURES,
    "publishing-interval": _FIGURES,
    "route-info": _ALONE,
    "route-group": "there are no hotlinks",
    "uim-max-queue": "messages to another domain and data share max-queue",
    "remote-topic": _ALONE,
    "remote-pattern": _ALONE,
    "topic-resolution/remote-topic-interest": _ALONE,
    "topic-resolution/remote-pattern-interest": _ALONE,
}
"""Elements that are accepted without effect, each with the reason for its notice."""

UNUSED_OF_PEERS = {
    "sourcemap": _TABLES,
    "publishing-interval": _FIGURES,
    "uim-max-queue": "messages to another domain and data share max-queue",
    "max-datagram": "messages leave one by one",
    "batching": "messages leave at once",
    "context-query": "names are asked for when a context asks",
    "lbm-config": _LINK,
    "lbm-attributes": _LINK,
    "source-context-name": _LINK,
    "receiver-context-name": _LINK,
    "single-tcp/receive-buffer": "the system chooses the buffers of a connection",
    "single-tcp/send-buffer": "the system chooses the buffers of a connection",
    "single-tcp/keepalive": "it is always on",
    "single-tcp/nodelay": "it is always on",
}
"""The same of a peer portal."""

DEAD = frozenset(
    {"late-join", "propagation-delay"}
    | {f"{what}-{end}" for what in ("topic", "pattern") for end in ("purge", "interest-generate", "domain-activity")}
    | {"topic-use-check", "pattern-use-check"}
)
"""Elements that have had no effect for long; they are accepted with a notice, whatever stands in them (R-280)."""

REFUSED = {
    "tcp": "links of two connections are not here: use single-tcp",
    "udp": "links have one TCP connection, and no UDP beside it: take udp out",
    "tls": "TLS is one setting of the process (STABLECAST_TLS), for links like for all other connections: take tls out",
    "compression": "links are not compressed: take compression out",
}
