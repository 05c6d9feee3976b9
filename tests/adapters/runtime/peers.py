"""Raw TCP peers for tests: they accept, send and disconnect on request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stablecast.runtime import address, ports
from stablecast.transports import codec
from stablecast.transports.wire.lbmc import DATA_HEADER

LOCAL = "127.0.0.1"


class Connection(asyncio.Protocol):
    """One connection, seen from the listening side."""

    def __init__(self, listener: "Listener") -> None:
        self.listener = listener
        self.data = b""
        self.over = asyncio.Event()
        self._heard = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        if self.listener.deaf:
            transport.pause_reading()
            asyncio.get_running_loop().call_soon(transport.pause_reading)  # uvloop begins to read after this method
        transport.write(self.listener.greeting)
        self.listener.connections.append(self)
        self.listener.changed.set()
        if self.listener.rude:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self.data += data
        self._heard.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()

    async def hear(self, size: int) -> bytes:
        while len(self.data) < size:
            self._heard.clear()
            await self._heard.wait()
        return self.data

    async def hang_up(self) -> None:
        self.transport.abort()
        await self.over.wait()


class Listener:
    """Accepts at `address`; each connection first hears `greeting`. `deaf`: never reads; `rude`: hangs up at once."""

    def __init__(self, greeting: bytes = b"") -> None:
        self.greeting = greeting
        self.deaf = False
        self.rude = False
        self.connections: list[Connection] = []
        self.changed = asyncio.Event()
        self.address = ""
        self._server: asyncio.Server | None = None

    async def open(self, port: int = 0) -> None:
        listening = ports.listen(LOCAL, port, "port")
        self.address = address.join(LOCAL, listening.getsockname()[1])
        self._server = await asyncio.get_running_loop().create_server(lambda: Connection(self), sock=listening)

    async def connection(self, count: int = 1) -> Connection:
        """The `count`th connection, as soon as there is one."""
        while len(self.connections) < count:
            self.changed.clear()
            await self.changed.wait()
        return self.connections[count - 1]

    def refuse(self) -> None:
        """Accept no connection from now on."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        self.refuse()
        for connection in self.connections:
            await connection.hang_up()

    async def again(self) -> None:
        """Listen at the same address as before."""
        await self.open(int(self.address.rpartition(":")[2]))


@asynccontextmanager
async def listener(greeting: bytes = b"") -> AsyncIterator[Listener]:
    listening = Listener(greeting)
    await listening.open()
    try:
        yield listening
    finally:
        await listening.close()


def hello(session_id: int) -> bytes:
    return codec.greeting(session_id)


def data(number: int, payload: bytes = b"x", index: int = 7) -> bytes:
    return DATA_HEADER.pack(0, 0, DATA_HEADER.size + len(payload), index, number) + payload
