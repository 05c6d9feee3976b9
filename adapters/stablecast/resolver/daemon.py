"""The relay (lbmrd) on a socket."""

import errno
import os

from stablecast.net.address import check_ip, join
from stablecast.resolver.endpoint import Endpoint, bind
from stablecast.resolver.errors import ResolverError
from stablecast.transports.resolution.effects import Discovered
from stablecast.transports.resolution.inputs import DatagramArrived
from stablecast.transports.resolution.records import INSTANCE_BYTES
from stablecast.transports.resolution.relay import RelayMachine

DEFAULT_PORT = 15_380
"""Where contexts look for an lbmrd."""


class RelayDaemon:
    """A relay that serves until it is closed. Made by `start`."""

    def __init__(self, endpoint: Endpoint[DatagramArrived], interface: str, port: int) -> None:
        """Wraps a started endpoint."""
        self._endpoint = endpoint
        self.interface = interface
        self.port = port

    @classmethod
    async def start(cls, interface: str, port: int = DEFAULT_PORT) -> "RelayDaemon":
        """Starts a relay on `interface`:`port` (0: any port that is free, see `port`) in the running loop.

        Raises:
            AddressError: If the interface is not an IPv4 address.
            ResolverError: If this machine has no such interface, or the port is in use or forbidden.
        """
        try:
            sock = bind(check_ip(interface), (port,))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            remedy = f"port {port} on {interface} is in use: stop the other lbmrd or choose another port"
            raise ResolverError(remedy) from error
        used = int(sock.getsockname()[1])
        endpoint: Endpoint[DatagramArrived] = Endpoint(RelayMachine(os.urandom(INSTANCE_BYTES)), _discovers_nothing)
        await endpoint.open(sock)
        return cls(endpoint, interface, used)

    @property
    def address(self) -> str:
        """Where it listens, `ip:port`."""
        return join(self.interface, self.port)

    def statistics(self) -> dict[str, int]:
        """Clients now, and what was received, forwarded, and refused so far."""
        return self._endpoint.statistics()

    async def close(self) -> None:
        """Stops serving."""
        await self._endpoint.close()


def _discovers_nothing(found: Discovered) -> None:
    """A relay keeps no topic state (T-216)."""
