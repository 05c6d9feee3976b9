"""Plants: former faults that are put back one at a time. `make torture ARGS=--plants` must find each.

A plant replaces functions after import, in each child process that starts with it:

    python -c "from tools.torture.plants import main; main()" NAME MODULE ARGUMENT...
"""

import asyncio
import runpy
import sys
from collections.abc import Callable, Mapping
from typing import Any

from stablecast.client import context, loop_ownership
from stablecast.client.session import ClientSession
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.store import clients
from stablecast.core.store.repository import Repository
from stablecast.runtime import connection_pool, event_loop, ports, tls
from stablecast.runtime.address import parse
from stablecast.runtime.own_address import OwnAddress
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.store import hosts
from stablecast.store.hosts import Host
from stablecast.store.journal import fetcher, lock, writer
from stablecast.store.store import Store
from stablecast.transports.reliable.inputs import Submit

STORES = 3
"""Stores of a history."""


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Replace an attribute. Raises LookupError if it does not exist, because such a plant would always survive."""
    if not hasattr(owner, name):
        raise LookupError(f"{owner} has no attribute {name} to replace: adapt tools/torture/plants.py")
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


def removals() -> None:
    """Let stores never ask whether their files are still there."""
    for module in (lock, writer, fetcher):
        _replace(module, "check_name", lambda *_: None)


def inodes() -> None:
    """Let a store that cannot start for lack of an inode end without a sentence."""
    start = Store.start

    async def speechless(self: Store) -> None:
        try:
            await start(self)
        except (StablecastError, OSError) as error:
            raise RuntimeError from error

    _replace(Store, "start", speechless)


def silences() -> None:
    """Let a message be stable only when all three stores have it."""
    _replace(Quorums, "intragroup", lambda _self, _group, held, _registered: held.bit_count() >= STORES)


def addresses() -> None:
    """Let endpoints keep an address that their host no longer has."""
    _replace(OwnAddress, "follow", lambda _: None)


def forks() -> None:
    """Let a forked child use the clients of its parent."""
    _replace(loop_ownership, "_after_fork", lambda: None)


def limits() -> None:
    """Keep no descriptor back, and report each connection that finds none as asyncio does, with a traceback."""
    for module in (context, event_loop, hosts):
        _replace(module, "limit_scarcity_reports", lambda _: None)
    _replace(ports, "has_room", lambda: True)


def repositories() -> None:
    """Let a limit release everything, and not only the oldest messages."""
    overflow = Repository._overflow

    def all_at_once(self: Repository, _: int, *rest: Any) -> None:
        overflow(self, self.window.lead + 1, *rest)

    _replace(Repository, "_overflow", all_at_once)


PLANTS: Mapping[str, tuple[Callable[[], None], str]] = {
    "owners": (owners, "twins"),
    "backlog": (backlog, "backlog"),
    "dialling": (dialling, "dialling"),
    "rates": (rates, "rates"),
    "parking": (parking, "daemon"),
    "removals": (removals, "removals"),
    "inodes": (inodes, "inodes"),
    "silences": (silences, "silences"),
    "repositories": (repositories, "repositories"),
    "addresses": (addresses, "addresses"),
    "forks": (forks, "forks"),
    "limits": (limits, "limits"),
}
"""Each plant, with the kind of plans that finds it."""


def main() -> None:
    """Put one fault back and run a module as a program."""
    name, module, *rest = sys.argv[1:]
    PLANTS[name][0]()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
