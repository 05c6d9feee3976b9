"""Conversion of a source to a record of the TCP service (SIR), and back.

The source string names transport, address, session and index, `TCP:10.0.0.1:14371:00000055[77]`; other properties have
fields. The OTID, which names the source's life for everybody (`places`), holds the context's instance, too. So two
lives of one program never share an OTID (T-418). A record holds the cost of a way through routers, not their number.
"""

from stablecast.transports.codec import places
from stablecast.transports.resolution.records import PERSISTENT, SourceRecord, named
from stablecast.transports.wire import lbmr, srs

TTL = 60
"""Seconds; a field that receivers ignore."""

_NO_ADDRESS = "0.0.0.0"  # noqa: S104


def source_info(topic: str, record: SourceRecord) -> srs.SourceInfo:
    """Return the SIR of a source in a context with a known instance.

    Raises:
        MisuseError: If an address of the record is malformed.
    """
    transport = places.transport_of(record.address, record.session_id)
    request_host, request_port = places.split(record.request_address) if record.request_address else (_NO_ADDRESS, 0)
    return srs.SourceInfo(
        otid=named(record).origin,
        topic=topic,
        source=f"{places.source_string(transport)}[{record.index}]",
        topic_index=record.index,
        functionality=PERSISTENT if record.persistent else 0,
        request_address=request_host,
        request_port=request_port,
        domain=record.domain,
        instance=record.instance,
        ttl=TTL,
        cost=record.cost,
    )


def source_record(info: srs.SourceInfo) -> SourceRecord | None:
    """Return the record of a source; None if receivers cannot join its transport."""
    transport = places.joinable(places.from_source_string(info.source))
    if transport is None:
        return None
    request = f"{info.request_address}:{info.request_port}" if info.request_port else ""
    persistent = bool(info.functionality & lbmr.ExtendedFunctionality.UME)
    return SourceRecord(
        places.place_of(transport),
        transport.session_id or 0,
        info.topic_index,
        request,
        persistent,
        info.instance,
        info.otid,
        max(0, info.cost),
        domain=info.domain,
    )
