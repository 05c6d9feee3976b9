"""The stores that the sources of a context know by name.

A name is queried while a source uses it. A store that has registered a source sends to this context all the time, so
its name stays known without queries (T-206). If the name were lost meanwhile, two stores of one name could take turns.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from stablecast.client.advice import log
from stablecast.client.store_hosts import StoreHosts
from stablecast.core.protocol.inputs import Located
from stablecast.core.protocol.settings import SourceConfig
from stablecast.resolver.combined_resolver import Combined
from stablecast.runtime import address, machine
from stablecast.runtime.alarm import Alarm

UNFINDABLE = "nothing resolves the store name '%s': give its address, or a relay or multicast"
"""The warning for a store name that cannot be resolved (T-010)."""

REVIEWS_PER_TIMEOUT = 4
"""Reviews of the registrations in the time after which a silent name is lost."""


class StoreUser(Protocol):
    """A source that may know stores by name."""

    config: SourceConfig

    def receive(self, event: Located) -> None:
        """Feed the address of a store to the source."""

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
