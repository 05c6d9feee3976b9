"""The name of a store in topic resolution."""

from typing import TYPE_CHECKING

from stablecast.store.settings import StoreSettings
from stablecast.store.store_log import StoreLog

if TYPE_CHECKING:
    from stablecast.resolver.resolver import Resolver


class NameService:
    """Answers sources that ask for a store by its context-name, over UDP (P-815).

    Without a name, or without relays and groups, it does nothing.
    """

    def __init__(self, settings: StoreSettings, interface: str, log: StoreLog) -> None:
        """Serve the name in `settings` from an address of this host; `log` gets what resolution remarks."""
        self._settings = settings
        self._interface = interface
        self._log = log
        self._resolver: Resolver | None = None

    async def start(self, address: str) -> None:
        """Announce the store at `address`. Raises like `Resolver.start` and `Resolver.meet`."""
        asked = self._settings
        if not asked.context_name or not (asked.resolver or asked.resolution):
            return
        from stablecast.config.resolution_options import ResolutionSettings, configured  # noqa: PLC0415 - most stores need none
        from stablecast.resolver import Listeners, Resolver  # noqa: PLC0415

        how = configured(ResolutionSettings(), asked.resolution)
        listeners = Listeners(lambda *_: None, remark=self._log.resolution)
        if asked.resolver:
            self._resolver = await Resolver.start(self._interface, asked.resolver, listeners, config=how.config)
        elif how.multicast is not None:
            self._resolver = await Resolver.meet(how.multicast, listeners, config=how.config)
        if self._resolver is not None:
            self._resolver.add_name(asked.context_name, address)

    async def close(self) -> None:
        """Stop answering for the name."""
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None
