"""The stores that the sources of a context know by name or by host, and where they are.

A host is looked up, and again whenever the store of an address is lost: a host whose store moved has another address
afterwards. Its sources move there, as with the name of a store (P-207).

A name is queried while a source uses it. A store that has registered a source sends to this context all the time, so
its name stays known without queries (T-206). If the name were lost meanwhile, two stores of one name could take turns.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from stablecast.client.advice import log
from stablecast.core.protocol.inputs import Located
from stablecast.core.protocol.settings import SourceConfig
from stablecast.resolver.combined_resolver import Combined
from stablecast.runtime import address, machine
from stablecast.runtime.address import AddressError
from stablecast.runtime.alarm import Alarm
from stablecast.runtime.interfaces import resolved_place

RETRY_SECONDS = 1.0
"""Pause between two look-ups of a host, so that a store that is down does not ask the name service without end."""


class StoreHosts:
    """Look up the hosts of stores in threads; `locate(place, address)` is called for each new address of a place."""

    def __init__(self, locate: Callable[[str, str], None]) -> None:
        self._locate = locate
        self._found: dict[str, str] = {}
        self._lost: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def ask(self, place: str) -> None:
        """Find the address of a place `host:port`, now and whenever it is lost."""
        if place not in self._lost:
            self._lost[place] = asyncio.Event()
            self._tasks.append(asyncio.get_running_loop().create_task(self._follow(place)))

    def lost(self, address: str) -> None:
        """Look the hosts of an address up again, because its connection broke."""
        for place, found in self._found.items():
            if found == address:
                self._lost[place].set()

    async def close(self) -> None:
        """Look nothing up any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, place: str) -> None:
        lost, reported = self._lost[place], ""
        while True:
            lost.clear()
            try:
                found = await machine.threads.call(resolved_place, place)
            except AddressError as error:
                if reported != str(error):
                    reported = str(error)
                    log.warning("a store is not found: %s", reported)
                lost.set()
            else:
                reported = ""
                if self._found.get(place) != found:
                    self._found[place] = found
                    self._locate(place, found)
            await asyncio.sleep(RETRY_SECONDS)
            await lost.wait()


UNFINDABLE = "nothing resolves the store name '%s': give its address, or a relay or multicast"
"""The warning for a store name that cannot be resolved (T-010)."""

REVIEWS_PER_TIMEOUT = 4
"""Reviews of the registrations in the time after which a silent name is lost."""


class StoreUser(Protocol):
    """A source that may know stores by name."""

    config: SourceConfig

    def receive(self, event: Located) -> None: ...

    def registered_names(self) -> Iterable[str]:
        """Return the names of the stores that have registered the source and are not silent."""


class NamedStores:
    """The names that the sources of a context use, and the kinds of resolution that find them."""

    def __init__(self, found: Combined | None, hosts: StoreHosts, known: Mapping[str, str], timeout_ns: int) -> None:
        """Find stores over `found`, and names of hosts by `hosts`.

        `known` are addresses of stores; a name without a sign of life is lost after `timeout_ns`.
        """
        self._found = found
        self._hosts = hosts
        self._known = known
        self._period_ns = timeout_ns // REVIEWS_PER_TIMEOUT
        self._users: dict[str, set[StoreUser]] = {}
        self._queried: set[str] = set()
        self._alarm = Alarm(self._review)

    def add(self, source: StoreUser) -> None:
        """Feed a source the known addresses of its named stores, and query the others (T-201)."""
        for name in dict.fromkeys(store.name for store in source.config.stores if store.name):
            known = self._known.get(name)
            if known is not None:
                source.receive(Located(name, known))
            users = self._users.setdefault(name, set())
            # The address that resolution found for an earlier source may be old by now.
            if (known is None or name in self._queried) and not users:
                self._query(name)
            users.add(source)

    def remove(self, source: StoreUser) -> None:
        """Stop the queries for names that no other source uses."""
        for name in {store.name for store in source.config.stores}:
            users = self._users.get(name, set())
            users.discard(source)
            if name in self._users and not users:
                del self._users[name]
                if self._found is not None and name in self._queried:
                    self._found.forget_name(name)

    def close(self) -> None:
        """Stop the reviews."""
        self._alarm.set(None)

    def _query(self, name: str) -> None:
        if address.is_host(name):  # The name service of this host finds it, not the resolver.
            self._hosts.ask(name)
            return
        if self._found is None or not self._found.ask_name(name):
            log.warning(UNFINDABLE, name)
            return
        self._queried.add(name)
        self._alarm.set(machine.clock.monotonic_ns() + self._period_ns)

    def _review(self) -> None:
        """Keep the names of stores that are present."""
        assert self._found is not None
        queried = self._queried & self._users.keys()
        for name in sorted(queried):
            if any(name in source.registered_names() for source in self._users[name]):
                self._found.name_alive(name)
        if queried:
            self._alarm.set(machine.clock.monotonic_ns() + self._period_ns)
