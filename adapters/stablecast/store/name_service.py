"""The part of a store in topic resolution: its name, and what it hears of domains, and of sources in others."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import attrs

from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.store.distant_sources import DistantSources
from stablecast.store.settings import StoreSettings
from stablecast.store.store_log import StoreLog

if TYPE_CHECKING:
    from stablecast.config.resolution_options import ResolutionSettings
    from stablecast.resolver.combined_resolver import Wait


class NameService:
    """Answers sources that ask for a store by its context-name, over UDP (P-815).

    It also learns the domain of the store and the routes to others, and finds where routers repeat the sources that
    register from there. It takes part from the start, also without a name: a client in another domain reaches only a
    store that knows its own domain. Without relays, groups and services it does nothing.

    Attributes:
        interface: The address of this host.
        resolution: The settings, once it takes part.
        pool: The connections of the store, which know its domain and the routes.
    """

    resolution: "ResolutionSettings"

    def __init__(
        self, settings: StoreSettings, interface: str, log: StoreLog, pool: ConnectionPool, distant: DistantSources
    ) -> None:
        """Serve the name in `settings` from an address of this host; `log` gets what resolution remarks."""
        self._settings = settings
        self.interface = interface
        self._log = log
        self.pool = pool
        self.resolver_port = 0
        self._distant = distant
        self._stack = AsyncExitStack()

    async def start(self, address: str) -> None:
        """Take part, and announce the store at `address`. Raises like `source_discovery.start`."""
        asked = self._settings
        if not (asked.resolver or asked.resolver_service or asked.resolution):
            return
        from stablecast.client import source_discovery  # noqa: PLC0415 - most stores need none

        strategy = source_discovery.resolution(options=asked.resolution)
        how = source_discovery.plan(strategy, asked.resolver, asked.resolver_service)
        relays = attrs.evolve(how.config.relays, force_alive=True)
        self.resolution = attrs.evolve(how, config=attrs.evolve(how.config, relays=relays))
        instance = machine.entropy.octets(8)
        told = (self._log.resolution, self._say_missing)
        found = await source_discovery.start(self, self._distant.found, None, instance, self._stack, *told)
        if found is not None:
            self._distant.attach(found)
            if asked.context_name:
                found.add_name(asked.context_name, address)

    async def close(self) -> None:
        """Take part no more."""
        self._distant.resolver = None
        await self._stack.aclose()

    def _say_missing(self, waits: "Sequence[Wait]") -> None:
        for wait in waits:
            text = f"a source of '{wait.topic}' in another domain is repeated nowhere here since {wait.seconds:.0f} s"
            self._log.resolution(f"{text}: {wait.reason}", warning=True)

    def locate(self, name: str, where: str) -> None:
        """Do nothing: a store asks for no other one."""

    def no_source(self, topic: str, queries: int) -> None:
        """Do nothing: its routers, or sources, repeat themselves."""

    def abandoned(self, topic: str) -> None:
        """Do nothing: a store has no patterns."""
