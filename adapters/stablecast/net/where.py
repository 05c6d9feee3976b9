"""Source strings: how a session of LBT-RM or LBT-RU is named.

`LBTRM:host:nak-port:session:group:port` or `LBT-RU:host:port:session`, as documented; the session in hexadecimal.
"""

import re

import attrs

from stablecast.net.address import AddressError, join, parse

_FORM = re.compile(r"(?:LBTRM|(LBT-RU)):([\d.]+:\d+):([0-9a-fA-F]{1,8})(?(1)|:([\d.]+:\d+))(?:\[\d+\])?")


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
        found = _FORM.fullmatch(text)
        if found is None:
            form = "LBTRM:host:nak-port:session:group:port or LBT-RU:host:port:session"
            raise AddressError(f"'{text}' is not a source string: write {form}")
        _, address, session_id, group = found.groups()
        return cls(*parse(address), int(session_id, 16), join(*parse(group)) if group else "")


def is_source_string(place: str) -> bool:
    """Whether a place is of LBT-RM or LBT-RU, not `ip:port`."""
    return place.startswith(("LBTRM:", "LBT-RU:"))


def source_string(place: str) -> str:
    """The source string of a place: one of LBT-TCP is known by `ip:port`."""
    return place if is_source_string(place) else f"TCP:{place}"
