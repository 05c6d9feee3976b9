"""Answer the monitor's requests: pages, the live feed, JSON, metrics and changes."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.typedefs import Handler

from stablecast.ops.monitor import api, metrics, pages
from stablecast.ops.monitor.access import MAX_QUERY, GuardedSite, form, html, missing, probed
from stablecast.ops.monitor.board import CHUNK, Board, Snapshot, look, spans
from stablecast.ops.monitor.directory_jobs import DirectoryJobs
from stablecast.ops.monitor.pages import ORDERS, Page, Query
from stablecast.ops.monitor.settings import MonitorSettings, Permission
from stablecast.store.observatory import ReceiverView, SourceView
from stablecast.text.json_text import from_json
from stablecast.text.open_metrics import OPEN_METRICS

MAX_VIEWERS = 64
"""Most open live feeds. Further viewers get pages without updates."""

EARLY_SECONDS = 5.0
"""Longest wait of a request for the first sweep, in seconds."""

STATIC = tuple(pages.FOLDER / "static" / name for name in ("monitor.css", "monitor.js", "icon.svg"))


class Site(GuardedSite):
    def __init__(self, board: Board, settings: MonitorSettings) -> None:
        """Serve the stores of `board` under the permissions of `settings`."""
        super().__init__(settings, *STATIC)
        self._board = board
        self._jobs = DirectoryJobs()
        self._viewers = 0
        self._rendered: dict[tuple[str, str], Page] = {}
        self._rendered_at = -1

    def application(self) -> web.Application:
        return self.guarded(
            [
                web.get("/live", self._live),
                web.get("/metrics", self._metrics),
                web.get("/health", self._health),
                web.get("/livez", self._live_probe),
                web.get("/readyz", self._ready_probe),
                web.get("/api/daemon", self._daemon),
                web.get("/api/stores", self._daemon),
                web.get(r"/api/stores/{number:\d{1,9}}", self._store),
                web.get(r"/api/stores/{number:\d{1,9}}/sources", self._sources),
                web.get(r"/api/stores/{number:\d{1,9}}/{reg_id:\d{1,10}}", self._client),
                web.post(r"/api/stores/{number:\d{1,9}}/{errand:scrub|export}", self._errand),
                web.post(r"/stores/{number:\d{1,9}}/{change:reset|evict|drain|resume}", self._submit),
                web.post(r"/api/stores/{number:\d{1,9}}/{change:reset|evict|drain|resume}", self._change),
                web.get(r"/{path:|stores|stores/\d{1,9}|stores/\d{1,9}/\d{1,10}}", self._page),
            ],
            self._after_first_sweep,
        )

    @web.middleware
    async def _after_first_sweep(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Delay early requests until the first sweep, at most `EARLY_SECONDS`."""
        if not self._board.sweeps:
            with suppress(TimeoutError):
                async with asyncio.timeout(EARLY_SECONDS):
                    await self._board.news()
        return await handler(request)

    # Pages.

    async def _page(self, request: web.Request) -> web.StreamResponse:
        page = await self._rendered_page(request.path, request.query)
        return html(pages.document(page, live=True))

    async def _rendered_page(self, path: str, asked: Mapping[str, str]) -> Page:
        """Return a page as of the last sweep; viewers of one page share it. Raises HTTPNotFound."""
        if self._rendered_at != self._board.sweeps:
            self._rendered.clear()
            self._rendered_at = self._board.sweeps
        query = _query(asked)
        key = (path, query.link(query.page))
        if key not in self._rendered:
            self._rendered[key] = await self._render(path, query)
        return self._rendered[key]

    async def _render(self, path: str, query: Query) -> Page:
        writable = self.settings.permission is Permission.READ_WRITE
        match path.strip("/").split("/"):
            case [""]:
                return pages.index(self._board)
            case ["stores"]:
                return pages.stores(self._board)
            case ["stores", number] if number.isdecimal():
                self._snapshot(number)
                return pages.store(self._board, int(number), query, writable)
            case ["stores", number, reg_id] if number.isdecimal() and reg_id.isdecimal():
                return await self._client_page(int(number), int(reg_id), writable)
        raise missing("no such page")

    async def _client_page(self, number: int, reg_id: int, writable: bool) -> Page:
        snapshot = self._snapshot(number)
        view, its_source = await self._find(number, reg_id)
        if isinstance(view, ReceiverView):
            return pages.receiver(number, view, its_source, writable)
        return pages.source(snapshot, view, await spans(self._board.watched[number], reg_id), writable)

    async def _find(self, number: int, reg_id: int) -> tuple[SourceView | ReceiverView, SourceView]:
        """Return the view of a client, and that of the source that it is or reads. Raises HTTPNotFound."""
        watched = self._board.watched[number]
        found = await watched.source(reg_id)
        if found is not None:
            return found, found
        reader = await watched.receiver(reg_id)
        its_source = None if reader is None else await watched.source(reader.source_reg_id)
        if reader is None or its_source is None:
            raise missing(f"no client is registered as {reg_id}")
        return reader, its_source

    async def _live(self, request: web.Request) -> web.StreamResponse:
        """Send the blocks of a page that changed as server-sent events."""
        path, _, text = request.query.get("page", "/").partition("?")
        asked = dict(parse_qsl(text))
        # Render before counting the viewer: a page that does not exist must answer 404.
        await self._rendered_page(path, asked)
        if self._viewers >= MAX_VIEWERS:
            raise web.HTTPServiceUnavailable(text="too many viewers: this page does not update; reload it\n")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self._viewers += 1
        try:
            with suppress(ConnectionError):  # The viewer has disconnected.
                await self._feed(response, path, asked)
        finally:
            self._viewers -= 1
        return response

    async def _feed(self, response: web.StreamResponse, path: str, asked: Mapping[str, str]) -> None:
        shown: dict[str, str] = {}
        while not self._board.over:
            try:
                page = await self._rendered_page(path, asked)
            except web.HTTPNotFound:
                await response.write(b"event: gone\ndata: \n\n")
                return
            changed = {name: html for name, html in page.blocks.items() if shown.get(name) != html}
            shown = page.blocks
            await response.write(b"event: blocks\ndata: " + json.dumps(changed).encode() + b"\n\n")
            await self._board.news()

    # For machines.

    async def _daemon(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(api.daemon(self._board))

    async def _health(self, _: web.Request) -> web.StreamResponse:
        condition = api.condition(self._board)
        return web.json_response(condition, status=200 if condition["fresh"] and not condition["failed"] else 503)

    async def _live_probe(self, _: web.Request) -> web.StreamResponse:
        return probed(api.condition(self._board)["fresh"])

    async def _ready_probe(self, _: web.Request) -> web.StreamResponse:
        return probed(api.grants(self._board))

    async def _store(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(api.store(self._snapshot(request.match_info["number"])))

    async def _sources(self, request: web.Request) -> web.StreamResponse:
        """Answer with at most `api.LIMIT` full records in the wanted order; `found` counts all matches."""
        number = int(request.match_info["number"])
        found = pages.wanted(self._snapshot(number), _query(request.query))
        offset = _whole(request.query.get("offset"), 0)
        limit = min(api.LIMIT, _whole(request.query.get("limit"), api.LIMIT))
        reg_ids = [row.reg_id for row in found[offset : offset + limit]]
        watched = self._board.watched[number]
        shown: list[dict[str, Any]] = []
        for at in range(0, len(reg_ids), CHUNK):
            shown += map(api.source, await watched.ask(partial(look, watched, reg_ids[at : at + CHUNK])))
        return web.json_response({"found": len(found), "offset": offset, "sources": shown})

    async def _client(self, request: web.Request) -> web.StreamResponse:
        number, reg_id = (int(request.match_info[name]) for name in ("number", "reg_id"))
        self._snapshot(number)
        view, its_source = await self._find(number, reg_id)
        if isinstance(view, ReceiverView):
            return web.json_response({"receiver": api.receiver(view, its_source)})
        return web.json_response({"source": api.source(view, await spans(self._board.watched[number], reg_id))})

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        kind = metrics.content_type(request.headers.get("Accept", ""))
        sources = _whole(request.query.get("sources"), metrics.MAX_SOURCES)
        receivers = _whole(request.query.get("receivers"), metrics.MAX_RECEIVERS)
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for piece in metrics.exposition(
            self._board.stores, sources=sources, receivers=receivers, openly=kind == OPEN_METRICS
        ):
            await response.write(piece.encode())
            await asyncio.sleep(0)
        return response

    # Permissions and changes.

    async def _submit(self, request: web.Request) -> web.StreamResponse:
        """Make the change that a form asks for; answer with a confirmation page (P-906)."""
        done = await self._do(request, await form(request))
        number = request.match_info["number"]
        return html(pages.document(pages.notice(f"Store {number}", f"{done}.", f"/stores/{number}"), live=False))

    async def _change(self, request: web.Request) -> web.StreamResponse:
        """Make the change that a program asks for; answer with JSON."""
        return web.json_response({"done": await self._do(request, await _json(request))})

    async def _do(self, request: web.Request, given: Mapping[str, Any]) -> str:
        number = int(request.match_info["number"])
        self._snapshot(number)
        watched = self._board.watched[number]
        change = request.match_info["change"]
        if change == "resume":
            if not await watched.resume():
                raise web.HTTPConflict(text="the store is not parked\n")
            return "The store was restarted"
        if watched.store.failed.done():
            raise web.HTTPConflict(text="the store is parked: resume it first\n")
        match change:
            case "reset":
                await watched.reset_rates()
                return "Rate statistics have been reset"
            case "drain":
                on = _whole(given.get("on"), 1) != 0
                await watched.drain(on)
                return "New clients are refused from now on" if on else "New clients are accepted again"
            case _:
                reg_id = _whole(given.get("reg_id"), 0)
                if not await watched.evict(reg_id):
                    raise missing(f"no client is registered as {reg_id}")
                return f"{reg_id} was removed from this store"

    async def _errand(self, request: web.Request) -> web.StreamResponse:
        snapshot = self._snapshot(request.match_info["number"])
        if request.match_info["errand"] == "scrub" and not snapshot.view.failure:
            # The process that reports has no way to the store. So the store looks for bad records itself, and heals.
            await self._board.watched[snapshot.view.index].scrub()
        return await self._jobs.run(request, snapshot.view.cache_directory, await _json(request))

    def _snapshot(self, number: str | int) -> Snapshot:
        if int(number) >= len(self._board.stores):
            raise missing(f"there is no store {number}")
        return self._board.stores[int(number)]


def _query(asked: Mapping[str, str]) -> Query:
    order = asked.get("sort", "health")
    return Query(asked.get("q", "")[:MAX_QUERY], order if order in ORDERS else "health", _whole(asked.get("page"), 0))


def _whole(text: object, usual: int) -> int:
    """Return a number that a client sent, or `usual`. Raises HTTPBadRequest."""
    if text is None:
        return usual
    written = str(int(text)) if isinstance(text, bool) else str(text)
    if not (written.isdecimal() and len(written) <= 10):
        raise web.HTTPBadRequest(text="send a whole number of at most 10 digits\n")
    return int(written)


async def _json(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request; an empty body is an empty object. Raises HTTPBadRequest."""
    body = await request.read()
    try:
        given = from_json(body or b"{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise web.HTTPBadRequest(text="send a JSON object\n")
    return given
