"""The name by which sources find a store: its context-name, told to those who ask through its relays (P-815)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stablecast.resolver.resolver import Resolver


class Naming:
    """Answers for one name between `start` and `close`; without a name or a relay there is nobody to answer."""

    def __init__(self, name: str, relays: tuple[str, ...], interface: str) -> None:
        """The store `name`, which reaches the relays from an address of this host."""
        self._name = name
        self._relays = relays
        self._interface = interface
        self._resolver: Resolver | None = None

    async def start(self, address: str) -> None:
        """The store is found at `address` from now on. Raises like `Resolver.start`."""
        if self._name and self._relays:
            from stablecast.resolver.resolver import Listeners, Resolver  # noqa: PLC0415 - most stores need none

            listeners = Listeners(lambda *_: None)
            self._resolver = await Resolver.start(self._interface, self._relays, listeners)
            self._resolver.add_name(self._name, address)

    async def close(self) -> None:
        """It is found no more."""
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None
