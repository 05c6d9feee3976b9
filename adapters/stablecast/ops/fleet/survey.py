"""The records of all stores, services and routers, from their monitors, asked at the same time."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from stablecast.ops.operations.monitor_client import WHERE, MonitorClient
from stablecast.ops.operations.target import OperationError, Remote

AT_ONCE: Final = 32
"""Monitors that are asked at the same time, at most."""


NO_DAEMON: Final = "answered 404"
"""Part of the refusal of a monitor that is not that of a daemon with stores."""


@attrs.frozen
class SurveyedStore:
    """A store as its monitor shows it.

    Attributes:
        monitor: The base address of its monitor.
        record: The store, as in `/api/stores/N`.
        sources: Its sources with their receivers, as in `/api/stores/N/sources`.
        clock_ns: The wall clock of its host minus that of this one, in ns, with an error of `error_ns`.
        error_ns: Half of the time that the monitor took to answer.
    """

    monitor: str
    record: dict[str, Any]
    sources: list[dict[str, Any]]
    clock_ns: int
    error_ns: int

    @property
    def name(self) -> str:
        """Return the store's name with its address."""
        name, address = self.record["name"], self.record["address"]
        return f"{name} ({address})" if name else str(address)

    @property
    def where(self) -> str:
        """Return its place for commands: the monitor, with the number of the store there."""
        return f"{self.monitor}/stores/{self.record.get('index', 0)}"


@attrs.frozen
class SurveyedService:
    """A resolution service as its monitor shows it: its clients, and the topics that it knows."""

    monitor: str
    clients: int
    topics: int

    @property
    def name(self) -> str:
        return self.monitor


@attrs.frozen
class SurveyedRouter:
    """A router as its monitor shows it: `record` is that of `/api/router`."""

    monitor: str
    record: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.record["name"])

    @property
    def domains(self) -> list[int]:
        return [portal["domain"] for portal in self.record["portals"] if portal["domain"]]


Member = SurveyedStore | SurveyedService | SurveyedRouter
"""The daemons that a monitor can show."""


@attrs.frozen
class Survey:
    """All stores, services and routers that answered, and the sentence of each monitor that did not, by its address.

    `remembered` has the names of the stores that a monitor had when it last answered, if it was asked before.
    """

    stores: list[SurveyedStore]
    silent: dict[str, str]
    services: list[SurveyedService] = attrs.field(factory=list)
    routers: list[SurveyedRouter] = attrs.field(factory=list)
    remembered: dict[str, tuple[str, ...]] = attrs.field(factory=dict)


def survey(monitors: Sequence[str], token: str = "") -> Survey:
    """Ask all monitors for all of their stores, and return when each has answered or failed."""
    members: list[Member] = []
    silent: dict[str, str] = {}
    with ThreadPoolExecutor(min(AT_ONCE, len(monitors) or 1)) as workers:
        for monitor, future in [(one, workers.submit(_members, one, token)) for one in dict.fromkeys(monitors)]:
            try:
                members += future.result()
            except OperationError as error:
                silent[monitor] = str(error).removesuffix(WHERE)
    return Survey(
        [one for one in members if isinstance(one, SurveyedStore)],
        silent,
        [one for one in members if isinstance(one, SurveyedService)],
        [one for one in members if isinstance(one, SurveyedRouter)],
    )


def _members(monitor: str, token: str) -> Sequence[Member]:
    """Return the stores of a daemon, or the service or router whose monitor this is. Raises OperationError."""
    client = MonitorClient(Remote(monitor, 0), token)
    before = time.time_ns()
    refusal = OperationError("")
    for ask in (
        lambda: _stores(monitor, token, client.daemon(), before),
        lambda: [_service(monitor, client)],
        lambda: [SurveyedRouter(monitor, client.router())],
    ):
        try:
            return ask()
        except OperationError as refused:
            # The other kinds answer, but have no such page. A monitor that does not answer is not asked again.
            if NO_DAEMON not in str(refused):
                raise
            refusal = refused
    raise refusal


def _service(monitor: str, client: MonitorClient) -> SurveyedService:
    counters = client.service()
    return SurveyedService(monitor, counters["active.clients.count"], counters["topics.count"])


def _stores(monitor: str, token: str, daemon: dict[str, Any], before: int) -> list[SurveyedStore]:
    took = time.time_ns() - before
    clock_ns = daemon["time_ns"] - before - took // 2
    found = []
    for record in daemon["stores"]:
        sources = [*MonitorClient(Remote(monitor, record["index"]), token).all_sources()]
        found.append(SurveyedStore(monitor, record, sources, clock_ns, took // 2))
    return found
