"""Access lists: which sources a portal lets in and out (R-270 to R-274).

The first entry that applies decides. An entry applies if all its conditions hold. A list without such an entry rejects.
Lists decide about proxies, not about single messages.
"""

import operator
import re
from collections.abc import Mapping
from enum import Enum

import attrs

from stablecast.transports.codec import places
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.wire import lbmr
from stablecast.transports.wire.fields import packed


class Subject(Enum):
    """What a condition of an access list looks at; the value is the documented word."""

    TOPIC = "topic"
    PCRE = "pcre-pattern"
    REGEX = "regex-pattern"
    TRANSPORT = "transport"
    SOURCE_ADDRESS = "source-ip"
    GROUP = "multicast-group"
    UDP_DESTINATION = "udp-destination-port"
    UDP_SOURCE = "udp-source-port"
    TCP_SOURCE = "tcp-source-port"

    @property
    def outbound(self) -> bool:
        """Return whether an outbound list may have such a condition."""
        return self in (Subject.TOPIC, Subject.PCRE, Subject.REGEX)


COMPARISONS: Mapping[str, str] = {
    **{word: word for word in ("eq", "ne", "lt", "le", "gt", "ge")},
    "equal": "eq",
    "notequal": "ne",
    "lessthan": "lt",
    "lessthanequal": "le",
    "greaterthan": "gt",
    "greaterthanequal": "ge",
}
"""The documented words of comparisons, each with the function of `operator` that it means."""


@attrs.frozen
class Condition:
    """One condition of an entry.

    Attributes:
        subject: What it looks at.
        value: The topic, the expression (as Python writes it), the transport (`tcp`, `lbt-rm`, `lbt-ru`, `lbt-ipc`),
            the address or group as a number, or the port.
        comparison: The comparison with the value: one of `eq`, `ne`, `lt`, `le`, `gt`, `ge`.
    """

    subject: Subject
    value: str | int
    comparison: str = "eq"

    def holds(self, properties: "Properties") -> bool:
        """Return whether a source has this property. A property that it does not have is unequal to all values."""
        if self.subject in (Subject.PCRE, Subject.REGEX):
            return re.search(str(self.value), str(properties[Subject.TOPIC]), re.ASCII) is not None
        actual = properties.get(self.subject)
        if actual is None:
            return self.comparison == "ne"
        return bool(getattr(operator, self.comparison)(actual, self.value))


@attrs.frozen
class AccessEntry:
    """One entry of an access list: it applies if all its conditions hold (R-271)."""

    accept: bool
    conditions: tuple[Condition, ...] = ()


AccessList = tuple[AccessEntry, ...]
"""The entries in order: the first that applies decides, and nothing else is accepted."""

Properties = Mapping[Subject, str | int]
"""What is known of a source: its topic always, the properties of its transport where it has them."""


def admits(entries: AccessList | None, properties: Properties) -> bool:
    """Return whether a list lets a source pass; None is no list.

    >>> only = (AccessEntry(True, (Condition(Subject.TOPIC, "orders"),)),)
    >>> admits(only, {Subject.TOPIC: "orders"}), admits(only, {Subject.TOPIC: "trades"}), admits(None, {})
    (True, False, True)
    """
    if entries is None:
        return True
    for entry in entries:
        if all(condition.holds(properties) for condition in entry.conditions):
            return entry.accept
    return False


def properties_of(topic: str, record: SourceRecord) -> Properties:
    """Return what access lists see of a source: the topic, and the transport that this router joins (R-274).

    What comes over a link is joined nowhere.
    """
    found: dict[Subject, str | int] = {Subject.TOPIC: topic}
    if not record.address:
        return found
    transport = places.transport_of(record.address, record.session_id)
    match transport:
        case lbmr.LbtrmTransport():
            found |= {
                Subject.TRANSPORT: "lbt-rm",
                Subject.SOURCE_ADDRESS: number_of(transport.source_address),
                Subject.GROUP: number_of(transport.group),
                Subject.UDP_DESTINATION: transport.destination_port,
                Subject.UDP_SOURCE: transport.nak_port,
            }
        case lbmr.LbtruTransport():
            found |= {
                Subject.TRANSPORT: "lbt-ru",
                Subject.SOURCE_ADDRESS: number_of(transport.address),
                Subject.UDP_SOURCE: transport.port,
            }
        case _:
            found |= {
                Subject.TRANSPORT: "tcp",
                Subject.SOURCE_ADDRESS: number_of(transport.address),
                Subject.TCP_SOURCE: transport.port,
            }
    return found


def number_of(address: str) -> int:
    """Return an IPv4 address as a number.

    >>> number_of("10.0.0.1")
    167772161
    """
    return int.from_bytes(packed(address))
