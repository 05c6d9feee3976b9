"""The name of a store in topic resolution, and what it hears there: of domains, and of sources in others."""

from typing import TYPE_CHECKING

from stablecast.runtime.routing import Routing
from stablecast.store.distant_sources import DistantSources
from stablecast.store.settings import StoreSettings
from stablecast.store.store_log import StoreLog

if TYPE_CHECKING:
    from stablecast.resolver.resolver import Resolver


_TAKE_PART = {"resolver_unicast_force_alive", "resolver_domain_id"}
"""The options by which a store without a name takes part in resolution."""


class NameService:
    """Answers sources that ask for a store by its context-name, over UDP (P-815).

    It also learns the domain of the store and the routes to others, and finds where routers repeat the sources that
    register from there. Without relays and groups it does nothing. A store without a name takes part only if its
    options say so (`resolver_unicast_force_alive`, `resolver_domain_id`).
    """

    def __init__(
        self, settings: StoreSettings, interface: str, log: StoreLog, routing: Routing, distant: DistantSources
    ) -> None:
        """Serve the name in `settings` from an address of this host; `log` gets what resolution remarks."""
        self._settings = settings
        self._interface = interface
        self._log = log
        self._routing = routing
        self._distant = distant
        self._resolver: Resolver | None = None

    async def start(self, address: str) -> None:
        """Announce the store at `address`. Raises like `Resolver.start` and `Resolver.meet`."""
        asked = self._settings
        if not (asked.resolver or asked.resolution) or not (asked.context_name or _TAKE_PART & set(asked.resolution)):
            return
        from stablecast.config.resolution_options import ResolutionSettings, configured  # noqa: PLC0415 - most stores need none
        from stablecast.resolver import Listeners, Resolver  # noqa: PLC0415
        from stablecast.resolver.combined_resolver import Combined  # noqa: PLC0415

        how = configured(ResolutionSettings(), asked.resolution)
        if not (asked.context_name or how.config.relays.force_alive or how.config.domains.number):
            return
        routing = self._routing
        if how.config.domains.number:
            routing.learn(how.config.domains.number)
        places = Combined(self._distant.found)
        listeners = Listeners(
            places.found, places.gone, remark=self._log.resolution, domain=routing.learn, route=routing.route
        )
        if asked.resolver:
            self._resolver = await Resolver.start(self._interface, asked.resolver, listeners, config=how.config)
        elif how.multicast is not None:
            self._resolver = await Resolver.meet(how.multicast, listeners, config=how.config)
        if self._resolver is not None:
            places.add([self._resolver])
            self._distant.attach(places)
            if asked.context_name:
                self._resolver.add_name(asked.context_name, address)

    async def close(self) -> None:
        """Stop answering for the name."""
        self._distant.resolver = None
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None
