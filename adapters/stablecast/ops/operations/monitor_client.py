"""Call a running store's monitor: JSON over HTTP, with the token if there is one."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

import attrs

from stablecast.ops.operations.target import TOKEN_VARIABLE, OperationError, Remote
from stablecast.runtime.ports import prepare_socket
from stablecast.text import refusal
from stablecast.text.json_text import from_json

TIMEOUT_SECONDS = 30.0
"""Longest wait for a connection, and for the next bytes of an answer, in seconds."""
PIECE_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 64 << 20
"""Longest answer that is read as a whole, in bytes."""


class _NoRedirects(HTTPRedirectHandler):
    """Take a redirect for a refusal: the token of all monitors must not reach another host."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


WHERE = "; name where a store's web-monitor listens"
"""The remedy for a monitor that does not answer, where somebody has just typed its address."""

_OPENER = build_opener(_NoRedirects)


class _PatientConnection(HTTPConnection):
    """Once connected, wait for as long as the other host is there: scrub and export may read a whole disk first."""

    def connect(self) -> None:
        super().connect()
        prepare_socket(self.sock)
        self.sock.settimeout(None)


class _PatientTlsConnection(_PatientConnection, HTTPSConnection):
    """The same over TLS."""


class _PatientHandler(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_PatientConnection, req)


class _PatientTlsHandler(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_PatientTlsConnection, req)


_PATIENT_OPENER = build_opener(_NoRedirects, _PatientHandler, _PatientTlsHandler)


def token_of(path: Path | None) -> str:
    """Return the token in a file, or in the environment; empty: none. Raises OSError."""
    if path is not None:
        return path.read_text(encoding="utf-8").strip()
    return os.environ.get(TOKEN_VARIABLE, "")


@attrs.frozen
class MonitorClient:
    """Call the monitor of one store.

    Every method raises OperationError when the monitor refuses or does not answer.
    """

    remote: Remote
    token: str = ""

    def daemon(self) -> dict[str, Any]:
        return self._ask("/api/daemon")

    def service(self) -> dict[str, int]:
        found = self._ask("/api/statistics/srs-stats").get("counters")
        if not isinstance(found, dict):
            raise OperationError("the answer is not that of a service's monitor: correct the address")
        return {name: int(value) for name, value in found.items()}

    def router(self) -> dict[str, Any]:
        return self._ask("/api/router")

    def store(self) -> dict[str, Any]:
        return self._ask("")

    def sources(self, order: str = "health", offset: int = 0, limit: int = 200) -> dict[str, Any]:
        return self._ask(f"/sources?sort={order}&offset={offset}&limit={limit}")

    def all_sources(self) -> Iterator[dict[str, Any]]:
        offset, found = 0, 1
        while offset < found:
            page = self.sources("topic", offset)
            found = page["found"] if page["sources"] else offset
            offset += len(page["sources"])
            yield from page["sources"]

    def change(self, what: str, **given: Any) -> str:
        """Request a change; return the monitor's confirmation."""
        return str(self._ask(f"/{what}", given)["done"])

    def scrub(self) -> dict[str, Any]:
        """Verify the store's files; return the report."""
        return self._ask("/scrub", {}, _PATIENT_OPENER)

    def export(self, given: dict[str, Any], file: BinaryIO) -> None:
        """Write the store's messages to `file` as compressed JSON lines."""
        with self._answer("/export", given, _PATIENT_OPENER) as answer:
            while piece := answer.read(PIECE_BYTES):
                file.write(piece)

    def _ask(self, path: str, given: dict[str, Any] | None = None, opener: OpenerDirector = _OPENER) -> dict[str, Any]:
        with self._answer(path, given, opener) as answer:
            return _object(answer.read(MAX_ANSWER_BYTES))

    @contextmanager
    def _answer(
        self, path: str, given: dict[str, Any] | None, opener: OpenerDirector = _OPENER
    ) -> Iterator[HTTPResponse]:
        within = "" if path.startswith("/api/") else f"/api/stores/{self.remote.number}"
        url = f"{self.remote.base}{within}{path}"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        body = None if given is None else json.dumps(given).encode()
        request = Request(url, data=body, headers=headers)  # noqa: S310 - the scheme was checked when it was parsed
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                yield answer
        except HTTPError as error:
            with error:
                text = error.read(1000).decode(errors="replace").strip()
            raise OperationError(
                f"the monitor at {self.remote.base} answered {error.code}: {text or error.reason}"
            ) from None
        except (URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            cause = refusal(reason) if isinstance(reason, BaseException) else reason
            raise OperationError(f"the monitor at {self.remote.base} does not answer: {cause}{WHERE}") from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = from_json(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OperationError("the answer is not that of a store's monitor: correct the address")
    return found


def remaining(client: MonitorClient) -> dict[int, int]:
    """Return the lag of the slowest receiver of each source, in messages. Sources without a lag are left out."""
    found = {
        one["reg_id"]: max((reader["lag"] for reader in one["receivers"]), default=0) for one in client.all_sources()
    }
    return {reg_id: lag for reg_id, lag in found.items() if lag}


def drained(client: MonitorClient, wait: Callable[[], None], report: Callable[[dict[int, int]], None]) -> None:
    """Refuse new clients and wait until every receiver has acknowledged every message.

    Calls `report` with what `remaining` returns, and `wait` between two requests.
    """
    client.change("drain", on=1)
    while left := remaining(client):
        report(left)
        wait()
