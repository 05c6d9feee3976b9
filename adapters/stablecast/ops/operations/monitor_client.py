"""A running store's monitor as operations use it: its JSON, over plain HTTP with the token if there is one."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import attrs

from stablecast.ops.operations.target import TOKEN_VARIABLE, OperationError, Remote
from stablecast.text import refusal

TIMEOUT_SECONDS = 30.0
"""How long an answer may take to begin or to go on."""
PIECE_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 64 << 20
"""Of an answer that is read as a whole, in bytes."""


def token_of(path: Path | None) -> str:
    """The token in a file, or in the environment; empty: none. Raises OSError."""
    if path is not None:
        return path.read_text(encoding="utf-8").strip()
    return os.environ.get(TOKEN_VARIABLE, "")


@attrs.frozen
class Client:
    """A store behind its monitor. Everything raises OperationError when the monitor does not do what it is asked."""

    remote: Remote
    token: str = ""

    def store(self) -> dict[str, Any]:
        """The store."""
        return self._get("")

    def sources(self, order: str = "health", offset: int = 0, limit: int = 200) -> dict[str, Any]:
        """Some of its sources."""
        return self._get(f"/sources?sort={order}&offset={offset}&limit={limit}")

    def all_sources(self) -> Iterator[dict[str, Any]]:
        """All of its sources."""
        offset, found = 0, 1
        while offset < found:
            page = self.sources("topic", offset)
            found = page["found"] if page["sources"] else offset
            offset += len(page["sources"])
            yield from page["sources"]

    def client(self, reg_id: int) -> dict[str, Any]:
        """One source or receiver."""
        return self._get(f"/{reg_id}")

    def change(self, what: str, **given: Any) -> str:
        """Have something done; returns what the monitor says."""
        return str(self._post(what, given)["done"])

    def scrub(self) -> dict[str, Any]:
        """Have its files checked."""
        return self._post("scrub", {})

    def export(self, given: dict[str, Any], file: BinaryIO) -> None:
        """Have its messages sent as compressed JSON lines."""
        with self._answer("/export", given) as answer:
            while piece := answer.read(PIECE_BYTES):
                file.write(piece)

    def _get(self, path: str) -> dict[str, Any]:
        with self._answer(path, None) as answer:
            return _object(answer.read(MAX_ANSWER_BYTES))

    def _post(self, what: str, given: dict[str, Any]) -> dict[str, Any]:
        with self._answer(f"/{what}", given) as answer:
            return _object(answer.read(MAX_ANSWER_BYTES))

    @contextmanager
    def _answer(self, path: str, given: dict[str, Any] | None) -> Iterator[HTTPResponse]:
        url = f"{self.remote.base}/api/stores/{self.remote.number}{path}"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        body = None if given is None else json.dumps(given).encode()
        request = Request(url, data=body, headers=headers)  # noqa: S310 - the scheme was checked when it was parsed
        try:
            with urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
                yield answer
        except HTTPError as error:
            with error:
                text = error.read(1000).decode(errors="replace").strip()
            raise OperationError(
                f"the monitor at {self.remote.base} says {error.code}: {text or error.reason}"
            ) from None
        except (URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            told = refusal(reason) if isinstance(reason, BaseException) else reason
            raise OperationError(
                f"the monitor at {self.remote.base} does not answer: {told}; name where a store's web-monitor listens"
            ) from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OperationError("what answers there is no monitor of a store")
    return found


def remaining(client: Client) -> dict[int, int]:
    """What the receivers of each source have still to acknowledge; only sources of which something is left."""
    found = {
        one["reg_id"]: max((reader["lag"] for reader in one["receivers"]), default=0) for one in client.all_sources()
    }
    return {reg_id: lag for reg_id, lag in found.items() if lag}


def drained(client: Client, wait: Callable[[], None], tell: Callable[[dict[int, int]], None]) -> None:
    """Refuse new clients, and wait until every receiver has acknowledged everything; `tell` hears what is left."""
    client.change("drain", on=1)
    while left := remaining(client):
        tell(left)
        wait()
