"""Unicast across domains: a message carries its destination, its origin, and its position in a stream of messages.

Routers pass it on as it is, and only count the hops. The streams let routers and contexts drop what arrives twice. The
two headers stand before all others, so a message is wrapped without being decoded.
"""

from collections.abc import Iterator

import attrs

from stablecast.core.machine import serial
from stablecast.transports.codec.domains import MAX_DOMAIN, join_domain, split_domain
from stablecast.transports.codec.identity import find
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.chained_headers import LEAD, MIN_LENGTH
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Destination, Stream, pack

MAX_HOPS = 255
"""Routers that a message passes; one more drops it, because it runs in a circle."""

STREAM_WINDOW = 1_024
"""Newest numbers of a stream of which it is known whether they came; older ones count as seen before."""

ROUTED_BYTES = 48
"""Bytes that the two headers add to a message."""

_HOPS_AT = 14
"""Offset of the hops in the header DESTINATION, from its lead."""


@attrs.frozen
class Endpoint:
    """A request port in a domain."""

    domain: int
    ip: str
    port: int

    @classmethod
    def of(cls, text: str) -> "Endpoint":
        """Return the end point of `domain:ip:port`. Raises WireError for any other text."""
        domain, address = split_domain(text)
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or domain > MAX_DOMAIN:
            raise WireError(f"'{text}' is no address in a domain")
        return cls(domain, host, int(port))

    @property
    def address(self) -> str:
        """`domain:ip:port`, or `ip:port` in domain 0."""
        return join_domain(self.domain, f"{self.ip}:{self.port}")


@attrs.frozen
class Routed:
    """What a message across domains says about its way; `stream` is None for one of an old release."""

    destination: Endpoint
    origin: Endpoint
    hops: int
    stream: Stream | None


def routed(data: bytes, destination: Endpoint, origin: Endpoint, stream: Stream) -> bytes:
    """Return one message with the headers that bring it to another domain. Raises WireError if it becomes too large."""
    kind, length = lbmc.frame(data)
    if length != len(data):
        raise WireError(f"{len(data)} bytes are not one message of {length}")
    lead = lbmc.DATA_HEADER.size if kind in lbmc.PAYLOAD_KINDS else lbmc.PREFIX.size
    header = Destination(
        domain_id=destination.domain,
        ipaddr=destination.ip,
        port=destination.port,
        orig_domain_id=origin.domain,
        orig_ipaddr=origin.ip,
        orig_port=origin.port,
    )
    chain, following = b"", data[1]
    for one in (stream, header):
        code, body = pack(one)
        chain, following = bytes((following, LEAD + len(body))) + body + chain, code
    whole = length + len(chain)
    if whole > lbmc.MAX_MESSAGE:
        raise WireError(f"a message of {whole} bytes with its destination exceeds {lbmc.MAX_MESSAGE}")
    return lbmc.PREFIX.pack(kind, following, whole) + data[lbmc.PREFIX.size : lead] + chain + data[lead:]


def destination_of(message: lbmc.Message) -> Routed | None:
    """Return the way of a message across domains; None for a message within a domain."""
    header = find(message, Destination)
    if header is None:
        return None
    destination = Endpoint(header.domain_id, header.ipaddr, header.port)
    origin = Endpoint(header.orig_domain_id, header.orig_ipaddr, header.orig_port)
    return Routed(destination, origin, header.hops_taken, find(message, Stream))


def delivered(message: lbmc.Message) -> lbmc.Message:
    """Return a message as its origin made it, without the headers of its way."""
    rest = tuple(one for one in message.headers if not isinstance(one, Destination | Stream))
    return lbmc.Message(message.kind, message.topic_index, message.sequence, rest, message.payload)


def hopped(data: bytes) -> bytes:
    """Return one message with one hop more. Raises WireError without a destination, or after `MAX_HOPS`."""
    kind, length = lbmc.frame(data)
    position = lbmc.DATA_HEADER.size if kind in lbmc.PAYLOAD_KINDS else lbmc.PREFIX.size
    code, end = data[1], min(length, len(data))
    last = lbmc.PAYLOAD_FOLLOWS if kind in lbmc.PAYLOAD_KINDS else lbmc.NOTHING_FOLLOWS
    while code not in (last, Destination.CODE) and position + MIN_LENGTH <= end and data[position + 1] >= MIN_LENGTH:
        code, position = data[position], position + data[position + 1]
    at = position + _HOPS_AT
    if code != Destination.CODE or at + 2 > end:
        raise WireError("a message without a destination takes no hop")
    hops = int.from_bytes(data[at : at + 2])
    if hops >= MAX_HOPS:
        raise WireError(f"a message took {hops} hops: it runs in a circle")
    return data[:at] + (hops + 1).to_bytes(2) + data[at + 2 :]


def single_messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages that stand one behind another in some bytes. Raises WireError where none begins."""
    position = 0
    while position < len(data):
        if len(data) - position < lbmc.PREFIX.size:
            raise WireError(f"{len(data) - position} bytes are too few for a message")
        end = position + lbmc.frame(data, position)[1]
        if end > len(data):
            raise WireError(f"a message ends {end - len(data)} bytes after the data")
        yield data[position:end]
        position = end


@attrs.define
class StreamWindow:
    """The numbers of one stream that came: the newest, extended, and one bit for each of those before it."""

    newest: int | None = None
    seen: int = 0

    def first_time(self, number: int) -> bool:
        """Note a number of 32 bits, and return whether it came for the first time, as far as is known."""
        if self.newest is None:
            self.newest, self.seen = number, 1
            return True
        found = serial.extend(number, self.newest)
        ahead = found - self.newest
        if ahead > 0:
            self.seen = (self.seen << min(ahead, STREAM_WINDOW) | 1) & (1 << STREAM_WINDOW) - 1
            self.newest = found
            return True
        if -ahead >= STREAM_WINDOW or self.seen >> -ahead & 1:
            return False
        self.seen |= 1 << -ahead
        return True
