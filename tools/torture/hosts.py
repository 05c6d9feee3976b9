"""The hosts of one history: a network namespace for each, joined by a bridge in the namespace of this process.

Neighbours are static. A frame that cannot get through is therefore lost silently, and an attempt to connect stays
pending. The module needs network and mount namespaces of its own, which end with the last process in them.
"""

import random
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tools.torture import frame_bridge

PREFIX = "10.77.0"
BRIDGE = "wire"
NAMES = Path("/run/netns")
"""Directory of the names of `ip netns`. Each history mounts its own, which no other process sees."""
MOVED = 100
"""Added to the last number of a host's address when it gets another one."""
NOWHERE = "02:de:ad:00:00:00"
"""A MAC address that no port has. Frames to it are lost without an error at the sender."""


def ip(lines: Iterable[str]) -> None:
    """Run commands of `ip` in one process. Raises CalledProcessError if one of them fails."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", check=True, text=True, capture_output=True)


class HostNetwork:
    """The hosts by name, and faults of the links between them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Make a host for each name, on one bridge."""
        self._index = {name: index for index, name in enumerate(names, 1)}
        self._noises: dict[str, int] = {}
        self._moved: set[str] = set()
        NAMES.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "names", str(NAMES)], check=True)
        ip(["link set lo up", f"link add {BRIDGE} type bridge mcast_snooping 0", f"link set {BRIDGE} up"])
        ip(f"netns add {name}" for name in self._index)
        for name, index in self._index.items():
            ip(
                [
                    f"link add p{index} type veth peer name e0 address {self._mac(name)} netns {name}",
                    f"link set p{index} master {BRIDGE} up",
                ]
            )
            subprocess.run(["ip", "-n", name, "-batch", "-"], input=self._inside(name), check=True, text=True)

    def address(self, name: str) -> str:
        return f"{PREFIX}.{self._index[name]}"

    def namespace(self, name: str) -> Path:
        return NAMES / name

    def cut(self, name: str) -> None:
        """Lose every frame from and to the host, silently."""
        ip([f"link set p{self._index[name]} nomaster"])

    def join(self, name: str) -> None:
        """Undo `cut`."""
        ip([f"link set p{self._index[name]} master {BRIDGE}"])

    def unplug(self, name: str) -> None:
        """Remove the carrier from the host's device."""
        ip([f"link set p{self._index[name]} down"])

    def plug(self, name: str) -> None:
        """Undo `unplug`."""
        ip([f"link set p{self._index[name]} up"])

    def noise(self, name: str, share: float, seconds: float = 0.0) -> None:
        """Lose, repeat and delay this share of the frames from and to the host, each, and delay all by `seconds`."""
        index = self._index[name]
        ip(
            [
                f"link add n{index} type veth peer name m{index}",
                f"link set m{index} master {BRIDGE} up",
                f"link set n{index} up promisc on",
                f"link set p{index} nomaster promisc on",
            ]
        )
        rng = random.Random(f"{name} {share}")
        self._noises[name] = frame_bridge.start(
            partial(frame_bridge.carry, f"p{index}", f"n{index}", share, rng, seconds)
        )

    def still(self, name: str) -> None:
        """Undo `noise`."""
        frame_bridge.end(self._noises.pop(name))
        index = self._index[name]
        ip([f"link set p{index} promisc off master {BRIDGE}", f"link del n{index}"])

    def readdress(self, name: str) -> None:
        """Take the host's address away, and give it another one; the second time its first one."""
        old, new = self.address(name), self._other(name)
        if name in self._moved:
            old, new = new, old
        self._moved ^= {name}
        self._on(name, f"addr del {old}/24 dev e0")
        self._on(name, f"addr add {new}/24 dev e0")
        self._on(name, "route replace 224.0.0.0/4 dev e0")

    def _other(self, name: str) -> str:
        return f"{PREFIX}.{self._index[name] + MOVED}"

    def mute(self, name: str, other: str) -> None:
        """Lose the frames from the host to the other one, silently. The other direction stays."""
        self._neighbour(name, other, NOWHERE)

    def unmute(self, name: str, other: str) -> None:
        """Undo `mute`."""
        self._neighbour(name, other, self._mac(other))

    def route(self, name: str, other: str, how: str) -> None:
        """Give the host a route to the other one that ends in an error: blackhole, unreachable or prohibit."""
        self._on(name, f"route replace {how} {self.address(other)}/32")

    def unroute(self, name: str, other: str, how: str) -> None:
        """Undo `route`."""
        self._on(name, f"route del {how} {self.address(other)}/32")

    def _neighbour(self, name: str, other: str, mac: str) -> None:
        self._on(name, f"neigh replace {self.address(other)} lladdr {mac} dev e0 nud permanent")

    @staticmethod
    def _on(name: str, line: str) -> None:
        subprocess.run(["ip", "-n", name, *line.split()], check=True, capture_output=True)

    def _mac(self, name: str) -> str:
        return f"02:77:00:00:00:{self._index[name]:02x}"

    def _inside(self, name: str) -> str:
        others = [other for other in self._index if other != name]
        return "\n".join(
            [
                "link set lo up",
                f"addr add {self.address(name)}/24 dev e0",
                "link set e0 up",
                "route add 224.0.0.0/4 dev e0",
                *(
                    f"neigh replace {address} lladdr {self._mac(other)} dev e0 nud permanent"
                    for other in others
                    for address in (self.address(other), self._other(other))
                ),
                "",
            ]
        )
