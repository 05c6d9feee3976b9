"""Outgoing connections to request and store ports, made on demand and kept.

A port answers for the process behind it. A connection that breaks although we did not close it is tried again at once:
if the port refuses, the process is gone; if it accepts, the peer may have restarted. Both are reported, because
registrations depend on them (`Gone`, `Reset`).
"""

import asyncio
from collections.abc import Callable

from stablecast.net.address import parse

MAX_QUEUED_BYTES = 16 * 1024 * 1024
"""Bytes waiting for one slow peer; beyond that the connection is dropped and counts as broken."""

RECONNECT_SECONDS = 0.05
"""Pause before a connection attempt that failed for another reason than refusal is made again."""

CLOSE_SECONDS = 2.0
"""How long closing waits for a peer to take what is queued."""

MAX_ATTEMPTS = 5
"""Attempts before what is queued for an unreachable peer is dropped; the machines' timers repeat what matters."""


class Link(asyncio.Protocol):
    """One outgoing connection."""

    def __init__(self, address: str, on_lost: Callable[["Link"], None]) -> None:
        """A link to `address`; `on_lost` is called when it broke."""
        self.address = address
        self._on_lost = on_lost
        self.transport: asyncio.Transport | None = None
        self.queued: list[bytes] = []
        self.queued_bytes = 0
        self.attempts = 0
        self.closing = False
        self._hung_up = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as documented
        """Send what was queued meanwhile."""
        self.transport = transport
        self.attempts = 0
        if self.queued:
            transport.write(b"".join(self.queued))
            self.queued, self.queued_bytes = [], 0

    def data_received(self, data: bytes) -> None:
        """Peers answer on our request port; what comes back here is nothing we wait for."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Report unless we closed it."""
        self.transport = None
        self._hung_up.set()
        if not self.closing:
            self._on_lost(self)

    async def close(self) -> None:
        """Hang up once everything written is out."""
        self.closing = True
        if self.transport is not None:
            self.transport.close()
            await self._hung_up.wait()

    def write(self, data: bytes) -> None:
        """Send now, or when connected."""
        if self.transport is None:
            self.queued.append(data)
            self.queued_bytes += len(data)
            return
        self.transport.write(data)
        if self.transport.get_write_buffer_size() > MAX_QUEUED_BYTES:
            self.transport.abort()


class Pool:
    """Connections by address."""

    def __init__(self, on_reset: Callable[[str], None], on_gone: Callable[[str], None], source_ip: str) -> None:
        """`on_reset` and `on_gone` hear of broken connections and refusing ports; links start from `source_ip`."""
        self._on_reset = on_reset
        self._on_gone = on_gone
        self._source_ip = source_ip
        self._links: dict[str, Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def send(self, address: str, data: bytes) -> None:
        """Send to whoever listens at `address`."""
        if self._closed:
            return
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = Link(address, self._lost)
            self._connect(link)
        link.write(data)
        if link.queued_bytes > MAX_QUEUED_BYTES:
            self._drop(link)

    async def close(self) -> None:
        """Let what is queued out, so that a last acknowledgement is not lost, and hang up."""
        self._closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        lost = [asyncio.ensure_future(link.close()) for link in self._links.values()]
        self._links.clear()
        if lost:
            _, late = await asyncio.wait(lost, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _connect(self, link: Link) -> None:
        task = asyncio.get_running_loop().create_task(self._dial(link))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, link: Link) -> None:
        host, port = parse(link.address)
        loop = asyncio.get_running_loop()
        while link.attempts < MAX_ATTEMPTS:
            link.attempts += 1
            try:
                await loop.create_connection(lambda: link, host, port, local_addr=(self._source_ip, 0))
            except ConnectionRefusedError:
                break
            except OSError:
                await asyncio.sleep(RECONNECT_SECONDS)
            else:
                return
        self._links.pop(link.address, None)
        if not self._closed:
            self._on_gone(link.address)

    def _lost(self, link: Link) -> None:
        self._links.pop(link.address, None)
        if self._closed:
            return
        again = self._links[link.address] = Link(link.address, self._lost)
        self._connect(again)
        self._on_reset(link.address)

    def _drop(self, link: Link) -> None:
        self._links.pop(link.address, None)
        link.queued, link.queued_bytes = [], 0
        link.closing = True
        self._on_reset(link.address)
