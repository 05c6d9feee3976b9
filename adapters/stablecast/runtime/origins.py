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
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TypeVar

import attrs

from stablecast.runtime import machine, tls
from stablecast.runtime.interfaces import interfaces
from stablecast.runtime.policy import Names, Policy, Right, Rights, rights_to_say
from stablecast.transports.codec.domains import local

VARIABLE, TRANSLATED = "STABLECAST_PEER_ADDRESSES", "translated"
"""The environment variable that lets hosts differ where a network translates addresses, and its value."""

MAX_KNOWN = 65_536
"""Addresses of which the origin is remembered; the oldest is forgotten first."""

MAX_REPORTS = 64
"""Refused origins that are logged; all are counted."""

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

logger = logging.getLogger("stablecast")


@attrs.frozen
class Origin:
    """Who made a connection: its host, and with TLS the names of its certificate; or who sent a routed message.

    `router` has the names of the router that passed the message on.
    """

    host: str = ""
    names: Names = ()
    router: Names = ()

    @property
    def far(self) -> bool:
        """Return whether the process is in another domain."""
        return ":" in self.host

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> "Origin":
        peer = transport.get_extra_info("peername") or ("",)
        return cls(peer[0], _names(transport))


def _names(transport: asyncio.BaseTransport) -> Names:
    return tls.names_of(transport.get_extra_info("peercert") or {})


class Origins:
    """The processes that this one connected to, by address; `oddities` counts messages that were not theirs.

    `domain` is the number of the own domain; an address with it is one within the domain.
    """

    def __init__(self) -> None:
        self.oddities: Counter[str] = Counter()
        self._names: dict[str, Names] = {}
        self._met: dict[str | Names, None] = {}
        self._reported: set[tuple[str, Hashable]] = set()
        self.domain = 0

    @cached_property
    def _certificates(self) -> tls.Certificates | None:
        return tls.server()

    @property
    def policy(self) -> Policy | None:
        """Return the newest policy of this process; None: everybody may do everything."""
        known = self._certificates  # To look the directory up for each message would cost more than all else.
        return None if known is None else known.current().policy

    def dial(self, address: str) -> None:
        _keep(self._met, _host(address), None)

    def connect(self, address: str, transport: asyncio.BaseTransport) -> None:
        """Note who listens at an address."""
        names = _names(transport)
        if names:
            _keep(self._names, address, names)
            _keep(self._met, names, None)

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
            known = origin.host in self._met or any(
                _same(origin.host, host) for host in self._met if isinstance(host, str)
            )
        if known:
            return True
        return self._refuse(origin, what, "a process that this one asked")

    def may_say(self, origin: Origin, message: object, topic: str | None) -> bool:
        """Return whether the policy lets a process send a message about a topic; else count and log it.

        Without a `topic` it is not known, so a role for any topic will do.
        """
        if self.policy is None:
            return True
        rights = rights_to_say(message)
        return not rights or self.has_right(origin, rights, topic, f"a {type(message).__name__}")

    def has_right(self, origin: Origin, rights: Rights, topic: str | None, what: str) -> bool:
        """Return whether the policy gives a process one of these roles for a topic; else count and log `what` it did.

        A message from another domain is judged where it enters its router, and counts here because of that.
        """
        policy = self.policy
        if policy is None:
            return True
        names, wanted = (origin.router, (Right.ROUTER,)) if origin.far else (origin.names, rights)
        if policy.allows(names, wanted, topic):
            return True
        self.oddities[f"barred-{wanted[0]}"] += 1
        if self._is_new((what, names)):
            place = "" if topic is None else f" of topic {topic!r}"
            roles = " or ".join(wanted)
            logger.warning(
                "[policy] %s from %s (%s)%s is refused: the policy does not give it the role %s",
                what,
                origin.host,
                ", ".join(names),
                place,
                roles,
            )
        return False

    def _is_new(self, report: tuple[str, Hashable]) -> bool:
        """Return whether to log something, once."""
        if report in self._reported or len(self._reported) >= MAX_REPORTS:
            return False
        self._reported.add(report)
        return True

    def _refuse(self, origin: Origin, what: object, whom: str) -> bool:
        kind = type(what).__name__
        self.oddities[f"foreign-{kind}"] += 1
        if self._is_new((kind, origin.host)):
            advice = "" if origin.names else f". If the network translates addresses, set {VARIABLE}={TRANSLATED}"
            logger.warning("a %s from %s is ignored: it is not from %s%s", kind, origin.host, whom, advice)
        return False


def _keep(kept: dict[KeyT, ValueT], key: KeyT, value: ValueT) -> None:
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
