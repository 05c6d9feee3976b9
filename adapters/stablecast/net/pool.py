"""Outgoing connections to request and store ports, made on demand and kept.

A port answers for the process behind it. A connection that breaks although we did not close it is made again at once:
if the port refuses, the process is gone (`on_gone`). Everything else that goes wrong proves nothing about the process
and is a break (`on_reset`): a lost connection, a peer out of reach, one that does not take what we say.

What is said first in a turn of the loop leaves at once, what follows in that turn leaves together at its end: a store
that asks thousands of sources of one context for a sign of life makes one write of it.
"""

import asyncio
from collections.abc import Callable

from stablecast.net import tls
from stablecast.net.address import parse
from stablecast.net.keepalive import keep_alive

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


class Link(asyncio.Protocol):
    """One outgoing connection."""

    def __init__(self, address: str, on_lost: Callable[["Link"], None]) -> None:
        """A link to `address` that is not made yet; `on_lost` is called when it ends, whoever ended it."""
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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Send what was queued meanwhile."""
        self.made_at = asyncio.get_running_loop().time()
        self._transport = transport
        keep_alive(transport)
        if self._queue:
            transport.write(b"".join(self._queue))
            self._empty()

    def data_received(self, data: bytes) -> None:
        """Peers answer on our request port; what comes back here is nothing we wait for."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Report."""
        self._transport = None
        self.over.set()
        self._on_lost(self)

    def write(self, data: bytes) -> bool:
        """Send in this turn, or when connected; returns False if that was too much and what was queued is dropped."""
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
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _end_turn(self) -> None:
        """What followed in the turn leaves."""
        self._turn = False
        transport = self._transport
        if transport is not None and self._queue:
            transport.writelines(self._queue)
            self._empty()
            if transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
                transport.abort()

    def _empty(self) -> None:
        self._queue, self._queued_bytes = [], 0


class Pool:
    """Connections by address."""

    def __init__(self, on_reset: Callable[[str], None], on_gone: Callable[[str], None], source_ip: str) -> None:
        """`on_reset` and `on_gone` hear of broken connections and refusing ports; links start from `source_ip`."""
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
        """Send to whoever listens at `address`; does nothing once closed."""
        if self._closed:
            return
        link = self._links.get(address)
        if link is None:
            link = self._dial(address, 0.0)
        if not link.write(data):
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
        """The oldest makes room; it is remembered until it has hung up, so that closing can wait for it."""
        link = self._links.pop(address)
        if link.made_at is not None:
            self._ending.add(link)
            link.hang_up()
        elif link.task is not None:
            link.task.cancel()

    async def _connect(self, link: Link, pause: float) -> None:
        host, port = parse(link.address)
        loop = asyncio.get_running_loop()
        report = self._on_reset
        await asyncio.sleep(pause)
        for _ in range(MAX_ATTEMPTS):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await loop.create_connection(
                        lambda: link, host, port, local_addr=(self._source_ip, 0), ssl=tls.client()
                    )
            except ConnectionRefusedError:
                report = self._on_gone
                break
            except OSError:
                if link.made_at is not None:
                    return  # Too late, but made: its end is reported by `_lost`.
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return
        if self._links.get(link.address) is link:
            del self._links[link.address]
            report(link.address)

    def _lost(self, link: Link) -> None:
        self._ending.discard(link)
        if self._links.get(link.address) is not link:
            return
        del self._links[link.address]
        lived = asyncio.get_running_loop().time() - (link.made_at or 0.0)
        self._dial(link.address, 0.0 if lived >= PAUSE_SECONDS else PAUSE_SECONDS)
        self._on_reset(link.address)
