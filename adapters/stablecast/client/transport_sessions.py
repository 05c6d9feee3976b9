"""The transports of a context: servers of TCP, and the sessions of LBT-RM and LBT-RU that its sources share.

Sources that name the same address share one session (documented). The other sources share a pool: each opens a session
until the pool is full, then they use the sessions of the pool in turn. A session ends with its last source.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

import attrs

from stablecast.client.advice import log
from stablecast.client.loop_sender import RESERVED
from stablecast.client.source import Source
from stablecast.config.transport_options import Transport, TransportConfig
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.inputs import Lost
from stablecast.core.protocol.settings import SourceConfig
from stablecast.runtime import address, ports, tls
from stablecast.runtime.origins import Origin, Origins
from stablecast.runtime.policy import READERS, SENDERS, Rights
from stablecast.runtime.source_strings import Where, is_source_string
from stablecast.runtime.stream import Admits, Item, StreamJoiner, StreamServer
from stablecast.transports import codec
from stablecast.transports.reliable.settings import MAX_SUBMITTED
from stablecast.transports.wire.lbmc import DATA_HEADER

if TYPE_CHECKING:
    from stablecast.runtime.reliable_receivers import ReliableReceivers
    from stablecast.runtime.reliable_sources import ReliableSources
    from stablecast.runtime.reliable_stream import ReliableJoiner, ReliableStream


@attrs.define
class SessionPool:
    """Session numbers: `named` by the address that sources name, `pool` by their place in the pool."""

    named: dict[str, int] = attrs.field(factory=dict)
    pool: dict[int, int] = attrs.field(factory=dict)
    sources: Counter[int] = attrs.field(factory=Counter)
    turn: int = 0

    def choose(self, name: str, size: int, make: Callable[[int], int]) -> int:
        """Return the session of one more source; an empty `name` selects from a pool of `size` sessions.

        `make` opens a session at a place of the pool, or at the named address (place 0), and may raise.
        """
        if name:
            number = self.named.get(name)
            if number is None:
                number = self.named[name] = make(0)
        elif len(self.pool) < size:
            # The first free place, because a session that ended has freed its group or port.
            place = next(place for place in range(size) if place not in self.pool)
            number = self.pool[place] = make(place)
        else:
            those = sorted(self.pool.values())
            number = those[self.turn % len(those)]
            self.turn += 1
        self.sources[number] += 1
        return number

    def leave(self, number: int) -> bool:
        """Remove one source of a session; return whether it was the last, which ends the session."""
        self.sources[number] -= 1
        if self.sources[number]:
            return False
        del self.sources[number]
        self.named = {name: session for name, session in self.named.items() if session != number}
        self.pool = {place: session for place, session in self.pool.items() if session != number}
        return True


class StreamOwner(Protocol):
    """Who sends on a stream: a source, or a router for a source of another domain. `place` is where it is joined."""

    place: str

    def greeting(self) -> bytes:
        """Return the bytes that a joiner gets first."""

    def standing(self) -> bytes:
        """Return what is repeated where nobody is greeted; empty: nothing yet."""

    def hold(self, held: bool) -> None:
        """Stop or resume sending, because the transport is full or has room again."""

    def collect(self, minimum_bytes: int, span_ns: int) -> None:
        """Set when a block leaves."""

    def fit(self, plain: int, largest: int) -> None:
        """Set the bytes of the largest message that is not cut, and of the largest one."""

    def fail(self, what: object, error: Exception) -> None:
        """End, because an act failed that cannot be repeated."""


@attrs.frozen
class PreparedStream:
    """A stream that is reserved for a source. Call either `open` or `cancel`.

    Attributes:
        config: The source's configuration with its incarnation and its place on the transport.
        make: Makes the stream.
        cancel: Releases the reservation.
        transport: The transport's configuration.
    """

    config: SourceConfig
    make: "Callable[[StreamOwner], StreamServer | ReliableStream]"
    cancel: Callable[[], None]
    transport: TransportConfig

    def open(self, source: StreamOwner) -> "StreamServer | ReliableStream":
        """Set the batching of the source, and make the stream that it writes to."""
        batching = self.transport.batching
        source.collect(batching.minimum_bytes, batching.span_ns)
        return self.make(source)


MAX_REFUSED = 1_024
"""Places that could not be joined, as they are remembered to log each of them seldom."""


class Transports:
    """The transports on which sources of a context send, and which its receivers join.

    Attributes:
        unusable: The count of sources that were found and could not be joined.
        origins: What judges by the policy who sends a stream, and who joins one.
    """

    def __init__(self, interface: str) -> None:
        """Make the transports of a host's address. The first source or receiver of a kind opens its session."""
        self._interface = interface
        self._sources: dict[Transport, tuple[ReliableSources, SessionPool]] = {}
        self._receivers: ReliableReceivers | None = None
        self._servers: WeakValueDictionary[str, StreamServer] = WeakValueDictionary()
        self._joiners: WeakValueDictionary[str, StreamJoiner] = WeakValueDictionary()
        self.unusable = 0
        self.origins = Origins()
        self._refused: dict[str, int] = {}

    def close(self) -> None:
        """End all sessions of sources and receivers."""
        for sources, _ in self._sources.values():
            sources.close()
        if self._receivers is not None:
            self._receivers.close()

    def move(self, interface: str) -> None:
        """Use another address of this host for all sessions. Raises PortError."""
        self._interface = interface
        for sources, _ in self._sources.values():
            sources.move(interface)
        if self._receivers is not None:
            self._receivers.move(interface)

    async def moved(self, source: Source) -> str:
        """Return the place of a source at the address that the sessions use now, and let joiners in there."""
        if not isinstance(source.stream, StreamServer):
            return source.stream.place if source.stream is not None else source.place
        _, port = address.parse(source.place)
        listening = ports.listen_in_range(self._interface, (port, port))
        place = address.join(self._interface, listening.getsockname()[1])
        self._servers[place] = source.stream
        await source.stream.move(listening)
        return place

    def statistics(self) -> dict[str, dict[str, int]]:
        """Return the counters of each session, by `source` or `receiver` and its source string."""
        found: dict[str, dict[str, int]] = {}
        for sources, _ in self._sources.values():
            found |= sources.all_statistics()
        if self._receivers is not None:
            found |= self._receivers.all_statistics()
        found |= {f"source TCP:{place}": server.statistics() for place, server in self._servers.items()}
        return found | {f"receiver TCP:{place}": joiner.statistics() for place, joiner in self._joiners.items()}

    def prepare(self, config: SourceConfig, transport: TransportConfig) -> PreparedStream:
        """Reserve a stream for a new source. Raises PortError, TlsError."""
        if transport.kind is Transport.TCP:
            ports.check_reserve()
            if transport.tcp_port:
                listening = ports.listen(self._interface, transport.tcp_port, "transport_tcp_port")
            else:
                listening = ports.listen_in_range(self._interface, transport.tcp_range.pair)
            config = attrs.evolve(config, transport=address.join(self._interface, listening.getsockname()[1]))

            def make_server(source: StreamOwner) -> StreamServer:
                hold = source.hold if transport.tcp_blocks else None
                server = self._servers[source.place] = StreamServer(
                    listening, source.greeting, transport.buffer, hold, self._judge(READERS, config.topic, "a joiner")
                )
                return server

            return PreparedStream(config, make_server, listening.close, transport)
        tls.require_stream(f"the source '{config.topic}'")
        settings = transport.source
        sources, berths = self._of(transport)
        place = self._group if transport.kind is Transport.LBTRM else self._port

        def make(number: int) -> int:
            return sources.open(settings=settings, **place(transport, number))

        session = berths.choose(transport.named, transport.pool, make)
        where = sources.where(session)
        if sources.settings(session) != settings:
            log.warning("source '%s' shares the session %s: its first source has set the options", config.topic, where)
        index = codec.split(config.incarnation)[1]
        config = attrs.evolve(config, incarnation=codec.join(where.session_id, index), transport=str(where))

        def leave() -> None:
            sources.forget(session, index)
            if berths.leave(session):
                sources.retire(session)

        def make_stream(source: StreamOwner) -> "ReliableStream":
            from stablecast.runtime.reliable_stream import ReliableStream  # noqa: PLC0415

            room = sources.settings(session).datagram_max - RESERVED - DATA_HEADER.size
            source.fit(room, MAX_SUBMITTED // 2)

            def failed(error: Exception) -> None:
                source.fail("to send what waited for the rate limit", error)

            return ReliableStream(sources, session, source.standing, source.hold, leave, failed)

        return PreparedStream(config, make_stream, leave, transport)

    def _of(self, transport: TransportConfig) -> "tuple[ReliableSources, SessionPool]":
        """Return the sessions of a kind. The first source of the kind sets the rate limits."""
        kind, rates = transport.kind, transport.chosen.rates
        if kind not in self._sources:
            # Contexts that use TCP alone do not pay for the other transports.
            from stablecast.runtime.reliable_sources import ReliableSources  # noqa: PLC0415
            from stablecast.transports.reliable.lbtrm import LbtrmSources  # noqa: PLC0415
            from stablecast.transports.reliable.lbtru import LbtruSources  # noqa: PLC0415

            machine = LbtrmSources(rates) if kind is Transport.LBTRM else LbtruSources(rates)
            self._sources[kind] = (ReliableSources(machine, self._interface), SessionPool())
        return self._sources[kind]

    def joiner(
        self,
        transport: str,
        session_id: int | None,
        config: TransportConfig,
        topic: str,
        on_items: Callable[[int, list[Item]], None],
        on_lost: Callable[[Lost], None],
        on_end: Callable[[bool], None],
        *,
        patient: bool = True,
    ) -> "StreamJoiner | ReliableJoiner":
        """Join the stream of a source of a topic at `ip:port` or a source string.

        One that is not `patient` gives up a TCP stream whose host does not answer.

        Raises PortError, AddressError, TlsError.
        """
        if not is_source_string(transport):
            judge = self._judge(SENDERS, topic, "a stream")
            joiner = self._joiners[transport] = StreamJoiner(
                transport, session_id, on_items, on_end, judge, patient=patient
            )
            return joiner
        tls.require_stream(transport)
        from stablecast.runtime.reliable_receivers import ReliableReceivers  # noqa: PLC0415
        from stablecast.runtime.reliable_stream import ReliableJoiner  # noqa: PLC0415

        if self._receivers is None:
            self._receivers = ReliableReceivers(self._interface)
        where = Where.parse(transport)
        settings = (config.lbtrm if where.group else config.lbtru).receiver
        return ReliableJoiner(
            self._receivers, where, settings, on_items, on_lost, on_end, ports=config.lbtru_range.pair
        )

    def _judge(self, rights: Rights, topic: str, what: str) -> Admits:
        return lambda transport: self.origins.has_right(Origin.of(transport), rights, topic, what)

    def pass_over(self, place: str, error: StablecastError) -> None:
        """Count a source that cannot be joined from here, and log it the 1st, 2nd, 4th ... time: it is tried again."""
        self.unusable += 1
        count = self._refused[place] = self._refused.get(place, 0) + 1
        if count.bit_count() == 1:
            log.warning("a source that was found is ignored, %s: %s", place, error)
        if len(self._refused) > MAX_REFUSED:
            self._refused.clear()

    @staticmethod
    def _group(transport: TransportConfig, place: int) -> dict[str, Any]:
        """Return the configured group or one of the pool, and the ports for NAKs."""
        group = address.join(transport.group or transport.group_at(place), transport.port)
        return {"group": group, "ports": transport.nak_ports.pair}

    @staticmethod
    def _port(transport: TransportConfig, _: int) -> dict[str, Any]:
        """Return the configured port, or the range of ports."""
        named = (transport.lbtru_port, transport.lbtru_port)
        return {"ports": named if transport.lbtru_port else transport.lbtru_range.pair}


def checked(place: str) -> str:
    """Return a place that a user wrote, `ip:port` or a source string, in its usual form. Raises AddressError."""
    return str(Where.parse(place)) if is_source_string(place) else address.join(*address.parse_place(place))
