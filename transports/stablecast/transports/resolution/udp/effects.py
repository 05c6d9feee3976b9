"""Effects of the resolution machines: what a driver must do, in order."""

import attrs

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.wire import lbmr


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
    """Begin to hear the resolution domain, before anything else is sent; or cease to."""

    on: bool


@attrs.frozen
class Discovered:
    """A source of a wanted topic is there. Repeats are possible and mean nothing new."""

    topic: str
    record: SourceRecord


@attrs.frozen
class Withdrawn:
    """A source that was discovered is no more."""

    topic: str
    record: SourceRecord


@attrs.frozen
class NoSource:
    """So many queries for a topic were not answered; asking goes on unless `left`: then the topic is left."""

    topic: str
    queries: int
    left: bool = False


@attrs.frozen
class NameFound:
    """The store of this name is at `address` (`ip:port`), in `domain` (0 without routers)."""

    name: str
    address: str
    domain: int = 0


@attrs.frozen
class NameLost:
    """Nothing was heard of the store of this name for too long; it is asked for again."""

    name: str


@attrs.frozen
class Remark:
    """A line for the log."""

    text: str
    warning: bool = False


@attrs.frozen
class Transmit:
    """Tell the resolution domain, in one datagram: between the halves of a context and the context."""

    queries: tuple[lbmr.Query, ...] = ()
    advertisements: tuple[lbmr.Advertisement, ...] = ()


@attrs.frozen
class Tell:
    """Tell the resolution domain something else; the context adds its trailer."""

    packet: lbmr.ContextInfo | lbmr.ResolutionRequest


ContextEffect = SendDatagram | Listen | Discovered | Withdrawn | NoSource | NameFound | NameLost | Remark
QuerierEffect = Transmit | Discovered | Withdrawn | NoSource
RelayEffect = SendDatagram | SendCopies | Remark
NameEffect = Tell | NameFound | NameLost | Remark
