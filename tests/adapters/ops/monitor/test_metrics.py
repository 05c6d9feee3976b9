"""The metrics that Prometheus reads."""

import re
from collections import Counter

import attrs
import pytest

from stablecast.ops.monitor import metrics
from stablecast.ops.monitor.board import Snapshot, SourceRow, StoreHistory
from stablecast.ops.monitor.health import Urgency
from stablecast.ops.monitor.metrics import RECEIVER_METRICS, SOURCE_METRICS, STORE_METRICS, exposition
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE, STORE

SAMPLE = re.compile(r'(stablecast_\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\} (-?[\d.e+]+)')


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
    return {(match[1], match[2]): float(match[3]) for match in found if match}


@pytest.mark.rows("P-966")
def test_every_figure_is_told() -> None:
    """Monitoring and statistics."""
    found = told(snapshot("a", "b"))
    counted = Counter(name for name, _ in found)
    assert counted == Counter(
        {metric.name: 1 for metric in STORE_METRICS}
        | {metric.name: 2 for metric in SOURCE_METRICS}
        | {metric.name: 4 for metric in RECEIVER_METRICS}
    )
    source = 'store="orders",topic="a",source="1001"'
    assert found["stablecast_store_health", 'store="orders"'] == 2
    assert found["stablecast_source_lead", source] == 99
    assert found["stablecast_receiver_lag_messages", f'{source},receiver="2002"'] == 6
    assert found["stablecast_receiver_active", f'{source},receiver="2002"'] == 0


def test_each_metric_is_explained_once() -> None:
    text = "".join(exposition([snapshot("a"), snapshot("b", name="")]))
    names = re.findall(r"^# TYPE (\S+) (?:gauge|counter)$", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(STORE_METRICS + SOURCE_METRICS + RECEIVER_METRICS)
    assert re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE) == names
    assert 'store="0"' in text


def test_labels_are_escaped() -> None:
    assert ("stablecast_source_active", r'store="orders",topic="a\"b\\c\n",source="1001"') in told(snapshot('a"b\\c\n'))


def test_sources_come_in_pieces() -> None:
    pieces = list(exposition([snapshot(*(f"t{number}" for number in range(metrics.CHUNK + 1)))]))
    assert max(piece.count("\n") for piece in pieces) <= 2 * metrics.CHUNK


def test_without_sources_there_is_still_a_store() -> None:
    assert {name for name, _ in told(snapshot())} == {metric.name for metric in STORE_METRICS}
