"""What watches a source or a session of a receiver: metrics, and the judges of simulators.

An observer is asked once for each block or batch, never for a message, and not at all where there is none.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from stablecast.core.protocol.inputs import Lost
from stablecast.core.source.outbox import Block

if TYPE_CHECKING:
    from stablecast.client.batch import Batch


session_watches: Final[list[Callable[[Any], None]]] = []
"""Each is called with every session of a receiver that begins in this process. Only simulated worlds have any."""


class Observer:
    """Watch everything, and do nothing. Numbers are extended; ranges are `first` to `last`."""

    def sent(self, block: Block) -> None:
        """Note that a block of a source leaves now."""

    def stable(self, first: int, last: int) -> None:
        """Note that messages of a source are stable."""

    def reclaimed(self, first: int, last: int, *, forced: bool) -> None:
        """Note that a source reclaimed messages; `forced`: before they were settled."""

    def missing(self, lost: Lost) -> None:
        """Note that a stream lost messages."""

    def delivered(self, batch: "Batch") -> None:
        """Note that a session delivers a batch now."""

    def consumed(self, first: int, last: int) -> None:
        """Note that the application consumed messages, or that they are for other shares."""
