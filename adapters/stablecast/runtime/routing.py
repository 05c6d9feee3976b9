"""Unicast to and from other domains: through the router that reaches them, in one layer beside the connections.

What is sent to an address in another domain goes to the router of that domain, with its destination. Without a route it
waits for one, because a program usually starts before it hears of the routers; then it counts as lost, like what a
broken connection lost. What comes from another domain counts only from its router, once, and for an address there;
until routers were heard it waits as well, because the router of the sender may know this address before.

The core and the endpoints know only addresses: `domain:ip:port`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from stablecast.core.machine.serial import wire
from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.runtime import machine
from stablecast.runtime.origins import Origin, Origins
from stablecast.transports.codec.domains import from_domain, join_domain, split_domain
from stablecast.transports.codec.routed import (
    Endpoint,
    Routed,
    StreamWindow,
    destination_of,
    routed,
    single_messages,
)
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Stream

WAIT_SECONDS = 10.0
"""Time for which a message waits for a route: contexts hear of the routes of a new router after up to 7 s."""

MAX_WAITING_BYTES = 4 * 1024 * 1024
"""Bytes that wait for routes; beyond that a message is dropped, and counts as lost."""

MAX_EARLY = 1_024
"""Messages without payload from other domains that wait for routes; one more is dropped. Payload is asked for again."""

MAX_STREAMS = 4_096
"""Peers in other domains to which one endpoint numbers its messages, and streams from there; the oldest ends first."""

MAX_REPORTS = 64
"""Domains without a route that are logged, each once until it has one: a peer may name any number of them."""

logger = logging.getLogger("stablecast")


@attrs.define
class _Outgoing:
    """The stream of messages to one address, and where they went last."""

    number: int
    hop: str
    sent: int = 0


@attrs.frozen
class _Waiting:
    until: float
    address: str
    data: bytes


@attrs.frozen
class _Early:
    until: float
    domain: int
    why: str
    again: Callable[[], None]


@attrs.frozen
class Far:
    """The way of a message that came from another domain.

    Attributes:
        domain: The domain in which it originates.
        origin: The process there; its host has the number of the domain.
    """

    domain: int
    origin: Origin


@attrs.define(eq=False)
class Routing:
    """The routes of one endpoint; `domain` is its own one, 0 while it is not known, and `here` its request address.

    `send` sends within the domain. `on_lost` gets each address, also of other domains, to which something was lost.
    `on_far` is called at the first message to another domain, when routers must be heard.
    """

    _send: Callable[[str, bytes], None]
    _on_lost: Callable[[str], None]
    origins: Origins
    domain: int = 0
    here: str = ""
    on_far: Callable[[], None] = lambda: None
    routes: dict[int, str] = attrs.field(factory=dict, init=False)
    _told: dict[int, dict[str, str]] = attrs.field(factory=dict, init=False)
    _instance: bytes = attrs.field(default=b"", init=False)
    _streams: int = attrs.field(default=0, init=False)
    _outgoing: dict[str, _Outgoing] = attrs.field(factory=dict, init=False)
    _incoming: dict[tuple[bytes, int], StreamWindow] = attrs.field(factory=dict, init=False)
    _waiting: deque[_Waiting] = attrs.field(factory=deque, init=False)
    _waiting_bytes: int = attrs.field(default=0, init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)
    _early: deque[_Early] = attrs.field(factory=deque, init=False)
    _early_timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)
    _missed: set[int] = attrs.field(factory=set, init=False)
    _followers: "list[Routing]" = attrs.field(factory=list, init=False)
    _followed: bool = attrs.field(default=False, init=False)

    # What resolution learns.

    @contextmanager
    def leading(self, other: "Routing") -> Iterator[None]:
        """Tell another endpoint of this process all that this one knows and learns, inside the block."""
        self._followers.append(other)
        if self.domain:
            other.learn(self.domain)
        for domain, told in self._told.items():
            for by, router in told.items():
                other.route(domain, router, by)
        try:
            yield
        finally:
            self._followers.remove(other)

    def learn(self, domain: int) -> None:
        """Note the number of the own domain, and send what waited for it; the first number stays."""
        for other in self._followers:
            other.learn(domain)
        if self.domain not in (0, domain):
            logger.warning(
                "this context is in domain %d, and is told of %d: it stays in the first", self.domain, domain
            )
            return
        self.domain = self.origins.domain = domain
        self._send_waiting()
        self._pass_early()

    def route(self, domain: int, router: str, by: str = "") -> None:
        """Note the request port of the router that reaches a domain; empty if no router does any more.

        `by` names the kind of resolution that says so: what one kind loses, another may still know.
        """
        for other in self._followers:
            other.route(domain, router, by)
        told = self._told.setdefault(domain, {})
        told.pop(by, None)
        if router:
            told[by] = router
        if not told:
            del self._told[domain]
            self.routes.pop(domain, None)
            return
        self.routes[domain] = [*told.values()][-1]
        self._missed.discard(domain)
        self._send_waiting()
        self._pass_early()

    # Output.

    def takes(self, address: str, data: bytes) -> bool:
        """Send to an address with a domain, or keep the message until there is a way; False if it has no domain."""
        domain, _ = split_domain(address)
        if not domain:
            return False
        if domain != self.domain:
            self._hear_routers()
        self.origins.dial(address)
        hop = self.hop(address)
        if hop:
            self._forward(address, hop, data)
        elif self._waiting_bytes + len(data) > MAX_WAITING_BYTES:
            self.origins.oddities["routed-waiting-full"] += 1
            self._on_lost(address)
        else:
            self._wait(domain, address, data)
        return True

    def hop(self, address: str) -> str:
        """Return the address to connect to for this one; empty if no way is known."""
        domain, plain = split_domain(address)
        if domain in (0, self.domain):
            return plain
        return self.routes.get(domain, "") if self.domain else ""

    def why(self, address: str) -> str:
        if not self.domain:
            return "the number of the own domain is not known: no router was heard"
        return f"no router is known that reaches domain {split_domain(address)[0]}"

    def behind(self, hop: str) -> list[str]:
        """Return the addresses with domains to which messages went over the connection to `hop`."""
        return [address for address, known in self._outgoing.items() if known.hop == hop] if self._outgoing else []

    def close(self) -> None:
        """Drop what waits for a route."""
        self._waiting.clear()
        self._early.clear()
        for timer in (self._timer, self._early_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._early_timer = None

    def _hear_routers(self) -> None:
        if not self._followed:
            self._followed = True
            self.on_far()

    def _forward(self, address: str, hop: str, data: bytes) -> None:
        known = self._outgoing.get(address)
        if known is None:
            self._streams += 1
            known = self._outgoing[address] = _Outgoing(self._streams, hop)
            if len(self._outgoing) > MAX_STREAMS:
                del self._outgoing[next(iter(self._outgoing))]
        known.hop = hop
        if split_domain(address)[0] != self.domain:
            data = self._wrapped(address, known, data)
        if data:
            self._send(hop, data)

    def _wrapped(self, address: str, known: _Outgoing, data: bytes) -> bytes:
        """Return messages with their destination; one that becomes too large is left out, and its loss counted."""
        self._instance = self._instance or machine.entropy.bits(64).to_bytes(8)
        wrapped = []
        for one in single_messages(data):
            position = Stream(stream_id=known.number, sqn=wire(known.sent), ctxinst=self._instance)
            try:
                ends = Endpoint.of(address), Endpoint.of(join_domain(self.domain, self.here))
                wrapped.append(routed(one, *ends, position))
            except WireError:
                self.origins.oddities["not-routed"] += 1
            else:
                known.sent += 1
        return b"".join(wrapped)

    def _wait(self, domain: int, address: str, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._waiting.append(_Waiting(loop.time() + WAIT_SECONDS, address, data))
        self._waiting_bytes += len(data)
        if self._timer is None:
            self._timer = loop.call_later(WAIT_SECONDS, self._give_up)
        if domain not in self._missed and len(self._missed) < MAX_REPORTS:
            self._missed.add(domain)
            logger.warning("messages to %s wait up to %g s for a route: %s", address, WAIT_SECONDS, self.why(address))

    def _send_waiting(self) -> None:
        """Send in order what has a way now."""
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            hop = self.hop(one.address)
            if hop:
                self._waiting_bytes -= len(one.data)
                self._forward(one.address, hop, one.data)
            else:
                self._waiting.append(one)

    def _give_up(self) -> None:
        """Drop what waited for too long, and report each of its addresses."""
        loop, lost = asyncio.get_running_loop(), dict[str, None]()
        while self._waiting and self._waiting[0].until <= loop.time():
            one = self._waiting.popleft()
            self._waiting_bytes -= len(one.data)
            self.origins.oddities["without-route"] += 1
            lost[one.address] = None
        self._timer = loop.call_at(self._waiting[0].until, self._give_up) if self._waiting else None
        for address in lost:
            self._on_lost(address)

    # Input.

    def way_of(self, message: lbmc.Message, origin: Origin, again: Callable[[], None]) -> Far | None:
        """Return the way of a message that `origin` passed on; None if it does not count, which is counted.

        None as well if that cannot be known before routers were heard: then `again` is called when they were, to pass
        the message on once more.
        """
        way = destination_of(message)
        why = "malformed" if way is None else self._objection(way)
        if way is None or (why and (message.payload or not self._may_change(way, why))):
            self.origins.oddities[f"routed-{why}"] += 1
            return None
        if why:
            self._keep_early(way.origin.domain, why, again)
            return None
        if not self.origins.speaks_for(origin, [self.routes[way.origin.domain]], way):
            return None
        if not self._is_new(way):
            self.origins.oddities["routed-twice"] += 1
            return None
        host = join_domain(way.origin.domain, f"{way.origin.ip}:").removesuffix(":")
        return Far(way.origin.domain, Origin(host, router=origin.names))

    def _objection(self, way: Routed) -> str:
        """Return why a message cannot come from where it says, or is not for this endpoint; empty if it may."""
        if way.stream is None:
            return "without-stream"
        if not self.domain or way.destination.domain != self.domain or way.origin.domain in (0, self.domain):
            return "elsewhere"
        return "" if way.origin.domain in self.routes else "unknown-route"

    def _may_change(self, way: Routed, why: str) -> bool:
        """Return whether an objection may be gone when routers were heard."""
        return way.origin.domain != 0 and (why == "unknown-route" or (why == "elsewhere" and not self.domain))

    def _keep_early(self, domain: int, why: str, again: Callable[[], None]) -> None:
        self._hear_routers()
        if len(self._early) == MAX_EARLY:
            self.origins.oddities["routed-waiting-full"] += 1
            return
        loop = asyncio.get_running_loop()
        self._early.append(_Early(loop.time() + WAIT_SECONDS, domain, why, again))
        if self._early_timer is None:
            self._early_timer = loop.call_later(WAIT_SECONDS, self._drop_early)

    def _pass_early(self) -> None:
        """Pass on in order what came too early, and keep what still has no route."""
        early, self._early = self._early, deque()
        for one in early:
            if self.domain and one.domain in self.routes:
                one.again()
            else:
                self._early.append(one)

    def _drop_early(self) -> None:
        loop = asyncio.get_running_loop()
        while self._early and self._early[0].until <= loop.time():
            self.origins.oddities[f"routed-{self._early.popleft().why}"] += 1
        self._early_timer = loop.call_at(self._early[0].until, self._drop_early) if self._early else None

    def _is_new(self, way: Routed) -> bool:
        assert way.stream is not None
        key = way.stream.ctxinst, way.stream.stream_id
        window = self._incoming.get(key)
        if window is None:
            window = self._incoming[key] = StreamWindow()
            if len(self._incoming) > MAX_STREAMS:
                del self._incoming[next(iter(self._incoming))]
        return window.first_time(way.stream.sqn)

    def known_here(self, message: ControlMessage, origin: int = 0) -> ControlMessage:
        """Return a message with the addresses as they are known here; `origin`: its domain, 0 for the own one."""
        return from_domain(message, origin or self.domain, self.domain)
