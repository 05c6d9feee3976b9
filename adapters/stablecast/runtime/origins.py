"""The origin of a connection to a port, and the processes that it may speak for.

A port answers on connections of its own: the process that listens at one address writes to the request port of another.
So a message that decides something counts only if its connection comes from the process at the address it speaks for.
With TLS that is the process whose certificate was seen when this one connected to that address, by its subject and
alternative names, which a renewed certificate repeats. Without TLS it is any process of the same host: addresses tell
no more.

A message from another domain comes through a router, so its origin is what it says itself, if the router is the one
that reaches that domain (`runtime.routing`). The host of such an origin has the number of its domain: `2:10.0.0.1`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from stablecast.runtime import machine
from stablecast.runtime.interfaces import interfaces
from stablecast.transports.codec.domains import local

VARIABLE, TRANSLATED = "STABLECAST_PEER_ADDRESSES", "translated"
"""The environment variable that lets hosts differ where a network translates addresses, and its value."""

MAX_KNOWN = 65_536
"""Addresses of which the origin is remembered; the oldest is forgotten first."""

MAX_REPORTS = 64
"""Refused origins that are logged; all are counted."""

logger = logging.getLogger("stablecast")


@attrs.frozen
class Origin:
    """Who made a connection: its host, and with TLS the names of its certificate; or who sent a routed message."""

    host: str = ""
    names: str = ""

    @property
    def far(self) -> bool:
        """Return whether the process is in another domain."""
        return ":" in self.host

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> "Origin":
        """Return the origin of a connection."""
        peer = transport.get_extra_info("peername") or ("",)
        return cls(peer[0], _names(transport))


def _names(transport: asyncio.BaseTransport) -> str:
    shown: dict[str, Any] = transport.get_extra_info("peercert") or {}
    return repr((shown.get("subject"), shown.get("subjectAltName"))) if shown else ""


class Origins:
    """The processes that this one connected to, by address; `oddities` counts messages that were not theirs.

    `domain` is the number of the own domain; an address with it is one within the domain.
    """

    def __init__(self) -> None:
        self.oddities: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._met: dict[str, str] = {}
        self._reported: set[tuple[str, str]] = set()
        self.domain = 0

    def dial(self, address: str) -> None:
        """Note that this process connects to an address."""
        _keep(self._met, _host(address), "")

    def connect(self, address: str, transport: asyncio.BaseTransport) -> None:
        """Note who listens at an address."""
        names = _names(transport)
        if names:
            _keep(self._names, address, names)
            _keep(self._met, names, "")

    def speaks_for(self, origin: Origin, addresses: Sequence[str], what: object) -> bool:
        """Return whether a connection comes from the process at one of these addresses; else count and log `what`.

        Without an address nobody has been asked, and the machines refuse what they did not ask for.
        """
        if not addresses or any(self._is_at(origin, address) for address in addresses):
            return True
        return self._refuse(origin, what, f"the process at {addresses[0]}")

    def _is_at(self, origin: Origin, address: str) -> bool:
        if self.domain:
            address = local(address, self.domain)
        names = self._names.get(address)
        return (origin.names == names) if names else _same(origin.host, _host(address))

    def agree(self, origin: Origin, first: Origin, what: object) -> bool:
        """Return whether two connections come from one process, as far as can be known; else count and log `what`."""
        if (origin.names == first.names) if first.names else _same(origin.host, first.host):
            return True
        return self._refuse(origin, what, "the process that it speaks for")

    def answers(self, origin: Origin, what: object) -> bool:
        """Return whether a connection comes from a process that this one connected to; count and log it otherwise."""
        if (self._names or origin.names) and not origin.far:
            known = origin.names in self._met
        else:
            known = origin.host in self._met or any(_same(origin.host, host) for host in self._met)
        if known:
            return True
        return self._refuse(origin, what, "a process that this one asked")

    def _refuse(self, origin: Origin, what: object, whom: str) -> bool:
        kind = type(what).__name__
        self.oddities[f"foreign-{kind}"] += 1
        if (kind, origin.host) not in self._reported and len(self._reported) < MAX_REPORTS:
            self._reported.add((kind, origin.host))
            advice = "" if origin.names else f". If the network translates addresses, set {VARIABLE}={TRANSLATED}"
            logger.warning("a %s from %s is ignored: it is not from %s%s", kind, origin.host, whom, advice)
        return False


def _keep(kept: dict[str, str], key: str, value: str) -> None:
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > MAX_KNOWN:
        del kept[next(iter(kept))]


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _same(one: str, other: str) -> bool:
    """Return whether two addresses are of one host, as far as this one can know; hosts of two domains never are."""
    if one.rpartition(":")[0] != other.rpartition(":")[0]:
        return False
    if one == other or machine.process.environment.get(VARIABLE) == TRANSLATED:
        return True
    here = {device.address for device in interfaces()}
    return all(host in here or host.startswith("127.") for host in (one, other))
