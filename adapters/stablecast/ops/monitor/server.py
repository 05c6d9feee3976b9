"""Run the monitor in a thread with its own event loop, so that the data path never waits for a viewer.

Only the calls of `stablecast.store.observatory` run on a store's loop. They read a few sources at a time, at most once
a second, however many viewers there are.

The HTTP server complains of each malformed request with a traceback that has the peer's bytes. The daemon's log gets
these complaints bounded in number and length, or else anyone who reaches the monitor could fill the disk.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from stablecast.ops.monitor.board import Board
from stablecast.ops.monitor.settings import MonitorSettings
from stablecast.ops.monitor.site import Site
from stablecast.runtime import address, machine, ports
from stablecast.runtime.event_loop import limit_scarcity_reports
from stablecast.store.log_lines import Severity, Write, unheard
from stablecast.store.observatory import WatchedStore

EVERY = 1000
"""Complaints of one kind for each logged line; the first one is logged."""
MAX_KINDS = 32
"""Most kinds that are counted separately; further kinds are counted as one."""
CODE = "monitor-request"


class Complaints(logging.Handler):
    """Count a server's complaints by kind, and log a few of them without the bytes of a peer."""

    def __init__(self, log: Write) -> None:
        super().__init__(logging.WARNING)
        self._write = log
        self._counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count a complaint, and log every `EVERY`-th of its kind, starting with the first."""
        kind = _kind(record)
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = "others"
        self._counts[kind] += 1
        if self._counts[kind] % EVERY == 1:
            text = f"a request failed: {kind}, {self._counts[kind]} times so far"
            self._write(Severity.WARNING, "", CODE, text)


def _kind(record: logging.LogRecord) -> str:
    """Return the class of the error and where it was raised.

    The message is left out, because it may quote the peer.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return f"{Path(record.pathname).name}:{record.lineno}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return f"{type(error).__name__} in {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def logger(log: Write) -> logging.Logger:
    """Return a new logger whose records reach no other log of the process."""
    made = logging.Logger("stablecast.ops.monitor")  # noqa: LOG001 - each monitor has its own, for its own log
    made.addHandler(Complaints(log))
    return made


SHUTDOWN_SECONDS = 1.0
"""Longest wait for open answers at the end, in seconds."""


HEAD_SECONDS = 10.0
"""Seconds within which a viewer must have sent the whole head of its first request."""

IDLE_SECONDS = 75.0
"""Seconds for which a connection stays open between two requests."""

MAX_VIEWERS = 256
"""Connections to one monitor; one more is closed. Descriptors must remain for the sources and peers of the store."""


class Viewer(RequestHandler):
    """The connection of one viewer: it is ended if it does not ask in time, and where there are too many."""

    __slots__ = ("_asked", "_limit")

    def __init__(self, server: web.Server, **more: Any) -> None:
        super().__init__(server, keepalive_timeout=IDLE_SECONDS, **more)
        self._asked = False
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the head of the first request."""
        super().connection_made(transport)
        if self._manager is not None and len(self._manager.connections) > MAX_VIEWERS:
            self.force_close()
        self._limit = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._judge)

    def data_received(self, data: bytes) -> None:
        """Note that a whole head has come."""
        super().data_received(data)
        self._asked = self._asked or bool(self._messages)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop waiting for a request."""
        if self._limit is not None:
            self._limit.cancel()
        super().connection_lost(exc)

    def _judge(self) -> None:
        if not self._asked:
            self.force_close()


@asynccontextmanager
async def serving(application: web.Application, listening: machine.Socket, log: Write = unheard) -> AsyncIterator[None]:
    """Answer requests at a socket, within the bounds of a `Viewer`. Requests that fail are counted in `log`."""
    complaints = logger(log)
    runner = web.AppRunner(application, access_log=None, logger=complaints, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    loop, server = asyncio.get_running_loop(), runner.server
    assert server is not None
    accepting = await loop.create_server(
        lambda: Viewer(server, loop=loop, access_log=None, logger=complaints), sock=listening
    )
    try:
        yield
    finally:
        accepting.close()
        await runner.cleanup()


@asynccontextmanager
async def listening(
    settings: MonitorSettings, application: web.Application, what: str, log: Write = unheard
) -> AsyncIterator[str]:
    """Answer requests at a new socket, likewise, and yield its address. Raises PortError, which names it as `what`."""
    sock = ports.listen(settings.host, settings.port, what)
    async with serving(application, sock, log):
        yield address.join(settings.host, sock.getsockname()[1])


class Monitor:
    """Serve pages about stores from `start` to `stop`. `address` is where the monitor listens."""

    def __init__(self, settings: MonitorSettings, stores: Sequence[WatchedStore], log: Write = unheard) -> None:
        """Describe a monitor that does not listen yet. Requests that fail are counted in `log`."""
        self.settings = settings
        self.address = address.join(settings.host, settings.port)
        self._watched = stores
        self._log = log
        self._thread: machine.Thread | None = None
        self._ready: Future[asyncio.AbstractEventLoop] = machine.threads.future()
        self._ended: asyncio.Event
        self._listening: machine.Socket

    def start(self) -> None:
        """Listen, and serve in a thread.

        Raises:
            PortError: the port is in use.
        """
        self._listening = ports.listen(self.settings.host, self.settings.port, "the monitor")
        self.address = address.join(self.settings.host, self._listening.getsockname()[1])
        self._thread = machine.threads.start("monitor", self._main)
        self._ready.result()

    async def stop(self) -> None:
        """End the thread and disconnect its viewers."""
        loop = self._ready.result()
        loop.call_soon_threadsafe(self._ended.set)
        if self._thread is not None:
            await machine.threads.call(self._thread.join)

    def _main(self) -> None:
        try:
            machine.process.run(self._serve())
        except Exception as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)
        finally:
            self._listening.close()

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        limit_scarcity_reports(asyncio.get_running_loop())
        board = Board(self._watched)
        async with serving(Site(board, self.settings).application(), self._listening, self._log):
            sweeping = asyncio.create_task(board.run())
            ending = asyncio.create_task(self._ended.wait())
            self._ready.set_result(asyncio.get_running_loop())
            await asyncio.wait((sweeping, ending), return_when=asyncio.FIRST_COMPLETED)
            board.end()
            for task in (sweeping, ending):
                task.cancel()
        with suppress(asyncio.CancelledError):
            await sweeping
