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
class Discovered:
    """A source of a wanted topic is there. Repeats are possible and mean nothing new."""

    topic: str
    record: SourceRecord


@attrs.frozen
class Transmit:
    """Tell the resolution domain, in one datagram: between the halves of a context and the context."""

    queries: tuple[lbmr.TopicQuery, ...] = ()
    advertisements: tuple[lbmr.Advertisement, ...] = ()


ContextEffect = SendDatagram | Discovered
QuerierEffect = Transmit | Discovered
