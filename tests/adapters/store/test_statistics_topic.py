"""The published statistics and their intervals."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from stablecast.config.plan import Plan
from stablecast.config.plan_assembly import build
from stablecast.config.toml_file import outline
from stablecast.runtime import machine
from stablecast.store import statistics_topic
from stablecast.store.statistics import StatKind
from stablecast.store.statistics_topic import Publisher, interval
from tests.adapters.ops.monitor.staged_store import Staged, busy
from tests.support.machine import replace


def plan(daemon: Mapping[str, object] | None, **store: object) -> Plan:
    tables = {"name": "orders", "port": 1, "topic": [{"pattern": ".*", "type": "PCRE"}], **store}
    return build(outline({"daemon": {} if daemon is None else {"daemon-monitor": daemon}, "store": [tables]}))


def publisher(staged: Staged, **daemon: object) -> Publisher:
    return Publisher(plan(daemon), [staged.watched()], lambda: pytest.fail("nobody publishes here"))


def test_a_stores_own_intervals_come_before_those_of_the_daemon() -> None:
    """The documented example: 3 s, 6 s for one store, configurations each 120 s."""
    wide = {"default": 3, "config": 120}
    assert [interval(plan(wide), 0, group) for group in ("source", "config", "memory")] == [3, 120, 3]
    narrow = plan(wide, **{"publishing-interval": {"default": 6}})
    assert [interval(narrow, 0, group) for group in ("source", "config", "memory")] == [6, 6, 3]
    assert interval(plan({"disk": 5}), 0, "source") == interval(plan(None), 0, "source") == 0


async def test_nothing_is_published_that_nobody_asked_for() -> None:
    none: dict[str, object] = {}
    for daemon in (None, none):
        await Publisher(plan(daemon), [Staged().watched()], lambda: pytest.fail("no source is needed")).run()


@pytest.mark.rows("P-907", "M-022")
async def test_a_configuration_is_told_whole_each_time() -> None:
    """Each topic has one number, in every message."""
    telling = publisher(busy())
    first = await telling.news(0, "config")
    assert await telling.news(0, "config") == first
    kinds = [kind for kind, _ in first]
    assert kinds[:2] == [StatKind.STORE_CONFIG, StatKind.PATTERN_CONFIG]
    assert [
        kinds.count(kind) for kind in (StatKind.TOPIC_CONFIG, StatKind.SOURCE_CONFIG, StatKind.RECEIVER_CONFIG)
    ] == [3, 3, 3]
    assert sorted(telling.topics.values()) == [0, 1, 2]


@pytest.mark.parametrize(("group", "count"), [("source", 3), ("disk", 3), ("receiver", 3), ("store", 1), ("memory", 1)])
async def test_statistics_are_told_when_they_have_changed(
    group: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(monkeypatch, "process", resident_bytes=lambda: 5)
    telling = publisher(busy())
    assert len(await telling.news(0, group)) == count
    assert await telling.news(0, group) == []
    telling.last.clear()
    assert len(await telling.news(0, group)) == count


async def test_topics_are_numbered_anew_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_topic, "MAX_TOPICS", 2)
    telling = publisher(busy())
    await telling.news(0, "source")
    assert list(telling.topics.values()) == [2]


def test_the_memory_of_the_process_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.process.resident_bytes() > 1 << 20

    def fail(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_bytes", fail)
    assert machine.process.resident_bytes() == 0
