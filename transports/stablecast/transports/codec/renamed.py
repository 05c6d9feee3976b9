"""Items of a stream with the names that the next hop knows their source by.

A router repeats what it reads under a session and a topic index of its own. Data carries the index alone; control
messages have both in headers (TCP_SID, TOPIC_IDX). Numbers, lengths and all other bytes stay as they came: a message
keeps its number over any number of hops, and public dissectors find the same message on both sides.
"""

import attrs

from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire import lbmc, uniform_runs
from stablecast.transports.wire.headers import Header, OriginatingDomain, Sri, StoreExt, TcpSid, TopicIdx

_INDEX = 4
"""Position of the topic index in a data message."""


def renamed(item: Run | lbmc.Message, session: int, index: int) -> bytes:
    """Return the bytes of a run, or of a message of a stream, with these names. Raises WireError.

    >>> renamed(Run(7, 41, 1, 1, bytes.fromhex("0000000d0000000700000029ff")), 5, 9).hex()
    '0000000d0000000900000029ff'
    """
    if isinstance(item, Run):
        return _renamed_run(item, index)
    headers = tuple(_renamed_header(header, session, index) for header in item.headers)
    kind = item.kind
    topic = index if kind in lbmc.PAYLOAD_KINDS else 0
    return lbmc.encode(lbmc.Message(kind, topic, item.sequence, headers, item.payload))


def with_domain(message: lbmc.Message, domain: int) -> lbmc.Message:
    """Return the announcement of a source in `domain` with the domains that it leaves out.

    A source writes them once it knows its own. What it names before is in its domain, and elsewhere nobody could tell.
    """
    headers = tuple(
        attrs.evolve(one, domain_id=domain) if isinstance(one, StoreExt) and not one.domain_id else one
        for one in message.headers
    )
    if not any(isinstance(one, OriginatingDomain) for one in headers):
        headers += (OriginatingDomain(domain=domain),)
    return attrs.evolve(message, headers=headers)


def with_high(message: lbmc.Message, high: int) -> lbmc.Message:
    """Return the announcement of a source whose newest number is `high`, if it says which was the newest."""
    headers = tuple(
        attrs.evolve(one, high_sqn=high) if isinstance(one, Sri) and one.flags & Sri.INITIAL_SQN_KNOWN else one
        for one in message.headers
    )
    return attrs.evolve(message, headers=headers)


def _renamed_run(run: Run, index: int) -> bytes:
    octets, name = bytearray(run.block), index.to_bytes(4)
    if run.count >= uniform_runs.MANY and (length := uniform_runs.size(run.block, run.count)):
        for place, value in enumerate(name):  # a column of all messages at once
            octets[_INDEX + place :: length] = bytes((value,)) * run.count
        return bytes(octets)
    at = 0
    for _ in range(run.count):
        octets[at + _INDEX : at + _INDEX + 4] = name
        at += int.from_bytes(octets[at + 2 : at + 4])
    return bytes(octets)


def _renamed_header(header: Header, session: int, index: int) -> Header:
    match header:
        case TcpSid():
            return attrs.evolve(header, sid=session)
        case TopicIdx():
            return attrs.evolve(header, tidx=index)
        case _:
            return header
