"""A host of a world: its address, clocks and files, and the programs that run on it."""

import random
from collections.abc import Callable
from itertools import count

from stablecast.lab.world.clock import HostClock
from stablecast.lab.world.disk import FIRST_DESCRIPTOR, SimulatedDisk
from stablecast.lab.world.kernel import Kernel
from stablecast.lab.world.network import SimulatedNetwork
from stablecast.lab.world.process import SimulatedProcess


class SimulatedHost:
    """One machine of the world.

    Attributes:
        powered: Whether it has power; without, it does not answer and its processes are gone.
        disk: Its disk.
        environment: The environment of its processes.
        privileged: Whether its processes may bind ports below 1024.
    """

    def __init__(self, kernel: Kernel, network: SimulatedNetwork, name: str, address: str) -> None:
        self.kernel = kernel
        self.network = network
        self.name = name
        self.address = address
        self.powered = True
        self.privileged = False
        self.clock = HostClock(kernel)
        self.environment: dict[str, str] = {}
        self.processes: list[SimulatedProcess] = []
        self.ended: Callable[[SimulatedProcess], None] = lambda _: None
        self.failed: Callable[[SimulatedProcess, BaseException], None] = lambda *_: None
        self.disk = SimulatedDisk(self.clock.wall_ns, random.Random(kernel.random.getrandbits(64)), kernel.sleep)  # noqa: S311
        self.descriptors = count(FIRST_DESCRIPTOR)
        network.add(self)

    def process(self, name: str = "") -> SimulatedProcess:
        """Return a new process; power comes back first."""
        if not self.powered:
            self.restore_power()
        process = SimulatedProcess(self, name or self.name, len(self.processes) + 1)
        self.processes.append(process)
        return process

    @property
    def running(self) -> list[SimulatedProcess]:
        return [one for one in self.processes if not one.gone]

    def cut_power(self) -> None:
        """Lose the power: processes and connections are gone, and nobody is told."""
        self.powered = False
        for process in self.running:
            process.kill(power=True)
        self.disk.crash(self.kernel.random)
        for other in list(self.network.ends):
            if other.there == self.address:
                other.on_unreachable()

    def restore_power(self) -> None:
        """Get the power back; peers of the old connections learn soon that those are gone."""
        self.powered = True
        for other in list(self.network.ends):
            if other.there == self.address:
                other.orphan()

    def on_end(self, process: SimulatedProcess) -> None:
        self.ended(process)

    def on_error(self, process: SimulatedProcess, error: BaseException) -> None:
        self.failed(process, error)
