"""The rows of all sources, which are kept between sweeps."""

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor.board import SAMPLES, SampleSeries, SourceRow, findings_of
from stablecast.ops.monitor.health import Urgency
from stablecast.store.observatory import SourceView
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE


def at(lead: int, lag: int = 0) -> SourceView:
    return attrs.evolve(SOURCE, window=(0, 0, lead), receivers=(attrs.evolve(RECEIVER, lag=lag),))


def test_a_series_keeps_the_newest() -> None:
    series = SampleSeries()
    assert series.newest == 0
    for number in range(SAMPLES + 5):
        series.add(number)
    assert list(series.values) == list(range(5, SAMPLES + 5))
    assert series.newest == SAMPLES + 4


def test_rates_are_what_is_new_since_the_look_before() -> None:
    row = SourceRow(1001)
    assert row.update(at(100), 10 * SECOND) == 0
    assert row.update(at(120), 12 * SECOND) == 20
    assert list(row.rates.values) == [10]


def test_numbers_that_were_cut_back_are_no_negative_rate() -> None:
    row = SourceRow(1001)
    assert [row.update(at(lead), second * SECOND) for second, lead in enumerate((100, 50, 53), 1)] == [0, 0, 3]
    assert list(row.rates.values) == [0, 3]


def test_two_looks_at_one_instant_have_no_rate() -> None:
    row = SourceRow(1001)
    row.update(at(100), SECOND)
    assert row.update(at(101), SECOND) == 1
    assert list(row.rates.values) == []


def test_the_lag_is_that_of_the_slowest() -> None:
    row = SourceRow(1001)
    two = attrs.evolve(SOURCE, receivers=(attrs.evolve(RECEIVER, lag=5), attrs.evolve(RECEIVER, reg_id=9, lag=3)))
    row.update(two, SECOND)
    row.update(attrs.evolve(SOURCE, receivers=()), 2 * SECOND)
    assert list(row.lags.values) == [5, 0]
    assert row.readers == ()


def test_all_figures_are_taken() -> None:
    row = SourceRow(1001)
    view = attrs.evolve(at(99, 7), holes=1, lost=2, bursts=(0, 0, 3), drops=(0, 4), active=False)
    row.update(view, SECOND)
    assert (row.topic, row.session_id, row.active, row.messages, row.lead) == ("orders", 7, False, 100, 99)
    assert (row.holes, row.lost, row.bursts, row.drops, row.received) == (1, 2, 3, 4, 100)
    assert (row.memory_bytes, row.disk_bytes, row.lag, row.readers) == (1000, 5000, 7, ((2001, 7, True),))


def test_a_source_is_as_well_as_its_receivers() -> None:
    row = SourceRow(1001)
    row.update(SOURCE, SECOND)
    assert (row.level, row.findings) == (Urgency.OK, ())
    silent = attrs.evolve(SOURCE, holes=0, receivers=(RECEIVER, attrs.evolve(RECEIVER, reg_id=6, active=False)))
    row.update(silent, 2 * SECOND)
    assert row.level is Urgency.WARNING
    assert [(reg_id, finding.code) for reg_id, finding in row.findings] == [(6, "receiver-silent")]


def test_the_most_urgent_is_said_first() -> None:
    said = findings_of(
        attrs.evolve(SOURCE, proxied=True, lost=1, given_up=1, receivers=(attrs.evolve(RECEIVER, active=False),))
    )
    assert [finding.code for _, finding in said] == ["lost", "receiver-silent", "proxy"]
