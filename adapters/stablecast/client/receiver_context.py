"""The services of a context that its receivers use."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stablecast.client.transport_sessions import Transports
from stablecast.runtime.connection_pool import ConnectionPool

if TYPE_CHECKING:
    from stablecast.client.receiver import Receiver


class ReceiverContext(Protocol):
    """The services of a context that a receiver uses.

    Attributes:
        request_address: `ip:port` of the request port.
        pool: The connections to stores and sources.
        trace: The directory for traces, or None.
        oddities: How often each kind of malformed or unexpected input came.
        transports: The transports that receivers join.
        lives: The receiver that has a session with each life of a source.
    """

    request_address: str
    pool: ConnectionPool
    trace: Path | None
    oddities: Counter[str]
    transports: Transports
    lives: "dict[int, Receiver]"

    def forget_receiver(self, receiver: "Receiver") -> None:
        """Stop finding sources for a receiver that was closed."""

    def store_name(self, store: str) -> str:
        """Return the name of the store at an address, empty if it has none here."""

    def lost_source(self, topic: str, place: str, *, others: bool) -> None:
        """Look for the next life of the source that was joined at `place`; `others` of the topic are still joined."""

    def met_source(self, topic: str) -> None:
        """Stop looking for a source of the topic, because one announced itself."""
