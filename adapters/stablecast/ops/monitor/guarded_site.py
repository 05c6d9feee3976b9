"""What all sites for operators share: the guard, the form that asks for the token, static files, pages for errors."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from stablecast.ops.monitor import access, pages
from stablecast.ops.monitor.settings import MonitorSettings
from stablecast.runtime import machine

MAX_BODY_BYTES = 16_384
"""Largest body of a request, in bytes."""
MAX_QUERY = 256
"""Longest search text, in characters."""
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""Media types of static files."""


class GuardedSite:
    """Answer requests that the guard lets through."""

    def __init__(self, settings: MonitorSettings, *static: Path) -> None:
        """Serve these static files, and what `guarded` is given, under the permissions of `settings`."""
        self.settings = settings
        self._guesses = access.Guesses(settings.token)
        self._files = {path.name: (TYPES[path.suffix], machine.installed_file(path)) for path in static}

    def guarded(self, routes: Iterable[web.AbstractRouteDef], *more: Middleware) -> web.Application:
        """Return an application with these routes, and with these middlewares behind the guard."""
        made = web.Application(
            middlewares=[_error_page, access.guard(self.settings, self._guesses), *more], client_max_size=MAX_BODY_BYTES
        )
        made.on_response_prepare.append(access.dress)
        made.add_routes(
            [
                web.get("/static/{name}", self._static),
                web.get("/login", self._ask_token),
                web.post("/login", self._log_in),
                *routes,
            ]
        )
        return made

    async def _static(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["name"] not in self._files:
            raise missing("no such file")
        kind, body = self._files[request.match_info["name"]]
        return web.Response(body=body, content_type=kind, headers={"Cache-Control": "max-age=3600"})

    async def _ask_token(self, _: web.Request) -> web.StreamResponse:
        return html(pages.document(pages.login(wrong=False), live=False))

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        given = str((await form(request)).get("token", ""))
        if not self._guesses.is_right(request, given):
            return html(pages.document(pages.login(wrong=True), live=False), status=403)
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(access.COOKIE, given, httponly=True, samesite="Strict")
        return answer


@web.middleware
async def _error_page(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a browser's failed request with a page instead of plain text."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400 or not access.wants_html(request):
            raise
        return html(pages.document(pages.notice(error.reason, error.text or "", "/"), live=False), error.status)


def html(text: str, status: int = 200) -> web.Response:
    """Return a page as an answer."""
    return web.Response(text=text, content_type="text/html", status=status)


def missing(text: str) -> web.HTTPNotFound:
    """Return the answer to a request for what is not there."""
    return web.HTTPNotFound(text=f"{text}\n")


async def form(request: web.Request) -> Mapping[str, Any]:
    """Return the fields of a form. Raises HTTPBadRequest."""
    try:
        return await request.post()
    # The body does not match its content type, or names an unknown encoding.
    except (ValueError, LookupError, AssertionError):
        raise web.HTTPBadRequest(text="send an HTML form\n") from None
