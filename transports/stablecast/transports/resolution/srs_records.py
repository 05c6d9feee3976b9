"""How a source is written as a record of the TCP service (SIR), and read back.

The source string names transport, address, session and index, `TCP:10.0.0.1:14371:00000055[77]`; the rest has fields of
its own. The OTID, which names the source for all, is made of the same and of the context's instance, so that two lives
of one program never share one (T-418).
"""

import ipaddress
import re
import struct

from stablecast.transports.resolution.records import PERSISTENT, SourceRecord, advertisement
from stablecast.transports.wire import lbmr, srs
from stablecast.transports.wire.fields import packed

TTL = 60
"""Seconds; a field that receivers ignore."""

_OTID = struct.Struct(">B4sHII8s9x")
_TCP = 0
_SOURCE = re.compile(r"TCP:(\d{1,3}(?:\.\d{1,3}){3}):(\d{1,5}):([0-9a-f]{8})\[(\d{1,10})\]", re.ASCII)
_NOWHERE = lbmr.ExtendedFunctionality(source_port=0, source_address="0.0.0.0", functionality=0)  # noqa: S104  no address


def source_info(topic: str, record: SourceRecord) -> srs.SourceInfo:
    """The SIR of a source whose context has told its instance.

    Raises:
        MisuseError: If an address of the record is not `ip:port`.
    """
    tir = advertisement(topic, record, TTL)
    transport = tir.transport
    assert isinstance(transport, lbmr.TcpTransport)
    request = next((option for option in tir.options if isinstance(option, lbmr.ExtendedFunctionality)), _NOWHERE)
    address = f"{transport.address}:{transport.port}"
    otid = _OTID.pack(_TCP, packed(transport.address), transport.port, record.session_id, record.index, record.instance)
    return srs.SourceInfo(
        otid=otid,
        topic=topic,
        source=f"TCP:{address}:{record.session_id:08x}[{record.index}]",
        topic_index=record.index,
        functionality=PERSISTENT if record.persistent else 0,
        request_address=request.source_address,
        request_port=request.source_port,
        instance=record.instance,
        ttl=TTL,
    )


def source_record(info: srs.SourceInfo) -> SourceRecord | None:
    """The record of a source, or None if its transport is none that a receiver here can join."""
    found = _SOURCE.fullmatch(info.source)
    if found is None or int(found[2]) > 0xFFFF or not _is_address(found[1]):
        return None
    request = f"{info.request_address}:{info.request_port}" if info.request_port else ""
    persistent = bool(info.functionality & lbmr.ExtendedFunctionality.UME)
    address = f"{found[1]}:{int(found[2])}"
    return SourceRecord(address, int(found[3], 16), info.topic_index, request, persistent, info.instance)


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ipaddress.AddressValueError:
        return False
    return True
