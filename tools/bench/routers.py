"""One router between two domains: throughput, latency, its processor time without work, and the cost of a topic.

Each domain has a relay. The source and its store are in the first one, the receiver is in the second one. The baseline
of latency is a plain relay: an asyncio `Protocol` that copies the same bytes from one connection to another.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

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

SOURCES_A_RECEIVER: Final = 10
AT_ONCE: Final = 50
"""Number of sources or receivers that are made in one turn of the loop."""

CONTEXTS: Final = 10
"""Number of contexts that share the many receivers."""

QUIET_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.02
WITHIN_SECONDS: Final = 200.0


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


def _topic(number: int) -> str:
    return f"market.equity.{number}"


async def _crowd(work: Work, wire: Wire) -> None:
    """Make the sources, one for each of the work's messages."""
    async with Context(resolver=pipeline.near(wire), session_id=pipeline.SESSION_ID) as context:
        for first in range(0, work.messages, AT_ONCE):
            await asyncio.gather(*(context.source(_topic(number)) for number in range(first, first + AT_ONCE)))
        await asyncio.to_thread(wire.ready)
        await asyncio.to_thread(wire.done)


async def _many(work: Work, wire: Wire) -> None:
    """Find some of the sources by name, and then all by a pattern. Figures: seconds, and the cost of the router."""
    pid = wire.pids["router"]
    idle, spent = processes.resident(pid), processes.cpu(pid)
    await asyncio.to_thread(wire.ready)
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        stop = asyncio.Event()
        receivers: list[Receiver] = []
        for number in range(CONTEXTS):
            group.create_task(_some(work, wire, number, receivers, stop))
        await _until(
            lambda: len(receivers) == work.messages // SOURCES_A_RECEIVER and all(map(_has_session, receivers))
        )
        named = time.monotonic() - began
        named_cpu = processes.cpu(pid) - spent
        async with Context(resolver=pipeline.far(wire), session_id=pipeline.SESSION_ID + 1) as context:
            began, spent = time.monotonic(), processes.cpu(pid)
            receiver = context.receiver(pattern="^market[.]equity[.]")
            await _until(lambda: len(receiver.topics) == work.messages)
            figures = {
                "named_s": named,
                "named_cpu": named_cpu * 1e3 / len(receivers),
                "all_s": time.monotonic() - began,
                "all_cpu": (processes.cpu(pid) - spent) * 1e3 / work.messages,
                "topic_kib": (processes.resident(pid) - idle) / work.messages / processes.KIB,
                **await _over(pid),
            }
            await asyncio.to_thread(wire.done, **figures)
        stop.set()


def _has_session(receiver: Receiver) -> bool:
    return bool(receiver._sessions)


async def _some(work: Work, wire: Wire, place: int, receivers: list[Receiver], stop: asyncio.Event) -> None:
    async with Context(resolver=pipeline.far(wire), session_id=100 + place) as context:
        for number in range(place, work.messages // SOURCES_A_RECEIVER, CONTEXTS):
            receivers.append(context.receiver(_topic(number * SOURCES_A_RECEIVER)))
            await asyncio.sleep(0)
        await stop.wait()


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
    """Find many sources. Figures: `named_s`, `all_s` in s, `named_cpu`, `all_cpu` in ms, `topic_kib`, as of `quiet`."""
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
    found = run({**BETWEEN, "crowd": crowd, "many": many}, Work(topics, options.size, options.flight, directory))
    return {name: value for name, value in found["many"].items() if name != "cpu_us"}


def unused(options: Options, directory: Path) -> Figures:
    """Let a router wait."""
    found = run({**BETWEEN, "quiet": quiet}, Work(1, options.size, options.flight, directory))
    return {name: value for name, value in found["quiet"].items() if name != "cpu_us"}


def routers(_: Options) -> Scenario:
    """Return the scenario of one router between two domains."""
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
            "named_s": "a tenth found by name, s",
            "named_cpu": "router, CPU ms for each",
            "all_s": "all found by a pattern, s",
            "all_cpu": "router, CPU ms for each",
            "topic_kib": "router, KiB a topic",
        },
        [(ROUTED, DIRECT, "delivered"), (ROUTED, DIRECT, "delivered_p50"), (COPIED, PLAIN, "delivered_p50")],
        [
            Goal("delivered, router / direct", ratio(ROUTED, DIRECT, "delivered"), 0.5, least=True),
            Goal("router without work, % of a core", lambda found: found[IDLE]["idle_cpu"], 1.0),
        ],
    )
