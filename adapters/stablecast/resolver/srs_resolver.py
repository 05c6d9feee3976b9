"""Topic resolution of one context over services (SRS)."""

from collections.abc import Mapping, Sequence

from stablecast.resolver.channels import Channels
from stablecast.resolver.resolution import Listeners, NamesInput, Resolution
from stablecast.runtime import machine
from stablecast.runtime.address import check_ip, parse_services
from stablecast.runtime.driver import UntracedDriver, describe, report
from stablecast.runtime.unicast import NO_ENDS, LocalEnd
from stablecast.transports.resolution.records import INSTANCE_BYTES
from stablecast.transports.resolution.srs import events as srs
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.settings import CLIENT_DEFAULTS, ClientConfig
from stablecast.transports.resolution.udp.inputs import ResolutionInput


class SrsResolver(Resolution):
    """Find sources for the receivers of one context over services, and announce its sources; `start` creates it."""

    def __init__(self, machine: SrsContext, interface: str, listeners: Listeners, ends: Mapping[str, LocalEnd]) -> None:
        """Drive `machine` in the running loop, from its first timeout on."""
        self._machine = machine
        self._listeners = listeners
        self._closed = False
        self._driver: UntracedDriver[srs.SrsContextInput, srs.SrsContextEffect] = UntracedDriver(
            machine, self._perform, self._on_failed
        )
        self._channels = Channels(interface, self._driver.feed, ends)

    @classmethod
    async def start(
        cls,
        interface: str,
        services: Sequence[str],
        listeners: Listeners,
        *,
        instance: bytes | None = None,
        config: ClientConfig = CLIENT_DEFAULTS,
        ends: Mapping[str, LocalEnd] = NO_ENDS,
    ) -> "SrsResolver":
        """Start to resolve from the address `interface` through `services` (`host:port` each), in the running loop.

        `instance` is the name of the context in 8 bytes, random by default. `ends` are the local ends of connections to
        single services. This method returns at once, and connections are made in the background.

        Raises:
            AddressError: An address has the wrong form.
            MisuseError: There is no service, or too many, or `instance` has another length.
        """
        name = machine.entropy.octets(INSTANCE_BYTES) if instance is None else instance
        seed = int.from_bytes(machine.entropy.octets(8))
        client = SrsContext.create(name, parse_services(services), seed, config)
        return cls(client, check_ip(interface), listeners, ends)

    def feed_names(self, event: NamesInput) -> None:
        """Do nothing: services know no names of stores, which are found over UDP (T-010), and are never quiet."""

    def reach(self, domains: tuple[int, ...], address: str) -> None:
        """Tell the services the domains that a router's portal reaches, through its request port."""
        self._driver.feed(srs.Reaches(domains, address))

    def why(self, topic: str) -> str:
        return self._machine.why(topic)

    def statistics(self) -> dict[str, int]:
        """Return the number of informing services and known sources, and the counters of messages."""
        return self._machine.counters()

    async def close(self) -> None:
        """Close all connections and wait for their end; nothing is reported afterwards."""
        self._closed = True
        self._driver.close()
        await self._channels.close()

    def move(self, interface: str) -> None:
        """Connect to the services from another address of this host, and anew."""
        self._channels.move(interface)

    def feed(self, event: ResolutionInput) -> None:
        """Feed one input to the machine; do nothing once closed. Raises MisuseError."""
        self._driver.feed(event)

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Feed the machine the end of the connection that an effect was for; it connects again and repeats all.

        A source or a service that could not be reported is reported again when its receiver asks again.
        """
        report(f"{describe(effect)} of the resolver service failed", error)
        if isinstance(effect, srs.SendBytes | srs.Connect):
            self._channels.cut(effect.connection)
            self._driver.feed(srs.ConnectionClosed(effect.connection, f"{type(error).__name__}: {error}"))

    def _perform(self, effect: srs.SrsContextEffect) -> None:
        if self._closed:
            return  # A callback of an earlier effect closed this resolver.
        match effect:
            case srs.SendBytes(connection, data):
                self._channels.write(connection, data)
            case srs.Connect(connection, address):
                self._channels.connect(connection, address)
            case srs.Disconnect(connection):
                self._channels.cut(connection)
            case srs.ServiceChanged(address, up, reason):
                self._listeners.service(address, up, reason)
            case srs.InterestChanged(query, on):
                self._listeners.interest(query, on)
            case _:
                self._listeners.tell(effect)
