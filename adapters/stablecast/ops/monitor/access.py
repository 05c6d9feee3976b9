"""Decide which requests a site for operators answers, and answer those that all sites have.

- **Names.** On loopback the monitor answers only to names of this host. Otherwise a web page whose name resolves to
  this host could read the monitor through its visitor's browser (DNS rebinding).
- **Token.** If a token is set, a request without it gets only the login form. Programs send it as a bearer token.
  Browsers send it as a cookie that scripts cannot read and other sites cannot use. After a wrong one, an address must
  wait before the next is compared.
- **Changes** need the read-write permission (P-807) and POST. A browser's request must come from a page of this
  monitor. Without a token only the user of the monitor and root may change something: any user reaches loopback.
"""

import hmac
import ipaddress
import logging
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from stablecast.ops.monitor import pages
from stablecast.ops.monitor.settings import MonitorSettings, Permission
from stablecast.runtime import machine

COOKIE = "stablecast"
OPEN = ("/login", "/static/", "/livez", "/readyz")
"""Paths that are served without the token. Probes of a container platform have none."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


FREE_GUESSES = 5
"""Wrong tokens of an address before it must wait."""
WAIT_SECONDS = 1.0
"""Wait of an address after each further wrong token. A right token is not compared before its end either."""
MAX_GUESSERS = 1024
"""Addresses whose wrong tokens are counted. The one that guessed first is forgotten when there are more."""


TOLD = 1000
"""Wrong tokens of all addresses: the first is logged, and then one in this many."""

_logger = logging.getLogger("stablecast")


class Guesses:
    """Wrong tokens by address, logged. Without a wait, programs try thousands in a second."""

    def __init__(self, token: str) -> None:
        self.wrong = 0
        self._token = token
        self._guessers: dict[str, tuple[int, float]] = {}

    def is_right(self, request: web.Request, given: str) -> bool:
        """Return whether `given` is the token. Raises HTTPTooManyRequests if the address must wait."""
        address, now = request.remote or "", machine.clock.monotonic()
        count, until = self._guessers.get(address, (0, 0.0))
        if not given:
            return False
        if now < until:
            raise web.HTTPTooManyRequests(
                text="too many wrong tokens: wait before the next one\n",
                headers={"Retry-After": str(math.ceil(until - now))},
            )
        if is_token(given, self._token):
            self._guessers.pop(address, None)
            return True
        self.wrong += 1
        if self.wrong % TOLD == 1:
            _logger.warning("%s sent a wrong token to the monitor (%d wrong ones so far)", address, self.wrong)
        if address not in self._guessers and len(self._guessers) == MAX_GUESSERS:
            del self._guessers[next(iter(self._guessers))]
        self._guessers[address] = (count + 1, now + WAIT_SECONDS if count >= FREE_GUESSES else 0.0)
        return False


def guard(settings: MonitorSettings, guesses: Guesses | None = None) -> Middleware:
    """Return a middleware that enforces these settings; `guesses` are shared with a login form."""
    guesses = guesses or Guesses(settings.token)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if settings.on_loopback and not is_local(request.host):
            raise web.HTTPMisdirectedRequest(text="this monitor answers only to names of this host\n")
        if settings.token and not request.path.startswith(OPEN) and not guesses.is_right(request, _shown(request)):
            if request.method == "GET" and wants_html(request):
                raise web.HTTPSeeOther("/login")
            raise web.HTTPUnauthorized(
                text="the token is missing or wrong: send it as a bearer token\n",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if request.method not in ("GET", "HEAD"):
            if request.path != "/login" and settings.permission is not Permission.READ_WRITE:
                raise web.HTTPForbidden(text="this monitor is read-only\n")
            if not settings.token and not _is_owner(request):
                raise web.HTTPForbidden(text="another user of this host asks: set a token, and send it\n")
            if not _own_page(request):
                raise web.HTTPForbidden(text="a page of another site sent this request\n")
        return await handler(request)

    return check


async def dress(_: web.Request, response: web.StreamResponse) -> None:
    """Add the security headers to every answer."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def is_token(given: str, token: str) -> bool:
    """Return whether `given` is the token, in constant time."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), token.encode())


def _shown(request: web.Request) -> str:
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    return bearer if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")


def wants_html(request: web.Request) -> bool:
    return "text/html" in request.headers.get("Accept", "")


def is_local(host: str) -> bool:
    """Return whether the host of a request is a name of this one."""
    name = host.rsplit(":", 1)[0] if host.rpartition(":")[2].isdecimal() else host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_owner(request: web.Request) -> bool:
    """Return whether the user of this process sent a request, or root. It came over loopback: there is no token."""
    transport = request.transport
    if transport is None:
        return False
    local, remote = (transport.get_extra_info(name) for name in ("sockname", "peername"))
    return machine.network.is_of_owner(local[:2], remote[:2])


def _own_page(request: web.Request) -> bool:
    """Return whether a program sent this request, or a browser that shows a page of this monitor."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site == "same-origin"
    return origin is None or origin.partition("://")[2] == request.host


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
        self._guesses = Guesses(settings.token)
        self._files = {path.name: (TYPES[path.suffix], machine.installed_file(path)) for path in static}

    def guarded(self, routes: Iterable[web.AbstractRouteDef], *more: Middleware) -> web.Application:
        """Return an application with these routes, and with these middlewares behind the guard."""
        made = web.Application(
            middlewares=[_error_page, guard(self.settings, self._guesses), *more], client_max_size=MAX_BODY_BYTES
        )
        made.on_response_prepare.append(dress)
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
        answer.set_cookie(COOKIE, given, httponly=True, samesite="Strict")
        return answer


@web.middleware
async def _error_page(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a browser's failed request with a page instead of plain text."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400 or not wants_html(request):
            raise
        return html(pages.document(pages.notice(error.reason, error.text or "", "/"), live=False), error.status)


def html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, content_type="text/html", status=status)


def missing(text: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(text=f"{text}\n")


def probed(well: bool) -> web.Response:
    """Answer a probe, which may have no token, with no more than yes or no."""
    return web.Response(text="yes\n" if well else "no\n", status=200 if well else 503)


async def form(request: web.Request) -> Mapping[str, Any]:
    """Return the fields of a form. Raises HTTPBadRequest."""
    try:
        return await request.post()
    # The body does not match its content type, or names an unknown encoding.
    except (ValueError, LookupError, AssertionError):
        raise web.HTTPBadRequest(text="send an HTML form\n") from None
