"""Coverage: look-ups are counted while watching, and only then."""

from stablecast.core.machine.chart import fire
from stablecast.core.store import client_lifetime
from stablecast.core.store.client_lifetime import Lifetime, LifetimeEvent
from stablecast.lab.schedules.seeds import SeedsResult
from stablecast.lab.sim.coverage import Coverage


def test_look_ups_are_counted_while_watching() -> None:
    coverage, client = Coverage(), Lifetime(10, 20, 0)
    with coverage.watching():
        client.on_heard(5)
        client.check(15)
    client.on_heard(16)
    seen = coverage.as_json()["lifetime"]
    assert seen["transitions"]["ACTIVE.HEARD"] == 1
    assert seen["transitions"]["ACTIVE.SILENT"] == 1
    assert seen["states"] == {"ACTIVE": 2, "INACTIVE": 1, "EXPIRED": 0}
    assert set(seen["never"]) == {"EXPIRED", "ACTIVE.GONE", "INACTIVE.HEARD", "INACTIVE.EXPIRE"}


def test_tables_are_put_back() -> None:
    table = client_lifetime.LIFETIME
    with Coverage().watching():
        assert client_lifetime.LIFETIME is not table
        assert list(table) == list(client_lifetime.LIFETIME)
        assert fire(client_lifetime.LIFETIME, Lifetime(1, 1, 0), LifetimeEvent.GONE, 0)
    assert client_lifetime.LIFETIME is table


def test_coverages_add_up() -> None:
    first, second = SeedsResult(), SeedsResult()
    for outcome in (first, second):
        with Coverage(outcome.coverage).watching():
            Lifetime(10, 20, 0).on_heard(5)
    first.add(second)
    assert Coverage(first.coverage).as_json()["lifetime"]["transitions"]["ACTIVE.HEARD"] == 2
