"""Plants: former faults that are put back one at a time. `make torture ARGS=--plants` must find each.

A plant replaces functions after import, in each child process that starts with it:

    python -c "from tests.torture.plants import main; main()" NAME MODULE ARGUMENT...
"""

import asyncio
import runpy
import sys
from collections.abc import Callable, Mapping
from typing import Any

from stablecast.client import context
from stablecast.client.session import ClientSession
from stablecast.core.store import clients
from stablecast.runtime import connection_pool, tls
from stablecast.runtime.address import parse
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.store.hosts import Host
from stablecast.transports.reliable.inputs import Submit


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Replace an attribute. Raises LookupError if it does not exist, because such a plant would always survive."""
    if not hasattr(owner, name):
        raise LookupError(f"{owner} has no attribute {name} to replace: adapt tests/torture/plants.py")
    setattr(owner, name, function)


def owners() -> None:
    """Permit two sources of one context with the same RegIDs, in the context and at the stores."""
    _replace(context, "check_claims", lambda *_: None)
    _replace(clients, "earlier", lambda *_: False)


def backlog() -> None:
    """Let a session with a new life of a source ignore the messages that wait in the inbox."""
    start = ClientSession.start

    def forgetful(self: ClientSession, history: dict[int, list[tuple[int, int]]], earlier: Any = ()) -> None:
        for session in earlier:
            session.stop()
        start(self, history)

    _replace(ClientSession, "start", forgetful)


def dialling() -> None:
    """Use a connection that was made after its attempt was given up, and let its failures end nothing."""

    async def attempt(self: connection_pool.ConnectionPool, link: connection_pool.PeerLink) -> None:
        host, port = parse(link.address)
        one = connection_pool.Attempt(link)
        try:
            async with asyncio.timeout(connection_pool.CONNECT_SECONDS):
                await asyncio.get_running_loop().create_connection(
                    lambda: one, host, port, local_addr=(self._source_ip, 0), ssl=tls.client()
                )
        except OSError:
            if link.made_at is None:
                raise

    def fail(self: connection_pool.PeerLink, error: Exception) -> None:
        raise error

    _replace(connection_pool.ConnectionPool, "_attempt", attempt)
    _replace(connection_pool.PeerLink, "fail", fail)


def rates() -> None:
    """Send waiting control messages before the block whose rate budget was reserved, so that they use it up."""

    def offer(self: ReliableSources, number: int, block: bytes, mark: Any) -> bool:
        if self.machine.blocked:
            return False
        said = self._said.pop(number, None)
        if said:
            self._said_bytes -= sum(map(len, said))
            self._driver.feed(Submit(number, b"".join(said), mark))
        if block:
            self._driver.feed(Submit(number, block, mark))
        return True

    _replace(ReliableSources, "offer", offer)


def parking() -> None:
    """Let one store whose disk fails end its daemon."""

    async def tend(self: Host) -> None:
        raise await self.failed

    _replace(Host, "tend", tend)


PLANTS: Mapping[str, tuple[Callable[[], None], str]] = {
    "owners": (owners, "twins"),
    "backlog": (backlog, "backlog"),
    "dialling": (dialling, "dialling"),
    "rates": (rates, "rates"),
    "parking": (parking, "daemon"),
}
"""Each plant, with the kind of plans that finds it."""


def main() -> None:
    """Put one fault back and run a module as a program."""
    name, module, *rest = sys.argv[1:]
    PLANTS[name][0]()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
