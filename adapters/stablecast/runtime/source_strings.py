"""Source strings: how a session of LBT-RM or LBT-RU is named.

`LBTRM:host:nak-port:session:group:port` or `LBT-RU:host:port:session`, as documented; the session in hexadecimal.
"""

from collections.abc import Iterable

import attrs

from stablecast.runtime.address import AddressError, join
from stablecast.transports.codec import places
from stablecast.transports.wire.lbmr import LbtrmTransport, LbtruTransport


@attrs.frozen
class Where:
    """A session as its source string names it; LBT-RU has no group."""

    host: str
    port: int
    session_id: int
    group: str = ""

    def __str__(self) -> str:
        """The source string."""
        kind = "LBTRM" if self.group else "LBT-RU"
        group = f":{self.group}" if self.group else ""
        return f"{kind}:{self.host}:{self.port}:{self.session_id:08x}{group}"

    @property
    def address(self) -> str:
        """Where NAKs go, and with LBT-RU all else that a receiver says."""
        return join(self.host, self.port)

    @classmethod
    def parse(cls, text: str) -> "Where":
        """The session of a source string; a topic index behind it is passed over. Raises AddressError."""
        match places.from_source_string(text):
            case LbtrmTransport(host, group, session_id, port, nak_port):
                return cls(host, nak_port, session_id, join(group, port))
            case LbtruTransport(host, int(session_id), port):
                return cls(host, port, session_id)
            case _:
                form = "LBTRM:host:nak-port:session:group:port or LBT-RU:host:port:session"
                raise AddressError(f"'{text}' is not a source string: write {form}")


def is_source_string(place: str) -> bool:
    """Whether a place is of LBT-RM or LBT-RU, not `ip:port`."""
    return place.startswith(places.SOURCE_STRINGS)


def source_string(place: str) -> str:
    """The source string of a place: one of LBT-TCP is known by `ip:port`."""
    return place if is_source_string(place) else f"TCP:{place}"


def ports_of(places: Iterable[str]) -> dict[str, list[int]]:
    """The ports of places by protocol, each once, in their order: for captures."""
    found: dict[str, dict[int, None]] = {"lbttcp": {}}
    for place in places:
        if is_source_string(place):
            where = Where.parse(place)
            group = (int(where.group.rpartition(":")[2]),) if where.group else ()
            found.setdefault("lbtrm" if where.group else "lbtru", {}).update(dict.fromkeys((where.port, *group)))
        else:
            found["lbttcp"][int(place.rpartition(":")[2])] = None
    return {kind: list(numbers) for kind, numbers in found.items()}
