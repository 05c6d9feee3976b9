"""Why stores do not register a source, in their own words."""

from stablecast.core.protocol.events import RegistrationError, StoreUnresponsive

MAX_TROUBLES = 16
"""Stores that a failed registration names."""


class Troubles:
    """The newest sentence about each store. A refusal has its own remedy; a store that is away has to be started."""

    def __init__(self) -> None:
        """None yet."""
        self._newest: dict[int, StoreUnresponsive | RegistrationError] = {}

    def add(self, event: StoreUnresponsive | RegistrationError) -> None:
        """Note what is wrong with a store now."""
        self._newest.pop(event.store_index, None)
        self._newest[event.store_index] = event
        if len(self._newest) > MAX_TROUBLES:
            del self._newest[next(iter(self._newest))]

    def clear(self) -> None:
        """All is well."""
        self._newest.clear()

    def missing(self, topic: str, within: float | None) -> str:
        """Return what a source says that waited for so many seconds, with the remedy."""
        newest = [event for _, event in sorted(self._newest.items())]
        away = [event.text.rstrip(".") for event in newest if isinstance(event, StoreUnresponsive)]
        refusals = [event.text for event in newest if isinstance(event, RegistrationError)]
        if away or not refusals:
            refusals.append(f"{'; '.join(away) or 'no store answered'}; start the stores or correct their addresses")
        return f"source '{topic}' is not registered with enough stores after {within:g} s: {' '.join(refusals)}"
