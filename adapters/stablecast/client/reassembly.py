"""Messages that did not come plain: pieces put together, properties taken off."""

from bisect import bisect_left
from operator import attrgetter

from stablecast.client.message import Batch, Owner
from stablecast.core.protocol.effects import Deliver
from stablecast.transports.codec.fragments import WholeMessage
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire import properties
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.properties import Value


class Assembled(Batch):
    """Messages of one source, each with its own numbers, and properties if it has some."""

    __slots__ = ("_wholes",)

    def __init__(
        self, wholes: list[WholeMessage], run: Run, delivered: Deliver, incarnation: int, owner: Owner
    ) -> None:
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

    def spans(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the numbers of messages [begin, end) as ranges [first, stop), ascending."""
        spans: list[tuple[int, int]] = []
        for whole in self._wholes[begin:end]:
            first = spans.pop()[0] if spans and spans[-1][1] == whole.first else whole.first
            spans.append((first, whole.last + 1))
        return spans

    def within(self, first: int, stop: int) -> tuple[int, int]:
        """Return [begin, end), the messages that have a number in [first, stop); empty if there is none."""
        begin = bisect_left(self._wholes, first, key=attrgetter("last"))
        return begin, max(begin, bisect_left(self._wholes, stop, key=attrgetter("first")))

    def keep(self, begin: int, end: int) -> None:
        """Keep messages [begin, end) only."""
        super().keep(begin, end)
        self._wholes = self._wholes[begin:end]

    def _report(self, begin: int, end: int) -> None:
        for first, stop in self.spans(begin, end):
            self.owner.consumed(first, stop - 1)
