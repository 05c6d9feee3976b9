"""Domains in namespaces of their own, with a router between them, and programs that send and receive in them.

    python -m tests.support.routed_domains source CONTEXT SENDING...    send until killed; print "ready" when all do
    python -m tests.support.routed_domains receiver CONTEXT READING...  print each reading when it is complete

CONTEXT are options, the others a `Sending` or a `Reading`, all as JSON.
"""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.client import Context, Receiver, WildcardReceiver, resolution
from tests.support.namespaces import inside, star
from tests.support.program import Program

PROGRAM: Final = "tests.support.routed_domains"
COMMAND: Final = "stablecast.cli.main"
RELAY_PORT, SERVICE_PORT, STORE_PORT, LINK_PORT = 15_380, 27_000, 14_567, 14_400
BEFORE: Final = 20
"""Messages that a source sends before it is ready: those who join then are late."""

PAUSE_SECONDS: Final = 0.02
"""Time between two messages of a source."""

Options = Mapping[str, Any]


@attrs.frozen
class Sending:
    """One source: its topic, options and stores."""

    topic: str
    options: Options = attrs.Factory(dict)
    stores: tuple[str, ...] = ()


@attrs.frozen
class Reading:
    """One receiver of a topic, or of the pattern of `topics` topics: it reads `count` messages of each."""

    topic: str
    count: int
    topics: int = 0
    options: Options = attrs.Factory(dict)


@attrs.frozen
class RoutedDomains:
    """Domains 1, 2, ...: their hosts, the host of the router, and the options that find sources in each domain."""

    directory: Path
    stack: ExitStack
    middle: str
    hosts: list[str]
    options: list[Options]

    def program(self, domain: int, role: str, *parts: Sending | Reading) -> Program:
        """Run a source or a receiver in a domain, whose number is the id of its session."""
        given = (json.dumps(attrs.asdict(part)) for part in parts)
        context = json.dumps({**self.options[domain - 1], "session": domain})
        return self.stack.enter_context(inside(self.hosts[domain - 1], PROGRAM, role, context, *given))

    def store(self, domain: int) -> str:
        name, host = f"store-{domain}", f"10.71.{domain}.2"
        data, file = self.directory / name, self.directory / f"{name}.toml"
        data.mkdir()
        file.write_text(
            f"""
            [[store]]
            name = "{name}"
            port = {STORE_PORT}
            interface = "{host}"
            options = {{ disk-cache-directory = "{data}", disk-state-directory = "{data}" }}
            context = {table(self.options[domain - 1])}
            [[store.topic]]
            pattern = "."
            type = "PCRE"
            options = {{ repository-type = "disk" }}
            """,
            encoding="utf-8",
        )
        self._daemon(self.hosts[domain - 1], "store", str(file), "--new")
        return f"{host}:{STORE_PORT}"

    def router(self, *transports: str) -> Program:
        """Run the router; the proxy sources of each portal use the transport that is named for it."""
        return self._router("edge", "".join(self._portal(one, name) for one, name in enumerate(transports, 1)))

    def linked(self, number: int, transport: str) -> Program:
        """Run the router of one domain, linked to that of the domain before it, and to that of the next one."""
        text = self._portal(number, transport)
        if number > 1:
            text += f'[[portals.peer]]\nname = "before"\nsingle-tcp.acceptor.listen-port = {LINK_PORT + number}\n'
        if number < len(self.options):
            end = table({"address": "127.0.0.1", "port": LINK_PORT + number + 1})
            text += f'[[portals.peer]]\nname = "next"\nsingle-tcp.initiator = {end}\n'
        return self._router(f"edge-{number}", text)

    def _portal(self, number: int, transport: str) -> str:
        own = {**self.options[number - 1], "request_tcp_interface": f"10.71.{number}.1"}
        if "resolver_multicast_interface" in own:
            own["resolver_multicast_interface"] = f"10.71.{number}.1"
        text = f'[[portals.endpoint]]\nname = "portal-{number}"\ndomain-id = {number}\ncontext = {table(own)}\n'
        return f'{text}source = {{ transport = "{transport}" }}\n'

    def _router(self, name: str, portals: str) -> Program:
        file = self.directory / f"{name}.toml"
        file.write_text(f'[daemon]\nname = "{name}"\n{portals}', encoding="utf-8")
        return self._daemon(self.middle, "router", str(file))

    def _daemon(self, host: str, *arguments: str) -> Program:
        program = self.stack.enter_context(inside(host, COMMAND, *arguments))
        while "ready" not in (line := program.line()):
            assert line, program.end()
        return program

    def resolve(self, number: int, kind: str) -> None:
        """Give a domain a relay, a service or a group."""
        host = f"10.71.{number}.2"
        match kind:
            case "relay":
                self._daemon(self.hosts[number - 1], "lbmrd", "--listen", f"{host}:{RELAY_PORT}")
                self.options.append({"resolver_unicast_daemon": f"{host}:{RELAY_PORT}"})
            case "service":
                self._daemon(self.hosts[number - 1], "srs", "--interface", host, "--port", str(SERVICE_PORT), "--json")
                self.options.append({"resolver_service": f"{host}:{SERVICE_PORT}"})
            case _:
                self.options.append({"resolver_multicast_interface": host})


@contextmanager
def routed_domains(directory: Path, *kinds: str) -> Iterator[RoutedDomains]:
    """Make a domain for each kind of resolution: `relay`, `service` or `multicast`."""
    with ExitStack() as stack:
        middle, hosts = stack.enter_context(star(len(kinds)))
        domains = RoutedDomains(directory, stack, middle, hosts, [])
        for number, kind in enumerate(kinds, 1):
            domains.resolve(number, kind)
        yield domains


def table(options: Options) -> str:
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items()) + " }"


def _context(given: str) -> Context:
    options = json.loads(given)
    session = options.pop("session")
    return Context(resolution=resolution(options=options), session_id=session)


async def send(context: Context, parts: list[Sending]) -> None:
    """Send numbers on all sources; print "ready" when each has sent `BEFORE`."""
    sources = [await context.source(part.topic, stores=list(part.stores), options=dict(part.options)) for part in parts]
    for number in range(100_000):
        for source in sources:
            await source.send(b"%d" % number)
        if number == BEFORE:
            print("ready", flush=True)
        await asyncio.sleep(PAUSE_SECONDS)


async def receive(context: Context, parts: list[Reading]) -> None:
    """Print the topic and the numbers of each reading, as JSON, when it is complete."""

    async def read(part: Reading) -> None:
        receiver: Receiver | WildcardReceiver
        if part.topics:
            receiver = context.receiver(pattern=part.topic, options=dict(part.options))
        else:
            receiver = context.receiver(part.topic, options=dict(part.options))
        found: dict[str, list[int]] = defaultdict(list)
        told = False
        async for message in receiver:
            found[message.topic].append(int(message.payload))
            if not told and len(found) == (part.topics or 1) and min(map(len, found.values())) >= part.count:
                told = True  # It reads on, or what it leaves would hold others up.
                first = {name: numbers[: part.count] for name, numbers in found.items()}
                print(json.dumps([part.topic, first]), flush=True)

    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(read(part))


async def main(role: str, given: str, *parts: str) -> None:
    async with _context(given) as context:
        if role == "source":
            await send(context, [Sending(**json.loads(part)) for part in parts])
        else:
            await receive(context, [Reading(**json.loads(part)) for part in parts])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
