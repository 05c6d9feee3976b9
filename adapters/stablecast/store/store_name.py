"""The name by which sources find a store: its context-name, told to those who ask over UDP (P-815)."""

from typing import TYPE_CHECKING

from stablecast.store.settings import StoreSettings

if TYPE_CHECKING:
    from stablecast.resolver.resolver import Resolver


class Naming:
    """Answers for one name between `start` and `close`; without a name, relay or group there is nobody to answer."""

    def __init__(self, settings: StoreSettings, interface: str) -> None:
        """The store of these settings, which reaches its relays from an address of this host."""
        self._settings = settings
        self._interface = interface
        self._resolver: Resolver | None = None

    async def start(self, address: str) -> None:
        """The store is found at `address` from now on. Raises like `Resolver.start` and `Resolver.meet`."""
        asked = self._settings
        if not asked.context_name or not (asked.resolver or asked.resolution):
            return
        from stablecast.config.resolution_options import ResolutionSettings, configured  # noqa: PLC0415 - most stores need none
        from stablecast.resolver.resolver import Listeners, Resolver  # noqa: PLC0415

        how, listeners = configured(ResolutionSettings(), asked.resolution), Listeners(lambda *_: None)
        if asked.resolver:
            self._resolver = await Resolver.start(self._interface, asked.resolver, listeners, config=how.config)
        elif how.multicast is not None:
            self._resolver = await Resolver.meet(how.multicast, listeners, config=how.config)
        if self._resolver is not None:
            self._resolver.add_name(asked.context_name, address)

    async def close(self) -> None:
        """It is found no more."""
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None
