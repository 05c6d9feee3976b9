"""The ports of a local cluster, which stay the same from run to run: a file in its directory keeps them.

Programs name the relay and the stores by port. A port that another program holds by now is replaced by a free one.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import attrs

from stablecast.runtime import datagrams, durable_files, machine, ports
from stablecast.text.json_text import from_json

FILE = "ports.json"
LOCAL = "127.0.0.1"
MAX_PORT = 65535


@attrs.frozen
class ClusterPorts:
    """The ports of a cluster; 0 lets the system choose.

    Attributes:
        relay: The port of the lbmrd, over UDP.
        stores: The ports of the stores, over TCP.
    """

    relay: int = 0
    stores: tuple[int, ...] = ()

    def store(self, index: int) -> int:
        """Return the port of a store, 0 if it is not chosen yet."""
        return self.stores[index] if index < len(self.stores) else 0

    def free(self) -> "ClusterPorts":
        """Return these ports, with 0 for each one that another program holds."""
        return ClusterPorts(_free_datagram_port(self.relay), tuple(_free_stream_port(port) for port in self.stores))


HANDBOOK = ClusterPorts(15380, (14567, 14568, 14569))
"""The ports of the handbook's programs: a first run has them as far as they are free."""


def from_first(first: int, stores: int) -> ClusterPorts:
    """Return consecutive ports: the relay has the first one."""
    return ClusterPorts(first, tuple(range(first + 1, first + 1 + stores)))


def read(directory: Path) -> ClusterPorts:
    """Return the ports of the last run in a directory; all are 0 if there was none, or its file is not readable."""
    try:
        kept = from_json(machine.read_text(directory / FILE))
        relay, stores = kept["relay"], kept["stores"]
    except (OSError, ValueError, KeyError, TypeError):
        return ClusterPorts()
    known = [relay, *stores] if isinstance(stores, list) else [None]
    if not all(isinstance(port, int) and 0 <= port <= MAX_PORT for port in known):
        return ClusterPorts()
    return ClusterPorts(relay, tuple(stores))


def write(directory: Path, relay: int, addresses: Sequence[str]) -> None:
    """Keep the ports of this run for the next one."""
    stores = [int(address.rpartition(":")[2]) for address in addresses]
    durable_files.write(directory / FILE, json.dumps({"relay": relay, "stores": stores}).encode() + b"\n")


def _free_stream_port(port: int) -> int:
    try:
        ports.listen(LOCAL, port, "port").close()
    except ports.PortError:
        return 0
    return port


def _free_datagram_port(port: int) -> int:
    try:
        datagrams.bind(LOCAL, port).close()
    except ports.PortError:
        return 0
    return port
