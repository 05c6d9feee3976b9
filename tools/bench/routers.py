"""One router between two domains: throughput, latency, its processor time without work, and the cost of a topic.

Each domain has a relay. The source and its store are in the first one, the receiver is in the second one. The baseline
of latency is a plain relay: an asyncio `Protocol` that copies the same bytes from one connection to another.
"""

import asyncio
import os
import resource
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import uvloop

from stablecast.client import Context, Receiver
from stablecast.config.client_configuration import ClientConfiguration, ConfigLayer
from stablecast.config.option_files import Setting
from stablecast.resolver import RelayDaemon
from stablecast.router.config import PortalConfig, RouterConfig
from stablecast.router.daemon import RouterDaemon
from stablecast.transports.routing.portals import Standing
from tools.bench import latency, pipeline, processes
from tools.bench.goals import Goal, ratio
from tools.bench.roles import BenchError, Role, Wire, Work, run
from tools.bench.scenario import Figures, Options, Scenario

HOST: Final = "127.0.0.1"
PLAIN, COPIED = "plain TCP", "plain TCP, copied"
DIRECT, ROUTED, IDLE, CROWD = "direct", "router", "idle router", "many topics"

STREAM_DESCRIPTORS: Final = 4
"""Descriptors of a router for each topic: two streams, a connection to each of few readers."""

SOURCES_A_RECEIVER: Final = 10
AT_ONCE: Final = 50
"""Number of sources or receivers that are made in one turn of the loop."""

QUIET_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.02
WITHIN_SECONDS: Final = 1_500.0
"""Time limit of each step of many topics, which is reached beside much other load only."""


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        while not condition():  # noqa: ASYNC110  # no event reports it
            await asyncio.sleep(LOOK_SECONDS)


async def _relay(_: Work, wire: Wire) -> None:
    relay = await RelayDaemon.start(HOST, 0)
    await asyncio.to_thread(wire.ready, relay.address)
    await asyncio.to_thread(wire.done)
    await relay.close()


def _portal(number: int, relay: str) -> PortalConfig:
    layer = ConfigLayer("", (Setting("context", "resolver_unicast_daemon", relay, 0),))
    return PortalConfig(f"portal-{number}", number, options=ClientConfiguration((layer,)))


async def _router(_: Work, wire: Wire) -> None:
    portals = tuple(_portal(number, relay) for number, relay in enumerate(wire.named("relay"), 1))
    router = await RouterDaemon.start(RouterConfig("edge", portals))
    await _until(lambda: all(portal.standing is Standing.FORWARDS for portal in router.router.portals))
    await asyncio.to_thread(wire.ready)
    await asyncio.to_thread(wire.done)
    dropped = sum(sum(portal.dropped.values()) for portal in router.snapshot(brief=True).portals)
    await router.close()
    if dropped:
        raise BenchError(f"the router dropped {dropped} messages")


async def _copy(_work: Work, wire: Wire) -> None:
    """Copy what the source writes to the one that joins, as a plain relay does."""
    loop = asyncio.get_running_loop()
    host, _, port = wire.addresses["origin"].rpartition(":")
    joined: asyncio.Future[asyncio.Transport] = loop.create_future()

    class Joined(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
            joined.set_result(transport)

    class Copied(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            joined.result().write(data)

    server = await loop.create_server(Joined, HOST, 0)
    listening = asyncio.create_task(asyncio.to_thread(wire.ready, f"{HOST}:{server.sockets[0].getsockname()[1]}"))
    await joined
    await loop.create_connection(Copied, host, int(port))
    await listening
    await asyncio.to_thread(wire.done)


async def _quiet(_: Work, wire: Wire) -> None:
    """Look at a router that has nothing to do. Figures: `idle_cpu` in % of a core, `wakeups` in a second."""
    await asyncio.to_thread(wire.ready)
    figures = await _over(wire.pids["router"])
    await asyncio.to_thread(wire.done, **figures)


async def _over(pid: int) -> dict[str, float]:
    began, spent, woken = time.monotonic(), processes.cpu(pid), processes.wakeups(pid)
    await asyncio.sleep(QUIET_SECONDS)
    seconds = time.monotonic() - began
    return {
        "idle_cpu": 100 * (processes.cpu(pid) - spent) / seconds,
        "wakeups": (processes.wakeups(pid) - woken) / seconds,
    }


def _topics(work: Work) -> list[str]:
    """Return the topics of the work's messages: bonds, and the equities that the router has descriptors for."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] // STREAM_DESCRIPTORS
    return [f"market.{'equity' if number < most else 'bond'}.{number}" for number in range(work.messages)]


async def _crowd(work: Work, wire: Wire) -> None:
    async with Context(resolver=pipeline.near(wire), session_id=pipeline.SESSION_ID) as context:
        topics = _topics(work)
        for first in range(0, len(topics), AT_ONCE):
            await asyncio.gather(*map(context.source, topics[first : first + AT_ONCE]))
        await asyncio.to_thread(wire.ready)
        await asyncio.to_thread(wire.done)


@attrs.define
class Costs:
    """What the router, the relay of its second domain and this process have cost since the last look."""

    pids: Mapping[str, int]
    spent: Mapping[str, float] = attrs.field(factory=dict)
    began: float = 0.0

    def begin(self) -> None:
        self.began, self.spent = time.monotonic(), {name: processes.cpu(pid) for name, pid in self.pids.items()}

    def figures(self, step: str, count: int) -> dict[str, float]:
        """Return the seconds of a step, and the processor time of each process for one of `count` topics, in ms."""
        cost = {f"{step}_{n}": (processes.cpu(pid) - self.spent[n]) * 1e3 / count for n, pid in self.pids.items()}
        return {f"{step}_s": time.monotonic() - self.began, **cost}


async def _many(work: Work, wire: Wire) -> None:
    """Find some of the sources by name, and then all equities by a pattern."""
    pids = {"router": wire.pids["router"], "relay": wire.pids["relay-2"], "reader": os.getpid()}
    idle = {name: processes.resident(pid) for name, pid in pids.items()}
    costs, topics = Costs(pids), _topics(work)
    named, equities = topics[::SOURCES_A_RECEIVER], sum("equity" in topic for topic in topics)
    await asyncio.to_thread(wire.ready)
    async with (
        Context(resolver=pipeline.far(wire), session_id=pipeline.SESSION_ID) as here,
        Context(resolver=pipeline.far(wire), session_id=pipeline.SESSION_ID + 1) as there,
    ):
        costs.begin()
        receivers = [here.receiver(topic) for topic in named]
        await _until(lambda: all(map(_has_session, receivers)))
        figures = {"topics": len(topics), "named": len(named), **costs.figures("named", len(named))}
        costs.begin()
        found = there.receiver(pattern="^market[.]equity[.]")
        await _until(lambda: len(found.topics) == equities and all(map(_has_session, found._topics.values())))
        figures |= {"all": equities, **costs.figures("all", equities)}
        for name, pid in pids.items():
            figures[f"{name}_kib"] = (processes.resident(pid) - idle[name]) / equities / processes.KIB
        await asyncio.to_thread(wire.done, **figures, **await _over(wire.pids["router"]))


def _has_session(receiver: Receiver) -> bool:
    return bool(receiver._sessions)


def relay(work: Work, wire: Wire) -> None:
    """Run a relay. Figures: none."""
    uvloop.run(_relay(work, wire))


def router(work: Work, wire: Wire) -> None:
    """Run a router between the domains of all relays. Figures: none."""
    uvloop.run(_router(work, wire))


def copy(work: Work, wire: Wire) -> None:
    """Copy bytes. Figures: none."""
    uvloop.run(_copy(work, wire))


def quiet(work: Work, wire: Wire) -> None:
    """Look at a router that has nothing to do. Figures: `idle_cpu`, `wakeups`."""
    uvloop.run(_quiet(work, wire))


def crowd(work: Work, wire: Wire) -> None:
    """Make many sources. Figures: none."""
    uvloop.run(_crowd(work, wire))


def many(work: Work, wire: Wire) -> None:
    """Find many sources. Figures: `_s` and processor ms a topic of both steps, KiB a topic, and those of `quiet`."""
    uvloop.run(_many(work, wire))


BETWEEN: Mapping[str, Role] = {"relay-1": relay, "relay-2": relay, "router": router}


def measured(first: Mapping[str, Role], options: Options, directory: Path) -> Figures:
    """Send at full speed, and then at the rate of the benchmark of latency."""
    work = Work(options.messages, options.size, options.flight, directory)
    found = run({**first, **pipeline.ROLES}, work)
    figures = {"delivered": found["receiver"]["per_s"] / 1e3, "recovered": found["receiver"]["recovered"]}
    if "router" in found:
        figures["router_cpu"] = found["router"]["cpu_us"]
    again = directory / "paced"
    again.mkdir()
    paced = latency.measured({**first, **latency.ROLES}, 0.0, options, again)
    return figures | {name: value for name, value in paced.items() if name.startswith("delivered_")}


def crowded(options: Options, directory: Path) -> Figures:
    """Let many sources be found through the router."""
    topics = min(options.sources, options.messages // SOURCES_A_RECEIVER)
    work = Work(topics, options.size, options.flight, directory)
    found = run({**BETWEEN, "crowd": crowd, "many": many}, work, WITHIN_SECONDS)
    return {name: value for name, value in found["many"].items() if name != "cpu_us"}


def unused(options: Options, directory: Path) -> Figures:
    found = run({**BETWEEN, "quiet": quiet}, Work(1, options.size, options.flight, directory))
    return {name: value for name, value in found["quiet"].items() if name != "cpu_us"}


def routers(_: Options) -> Scenario:
    copied = {"origin": latency.plain_source, "source": copy, "receiver": latency.plain_receiver}
    return Scenario(
        "router",
        "one source, one disk store, and one receiver in the same or in another domain; then very many topics",
        "stable = fdatasync returned at every store",
        {
            PLAIN: partial(latency.measured, latency.PLAIN, 0.0),
            COPIED: partial(latency.measured, copied, 0.0),
            DIRECT: partial(measured, {"relay-1": relay}),
            ROUTED: partial(measured, BETWEEN),
            IDLE: unused,
            CROWD: crowded,
        },
        {
            "delivered": "delivered, 1000/s",
            "router_cpu": "router, CPU µs a message",
            "delivered_p50": "to the receiver, median µs",
            "delivered_p99": "to the receiver, 99 % µs",
            "idle_cpu": "router without work, % of a core",
            "wakeups": "its wake-ups a second",
            "topics": "topics",
            "named": "receivers of one of them",
            "named_s": "all of these resolved, s",
            "named_router": "router, CPU ms for each",
            "named_relay": "relay, CPU ms for each",
            "named_reader": "receivers, CPU ms for each",
            "all": "topics of a pattern",
            "all_s": "all of these resolved, s",
            "all_router": "router, CPU ms for each",
            "all_relay": "relay, CPU ms for each",
            "all_reader": "receivers, CPU ms for each",
            "router_kib": "router, KiB a topic",
            "relay_kib": "relay, KiB a topic",
            "reader_kib": "receivers, KiB a topic",
        },
        [(ROUTED, DIRECT, "delivered"), (ROUTED, DIRECT, "delivered_p50"), (COPIED, PLAIN, "delivered_p50")],
        [
            Goal("delivered, router / direct", ratio(ROUTED, DIRECT, "delivered"), 0.5, least=True),
            Goal("router without work, % of a core", lambda found: found[IDLE]["idle_cpu"], 1.0),
        ],
    )
