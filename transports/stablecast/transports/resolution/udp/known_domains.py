"""What a context knows of domains: the number of its own, and the routers that reach others.

Routers put the number into what they send, and a context hands it on. The first number stays: a second one is an error
of the configuration of routers. A number that the context was given counts before all others.

A route is the request port of a router. Routers repeat their routes; one that is not repeated is lost.
"""

from collections.abc import Iterable

import attrs

from stablecast.core.machine.timers import soonest
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.udp.effects import DomainEffect, DomainLearnt, Remark, RouteLearnt, RouteLost
from stablecast.transports.resolution.udp.inputs import AddSource
from stablecast.transports.resolution.udp.settings import DomainOptions

MAX_ROUTES = 4_096
"""Domains of which a context knows a router; further ones are dropped."""

ROUTE_LIFETIME = 10 * SECOND
"""Silence after which a route is lost: ten times the longest interval at which routers repeat it."""

MAX_REMARKS = 16
"""Lines about numbers that differ, and about routes that change."""


@attrs.define
class KnownDomains:
    """The domain of one context and its routes.

    Attributes:
        number: Its domain; 0: not known.
        router_at: When a router was last heard.
        followed: Whether the context takes part for its routes alone.
    """

    options: DomainOptions = DomainOptions()
    number: int = attrs.field(init=False)
    followed: bool = attrs.field(default=False, init=False)
    router_at: int | None = attrs.field(default=None, init=False)
    routes: dict[int, str] = attrs.field(factory=dict, init=False)
    outbox: list[DomainEffect] = attrs.field(factory=list, init=False)
    _repeated: dict[int, int] = attrs.field(factory=dict, init=False)
    _expiry: KeyedDeadlines[int] = attrs.field(factory=KeyedDeadlines, init=False)
    _remarks: int = attrs.field(default=0, init=False)
    _others: set[int] = attrs.field(factory=set, init=False)
    _handing: bool = attrs.field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        self.number = self.options.number
        if self.number:
            self.outbox.append(DomainLearnt(self.number))

    @property
    def told(self) -> int:
        """Return the number that the context hands on; 0 if it must not, or knows none."""
        unconfirmed = self.router_at is None and self.options.handed_on > 0 and not self.options.number
        return 0 if unconfirmed or not self._handing else self.number

    def of_source(self, source: AddSource) -> AddSource:
        """Return a source of this context with the domain that is known when it is made."""
        return source if source.domain or source.origin else attrs.evolve(source, domain=self.told)

    def heard(self, number: int, router: bool, now: int) -> None:
        """Note the domain that a sender names."""
        if router:
            self.router_at = now
            if not self._handing:
                self._handing = True
                self._remark("a router is heard again: the number of the domain is handed on", warning=False)
        if not number or not (router or self.options.handed_on):
            return
        if not self.number:
            self.number = number
            self.outbox.append(DomainLearnt(number))
            by = "a router" if router else "another context"
            self._remark(f"this domain has the number {number}, by {by}", warning=False)
        elif number != self.number and number not in self._others and len(self._others) < MAX_REMARKS:
            self._others.add(number)
            kept = "this context was given" if self.options.number else "was heard first"
            remedy = "give all routers of this domain one number"
            self._remark(f"domain {number} is announced, and {self.number} {kept} and stays: {remedy}", warning=True)

    def route(self, domains: Iterable[int], address: str, now: int | None) -> None:
        """Note that the router at `address` reaches these domains; without a time, until `lose`."""
        for domain in domains:
            if domain in (0, self.number):
                continue
            before = self.routes.get(domain)
            if before is None and len(self.routes) == MAX_ROUTES:
                continue
            self.routes[domain] = address
            if now is None:
                self._repeated.pop(domain, None)
                self._expiry.stop(domain)
            else:
                self._repeated[domain] = now
                self._expiry.arm(domain, now + ROUTE_LIFETIME)
            if address != before:
                was = f", no longer {before}" if before else ""
                self._remark(f"the router at {address} reaches domain {domain}{was}", warning=False)
                self.outbox.append(RouteLearnt(domain, address))

    def lose(self, domains: Iterable[int], address: str) -> None:
        """Note that the router at `address` no longer reaches these domains."""
        for domain in domains:
            if self.routes.get(domain) == address:
                self._forget(domain)

    def handle_timeout(self, now: int) -> None:
        """Forget routes that were not repeated, and stop handing on a number that no router confirms."""
        while (domain := self._expiry.pop(now)) is not None:
            due = self._repeated[domain] + ROUTE_LIFETIME
            if now < due:
                self._expiry.arm(domain, due)
            else:
                self._forget(domain)
        if (stop := self._stops()) is not None and now >= stop:
            self._handing = False
            self._remark("no router is heard: the number of the domain is no longer handed on", warning=False)

    def next_timeout(self) -> int | None:
        return soonest(self._expiry.next(), self._stops())

    def take_effects(self) -> list[DomainEffect]:
        effects, self.outbox = self.outbox, []
        return effects

    def _stops(self) -> int | None:
        """Return when the number stops being handed on."""
        if self.router_at is None or self.options.number or self.options.handed_on <= 0 or not self._handing:
            return None
        return self.router_at + self.options.handed_on

    def _forget(self, domain: int) -> None:
        del self.routes[domain]
        self._repeated.pop(domain, None)
        self._expiry.stop(domain)
        self.outbox.append(RouteLost(domain))

    def _remark(self, text: str, *, warning: bool) -> None:
        if warning or self._remarks < MAX_REMARKS:
            self._remarks += not warning
            self.outbox.append(Remark(text, warning))
