"""Effects of the resolution machines, which a driver must perform in order."""

import attrs

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.wire import lbmr, lbmr_extended


@attrs.frozen
class SendDatagram:
    """Send `data` to `to` (`ip:port`)."""

    to: str
    data: bytes


@attrs.frozen
class SendCopies:
    """Send `data` to each of `to`."""

    to: tuple[str, ...]
    data: bytes


@attrs.frozen
class Listen:
    """Start to receive the datagrams of the resolution domain, before anything else is sent; or stop."""

    on: bool


@attrs.frozen
class Discovered:
    """A wanted topic has a source. Repeated reports have no new meaning."""

    topic: str
    record: SourceRecord


@attrs.frozen
class Withdrawn:
    """A discovered source has ended."""

    topic: str
    record: SourceRecord


@attrs.frozen
class SourceNotFound:
    """Queries for a topic got no answer. Queries continue unless `left`: then the topic is abandoned."""

    topic: str
    queries: int
    left: bool = False


@attrs.frozen
class Abandoned:
    """A topic that only patterns want has had no source for too long, and is no longer looked for by its name."""

    topic: str


@attrs.frozen
class NameFound:
    """The store of this name is at `address`: `ip:port`, or `domain:ip:port` in another domain."""

    name: str
    address: str


@attrs.frozen
class NameLost:
    """The store of this name was silent for too long; queries for it begin again."""

    name: str


@attrs.frozen
class DomainLearnt:
    """This context is in the domain of this number."""

    domain: int


@attrs.frozen
class RouteLearnt:
    """The router at `address`, its request port (`ip:port`), reaches a domain; it replaces another one."""

    domain: int
    address: str


@attrs.frozen
class RouteLost:
    """No router is known any more that reaches a domain."""

    domain: int


@attrs.frozen
class Remark:
    """A line for the log, perhaps a warning."""

    text: str
    warning: bool = False


@attrs.frozen
class Transmit:
    """Send records in one datagram: from a side of a context to the context."""

    queries: tuple[lbmr.Query, ...] = ()
    advertisements: tuple[lbmr.Advertisement, ...] = ()


@attrs.frozen
class Tell:
    """Send another packet; the context adds its trailer."""

    packet: lbmr.ContextInfo | lbmr.ResolutionRequest | lbmr_extended.RemoteContexts


@attrs.frozen
class Overheard:
    """A packet of another context, or of another router, in a portal's domain."""

    packet: lbmr.AnyPacket | lbmr_extended.Packet


TopicEffect = Discovered | Withdrawn | SourceNotFound | Abandoned
DomainEffect = DomainLearnt | RouteLearnt | RouteLost | Remark
ContextEffect = SendDatagram | Listen | TopicEffect | DomainEffect | NameFound | NameLost | Overheard
QuerierEffect = Transmit | TopicEffect
RelayEffect = SendDatagram | SendCopies | Remark
NameEffect = Tell | NameFound | NameLost | Remark
