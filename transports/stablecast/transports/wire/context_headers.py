"""LBMC headers about contexts, applications and filters: what stablecast reads in captures and does not send."""

from typing import ClassVar

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import U8, U16, U32, Ipv4, Octets8, Octets20, Rest


@attrs.frozen(kw_only=True)
class ApplicationHeader:
    """APPHDR: bytes of the application's; the lower 15 bits of `flags` are its code."""

    CODE: ClassVar[int] = 6
    flags: U16 = 0
    data: Rest


@attrs.frozen(kw_only=True)
class ApplicationChain:
    """APPHDR_CHAIN: a chain of the application's elements; `elements` splits it.

    Attributes:
        first: Kind of the first element.
        chain: The elements, each a kind of the next one, a length, two reserved bytes, and data.
    """

    CODE: ClassVar[int] = 7
    PROPERTIES: ClassVar[int] = 6
    NONE: ClassVar[int] = 255
    LEAD: ClassVar[int] = 4
    res: U8 = 0
    first: U8
    chain: Rest

    def elements(self) -> tuple[tuple[int, bytes], ...]:
        """Kind and data of each element. Raises WireError where the chain does not fill its bytes."""
        kind, at, found = self.first, 0, []
        while kind != self.NONE:
            lead = self.chain[at : at + self.LEAD]
            end = at + (lead[1] if len(lead) == self.LEAD else 0)
            if not at + self.LEAD < end <= len(self.chain):
                raise WireError(f"an element of kind {kind} does not fit its chain")
            found.append((kind, self.chain[at + self.LEAD : end]))
            kind, at = lead[0], end
        if at != len(self.chain):
            raise WireError(f"{len(self.chain) - at} bytes follow the last element")
        return tuple(found)

    def properties_length(self) -> int:
        """Bytes of the message properties at the end of the payload. Raises WireError, see `elements`."""
        lengths = [data for kind, data in self.elements() if kind == self.PROPERTIES]
        if any(len(data) != 4 for data in lengths):
            raise WireError("the length of the message properties has four bytes")
        return int.from_bytes(lengths[0]) if lengths else 0


@attrs.frozen(kw_only=True)
class FilterInit:
    """SSF_INIT: a receiver opens source-side filtering."""

    CODE: ClassVar[int] = 16
    flags: U8 = 0
    transport: U8 = 0
    transport_idx: U32
    client_idx: U32
    ssf_port: U16
    res: U16 = 0
    ssf_ip: Ipv4


@attrs.frozen(kw_only=True)
class FilterRequest:
    """SSF_CREQ: a receiver includes or excludes a topic."""

    CODE: ClassVar[int] = 17
    flags: U8 = 0
    mode: U8
    transport_idx: U32
    topic_idx: U32
    client_idx: U32


@attrs.frozen(kw_only=True)
class ContextInformation:
    """CTXINFO: where a context is; its name fills the rest."""

    CODE: ClassVar[int] = 64
    flags: U16 = 0
    reserved: U8 = 0
    hop_count: U8
    port: U16
    addr: Ipv4
    domain_id: U32
    ctxinst: Octets8
    name: Rest


@attrs.frozen(kw_only=True)
class Domain:
    """DOMAIN: a domain."""

    CODE: ClassVar[int] = 67
    flags: U16 = 0
    domain: U32


@attrs.frozen(kw_only=True)
class OriginatingDomain:
    """ODOMAIN: the domain that a message comes from."""

    CODE: ClassVar[int] = 74
    flags: U16 = 0
    domain: U32


@attrs.frozen(kw_only=True)
class Stream:
    """STREAM: a message's place among the immediate messages of a context to another."""

    CODE: ClassVar[int] = 75
    flags: U16 = 0
    stream_id: U32
    sqn: U32
    ctxinst: Octets8


@attrs.frozen(kw_only=True)
class StoreDomain:
    """STORE_DOMAIN: the domain of a store."""

    CODE: ClassVar[int] = 84
    flags: U16 = 0
    domain: U32


@attrs.frozen(kw_only=True)
class Authentication:
    """AUTH: a step of authentication: 1 request, 2 challenge, 3 answer, 4 result; `blocks` are its own."""

    CODE: ClassVar[int] = 96
    flags: U8 = 0
    opid: U8
    blocks: Rest


@attrs.frozen(kw_only=True)
class Hmac:
    """HMAC: a keyed hash."""

    CODE: ClassVar[int] = 98
    flags: U8 = 0
    padding: U8 = 0
    data: Octets20


@attrs.frozen(kw_only=True)
class Destination:
    """DESTINATION: where a message goes to and comes from, across domains."""

    CODE: ClassVar[int] = 100
    flags: U16 = 0
    domain_id: U32
    ipaddr: Ipv4
    port: U16
    hops_taken: U16
    orig_domain_id: U32
    orig_ipaddr: Ipv4
    orig_port: U16
    reserved: U16 = 0
