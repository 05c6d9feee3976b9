"""Outgoing connections to request and store ports, made on demand and kept.

A port answers for the process behind it. The pool makes a broken connection again at once, unless it closed it itself:
if the port refuses, the process is gone (`on_gone`). Every other failure proves nothing about the process and is
reported as a break (`on_reset`): a lost connection, an unreachable peer, a peer that does not read, a transport that
raises. So `ConnectionPool.send` never raises, and its caller learns of each failure through `on_reset`.

The first message of a turn of the loop leaves at once. The messages that follow in the same turn leave together at its
end: a store that asks thousands of sources of one context for a sign of life makes one write.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import attrs

from stablecast.core.protocol.events import Event, StoreUnresponsive
from stablecast.runtime import tls
from stablecast.runtime.address import parse
from stablecast.runtime.driver import report
from stablecast.runtime.origins import Origins
from stablecast.runtime.ports import prepare
from stablecast.runtime.routing import Routing

MAX_QUEUED_BYTES = 16 * 1024 * 1024
"""Bytes that may wait for one peer; beyond that they are dropped, and their connection counts as broken."""

ROOM_BYTES = MAX_QUEUED_BYTES // 4
"""Bytes that wait for a peer while it gets more answers; with the largest answer, they stay within the queue."""

MAX_LINKS = 4096
"""Connections of one pool; one more closes the oldest, which is made again for its next message."""

MAX_ATTEMPTS = 5
"""Attempts to reach a peer; then its queue is dropped, because the machines' timers repeat what matters."""

CONNECT_SECONDS = 5.0
"""Time limit of one attempt."""

PAUSE_SECONDS = 0.2
"""Pause after a failed attempt, and before a connection that ended sooner than this is made again."""

CLOSE_SECONDS = 2.0
"""Time that closing waits for unreachable peers, and then for slow ones, before it disconnects them."""


WORDLESS = "it ends connections without a word: it may use TLS, which this process does not, or have no room for more"
"""Words for a listener that accepts a connection without TLS and soon ends it."""


class Attempt(asyncio.Protocol):
    """One attempt to connect a link, and the connection that it makes.

    An attempt that was given up may still be connected: a process that was stopped for longer than `CONNECT_SECONDS`
    finds both the timeout and the connection when it runs again. uvloop then reports that the connection is made, but
    never its end, and its transport raises on each write. So a late connection is never used.
    """

    def __init__(self, link: "PeerLink") -> None:
        self._link: PeerLink | None = link
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Hand the connection to the link, unless the attempt was given up."""
        self._transport = transport
        if self._link is None:
            transport.abort()
            return
        prepare(transport)
        transport.set_write_buffer_limits(high=ROOM_BYTES - 1)
        self._link.connected(transport)

    def resume_writing(self) -> None:
        """Report that the peer has read most of what waited."""
        if self._link is not None:
            self._link.on_room(self._link.address)

    def data_received(self, data: bytes) -> None:
        """Ignore the bytes: peers answer on our request port."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end, unless the attempt was given up."""
        if self._link is not None:
            self._link.cause = tls.cause(exc)
            self._link.broken()

    def give_up(self) -> None:
        """Release the link and abort the connection, now or when it is made."""
        self._link = None
        if self._transport is not None:
            with suppress(Exception):  # A transport that is closed already may raise any exception.
                self._transport.abort()


class PeerLink:
    """One outgoing connection and the messages that wait until it is made."""

    def __init__(
        self,
        address: str,
        on_lost: Callable[["PeerLink"], None],
        on_room: Callable[[str], None],
        origins: Origins,
    ) -> None:
        """Prepare a link to `address`; `on_lost` is called once when it ends, whichever side ended it.

        `on_room` is called when less than `ROOM_BYTES` wait again, and `origins` learns who listens there.
        """
        self.address = address
        self.on_room = on_room
        self._origins = origins
        self.task: asyncio.Task[None] | None = None
        self.made_at: float | None = None
        self.over = asyncio.Event()
        self.cause = ""
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._queue: list[bytes] = []
        self._queued_bytes = 0
        self._turn = False

    @property
    def idle(self) -> bool:
        return not self._queue

    @property
    def waiting(self) -> int:
        """Return the bytes that the peer has not read, and that wait for the connection."""
        return self._queued_bytes + (0 if self._transport is None else self._transport.get_write_buffer_size())

    def connected(self, transport: asyncio.Transport) -> None:
        """Send the messages that were queued meanwhile."""
        self.made_at = asyncio.get_running_loop().time()
        self._transport = transport
        self._origins.connect(self.address, transport)
        if self._queue:
            transport.write(b"".join(self._queue))
            self._empty()
            self._tell_room()

    def broken(self) -> None:
        """End the link, and report the end once."""
        self._transport = None
        if not self.over.is_set():
            self.over.set()
            self._on_lost(self)

    def write(self, data: bytes) -> bool:
        """Send in this turn, or when connected; return False if the queue was too long and is dropped.

        Raises whatever the transport raises; the link cannot be used afterwards.
        """
        transport = self._transport
        if transport is not None and not self._turn and not transport.is_closing():
            self._turn = True
            transport.write(data)
            asyncio.get_running_loop().call_soon(self._end_turn)
            if transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
                transport.abort()
            return True
        self._queue.append(data)
        self._queued_bytes += len(data)
        if self._queued_bytes <= MAX_QUEUED_BYTES:
            return True
        self._empty()
        if transport is None:
            return False
        transport.abort()
        return True

    def hang_up(self) -> None:
        """Close the connection after it has sent everything that was written."""
        if self._transport is not None:
            self._end_turn()
        if self._transport is not None:  # `_end_turn` may have failed and dropped it.
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once and discard unsent bytes."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: Exception) -> None:
        """End the link because its transport raised: such a transport may never report its own end."""
        report(f"the connection to {self.address} failed", error)
        transport, self._transport = self._transport, None
        if transport is not None:
            with suppress(Exception):
                transport.abort()
        self.broken()

    def _end_turn(self) -> None:
        self._turn = False
        transport = self._transport
        if transport is None or not self._queue or transport.is_closing():
            return
        try:
            transport.writelines(self._queue)
            self._empty()
            if transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
                transport.abort()
            self._tell_room()
        except Exception as error:  # noqa: BLE001 - a transport that fails must not stop the pool
            self.fail(error)

    def _tell_room(self) -> None:
        """Report room once the queue is written; if the connection has none now, it reports it itself."""
        if self.waiting < ROOM_BYTES:
            self.on_room(self.address)

    def _empty(self) -> None:
        self._queue, self._queued_bytes = [], 0


class ConnectionPool:
    """The outgoing connections of one endpoint by address; `origins` knows the processes at their other ends."""

    def __init__(self, on_reset: Callable[[str], None], on_gone: Callable[[str], None], source_ip: str) -> None:
        """Report broken connections to `on_reset` and refusing ports to `on_gone`; connect from `source_ip`."""
        self._on_reset = on_reset
        self._on_gone = on_gone
        self.on_room: Callable[[str], None] = lambda _: None
        self._source_ip = source_ip
        self.origins = Origins()
        self.routing = Routing(self.send, on_reset, self.origins)
        self._asked_at: dict[str, str] = {}
        self._links: dict[str, PeerLink] = {}
        self._ending: dict[PeerLink, None] = {}  # A set would close them in an order that no seed repeats.
        self._closed = False
        self._causes: dict[str, str | None] = {}
        self._held: dict[str, None] = {}

    def cause(self, address: str) -> str:
        """Return why the last connection to a listener failed, for people; empty if it did not, or nobody knows."""
        hop = self.routing.hop(address)
        return (self._causes.get(hop) or "") if hop else self.routing.why(address)

    def refused(self, address: str) -> bool:
        """Return whether the last connection to a listener was refused: nobody listens there."""
        return self._causes.get(address, "") is None

    def explained(self, event: Event) -> Event:
        """Return an event, that of a silent store with the cause if it is known why no connection there lasts."""
        why = self.cause(event.store) if isinstance(event, StoreUnresponsive) else ""
        if not why or not isinstance(event, StoreUnresponsive):
            return event
        return attrs.evolve(event, text=f"{event.text.rstrip('.')}: {why}.")

    def _failed(self, address: str, why: str | None) -> None:
        """Note why a connection failed, None if it was refused, or that it did not."""
        self._causes.pop(address, None)
        if why != "":
            self._causes[address] = why
            if len(self._causes) > MAX_LINKS:
                del self._causes[next(iter(self._causes))]

    def __len__(self) -> int:
        """Return the number of peers that are connected or being connected."""
        return len(self._links)

    def send(self, address: str, data: bytes) -> None:
        """Send to the listener at `address`; do nothing once closed. Never raises: see `on_reset`."""
        if self._closed:
            return
        link = self._links.get(address)
        if link is None:
            if self.routing.takes(address, data):
                return
            link = self._dial(address, 0.0)
        try:
            taken = link.write(data)
        except Exception as error:  # noqa: BLE001 - the driver must still perform the other effects of its turn
            link.fail(error)
            return
        if not taken:
            self._broken(address)

    def room(self, address: str, more: int = 0) -> bool:
        """Return whether a peer may get an answer, beside `more` bytes; if not, `on_room` tells when."""
        link = self._links.get(address) or self._links.get(self.routing.hop(address))
        roomy = more + (0 if link is None else link.waiting) < ROOM_BYTES
        if not roomy and link is not None and link.address != address:
            self._held[address] = None
        return roomy

    def connected(self, address: str) -> bool:
        """Return whether the listener at `address` has accepted a connection that is still up."""
        link = self._links.get(self.routing.hop(address))
        return link is not None and link.made_at is not None

    def answer_from(self, own: str, host: str) -> None:
        """Connect to a host from the address of this one that it asked: it believes no other one."""
        self._asked_at.pop(host, None)
        self._asked_at[host] = own
        if len(self._asked_at) > MAX_LINKS:
            del self._asked_at[next(iter(self._asked_at))]

    def move(self, source_ip: str) -> None:
        """Connect from another address of this host from now on; connections from the old one are made again."""
        self._source_ip = source_ip
        self._asked_at.clear()
        for link in tuple(self._links.values()):
            link.abort()

    async def close(self) -> None:
        """Send what is queued, so that a last acknowledgement is not lost, and close all connections."""
        self._closed = True
        self.routing.close()
        links = [*self._links.values(), *self._ending]
        self._links.clear()
        dialling = [link.task for link in links if link.task is not None]
        for link in links:
            if link.idle and link.task is not None and link.made_at is None:
                link.task.cancel()
        if dialling:
            _, late = await asyncio.wait(dialling, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*dialling, return_exceptions=True)
        await self._hang_up([link for link in links if link.made_at is not None])

    @staticmethod
    async def _hang_up(links: list[PeerLink]) -> None:
        for link in links:
            link.hang_up()
        ends = [asyncio.ensure_future(link.over.wait()) for link in links]
        if not ends:
            return
        try:
            await asyncio.wait(ends, timeout=CLOSE_SECONDS)
        finally:
            for link in links:
                link.abort()
            await asyncio.gather(*ends)

    def _dial(self, address: str, pause: float) -> PeerLink:
        if len(self._links) >= MAX_LINKS:
            self._evict(next(iter(self._links)))
        self.origins.dial(address)
        link = self._links[address] = PeerLink(address, self._lost, self._roomy, self.origins)
        link.task = asyncio.get_running_loop().create_task(self._connect(link, pause))
        return link

    def _evict(self, address: str) -> None:
        """Close one connection for another, and remember it until it has ended, so that closing can wait for it."""
        link = self._links.pop(address)
        if link.made_at is not None:
            self._ending[link] = None
            link.hang_up()
        elif link.task is not None:
            link.task.cancel()

    async def _connect(self, link: PeerLink, pause: float) -> None:
        outcome = self._broken
        await asyncio.sleep(pause)
        for _ in range(MAX_ATTEMPTS):
            try:
                await self._attempt(link)
            except ConnectionRefusedError:
                self._failed(link.address, None)
                outcome = self._gone
                break
            except OSError as error:
                self._failed(link.address, tls.cause(error) or _ended(error))
                await asyncio.sleep(PAUSE_SECONDS)
            except Exception as error:  # noqa: BLE001 - a malformed address, say: a link must not stay half made
                report(f"cannot connect to {link.address}", error)
                break
            else:
                self._failed(link.address, self.cause(link.address))
                return
        if self._links.get(link.address) is link:  # `_evict` may have replaced it during an attempt.
            del self._links[link.address]
            outcome(link.address)

    async def _attempt(self, link: PeerLink) -> None:
        """Connect once. Raises OSError if that failed and the link waits for another attempt.

        A link that was connected and given up at once counts as connected, because `_lost` has handled its end.
        """
        host, port = parse(link.address)
        attempt, own = Attempt(link), self._asked_at.get(host, self._source_ip)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().create_connection(
                    lambda: attempt,
                    host,
                    port,
                    local_addr=(own, 0),
                    ssl=tls.client(),
                )
        except BaseException:
            attempt.give_up()
            if link.made_at is None:
                raise
            link.broken()  # Messages that were written into it are lost, and their sender must know.

    def _lost(self, link: PeerLink) -> None:
        self._ending.pop(link, None)
        if self._links.get(link.address) is not link:
            return
        del self._links[link.address]
        # A port that accepts and disconnects at once must not make this a tight loop.
        lived = asyncio.get_running_loop().time() - (link.made_at or 0.0)
        # Without a handshake a port with TLS ends the connection at the first byte, or after its time limit.
        short = lived < tls.HANDSHAKE_SECONDS + PAUSE_SECONDS and tls.client() is None
        self._failed(link.address, link.cause or (WORDLESS if short else ""))
        self._dial(link.address, 0.0 if lived >= PAUSE_SECONDS else PAUSE_SECONDS)
        self._broken(link.address)

    def _broken(self, address: str) -> None:
        """Report that messages were lost: to this address, and to those behind the router there."""
        for one in (address, *self.routing.behind(address)):
            self._held.pop(one, None)
            self._on_reset(one)

    def _gone(self, address: str) -> None:
        """Report that nobody listens at this address; those behind the router there may be alive."""
        self._on_gone(address)
        for one in self.routing.behind(address):
            self._held.pop(one, None)
            self._on_reset(one)

    def _roomy(self, address: str) -> None:
        """Report room at this address, and to those behind the router there that were told to wait for it."""
        self.on_room(address)
        for one in [one for one in self._held if self.routing.hop(one) == address]:
            del self._held[one]
            self.on_room(one)


def _ended(error: OSError) -> str:
    """Return the probable cause of an attempt with TLS that the peer ended without a word."""
    if tls.client() is None or not isinstance(error, ConnectionError):
        return ""
    return "TLS: the peer ended the handshake: it may not use TLS, or accepts other certificates"
