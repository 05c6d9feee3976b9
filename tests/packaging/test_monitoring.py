"""The alert rules and the dashboard: their series exist, and Prometheus itself fires each alert for a planted fault.

The samples that Prometheus gets are the text that `/metrics` answers, of three stores with one source, and of a watch.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from stablecast.core.machine.durations import DurationView
from stablecast.evidence.watch.metrics_page import WatchFigures
from stablecast.ops.monitor.board import Snapshot, SourceRow, StoreHistory
from stablecast.ops.monitor.health import Urgency
from stablecast.ops.monitor.metrics import exposition
from stablecast.ops.router.metrics import exposition as router_exposition
from stablecast.router.views import PortalView, RouterView
from stablecast.store.observatory import SourceView, StoreView
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE, STORE
from tests.support.left_out import needs
from tests.support.tree import ROOT

FOLDER: Final = ROOT / "packaging/monitoring"
RULES: Final = FOLDER / "stablecast.rules.yaml"
ALERTS: Final[list[dict[str, Any]]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
PANELS: Final[list[dict[str, Any]]] = json.loads((FOLDER / "grafana-dashboard.json").read_text())["panels"]
QUERIES: Final = {f"{one['title']} {at['refId']}": str(at["expr"]) for one in PANELS for at in one["targets"]}
SAMPLE: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
ROOMY: Final = attrs.evolve(STORE, room=(1 << 40, 64 << 20))
NAME: Final = re.compile(r"\b(?:stablecast|process)_\w+")

QUIET_MINUTES: Final = 20
"""Minutes for which all is well before the fault."""
FAULT_MINUTES: Final = 10
"""Minutes from the fault until the alert is asked for."""

needs_prometheus = needs("promtool")


@attrs.frozen
class ScrapedStore:
    """A store with one source, as its monitor reports them; `up` is false if the monitor does not answer."""

    view: StoreView = ROOMY
    source: SourceView = SOURCE
    up: bool = True

    def samples(self, number: int) -> Iterator[tuple[str, float]]:
        """Yield name with labels, and value, of each sample of this store, as Prometheus stores them."""
        target = f'job="stablecast",instance="store-{number}:15304"'
        yield f"up{{{target}}}", float(self.up)
        if self.up:
            row = SourceRow(self.source.reg_id)
            row.update(self.source, 1)
            view = attrs.evolve(self.view, name=f"store-{number}")
            snapshot = Snapshot(view, (), {row.reg_id: row}, Urgency.OK, StoreHistory())
            yield from samples_of("".join(exposition([snapshot])), target)


def fleet(first: ScrapedStore | None = None, second: ScrapedStore | None = None) -> dict[str, float]:
    """Return the samples of three stores, two of which may be given, of a watch, and of a router."""
    stores = (first or ScrapedStore(), second or ScrapedStore(), ScrapedStore())
    return dict(sample for number, one in enumerate(stores, 1) for sample in one.samples(number)) | watch() | routed()


def routed(**left: Any) -> dict[str, float]:
    """Return the samples of a router, whose first portal has these figures."""
    target = 'job="stablecast-router",instance="router-1:15305"'
    reasons = {"dropped": ("duplicate", "blocking", "fragment size", "error"), "unicast_dropped": ("no stream", "hops")}
    zero: dict[str, Any] = {field: dict.fromkeys(names, 0) for field, names in reasons.items()}
    figures = zero | {name: zero[name] | value if name in zero else value for name, value in left.items()}
    view = RouterView("edge", (PortalView("left", 1, **figures), PortalView("right", 2, **zero)))
    return {f"up{{{target}}}": 1.0, **dict(samples_of("".join(router_exposition(view)), target))}


def watch(*alarms: tuple[str, str, str]) -> dict[str, float]:
    """Return the samples of a watch that told of these alarms: kind, rule and endpoint of each."""
    target = 'job="stablecast-watch",instance="store-1:15390"'
    figures = WatchFigures(records=1000)
    for alarm in alarms:
        figures.count(*alarm)
    return {f"up{{{target}}}": 1.0, **dict(samples_of(figures.exposition(), target))}


def samples_of(text: str, target: str) -> Iterator[tuple[str, float]]:
    """Yield each sample of the text of a target with the labels that Prometheus adds."""
    for line in text.splitlines():
        if match := SAMPLE.fullmatch(line):
            name, labels, value = match.groups()
            yield f"{name}{{{target}{',' if labels else ''}{labels or ''}}}", float(value)


def source(**changes: Any) -> ScrapedStore:
    return ScrapedStore(source=attrs.evolve(SOURCE, **changes))


def view(**changes: Any) -> ScrapedStore:
    return ScrapedStore(view=attrs.evolve(ROOMY, **changes))


DOWN: Final = ScrapedStore(up=False)
SLOW_SYNCS: Final = DurationView((0,) * 12 + (5000,) + (0,) * 5, 4000_000_000_000)
LATE: Final = attrs.evolve(RECEIVER, lag=5000)

FAULTS: Final[Mapping[str, Callable[[], dict[str, float]]]] = {
    "StablecastStoreDown": lambda: fleet(DOWN),
    "StablecastNoQuorum": lambda: fleet(DOWN, DOWN),
    "StablecastLastQuorum": lambda: fleet(DOWN),
    "StablecastDiskFailed": lambda: fleet(view(failure="no space")),
    "StablecastStoreHangs": lambda: fleet(view(taken_ns=0)),
    "StablecastMessagesLost": lambda: fleet(source(lost=7, given_up=7)),
    "StablecastUnderReplicated": lambda: fleet(source(holes=3)),
    "StablecastDiskSlow": lambda: fleet(view(journal=attrs.evolve(STORE.journal, sync_times=SLOW_SYNCS))),
    "StablecastDiskFull": lambda: fleet(view(room=(1 << 20, 64 << 20))),
    "StablecastMessagesDropped": lambda: fleet(source(drops=(0, 5))),
    "StablecastReceiverLate": lambda: fleet(source(receivers=(LATE,))),
    "StablecastRequestsDropped": lambda: fleet(view(requests=(262_144, 0, 0, 9.0, 10, 90))),
    "StablecastStoreMuted": lambda: fleet(view(muted_for_ns=30_000_000_000)),
    "StablecastStateExpired": lambda: fleet(view(expired=(1, 50))),
    "StablecastClientsNearlyFull": lambda: fleet(view(clients=(95, 100))),
    "StablecastDescriptorsLow": lambda: {
        series: 10 if series.startswith("stablecast_free_descriptors") else value for series, value in fleet().items()
    },
    "StablecastRouterDown": lambda: {
        series: 0.0 if series.startswith('up{job="stablecast-router"') else value for series, value in fleet().items()
    },
    "StablecastPortalIdle": lambda: fleet() | routed(trouble="another router is in this domain"),
    "StablecastRouterDrops": lambda: fleet() | routed(dropped={"blocking": 7}),
    "StablecastNetworkUnfit": lambda: fleet() | routed(unidentified=1),
    "StablecastRuleBroken": lambda: fleet() | watch(("violation", "S1", 'source "7"')),
    "StablecastWatchStopped": lambda: (
        {series: value for series, value in fleet().items() if "watch" not in series}
        | {'up{job="stablecast-watch",instance="store-1:15390"}': 0.0}
    ),
}
"""The samples from a fault on, by the alert that it fires."""

GROWING: Final = ("_bucket", "_sum", "_count", "_total")
"""Ends of the names of series that only grow."""


def series(before: Mapping[str, float], after: Mapping[str, float]) -> list[dict[str, str]]:
    """Return the series of a test of promtool: one sample a minute. The figures change to `after` and then stay.

    Times move on. Counters of the fault grow by as much in each minute. A series may begin with the fault.
    """
    told = [
        {"series": name, "values": f"_x{QUIET_MINUTES + 1} {value}+0x{FAULT_MINUTES + 20}"}
        for name, value in after.items()
        if name not in before
    ]
    for name, value in before.items():
        later = after.get(name)
        family = name.partition("{")[0]
        step = 60 if family.endswith("_timestamp_seconds") else 0
        start = 0 if step else value
        text = f"{start}+{step}x{QUIET_MINUTES} "
        if later is None:
            text += "stale"
        elif step:
            text += f"{60 * QUIET_MINUTES}+{60 if later == value else 0}x{FAULT_MINUTES + 20}"
        else:
            grows = max(0, later - value) if family.endswith(GROWING) else 0
            text += f"{later}+{grows:.9f}x{FAULT_MINUTES + 20}"
        told.append({"series": name, "values": text})
    return told


def planted(alert: str) -> dict[str, Any]:
    """Return the test of promtool: the alert is silent while all is well, and fires after the fault."""
    return {
        "interval": "1m",
        "input_series": series(fleet(), FAULTS[alert]()),
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > bool 0',
                "eval_time": f"{QUIET_MINUTES + FAULT_MINUTES}m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            },
            {"expr": "ALERTS", "eval_time": f"{QUIET_MINUTES}m", "exp_samples": []},
        ],
    }


def answered(query: str) -> dict[str, Any]:
    """Return the test of promtool: the query of a panel returns data."""
    for variable, value in (("$store", ".*"), ("$__rate_interval", "5m"), ("$__range", "15m")):
        query = query.replace(variable, value)
    test = {"expr": f"count({query}) > bool 0", "eval_time": "25m", "exp_samples": [{"labels": "{}", "value": 1}]}
    busy = {name: value + 1 if "_bucket" in name else value for name, value in fleet().items()}
    return {"interval": "1m", "input_series": series(fleet(), busy), "promql_expr_test": [test]}


def promtool(folder: Path, tests: Sequence[dict[str, Any]]) -> str:
    """Let promtool run tests; return what it prints, empty if all pass."""
    (folder / RULES.name).write_text(RULES.read_text())
    path = folder / "tests.yaml"
    path.write_text(json.dumps({"rule_files": [RULES.name], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_query_names_series_that_are_exported() -> None:
    exported = {name.partition("{")[0] for name in fleet() | watch(("violation", "S1", "source"))}
    used = {name for text in (*QUERIES.values(), *(one["expr"] for one in ALERTS)) for name in NAME.findall(text)}
    assert used
    assert used - exported == set()


def test_every_alert_has_a_page_and_a_planted_fault() -> None:
    assert {one["alert"] for one in ALERTS} == {*FAULTS}
    chapter = (ROOT / "spec/operations.md").read_text()
    for one in ALERTS:
        assert one["annotations"]["runbook"] == f"spec/operations.md#{one['alert'].lower()}"
        assert f"\n### {one['alert']}\n" in chapter


def test_the_configuration_loads_the_rules() -> None:
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    assert config["rule_files"] == [RULES.name]
    assert config["scrape_configs"][0]["job_name"] == "stablecast"


@needs_prometheus
def test_prometheus_accepts_the_configuration() -> None:
    done = subprocess.run(
        ["promtool", "check", "config", str(FOLDER / "prometheus.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@needs_prometheus
def test_a_fault_fires_its_alert(tmp_path: Path) -> None:
    assert promtool(tmp_path, [planted(alert) for alert in FAULTS]) == ""


@needs_prometheus
def test_each_panel_shows_data(tmp_path: Path) -> None:
    assert promtool(tmp_path, [answered(query) for query in QUERIES.values()]) == ""
