"""Conversion of a source to a record of the TCP service (SIR), and back.

The source string names transport, address, session and index, `TCP:10.0.0.1:14371:00000055[77]`; other properties have
fields. The OTID, which identifies the source for everybody, is made of the same values and the context's instance. So
two lives of one program never share an OTID (T-418).
"""

from stablecast.transports.codec.places import joinable, otid, place_of, read, transport_of, written
from stablecast.transports.resolution.records import PERSISTENT, SourceRecord, advertisement
from stablecast.transports.wire import lbmr, srs

TTL = 60
"""Seconds; a field that receivers ignore."""

_NOWHERE = lbmr.ExtendedFunctionality(source_port=0, source_address="0.0.0.0", functionality=0)  # noqa: S104  no address


def source_info(topic: str, record: SourceRecord) -> srs.SourceInfo:
    """Return the SIR of a source in a context with a known instance.

    Raises:
        MisuseError: If an address of the record is malformed.
    """
    tir = advertisement(topic, record, TTL)
    transport = transport_of(record.address, record.session_id)
    request = next((option for option in tir.options if isinstance(option, lbmr.ExtendedFunctionality)), _NOWHERE)
    return srs.SourceInfo(
        otid=otid(transport, record.index, record.instance),
        topic=topic,
        source=f"{written(transport)}[{record.index}]",
        topic_index=record.index,
        functionality=PERSISTENT if record.persistent else 0,
        request_address=request.source_address,
        request_port=request.source_port,
        instance=record.instance,
        ttl=TTL,
    )


def source_record(info: srs.SourceInfo) -> SourceRecord | None:
    """Return the record of a source; None if receivers cannot join its transport."""
    transport = joinable(read(info.source))
    if transport is None:
        return None
    request = f"{info.request_address}:{info.request_port}" if info.request_port else ""
    persistent = bool(info.functionality & lbmr.ExtendedFunctionality.UME)
    session_id = transport.session_id or 0
    return SourceRecord(place_of(transport), session_id, info.topic_index, request, persistent, info.instance)
