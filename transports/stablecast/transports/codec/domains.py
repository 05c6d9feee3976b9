"""Addresses across resolution domains: `domain:ip:port`, or `ip:port` within a domain and where there are no domains.

The core compares addresses and sends to them, but never splits them. A message names addresses as its sender knows
them: one without a number lies in the sender's own domain.
"""

from collections.abc import Callable
from typing import TypeVar

import attrs

from stablecast.core.protocol import messages as core
from stablecast.core.protocol.stored_contents import StoredQuestion

MessageT = TypeVar("MessageT", bound=core.Message)

MAX_DOMAIN = 0xFFFF_FFFF
"""The largest number of a domain: it has 32 bits on the wire."""

NO_DOMAIN = 0
"""The number of a domain that nobody has named: there are no routers, or none was heard yet."""


def split_domain(text: str) -> tuple[int, str]:
    """Return the domain of an address, 0 without one, and the address without it.

    >>> split_domain("7:10.0.0.1:14567"), split_domain("10.0.0.1:14567")
    ((7, '10.0.0.1:14567'), (0, '10.0.0.1:14567'))
    """
    domain, colon, address = text.partition(":")
    if not colon or ":" not in address or not domain.isdecimal():
        return NO_DOMAIN, text
    return int(domain), address


def join_domain(domain: int, address: str) -> str:
    """Return an address in a domain; in domain 0 it stays as it is.

    >>> join_domain(7, "10.0.0.1:14567"), join_domain(0, "10.0.0.1:14567")
    ('7:10.0.0.1:14567', '10.0.0.1:14567')
    """
    return f"{domain}:{address}" if domain else address


def local(address: str, own: int) -> str:
    """Return an address as a context in the domain `own` knows it: without its number there."""
    domain, plain = split_domain(address)
    return plain if domain in (own, NO_DOMAIN) else address


def absolute(address: str, domain: int) -> str:
    """Return an address with its number, which is `domain` if it has none; an empty one stays empty."""
    return address if not address or split_domain(address)[0] else join_domain(domain, address)


def from_domain(message: core.Message, origin: int, own: int) -> core.Message:
    """Return a message of a sender in the domain `origin` with the addresses that a context in the domain `own` knows.

    An announcement that names its domain may come from another sender, and its stores without a number lie there.
    """
    if isinstance(message, core.SourceInfo):
        origin = split_domain(message.request)[0] or origin
    if not origin and not own:
        return message
    return _renamed(message, lambda address: local(absolute(address, origin), own))


def outbound(message: core.SourceInfo, own: int) -> core.SourceInfo:
    """Return an announcement with the numbers of all its addresses, for receivers in any domain.

    Announcements travel through the sources of routers, which leave their contents as they are.
    """
    return _renamed(message, lambda address: absolute(address, own)) if own else message


def without_domains(message: MessageT) -> MessageT:
    """Return a message with its addresses as contexts in their own domains know them, for readers of captures."""
    return _renamed(message, lambda address: split_domain(address)[1])


def _renamed(message: MessageT, name: Callable[[str], str]) -> MessageT:
    match message:
        case core.SourceInfo():  # Also a `StoredAnswer`.
            stores = tuple(attrs.evolve(one, address=name(one.address)) for one in message.stores)
            return attrs.evolve(message, request=name(message.request), stores=stores)
        case core.Registered():
            return attrs.evolve(message, peers=tuple((index, name(at), known) for index, at, known in message.peers))
        case core.Register():
            return attrs.evolve(message, reply_to=name(message.reply_to), transport=name(message.transport))
        case core.Deregister() | core.RetransmitRequest() | core.LateJoinRequest() | StoredQuestion():
            return attrs.evolve(message, reply_to=name(message.reply_to))
        case _:
            return message
