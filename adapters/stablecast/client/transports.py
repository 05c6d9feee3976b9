"""The sessions of a context over LBT-RM and LBT-RU: made with the first source, or receiver, that wants one."""

from collections.abc import Callable

from stablecast.client.advice import log
from stablecast.client.sender import RESERVED
from stablecast.client.source import Source
from stablecast.config.transport_options import Transport, TransportConfig
from stablecast.core import serial
from stablecast.core.errors import StablecastError
from stablecast.core.inputs import Lost
from stablecast.net import address, multicast
from stablecast.net.joiner import Joiner
from stablecast.net.reliable_joiner import ReliableJoiner
from stablecast.net.reliable_receivers import ReliableReceivers
from stablecast.net.reliable_sources import ReliableSources
from stablecast.net.reliable_stream import ReliableStream
from stablecast.net.stream import Item, StreamServer
from stablecast.net.where import Where, is_source_string
from stablecast.transports import codec
from stablecast.transports.lbtrm import LbtrmSources
from stablecast.transports.lbtru import LbtruSources
from stablecast.transports.reliable import marks
from stablecast.transports.reliable.settings import MAX_SUBMITTED
from stablecast.transports.wire.lbmc import DATA_HEADER


class Transports:
    """What a context's sources send on and its receivers join, TCP aside.

    `unusable` counts the sources that were found and could not be joined.
    """

    def __init__(self, interface: str) -> None:
        """Nothing is open yet."""
        self._interface = interface
        self._sources: dict[Transport, ReliableSources] = {}
        self._receivers: ReliableReceivers | None = None
        self._groups = 0
        self.unusable = 0

    def close(self) -> None:
        """End all, and answer nobody any more."""
        for sources in self._sources.values():
            sources.close()
        if self._receivers is not None:
            self._receivers.close()

    def statistics(self) -> dict[str, dict[str, int]]:
        """The counters of each session, by `source` or `receiver` and its source string."""
        found: dict[str, dict[str, int]] = {}
        for sources in self._sources.values():
            found |= sources.all_statistics()
        if self._receivers is not None:
            found |= self._receivers.all_statistics()
        return found

    def stream(self, config: TransportConfig, server: StreamServer, source: Source) -> StreamServer | ReliableStream:
        """What a source writes to, and when. Raises PortError."""
        source.collect(config.batching.minimum_bytes, config.batching.span_ns)
        if config.kind is Transport.TCP:
            return server
        sources = self._sources.get(config.kind)
        if sources is None:
            rates = config.chosen.rates
            machine = LbtrmSources(rates) if config.kind is Transport.LBTRM else LbtruSources(rates)
            sources = self._sources[config.kind] = ReliableSources(machine, self._interface)
        group = self._group(config) if config.kind is Transport.LBTRM else ""
        settings = config.chosen.source
        session_id, _ = codec.split(source.config.incarnation)
        session = sources.open(group, settings, session_id)
        source.place = str(sources.where(session))
        source.max_payload = settings.datagram_max - RESERVED - DATA_HEADER.size
        source.max_message = MAX_SUBMITTED // 2
        return ReliableStream(server, sources, session, lambda: standing(source), source.hold)

    def joiner(
        self,
        transport: str,
        session_id: int | None,
        config: TransportConfig,
        on_items: Callable[[int, list[Item]], None],
        on_lost: Callable[[Lost], None],
        on_end: Callable[[bool], None],
    ) -> Joiner | ReliableJoiner:
        """Joins what a source writes to: `ip:port`, or a source string. Raises PortError, AddressError."""
        if not is_source_string(transport):
            return Joiner(transport, session_id, on_items, on_end)
        if self._receivers is None:
            self._receivers = ReliableReceivers(self._interface)
        where = Where.parse(transport)
        settings = (config.lbtrm if where.group else config.lbtru).receiver
        return ReliableJoiner(self._receivers, where, settings, on_items, on_lost, on_end)

    def pass_over(self, place: str, error: StablecastError) -> None:
        """Somebody advertises what cannot be joined from here: others may be found."""
        self.unusable += 1
        log.warning("a source that was found is passed over, %s: %s", place, error)

    def _group(self, config: TransportConfig) -> str:
        """The group that was asked for, or the next one of the pool."""
        pool = multicast.DEFAULT_GROUPS
        self._groups += not config.group
        return address.join(config.group or pool[self._groups % len(pool)], config.port)


def standing(source: Source) -> bytes:
    """What is told now and then where nobody is greeted: the newest number and the SRI, as soon as there is one."""
    info = source.info()
    _, index = codec.split(source.config.incarnation)
    return info and marks.message([(index, serial.wire(source.next_number - 1))]) + info


def checked(place: str) -> str:
    """A place that a user wrote: `ip:port` or a source string, in its usual form. Raises AddressError."""
    return str(Where.parse(place)) if is_source_string(place) else address.join(*address.parse(place))
