"""The statistics of a service as JSON: whole for a request, and only changes when they are published (T-421)."""

import json
from collections import deque
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from stablecast.resolver.srs.config import CATEGORIES, SrsConfig
from stablecast.runtime import machine
from stablecast.transports.resolution.srs import statistics
from stablecast.transports.resolution.srs.service import ResolutionService

MAX_EVENTS = 1_024
"""Connection events that wait to be published; older ones are dropped."""
MAX_CLIENTS = 256
"""Clients in one message of statistics, and clients or topics in one answer of the monitor."""

Body = dict[str, Any]
"""One message of statistics, as JSON."""


@attrs.define
class ServiceStatistics:
    """The statistics of one service; `intervals` are in milliseconds, by kind, and requests may change them.

    Attributes:
        slow: The count of clients that were disconnected because they did not read.
    """

    service: ResolutionService
    config: SrsConfig
    slow: int = 0
    intervals: dict[str, int] = attrs.field(factory=dict)
    _events: deque[Body] = attrs.field(factory=lambda: deque(maxlen=MAX_EVENTS))
    _published: dict[tuple[str, str], dict[str, int]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.intervals = {category: self.config.interval(category) for category in CATEGORIES}

    def event(self, kind: str, peer: str) -> None:
        """Note that a connection was made (`connect`) or is over (`disconnect`)."""
        ip, _, port = peer.rpartition(":")
        self._events.append({"event": kind, "ip": ip, "port": port, "time": machine.clock.utc_now().isoformat()})

    def snapshot(self, category: str, first: int = 0, count: int = MAX_CLIENTS) -> Body:
        """Return all statistics of a kind; of clients, `count` from the `first` on."""
        if category == "srs-stats":
            return self._message(category, counters=statistics.of_service(self.service))
        if category == "srs-error-stats":
            return self._message(category, counters={**statistics.errors_of(self.service), "slow.count": self.slow})
        if category == "connection-events":
            return self._message(category, events=list(self._events))
        if category in ("um-client-stats", "um-client-error-stats"):
            return self._message(category, clients=self._clients(category, first, min(count, MAX_CLIENTS)))
        return self._message(category, options=_plain(attrs.asdict(self.config, value_serializer=plain_value)))

    def topics(self, first: int = 0, count: int = MAX_CLIENTS) -> Body:
        found = statistics.of_topics(self.service, first, min(count, MAX_CLIENTS))
        return self._message("topic-stats", topics=[attrs.asdict(one) for one in found])

    def news(self, category: str) -> Iterator[Body]:
        """Yield the messages of a kind to publish now: counters that changed since the last call, and new events."""
        if category == "connection-events":
            if self._events:
                yield self.snapshot(category)
                self._events.clear()
            return
        if category in ("um-client-stats", "um-client-error-stats"):
            yield from self._news_of_clients(category)
            return
        body = self.snapshot(category)
        if "counters" in body:
            body["counters"] = self._changed(category, "", body["counters"])
        if body.get("counters", True):
            yield body

    def _news_of_clients(self, category: str) -> Iterator[Body]:
        living, first = set(), 0
        while clients := self._clients(category, first, MAX_CLIENTS):
            for client in clients:
                living.add(client["sessionId"])
                client["counters"] = self._changed(category, client["sessionId"], client["counters"])
            changed = [client for client in clients if client["counters"]]
            if changed:
                yield self._message(category, clients=changed)
            first += MAX_CLIENTS
        gone = [key for key in self._published if key[0] == category and key[1] not in living]
        for key in gone:
            del self._published[key]

    def _changed(self, category: str, session: str, counters: dict[str, int]) -> dict[str, int]:
        before = self._published.get((category, session), {})
        self._published[category, session] = counters
        return {name: value for name, value in counters.items() if before.get(name) != value}

    def _clients(self, category: str, first: int, count: int) -> list[Body]:
        found = []
        for one in statistics.of_clients(self.service, first, count):
            ip, _, port = one.peer.rpartition(":")
            counters = one.counters if category == "um-client-stats" else one.errors
            found.append(
                {"ip": ip, "port": port, "sessionId": one.instance.hex(), "active": one.up, "counters": counters}
            )
        return found

    def _message(self, category: str, **content: Any) -> Body:
        head = {"monitorInfoCategory": category.upper().replace("-", "_"), "time": machine.clock.utc_now().isoformat()}
        name = {"applicationId": self.config.application_id} if self.config.application_id else {}
        return {**head, **name, **content}


def encoded(body: Body) -> bytes:
    return json.dumps(body).encode()


def plain_value(_: object, __: object, value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _plain(options: Body) -> Body:
    """Return options without those that no file has."""
    return {name: value for name, value in options.items() if name != "notices"}
