"""One portal of a router that leads to another router: one TCP connection, which either side begins, and begins again.

The side that connects tries for ever, with growing pauses and jitter, and resolves the name of the other host anew each
time. A new connection of a router that is linked already replaces the old one, whose end may not be known yet.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from stablecast.core.errors import StablecastError
from stablecast.router.config import PeerConfig
from stablecast.router.portal import Feed
from stablecast.runtime import address, machine, ports, tls, tls_server
from stablecast.runtime.interfaces import ANY
from stablecast.runtime.origins import Origin, Origins
from stablecast.runtime.policy import Right
from stablecast.text import refusal
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.forwarding import UnicastDrop
from stablecast.transports.routing.portals import PortalSettings
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message

DATA_BYTES = 256 * 1024
"""Bytes that wait in a connection before data waits in the queue of the portal."""

UNICAST_BYTES = 4 * 1024 * 1024
"""Bytes that wait in a connection before messages to single contexts are dropped."""

MAX_BYTES = 64 * 1024 * 1024
"""Bytes that may wait in a connection; one that takes no more than that has ended."""

MAX_NEW = 16
"""Connections that have not said who they are. If one host has most of them, its oldest leaves for one of another."""

HELLO_SECONDS = 5.0
"""Time in which a connection is made, and in which the other side says who it is."""

LEAST_PAUSE, MOST_PAUSE = 0.2, 5.0
"""Seconds between two attempts: after the first failure, and at most. Each is shortened by half of it at random."""


class LinkConnection(asyncio.Protocol):
    """One connection. The first message names the other side; then items go to the portal."""

    def __init__(self, portal: "PeerPortal") -> None:
        self._portal = portal
        self._decoder = StreamDecoder()
        self.transport: asyncio.Transport | None = None
        self.ended = asyncio.Event()
        self.hello: lm.Hello | None = None
        self.reason = ""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Say who this router is, unless the other side may not be one."""
        self.transport = transport
        ports.prepare(transport)
        transport.set_write_buffer_limits(high=DATA_BYTES)
        if not self._portal.admit(self):
            self.abort("it is refused")
            return
        transport.write(self._portal.hello)
        self._timer = asyncio.get_running_loop().call_later(HELLO_SECONDS, self.abort, "it does not say who it is")

    def data_received(self, data: bytes) -> None:
        """Hand over what the bytes complete; malformed bytes end the connection."""
        try:
            items = self._decoder.feed(data)
            if self.hello is None and items:
                self._greet(items.pop(0))
        except WireError as error:
            self.abort(f"malformed: {error}")
            return
        if items and self.hello is not None:
            self._portal.arrived(self, items)

    def _greet(self, item: Run | Message) -> None:
        hello = None if isinstance(item, Run) else lm.decode(item)
        if not isinstance(hello, lm.Hello):
            raise WireError("the first message does not say who it is")
        if self._timer is not None:
            self._timer.cancel()
        self.hello = hello
        self._portal.greeted(self)

    def pause_writing(self) -> None:
        """Let data wait."""
        self._portal.held(self, True)

    def resume_writing(self) -> None:
        """Let data go on."""
        self._portal.held(self, False)

    def write(self, octets: bytes) -> None:
        """Send, unless the connection is closing; one that takes nothing any more is ended."""
        if self.transport is None or self.transport.is_closing():
            return
        self.transport.write(octets)
        if self.waiting > MAX_BYTES:
            self.abort("it takes what is sent too slowly")

    @property
    def waiting(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def abort(self, reason: str) -> None:
        self.reason = self.reason or reason
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.transport = None
        self.reason = self.reason or tls.cause(exc) or (str(exc) if exc else "the other side has closed it")
        self.ended.set()
        self._portal.lost(self)


class PeerPortal:
    """One portal; `open` and `close` it. `number` is its place in the router."""

    def __init__(
        self, number: int, config: PeerConfig, hello: lm.Hello, feed: Feed, remark: Callable[[str, bool], None]
    ) -> None:
        """Prepare a portal of the router that says `hello`; its inputs go to `feed`."""
        self.number = number
        self.config = config
        self.hello = lm.encode(hello)
        self.address = ""
        self._feed = feed
        self._remark = remark
        self._origins = Origins()
        self._current: LinkConnection | None = None
        self._new: dict[LinkConnection, str] = {}
        self._server: ports.Server | None = None
        self._calling: asyncio.Task[None] | None = None
        self._failed = 0

    @property
    def settings(self) -> PortalSettings:
        config = self.config
        return PortalSettings(
            config.name,
            0,
            (),
            config.cost,
            deletion_ns=config.source_deletion_delay_ns,
            queue_bytes=config.max_queue_bytes,
            window=config.window.size,
            window_step=config.window.increment,
            inbound=config.inbound,
            outbound=config.outbound,
            alive_ns=config.signs.interval_ns,
            silence_ns=config.signs.timeout_ns,
        )

    async def open(self) -> None:
        """Listen, or begin to connect. Raises PortError, TlsError."""
        config = self.config
        tls.require_right(Right.ROUTER, "", f"portal '{config.name}'")
        if config.address:
            self.address = address.join(config.address, config.port)
            self._calling = asyncio.get_running_loop().create_task(self._call())
            return
        listening = ports.listen(config.interface or ANY, config.port, "listen-port")
        self.address = address.join(*listening.getsockname()[:2])
        self._server = await tls_server.server(lambda: LinkConnection(self), listening)
        await self._server.start_serving()

    async def _call(self) -> None:
        loop, pause = asyncio.get_running_loop(), LEAST_PAUSE
        while True:
            try:
                made = await self._connect()
            except (OSError, TimeoutError, StablecastError) as error:
                self._failed += 1
                if self._failed.bit_count() == 1:
                    what = f"portal '{self.config.name}' does not reach {self.address}: {_why(error)}"
                    self._remark(f"{what} ({self._failed} attempts so far)", True)
            else:
                self._failed = 0
                began = loop.time()
                await made.ended.wait()
                if loop.time() - began > MOST_PAUSE:  # A link that is refused again and again is not tried faster.
                    pause = LEAST_PAUSE
            await asyncio.sleep(pause * (1 - machine.entropy.bits(16) / 0x2_0000))
            pause = min(2 * pause, MOST_PAUSE)

    async def _connect(self) -> LinkConnection:
        """Return a new connection. Raises OSError, TimeoutError, TlsError."""
        config = self.config
        async with asyncio.timeout(HELLO_SECONDS):
            _, made = await asyncio.get_running_loop().create_connection(
                lambda: LinkConnection(self),
                config.address,
                config.port,
                ssl=tls.client(),
                server_hostname="" if tls.client() else None,
                ssl_handshake_timeout=tls.handshake(),
                local_addr=(config.interface, 0) if config.interface else None,
            )
        return made

    async def close(self) -> None:
        """End the connection after what was written, and make no other."""
        if self._calling is not None:
            self._calling.cancel()
            with suppress(asyncio.CancelledError):
                await self._calling
        if self._server is not None:
            await ports.close(self._server)
        for one in (*self._new, *([self._current] if self._current else ())):
            if one.transport is not None:
                one.transport.close()

    # ------------------------------------------------------------------------------------------------- connections

    def admit(self, made: LinkConnection) -> bool:
        """Return whether a new connection may be a link, by its number and by the policy."""
        assert made.transport is not None
        origin = Origin.of(made.transport)
        if not self._origins.has_right(origin, (Right.ROUTER,), None, "a link"):
            return False
        if len(self._new) >= MAX_NEW:
            crowd = ports.crowding_host(self._new.values(), origin.host)
            oldest = next((one for one, host in self._new.items() if host == crowd), None)
            if oldest is None:
                return False
            del self._new[oldest]
            oldest.abort("another host needs its place")
        self._new[made] = origin.host
        return True

    def greeted(self, made: LinkConnection) -> None:
        """Take up a connection whose other side is known; one of the same router before it has ended."""
        assert made.hello is not None
        self._new.pop(made, None)
        old = self._current
        if old is not None and old.hello is not None:
            if old.hello.name != made.hello.name:
                self._remark(
                    f"portal '{self.config.name}' refuses router '{made.hello.name}': it is linked to "
                    f"'{old.hello.name}', and a portal leads to one router",
                    True,
                )
                made.abort("the portal is linked to another router")
                return
            self._current = None
            old.abort("another connection takes its place")
            self._feed(ev.LinkEnded(self.number, "another connection takes its place"))
        self._current = made
        self._feed(ev.LinkBegun(self.number, made.hello.node, made.hello.name))

    def arrived(self, made: LinkConnection, items: list[Run | Message]) -> None:
        if made is self._current:
            self._feed(ev.LinkArrived(self.number, tuple(items)))

    def held(self, made: LinkConnection, held: bool) -> None:
        if made is self._current:
            self._feed(ev.LinkHeld(self.number, held))

    def lost(self, made: LinkConnection) -> None:
        """Report the end of a link, or of a connection that was none yet."""
        self._new.pop(made, None)
        if made is self._current:
            self._current = None
            self._feed(ev.LinkEnded(self.number, made.reason))

    # ----------------------------------------------------------------------------------------------------- effects

    def tell(self, octets: bytes) -> None:
        if self._current is not None:
            self._current.write(octets)

    def forward(self, effect: fx.Forward) -> None:
        """Send messages of a source."""
        self.tell(effect.octets)

    def send(self, effect: fx.SendUnicast) -> None:
        """Send one message to a context behind the link, unless too much waits."""
        if self._current is None:
            self._feed(ev.UnicastFailed(self.number, "", UnicastDrop.LINK_DOWN))
        elif self._current.waiting + len(effect.octets) > UNICAST_BYTES:
            self._feed(ev.UnicastFailed(self.number, "", UnicastDrop.BLOCKING))
        else:
            self._current.write(effect.octets)

    def drop(self, reason: str) -> None:
        made, self._current = self._current, None
        if made is not None:
            made.abort(reason)
        self._feed(ev.LinkEnded(self.number, reason))


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {HELLO_SECONDS:g} s"
    return tls.cause(error) or (refusal(error) if isinstance(error, OSError) else str(error))
