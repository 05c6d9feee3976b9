"""The monitor in a terminal."""

import io
from typing import Any

import attrs
import pytest
from rich.console import Console

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor import api
from stablecast.ops.monitor.board import Snapshot, StoreHistory
from stablecast.ops.monitor.health import of_store, worst
from stablecast.ops.operations.monitor_client import MonitorClient
from stablecast.ops.operations.target import Remote
from stablecast.ops.operations.top import Top
from stablecast.store.observatory import SourceView
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE, STORE


class Fake(MonitorClient):
    """A monitor that says what it is told to."""

    view = STORE
    shown: tuple[SourceView, ...] = ()

    def store(self) -> dict[str, Any]:
        findings = tuple(of_store(self.view))
        return api.store(Snapshot(self.view, findings, {}, worst(findings), StoreHistory()))

    def sources(self, order: str = "health", offset: int = 0, limit: int = 200) -> dict[str, Any]:
        return {"found": 2, "offset": 0, "sources": [api.source(one) for one in self.shown]}


def seen(top: Top) -> str:
    console = Console(file=io.StringIO(), width=150)
    console.print(top.render())
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def top() -> Top:
    class Told(Fake):
        pass

    return Top(Told(Remote("http://h", 0)))


def show(top: Top, seconds: int, lead: int, **changes: Any) -> None:
    told: Any = type(top.client)
    told.view = attrs.evolve(STORE, taken_ns=STORE.taken_ns + seconds * SECOND, **changes)
    late = attrs.evolve(SOURCE, window=(0, 0, lead), receivers=(attrs.evolve(RECEIVER, lag=2500),))
    told.shown = (late, attrs.evolve(SOURCE, reg_id=1002, topic="idle", receivers=()))


def test_rates_come_from_two_looks(top: Top) -> None:
    show(top, 0, 100)
    first = next(line for line in seen(top).splitlines() if line.startswith("orders") and "1001" in line)
    assert first.split() == ["orders", "1001", "100", "100", "-", "0", "0", "2.5k", "1"]
    show(top, 2, 150)
    second = next(line for line in seen(top).splitlines() if line.startswith("orders") and "1001" in line)
    assert second.split()[3:5] == ["150", "25"]


def test_the_head_says_how_the_store_is(top: Top) -> None:
    show(top, 0, 100, failure="the disk failed", name="")
    text = seen(top)
    assert "critical: the disk failed" in text
    assert "127.0.0.1:14567  up 1 min 40 s  1 source  1 receiver" in text
    assert "longest sync 2 ms" in text
    assert "2 of 2 sources" in text


def test_what_is_said_of_sources_is_in_the_head(top: Top) -> None:
    """Said of many in the same words it is said once; the store's own comes by its urgency."""
    show(top, 0, 100, draining=True)
    told: Any = type(top.client)
    gone = attrs.evolve(SOURCE, active=False, receivers=(attrs.evolve(RECEIVER, active=False),))
    told.shown = (gone, attrs.evolve(gone, reg_id=1002, receivers=()))
    away = "inactive: it was silent for longer than its activity timeout; evict it if it will not return"
    head = seen(top).splitlines()[2:4]
    assert [line.strip() for line in head] == [
        f"warning: orders and 2 more: {away}",
        "notice: new clients are refused; registered clients are served",
    ]


def test_eighty_columns_cut_no_regid_short(top: Top) -> None:
    show(top, 0, 100)
    told: Any = type(top.client)
    told.shown = (attrs.evolve(SOURCE, topic="desk.0001.orders", reg_id=4_093_582_111, window=(0, 0, 9_999_999)),)
    console = Console(file=io.StringIO(), width=80)
    console.print(top.render())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "desk.0001.orders" in text
    assert "4093582111" in text
