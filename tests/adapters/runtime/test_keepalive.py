"""A connection with keepalive has the intervals of this project."""

import asyncio
import socket

from stablecast.runtime.ports import IDLE_SECONDS, INTERVAL_SECONDS, PROBES, UNSENT_BYTES, prepare
from stablecast.runtime.stream import StreamReader


async def test_the_kernel_sends_probes() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        transport, _ = await loop.create_connection(asyncio.Protocol, *listening.getsockname())
        prepare(transport)
        connected = transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        spans = [
            connected.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        assert spans == [IDLE_SECONDS, INTERVAL_SECONDS, PROBES]
        # Otherwise it keeps megabytes for each peer that does not read, and slows down all when it has a gigabyte.
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == UNSENT_BYTES
        transport.abort()
        await asyncio.sleep(0)


async def test_a_stream_that_is_read_has_it() -> None:
    """A receiver sends nothing on it, and would never learn that its source's host is gone."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        reader = StreamReader(lambda _: None)
        transport, _ = await loop.create_connection(lambda: reader, *listening.getsockname())
        assert transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        reader.abort()
        await reader.ended.wait()
