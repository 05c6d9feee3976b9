"""Source strings, the names of LBT-RM and LBT-RU sessions.

The documented forms are `LBTRM:host:nak-port:session:group:port` and `LBT-RU:host:port:session`; the session is
hexadecimal.
"""

from collections.abc import Iterable

import attrs

from stablecast.runtime.address import AddressError, join
from stablecast.transports.codec import places
from stablecast.transports.wire.lbmr import LbtrmTransport, LbtruTransport


@attrs.frozen
class Where:
    """The address of a session, as its source string has it; LBT-RU has no group."""

    host: str
    port: int
    session_id: int
    group: str = ""

    def __str__(self) -> str:
        kind = "LBTRM" if self.group else "LBT-RU"
        group = f":{self.group}" if self.group else ""
        return f"{kind}:{self.host}:{self.port}:{self.session_id:08x}{group}"

    @property
    def address(self) -> str:
        """Return the address for NAKs, and with LBT-RU for all messages of a receiver."""
        return join(self.host, self.port)

    @classmethod
    def parse(cls, text: str) -> "Where":
        """Parse a source string and ignore a topic index at its end. Raises AddressError."""
        match places.from_source_string(text):
            case LbtrmTransport(host, group, session_id, port, nak_port):
                return cls(host, nak_port, session_id, join(group, port))
            case LbtruTransport(host, int(session_id), port):
                return cls(host, port, session_id)
            case _:
                form = "LBTRM:host:nak-port:session:group:port or LBT-RU:host:port:session"
                raise AddressError(f"'{text}' is not a source string: write {form}")


def is_source_string(place: str) -> bool:
    """Return whether a place is a source string of LBT-RM or LBT-RU, not `ip:port`."""
    return place.startswith(places.SOURCE_STRINGS)


def source_string(place: str) -> str:
    """Return the source string of a place; a place of LBT-TCP is `ip:port`."""
    return place if is_source_string(place) else f"TCP:{place}"


def ports_of(places: Iterable[str]) -> dict[str, list[int]]:
    """Return the ports of places by protocol, each once and in order; captures need them."""
    found: dict[str, dict[int, None]] = {"lbttcp": {}}
    for place in places:
        if is_source_string(place):
            where = Where.parse(place)
            group = (int(where.group.rpartition(":")[2]),) if where.group else ()
            found.setdefault("lbtrm" if where.group else "lbtru", {}).update(dict.fromkeys((where.port, *group)))
        else:
            found["lbttcp"][int(place.rpartition(":")[2])] = None
    return {kind: list(numbers) for kind, numbers in found.items()}
