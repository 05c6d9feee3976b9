"""Messages that did not come plain: pieces put together, properties taken off."""

from stablecast.client.message import Batch, Owner
from stablecast.core.effects import Deliver
from stablecast.transports.fragments import Whole
from stablecast.transports.lbttcp import Run
from stablecast.transports.wire import properties
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.properties import Value


class Assembled(Batch):
    """Messages of one source, each with its own numbers, and properties if it has some."""

    __slots__ = ("_wholes",)

    def __init__(self, wholes: list[Whole], run: Run, delivered: Deliver, incarnation: int, owner: Owner) -> None:
        """The messages that `run` completed, at least one."""
        recovered = any(whole.recovered for whole in wholes)
        super().__init__(run, 0, len(wholes), wholes[0].first, incarnation, owner, recovered, delivered.otr)
        self._block = b""
        self._wholes = wholes

    @property
    def size(self) -> int:
        """Bytes that the batch keeps in memory."""
        return sum(len(whole.payload) + len(whole.properties) for whole in self._wholes)

    def payloads(self) -> list[bytes]:
        """The payloads in order."""
        return [whole.payload for whole in self._wholes]

    def numbers(self, index: int) -> tuple[int, int]:
        """First and last extended number of the `index`th message."""
        whole = self._wholes[index]
        return whole.first, whole.last

    def properties(self, index: int) -> dict[str, Value]:
        """The properties of the `index`th message; none if they cannot be read."""
        octets = self._wholes[index].properties
        try:
            return properties.values(octets) if octets else {}
        except WireError:
            return {}

    def _report(self, begin: int, end: int) -> None:
        first, last = self.numbers(begin)
        for whole in self._wholes[begin + 1 : end]:
            if whole.first != last + 1:
                self._owner.consumed(first, last)
                first = whole.first
            last = whole.last
        self._owner.consumed(first, last)
