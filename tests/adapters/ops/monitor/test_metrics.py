"""The metrics that Prometheus reads."""

import re
from collections import Counter

import attrs
import pytest

from stablecast.core.machine.durations import BOUNDS_NS, Durations
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.ops.monitor import metrics
from stablecast.ops.monitor.board import Snapshot, SourceRow, StoreHistory
from stablecast.ops.monitor.health import Urgency
from stablecast.ops.monitor.metrics import (
    COPY_METRICS,
    HISTOGRAMS,
    RECEIVER_METRICS,
    SOURCE_METRICS,
    STORE_METRICS,
    exposition,
)
from stablecast.store.store_views import Traffic
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE, STORE

PROCESS_METRICS = (
    *("stablecast_build_info", "process_cpu_seconds_total", "process_resident_memory_bytes"),
    *("process_start_time_seconds", "stablecast_free_descriptors"),
)
"""Names of the figures of the process."""
SAMPLE = re.compile(r'(\w+?)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\})? (-?[\d.e+]+)')
BUCKETS = len(BOUNDS_NS) + 3
"""Lines of a histogram: its buckets, the one without a bound, the sum and the count."""


def snapshot(*topics: str, name: str = "orders") -> Snapshot:
    receivers = (RECEIVER, attrs.evolve(RECEIVER, reg_id=2002, lag=6, active=False))
    rows = {number: SourceRow(number) for number, _ in enumerate(topics, 1001)}
    for number, topic in enumerate(topics, 1001):
        rows[number].update(attrs.evolve(SOURCE, reg_id=number, topic=topic, receivers=receivers), 1)
    return Snapshot(attrs.evolve(STORE, name=name), (), rows, Urgency.WARNING, StoreHistory())


def told(*stores: Snapshot) -> dict[tuple[str, str], float]:
    text = "".join(exposition(list(stores)))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [SAMPLE.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    return {(match[1], match[2] or ""): float(match[3]) for match in found if match}


def names(found: dict[tuple[str, str], float]) -> Counter[str]:
    """Return the number of samples by family."""
    return Counter(re.sub(r"(?<=_seconds)_(bucket|sum|count)$", "", name) for name, _ in found)


@pytest.mark.rows("P-920")
def test_naks_and_duplicates_of_a_source_are_told() -> None:
    """`test_transport_stores` shows that a store over LBT-RM counts them."""
    shown = snapshot("a", "b")
    shown.rows[1002].update(attrs.evolve(SOURCE, reg_id=1002, topic="b", traffic=Traffic(100, 20_000, 4, 0, 17, 5)), 2)
    found = told(shown)
    first, second = 'store="orders",topic="a",source="1001"', 'store="orders",topic="b",source="1002"'
    naks, duplicates = "stablecast_source_naks_total", "stablecast_source_duplicates_total"
    assert [found[naks, first], found[duplicates, first]] == [0, 0]
    assert [found[naks, second], found[duplicates, second]] == [17, 5]


@pytest.mark.rows("P-966")
def test_every_figure_is_told() -> None:
    """Monitoring and statistics."""
    found = told(snapshot("a", "b"))
    assert names(found) == Counter(
        {metric.name: 1 for metric in STORE_METRICS}
        | {metric.name: 2 for metric in (*SOURCE_METRICS, *COPY_METRICS)}
        | {metric.name: 4 for metric in RECEIVER_METRICS}
        | {metric.name: BUCKETS for metric in HISTOGRAMS}
        | dict.fromkeys(PROCESS_METRICS, 1)
    )
    source = 'store="orders",topic="a",source="1001"'
    copy = 'store="orders",topic="a",life="3.4",group="0"'
    assert [found[metric.name, copy] for metric in COPY_METRICS] == [1, 2, 3]
    assert found["stablecast_store_health", 'store="orders"'] == 2
    assert found["stablecast_source_lead", source] == 99
    assert found["stablecast_receiver_lag_messages", f'{source},receiver="2002"'] == 6
    assert found["stablecast_receiver_active", f'{source},receiver="2002"'] == 0


def test_each_metric_is_explained_once() -> None:
    text = "".join(exposition([snapshot("a"), snapshot("b", name="")]))
    found = re.findall(r"^# TYPE (\S+) (?:gauge|counter|histogram)$", text, re.MULTILINE)
    assert len(found) == len(set(found))
    assert {*found} == {*names(told(snapshot("a")))}
    assert re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE) == found
    assert 'store="0"' in text


def test_labels_are_escaped() -> None:
    assert ("stablecast_source_active", r'store="orders",topic="a\"b\\c\n",source="1001"') in told(snapshot('a"b\\c\n'))


def test_sources_come_in_pieces() -> None:
    pieces = list(exposition([snapshot(*(f"t{number}" for number in range(metrics.CHUNK + 1)))]))
    assert max(piece.count("\n") for piece in pieces) <= metrics.CHUNK


def test_without_sources_there_is_still_a_store() -> None:
    asked = {*names(told(snapshot()))} - {*PROCESS_METRICS}
    assert asked == {metric.name for metric in STORE_METRICS} | {metric.name for metric in HISTOGRAMS}


def test_sources_beyond_the_bound_share_a_row() -> None:
    """The row has their sum, and of numbers that cannot be added the largest."""
    store = snapshot("a", "b", "c")
    store.rows[1003].lead, store.rows[1003].messages = 500, 7
    text = "".join(exposition([store], sources=1, receivers=3))
    other = 'store="orders",topic="*other*",source="0"'
    assert f"stablecast_source_lead{{{other}}} 500\n" in text
    assert f"stablecast_source_messages{{{other}}} 107\n" in text
    assert text.count("stablecast_source_lead{") == 2
    assert f'stablecast_receiver_lag_messages{{{other},receiver="0"}} 6\n' in text
    assert f'stablecast_receiver_active{{{other},receiver="0"}} 2\n' in text
    assert text.count("stablecast_receiver_active{") == 3


def test_the_bound_holds_with_ten_thousand_sources() -> None:
    pieces = list(exposition([snapshot(*(f"topics/of/a/long/name/{number}" for number in range(10_000)))]))
    assert sum(map(len, pieces)) < 5_000_000
    of_sources = len(SOURCE_METRICS + COPY_METRICS) * (metrics.MAX_SOURCES + 1)
    of_receivers = len(RECEIVER_METRICS) * (metrics.MAX_RECEIVERS + 1)
    assert of_sources < "".join(pieces).count("\n") < of_sources + of_receivers + 300


def test_a_histogram_counts_up() -> None:
    times = Durations()
    for took in (0, -5, 100_000, 100_001, 3 * MILLISECOND, 3600 * SECOND):
        times.add(took)
    store = snapshot()
    store = attrs.evolve(
        store, view=attrs.evolve(store.view, journal=attrs.evolve(store.view.journal, sync_times=times.view()))
    )
    found = told(store)
    at = "stablecast_store_sync_seconds"
    by_bound = {bound: found[f"{at}_bucket", f'store="orders",le="{bound}"'] for bound in ("0.0001", "0.0002", "0.005")}
    assert by_bound == {"0.0001": 3, "0.0002": 4, "0.005": 5}
    assert found[f"{at}_bucket", 'store="orders",le="+Inf"'] == found[f"{at}_count", 'store="orders"'] == 6
    assert found[f"{at}_sum", 'store="orders"'] == pytest.approx(3600.0032, abs=1e-6)


def test_open_metrics_has_examples_and_an_end() -> None:
    store = snapshot()
    store.history.times.delivery.add_example(3 * SECOND, (("topic", 'a"b' * 99), ("receiver", "7")), 5 * SECOND)
    text = "".join(exposition([store], openly=True))
    assert text.endswith("\n# EOF\n")
    [line] = [line for line in text.splitlines() if " # {" in line]
    name, _, example = line.partition(" # ")
    assert name == 'stablecast_store_delivery_seconds_bucket{store="orders",le="5.0"} 1'
    assert example.endswith('",receiver="7"} 3.0 5.0')
    assert len(example) < 200
    assert "# TYPE stablecast_store_journal_syncs counter\n" in text
    assert "stablecast_store_journal_syncs_total{" in text
