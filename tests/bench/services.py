"""What a service costs that very many contexts use: all connect, all connect again, and all come back to a new one.

    python -m tests.bench.services [--contexts 1000] [--topics 100] [--interests 100]

The service is a process of its own; the contexts share one, which costs more than the service: mind the processor time.
Each of them has as many sources as `--topics`, and wants as many topics as `--interests`, of which another one has the
sources. Bytes are those that TCP carried, both ways; memory is the service's at its peak, over that of an idle one.
"""

import argparse
import asyncio
import socket
import struct
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import attrs

from stablecast.resolver.srs_resolver import SrsResolver
from stablecast.runtime.event_loop import run_loop
from stablecast.transports.resolution.udp.inputs import AddSource
from tests.bench import processes
from tests.support.network import LOCAL, unused_port
from tests.support.program import running

LOOK_SECONDS = 0.05
_TCP_INFO_BYTES = 136
_CARRIED = struct.Struct("120x2Q")
"""Of Linux's tcp_info: bytes that were acknowledged, and bytes that came."""


@attrs.frozen
class Size:
    """How many contexts, and how many sources and wanted topics each of them has."""

    contexts: int = 1_000
    topics: int = 100
    interests: int = 100

    @property
    def sources(self) -> int:
        """Of all contexts."""
        return self.contexts * self.topics

    def wanted(self, context: int) -> list[str]:
        """Topics of other contexts, each context's its own."""
        first = (context + 1) * self.topics
        return [f"topic/{(first + index) % self.sources}" for index in range(self.interests)]


@attrs.frozen
class Round:
    """What it took until every context knew all that it wanted.

    Attributes:
        seconds: On the clock, the contexts' pause before they connect included.
        cpu: Processor time of the service, in seconds.
        octets: Bytes on the network.
        memory: The service's peak, in bytes for each source.
    """

    name: str
    seconds: float
    cpu: float
    octets: int
    memory: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.seconds:.1f} s, {self.cpu:.1f} s of the service's processor, "
            f"{self.octets / 1e6:.1f} MB, {self.memory:.0f} bytes a source at its peak"
        )


@attrs.define
class Crowd:
    """The contexts; `times` says how often each was to be told all that it wants."""

    size: Size
    times: int = 0
    resolvers: list[SrsResolver] = attrs.field(factory=list, init=False)

    @classmethod
    async def gathered(cls, size: Size, service: str, stack: AsyncExitStack) -> "Crowd":
        """All of them, on their way to the service."""
        crowd = cls(size)
        for number in range(size.contexts):
            resolver = await SrsResolver.start(LOCAL, [service], lambda *_: None)
            stack.push_async_callback(resolver.close)
            for index in range(size.topics):
                topic = number * size.topics + index
                resolver.add_source(
                    AddSource(f"topic/{topic}", f"{LOCAL}:14371", 7, topic, f"{LOCAL}:14391", persistent=True)
                )
            for wanted in size.wanted(number):
                resolver.add_receiver(wanted)
            crowd.resolvers.append(resolver)
        return crowd

    async def settled(self) -> int:
        """Waits until each was told once more of all that it wants; the bytes that took."""
        self.times += 1
        while True:  # No event tells of it; a connection that was broken has ended when we look.
            await asyncio.sleep(LOOK_SECONDS)
            if all(self._is_settled(resolver) for resolver in self.resolvers):
                break
        return sum(sum(_carried(transport)) for transport in self._transports())

    def scatter(self) -> None:
        """All their connections break."""
        for transport in self._transports():
            transport.abort()

    def _is_settled(self, resolver: SrsResolver) -> bool:
        counted = resolver.statistics()
        return counted["services"] == 1 and counted["told"] >= self.times * self.size.interests

    def _transports(self) -> list[asyncio.Transport]:
        return [transport for resolver in self.resolvers for transport in resolver._channels._open.values()]


def _carried(transport: asyncio.Transport) -> tuple[int, int]:
    info = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    sent, received = _CARRIED.unpack(info)
    return sent, received


async def rounds(size: Size) -> list[Round]:
    """All connect; their connections break; the service is killed and another one started."""
    port = unused_port()
    found: list[Round] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = folder / "srs.toml"  # Nobody reads what it writes on a console.
        config.write_text(f'[daemon.log]\ntype = "file"\nname = "{folder / "srs.log"}"\n', encoding="utf-8")
        command = ("srs", config, "--interface", LOCAL, "--port", str(port), "--json")
        with ExitStack() as first:
            service = first.enter_context(running(*command))
            service.json_line()
            idle = processes.peak(service.process.pid)

            async def measured(name: str, began: float, cpu: float) -> None:
                octets = await crowd.settled()
                memory = (processes.peak(service.process.pid) - idle) / size.sources
                found.append(
                    Round(name, time.monotonic() - began, processes.cpu(service.process.pid) - cpu, octets, memory)
                )

            began = time.monotonic()
            crowd = await Crowd.gathered(size, f"{LOCAL}:{port}", stack)
            await measured("all connect", began, 0)
            began, cpu = time.monotonic(), processes.cpu(service.process.pid)
            crowd.scatter()
            await measured("all connect again", began, cpu)
            service.process.kill()
        began = time.monotonic()
        service = stack.enter_context(running(*command))
        service.json_line()
        await measured("all come back to a new service", began, 0)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """What the module's text says."""
    parser = argparse.ArgumentParser()
    for field in attrs.fields(Size):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    size = Size(**vars(parser.parse_args(arguments)))
    print(
        f"{size.contexts} contexts, {size.sources} sources, {size.contexts * size.interests} wanted topics", flush=True
    )
    for one in run_loop(rounds(size)):
        print(one, flush=True)


if __name__ == "__main__":
    main()
