"""Analysis counts records, and latencies are those of every message."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.evidence.trace.tools import analysis as module
from stablecast.evidence.trace.tools.analysis import Latency, analyze, percentiles


def test_a_run_is_counted(traces: Path) -> None:
    found = list(analyze([traces]))
    assert sum(one.messages["sent"] for one in found) == 120
    source = next(one for one in found if one.role == "source")
    assert source.messages["stable"] == source.messages["sent"]
    assert source.bytes > 0
    told = source.as_json()
    latencies = told["latencies_us"]
    assert isinstance(latencies, dict)
    assert 0 < latencies["send to stable"]["p50"] <= latencies["send to stable"]["max"]
    assert next(iter(source.lines())).startswith("source ")
    store = next(one for one in found if one.role == "store")
    assert store.messages["stored"] > 0
    assert "write to synced" in store.latencies
    receiver = next(one for one in found if one.role == "receiver")
    assert receiver.messages["delivered"] > 0
    assert any("delivery to consumed" in line for line in receiver.lines())


def test_nothing_that_ended_has_no_latency() -> None:
    assert percentiles(Latency().spans) == {}


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8), st.integers(0, 9), st.booleans()), max_size=12),
)
def test_runs_end_in_whatever_parts(steps: list[tuple[int, int, int, bool]]) -> None:
    """Against one entry for each number."""
    fast, naive, spans, now, next_number = Latency(), dict[int, int](), list[int](), 0, 0
    for first, count, passed, begins in steps:
        now += passed
        if begins:
            fast.begin(next_number, next_number + count, now)
            naive |= dict.fromkeys(range(next_number, next_number + count), now)
            next_number += count
        else:
            fast.end(first, first + count, now)
            spans += [now - naive.pop(number) for number in range(first, first + count) if number in naive]
    assert sorted(fast.spans.elements()) == sorted(spans)


def test_runs_that_never_end_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 2)
    latency = Latency()
    for number in range(3):
        latency.begin(number, number + 1, 0)
    latency.end(0, 3, 5)
    assert latency.spans.total() == 2
