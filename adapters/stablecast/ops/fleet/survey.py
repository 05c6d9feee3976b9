"""The records of all stores, from their monitors, asked at the same time."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from stablecast.ops.operations.monitor_client import MonitorClient
from stablecast.ops.operations.target import OperationError, Remote

AT_ONCE: Final = 32
"""Monitors that are asked at the same time, at most."""


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


@attrs.frozen
class Survey:
    """All stores that answered, and the sentence of each monitor that did not, by its address."""

    stores: list[SurveyedStore]
    silent: dict[str, str]


def survey(monitors: Sequence[str], token: str = "") -> Survey:
    """Ask all monitors for all of their stores, and return when each has answered or failed."""
    found: list[SurveyedStore] = []
    silent: dict[str, str] = {}
    with ThreadPoolExecutor(min(AT_ONCE, len(monitors) or 1)) as workers:
        for monitor, future in [(one, workers.submit(_stores, one, token)) for one in dict.fromkeys(monitors)]:
            try:
                found += future.result()
            except OperationError as error:
                silent[monitor] = str(error)
    return Survey(found, silent)


def _stores(monitor: str, token: str) -> list[SurveyedStore]:
    before = time.time_ns()
    daemon = MonitorClient(Remote(monitor, 0), token).daemon()
    took = time.time_ns() - before
    clock_ns = daemon["time_ns"] - before - took // 2
    found = []
    for record in daemon["stores"]:
        sources = [*MonitorClient(Remote(monitor, record["index"]), token).all_sources()]
        found.append(SurveyedStore(monitor, record, sources, clock_ns, took // 2))
    return found
