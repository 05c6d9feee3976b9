"""The cost of a resolution service with very many contexts: all connect, connect again, and return to a new service.

    python -m tools.bench.services [--contexts 1000] [--topics 100] [--interests 100]

The service is a process of its own. The contexts share another process, which costs more than the service, so compare
processor times. Each context has `--topics` sources and wants `--interests` topics of other contexts. Bytes are those
that TCP carried in both directions. Memory is the service's peak minus that of an idle service.
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

from stablecast.resolver import Listeners
from stablecast.resolver.srs_resolver import SrsResolver
from stablecast.runtime.event_loop import run_loop
from stablecast.transports.resolution.udp.inputs import AddSource
from tests.support.network import LOCAL, unused_port
from tests.support.program import running
from tools.bench import processes

LOOK_SECONDS = 0.05
_TCP_INFO_BYTES = 136
_CARRIED = struct.Struct("120x2Q")
"""Fields of Linux's tcp_info: acknowledged bytes, and received bytes."""


@attrs.frozen
class Size:
    """The number of contexts, and the numbers of sources and wanted topics of each."""

    contexts: int = 1_000
    topics: int = 100
    interests: int = 100

    @property
    def sources(self) -> int:
        return self.contexts * self.topics

    def wanted(self, context: int) -> list[str]:
        """Return the topics that a context wants. Other contexts have their sources."""
        first = (context + 1) * self.topics
        return [f"topic/{(first + index) % self.sources}" for index in range(self.interests)]


@attrs.frozen
class Round:
    """The cost until every context knew all its wanted sources.

    Attributes:
        seconds: Elapsed time, including the contexts' pause before they connect.
        cpu: Processor time of the service, in seconds.
        octets: Bytes on the network.
        memory: Peak memory of the service, in bytes per source.
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
class ManyContexts:
    """The contexts. `times` is the number of times that each context should have learned its wanted sources."""

    size: Size
    times: int = 0
    resolvers: list[SrsResolver] = attrs.field(factory=list, init=False)

    @classmethod
    async def start(cls, size: Size, service: str, stack: AsyncExitStack) -> "ManyContexts":
        """Start all contexts; they connect to the service by themselves."""
        contexts = cls(size)
        for number in range(size.contexts):
            resolver = await SrsResolver.start(LOCAL, [service], Listeners(lambda *_: None))
            stack.push_async_callback(resolver.close)
            for index in range(size.topics):
                topic = number * size.topics + index
                resolver.add_source(
                    AddSource(f"topic/{topic}", f"{LOCAL}:14371", 7, topic, f"{LOCAL}:14391", persistent=True)
                )
            for wanted in size.wanted(number):
                resolver.add_receiver(wanted)
            contexts.resolvers.append(resolver)
        return contexts

    async def settled(self) -> int:
        """Wait until each context learned its wanted sources once more; return the carried bytes."""
        self.times += 1
        while True:  # there is no event for this; a broken connection has ended before the first look
            await asyncio.sleep(LOOK_SECONDS)
            if all(self._is_settled(resolver) for resolver in self.resolvers):
                break
        return sum(sum(_carried(transport)) for transport in self._transports())

    def disconnect(self) -> None:
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
    """Measure three rounds: all connect; all connections break; the service is killed and a new one starts."""
    port = unused_port()
    found: list[Round] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = folder / "srs.toml"  # the service logs to a file, because nothing reads its standard output
        config.write_text(f'[daemon.log]\ntype = "file"\nname = "{folder / "srs.log"}"\n', encoding="utf-8")
        command = ("srs", config, "--interface", LOCAL, "--port", str(port), "--json")
        with ExitStack() as first:
            service = first.enter_context(running(*command))
            service.json_line()
            idle = processes.peak(service.process.pid)

            async def measured(name: str, began: float, cpu: float) -> None:
                octets = await contexts.settled()
                memory = (processes.peak(service.process.pid) - idle) / size.sources
                found.append(
                    Round(name, time.monotonic() - began, processes.cpu(service.process.pid) - cpu, octets, memory)
                )

            began = time.monotonic()
            contexts = await ManyContexts.start(size, f"{LOCAL}:{port}", stack)
            await measured("all connect", began, 0)
            began, cpu = time.monotonic(), processes.cpu(service.process.pid)
            contexts.disconnect()
            await measured("all connect again", began, cpu)
            service.process.kill()
        began = time.monotonic()
        service = stack.enter_context(running(*command))
        service.json_line()
        await measured("all connect to a new service", began, 0)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and print a line for each round."""
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
