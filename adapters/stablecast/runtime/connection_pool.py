"""Outgoing connections to request and store ports, made on demand and kept.

A port answers for the process behind it. A connection that breaks although we did not close it is made again at once:
if the port refuses, the process is gone (`on_gone`). Everything else that goes wrong proves nothing about the process
and is a break (`on_reset`): a lost connection, a peer out of reach, a peer that does not read, a transport that raises.
So `Pool.send` never raises: whoever sends learns of each failure through `on_reset`.

The first message of a turn of the loop leaves at once; the messages that follow in that turn leave together at its end.
A store that asks thousands of sources of one context for a sign of life makes one write of it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from stablecast.runtime import tls
from stablecast.runtime.address import parse
from stablecast.runtime.effect_execution import report
from stablecast.runtime.keepalive import keep_alive

MAX_QUEUED_BYTES = 16 * 1024 * 1024
"""Bytes waiting for one peer; beyond that they are dropped, and a connection that has them counts as broken."""

MAX_LINKS = 4096
"""Connections of one pool; one more makes the oldest hang up, to be made again when there is something to say."""

MAX_ATTEMPTS = 5
"""Attempts to reach a peer; then what is queued for it is dropped, for the machines' timers repeat what matters."""

CONNECT_SECONDS = 5.0
"""How long one attempt may take."""

PAUSE_SECONDS = 0.2
"""Pause after an attempt that failed, and before a connection that did not last that long is made again."""

CLOSE_SECONDS = 2.0
"""How long closing waits for unreachable peers, and then for slow ones, until it hangs up on them."""


class Attempt(asyncio.Protocol):
    """One attempt to connect a link, and the connection that it makes.

    An attempt that was given up may still be connected: a process that was stopped for longer than `CONNECT_SECONDS`
    finds both the timeout and the connection when it runs again. uvloop then reports that the connection is made, but
    never its end, and its transport raises on each write. So a late connection is never used.
    """

    def __init__(self, link: "Link") -> None:
        """An attempt that goes on."""
        self._link: Link | None = link
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Hand the connection to the link, unless the attempt was given up."""
        self._transport = transport
        if self._link is None:
            transport.abort()
            return
        keep_alive(transport)
        self._link.connected(transport)

    def data_received(self, data: bytes) -> None:
        """Peers answer on our request port; what comes back here is nothing we wait for."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Report, unless the attempt was given up."""
        if self._link is not None:
            self._link.broken()

    def give_up(self) -> None:
        """Have nothing to do with the link any more."""
        self._link = None
        if self._transport is not None:
            with suppress(Exception):  # A transport that is closed already may raise whatever it likes.
                self._transport.abort()


class Link:
    """One outgoing connection and what waits for it to be made."""

    def __init__(self, address: str, on_lost: Callable[["Link"], None]) -> None:
        """A link to `address` that is not made yet; `on_lost` is called once, when it ends, whoever ended it."""
        self.address = address
        self.task: asyncio.Task[None] | None = None
        self.made_at: float | None = None
        self.over = asyncio.Event()
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._queue: list[bytes] = []
        self._queued_bytes = 0
        self._turn = False

    @property
    def idle(self) -> bool:
        """Whether nothing waits for the connection to be made."""
        return not self._queue

    def connected(self, transport: asyncio.Transport) -> None:
        """Send what was queued meanwhile."""
        self.made_at = asyncio.get_running_loop().time()
        self._transport = transport
        if self._queue:
            transport.write(b"".join(self._queue))
            self._empty()

    def broken(self) -> None:
        """End, and report it the first time."""
        self._transport = None
        if not self.over.is_set():
            self.over.set()
            self._on_lost(self)

    def write(self, data: bytes) -> bool:
        """Send in this turn, or when connected; returns False if that was too much and what was queued is dropped.

        Raises whatever the transport raises; the link is of no use then.
        """
        transport = self._transport
        if transport is not None and not self._turn:
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
        """Close once everything written is out."""
        if self._transport is not None:
            self._end_turn()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: Exception) -> None:
        """Count as broken, because the transport raised: nobody knows whether it will ever report its end."""
        report(f"the connection to {self.address} failed", error)
        transport, self._transport = self._transport, None
        if transport is not None:
            with suppress(Exception):
                transport.abort()
        self.broken()

    def _end_turn(self) -> None:
        """Send what followed in the turn."""
        self._turn = False
        transport = self._transport
        if transport is None or not self._queue:
            return
        try:
            transport.writelines(self._queue)
            self._empty()
            if transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
                transport.abort()
        except Exception as error:  # noqa: BLE001 - a transport must not keep the pool from going on
            self.fail(error)

    def _empty(self) -> None:
        self._queue, self._queued_bytes = [], 0


class Pool:
    """Connections by address."""

    def __init__(self, on_reset: Callable[[str], None], on_gone: Callable[[str], None], source_ip: str) -> None:
        """`on_reset` and `on_gone` get broken connections and refusing ports; links start from `source_ip`."""
        self._on_reset = on_reset
        self._on_gone = on_gone
        self._source_ip = source_ip
        self._links: dict[str, Link] = {}
        self._ending: set[Link] = set()
        self._closed = False

    def __len__(self) -> int:
        """How many peers there is, or will be, a connection to."""
        return len(self._links)

    def send(self, address: str, data: bytes) -> None:
        """Send to whoever listens at `address`; does nothing once closed. Never raises: see `on_reset`."""
        if self._closed:
            return
        link = self._links.get(address)
        if link is None:
            link = self._dial(address, 0.0)
        try:
            taken = link.write(data)
        except Exception as error:  # noqa: BLE001 - a transport must not cost its driver the effects of a turn
            link.fail(error)
            return
        if not taken:
            self._on_reset(address)

    async def close(self) -> None:
        """Let what is queued out, so that a last acknowledgement is not lost, and hang up."""
        self._closed = True
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
    async def _hang_up(links: list[Link]) -> None:
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

    def _dial(self, address: str, pause: float) -> Link:
        if len(self._links) >= MAX_LINKS:
            self._evict(next(iter(self._links)))
        link = self._links[address] = Link(address, self._lost)
        link.task = asyncio.get_running_loop().create_task(self._connect(link, pause))
        return link

    def _evict(self, address: str) -> None:
        """Make room: the oldest is remembered until it has hung up, so that closing can wait for it."""
        link = self._links.pop(address)
        if link.made_at is not None:
            self._ending.add(link)
            link.hang_up()
        elif link.task is not None:
            link.task.cancel()

    async def _connect(self, link: Link, pause: float) -> None:
        outcome = self._on_reset
        await asyncio.sleep(pause)
        for _ in range(MAX_ATTEMPTS):
            try:
                await self._attempt(link)
            except ConnectionRefusedError:
                outcome = self._on_gone
                break
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)
            except Exception as error:  # noqa: BLE001 - an address that is none, say: a link must not stay half made
                report(f"cannot connect to {link.address}", error)
                break
            else:
                return
        if self._links.get(link.address) is link:
            del self._links[link.address]
            outcome(link.address)

    async def _attempt(self, link: Link) -> None:
        """Connect once.

        Raises OSError if that failed and the link waits for another attempt. Returns normally if the link was
        connected, also if that connection was given up at once, because that is the end of the link (`_lost`).
        """
        host, port = parse(link.address)
        attempt = Attempt(link)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().create_connection(
                    lambda: attempt, host, port, local_addr=(self._source_ip, 0), ssl=tls.client()
                )
        except BaseException:
            attempt.give_up()
            if link.made_at is None:
                raise
            link.broken()  # What was written into it is lost: whoever sent it must know.

    def _lost(self, link: Link) -> None:
        self._ending.discard(link)
        if self._links.get(link.address) is not link:
            return
        del self._links[link.address]
        lived = asyncio.get_running_loop().time() - (link.made_at or 0.0)
        self._dial(link.address, 0.0 if lived >= PAUSE_SECONDS else PAUSE_SECONDS)
        self._on_reset(link.address)
