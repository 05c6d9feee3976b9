"""The stream of a proxy source: who sends on it is the router's machine, and this passes on what its transport asks."""

from collections.abc import Callable

import attrs

from stablecast.client.loop_sender import RESERVED
from stablecast.runtime.driver import report
from stablecast.runtime.reliable_stream import ReliableStream
from stablecast.runtime.stream import StreamServer
from stablecast.transports.reliable.sources import HEADER_BYTES
from stablecast.transports.wire.lbmc import DATA_HEADER


@attrs.define(eq=False, slots=False)
class ProxyStream:
    """One proxy source, as its stream sees it.

    Attributes:
        place: Where it is joined.
        greet: Returns what a joiner gets first.
        stand: Returns what is repeated where nobody is greeted.
        held: Gets whether the transport takes nothing now.
        failed: Gets why it can send no more.
        most_bytes: Bytes of the longest message that fits its transport; 0: any message.
    """

    place: str
    greet: Callable[[], bytes]
    stand: Callable[[], bytes]
    held: Callable[[bool], None]
    failed: Callable[[str], None]
    most_bytes: int = 0
    stream: StreamServer | ReliableStream | None = None

    def greeting(self) -> bytes:
        return self.greet()

    def standing(self) -> bytes:
        """Return what is repeated where nobody is greeted."""
        return self.stand()

    def hold(self, held: bool) -> None:
        """Let messages wait in the portal's queue, or let them go."""
        self.held(held)

    def collect(self, minimum_bytes: int, span_ns: int) -> None:
        """Do nothing: what comes together leaves together."""

    def fit(self, plain: int, largest: int) -> None:
        """Note the room of a datagram. Messages are not cut here, so they may use what a source keeps free."""
        self.most_bytes = plain + RESERVED + DATA_HEADER.size - HEADER_BYTES

    def fail(self, what: object, error: Exception) -> None:
        report(f"a proxy source at {self.place} failed {what}", error)
        self.failed(str(error))
