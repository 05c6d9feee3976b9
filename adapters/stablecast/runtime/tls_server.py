"""Listening ports. With TLS, handshakes have a budget of their own.

An event loop makes a connection known after its handshake only, and one that is never finished would hold a descriptor
for as long as a handshake may take. So with TLS connections are accepted here. A newcomer for whom there is no place
gets that of the oldest unfinished handshake, of the host that has most of them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

import attrs

from stablecast.runtime import machine, ports, tls
from stablecast.text.scarcity import is_scarce

MAX_HANDSHAKES = 1024
"""Unfinished handshakes at one port."""

ACCEPTED_A_TURN = 4
"""Connections that are accepted in one turn of the loop, so that what is served goes on between handshakes."""

PAUSE_SECONDS = 1.0
"""Pause after the system could not accept a connection."""


async def server(factory: Callable[[], asyncio.Protocol], listening: machine.Socket) -> ports.Server:
    """Return a server, which owns the listening socket and does not serve yet; with TLS if this process uses it."""
    context = tls.server()
    if context is not None:
        return TlsServer(factory, listening, context)
    loop = asyncio.get_running_loop()
    return await loop.create_server(factory, sock=listening, backlog=ports.BACKLOG, start_serving=False)


@attrs.define(eq=False)
class TlsServer:
    """Accept connections, and hand over those whose handshake succeeded."""

    _factory: Callable[[], asyncio.Protocol]
    _listening: machine.Socket
    _context: tls.Certificates
    _unfinished: "dict[asyncio.Task[object], str]" = attrs.field(factory=dict)
    """The host of each handshake, oldest first."""
    _pause: asyncio.TimerHandle | None = None

    @property
    def sockets(self) -> tuple[machine.Socket, ...]:
        return (self._listening,)

    async def start_serving(self) -> None:
        self._listen()

    def close(self) -> None:
        """Stop accepting, and give up what is not finished."""
        if self._pause is not None:
            self._pause.cancel()
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        for task in self._unfinished:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until no handshake is left."""
        if self._unfinished:
            await asyncio.wait(self._unfinished)

    def _listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_A_TURN):
            try:
                made, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not is_scarce(error):
                    raise
                loop.call_exception_handler({"message": "a connection was not accepted", "exception": error})
                loop.remove_reader(self._listening)
                self._pause = loop.call_later(PAUSE_SECONDS, self._listen)
                return
            made.setblocking(False)
            full = len(self._unfinished) >= MAX_HANDSHAKES or not ports.has_room()
            if full and not self._make_room():
                made.close()
                return
            shaking = loop.connect_accepted_socket(
                self._factory, made, ssl=self._context, ssl_handshake_timeout=tls.HANDSHAKE_SECONDS
            )
            task: asyncio.Task[object] = loop.create_task(shaking)
            self._unfinished[task] = address[0]
            task.add_done_callback(self._finished)
            if full:
                return  # What was given up closes in the next turn.

    def _make_room(self) -> bool:
        """Give up a handshake; return whether there was one."""
        (crowd, _), *_ = Counter(self._unfinished.values()).most_common(1) or [("", 0)]
        oldest = next((task for task, host in self._unfinished.items() if host == crowd), None)
        if oldest is None:
            return False
        del self._unfinished[oldest]
        return oldest.cancel()

    def _finished(self, task: "asyncio.Task[object]") -> None:
        self._unfinished.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, OSError):  # Failed handshakes are counted where they fail.
            context = {"message": "a connection was not made", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
