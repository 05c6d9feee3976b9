"""A monitor's site on the event loop of the test, with a client. It sweeps only when the test asks for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import attrs
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from stablecast.ops.monitor.board import Board
from stablecast.ops.monitor.settings import MonitorSettings, Permission
from stablecast.ops.monitor.site import Site
from tests.adapters.ops.monitor.staged_store import Staged

HTML = {"Accept": "text/html"}


@attrs.define
class Shown:
    board: Board
    client: TestClient[web.Request, web.Application]

    async def text(self, path: str, status: int = 200, **arguments: object) -> str:
        """Return the answer to a browser; check its status."""
        async with self.client.get(path, headers=HTML, **arguments) as answer:  # type: ignore[arg-type]
            assert answer.status == status, await answer.text()
            return await answer.text()

    async def json(self, path: str, status: int = 200) -> object:
        """Return the answer to a program; check its status."""
        async with self.client.get(path) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def post(self, path: str, body: object = None, status: int = 200) -> str:
        """Send a POST request of a program; check the status and return the answer."""
        async with self.client.post(path, json=body) as answer:
            assert answer.status == status, await answer.text()
            return await answer.text()


@asynccontextmanager
async def showing(
    *stores: Staged, permission: Permission = Permission.READ_ONLY, token: str = ""
) -> AsyncIterator[Shown]:
    """Yield a site about these stores, after one sweep."""
    watched = [store.watched(index) for index, store in enumerate(stores)]
    board = Board(watched)
    await board.sweep()
    site = Site(board, MonitorSettings(permission=permission, token=token))
    jar = aiohttp.CookieJar(unsafe=True)
    async with TestClient(TestServer(site.application()), cookie_jar=jar) as client:
        yield Shown(board, client)
        board.end()
