"""The table in the chapter of models that maps records of traces, actions and code: it names what there is, and all."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest

from stablecast.core.protocol import inputs, messages
from stablecast.core.sharing.member import MemberInput
from stablecast.core.subscription.inputs import SubscriptionInput
from stablecast.lab.model.views import VIEWS
from stablecast.lab.sim.runner import run as simulate
from stablecast.lab.sim.schedule import draw
from stablecast.transports.resolution.srs import events
from stablecast.transports.resolution.udp import inputs as resolution
from stablecast.transports.routing.inputs import RouterInput
from tests.adapters.lab.model.views.conftest import traced
from tests.adapters.lab.model.views.trace_edits import KEPT, followed
from tests.support.evidence import MODELS, Model, rows, section
from tests.support.tree import ROOT

__all__ = ["traced"]

TABLE = rows(section((ROOT / "spec" / "models.md").read_text(encoding="utf-8"), "Records, actions and code"))
CODE = (ROOT / "core" / "stablecast" / "core", ROOT / "transports" / "stablecast" / "transports")
INPUTS = {
    role: {cls.__name__ for cls in get_args(union)}
    for role, union in (
        ("source", inputs.SourceInput),
        ("receiver", inputs.ReceiverInput),
        ("store", inputs.StoreInput),
    )
}
RESOLUTION = {
    role: {"Tick", *(cls.__name__ for cls in get_args(union))}
    for role, union in (
        ("advertiser", resolution.AdvertiserInput),
        ("querier", resolution.QuerierInput),
        ("context", events.SrsContextInput),
        ("service", events.ServiceInput),
    )
}
"""`Tick` is `handle_timeout`; these machines are in no trace."""
INPUTS |= RESOLUTION
INPUTS["member"] = {cls.__name__ for cls in get_args(MemberInput)}
"""Members of a group are in no trace, either."""
INPUTS["subscription"] = {"Tick", *(cls.__name__ for cls in get_args(SubscriptionInput))}
"""Nor are subscriptions."""
INPUTS["router"] = {"Tick", *(cls.__name__ for cls in get_args(RouterInput))}
"""Nor are routers."""
MESSAGES = {cls.__name__ for cls in get_args(messages.Message)}

RECORD = re.compile(r"`(\w+): (\w+)(?:\((\w+)\))?`")
FILE = re.compile(r"`([\w/]+\.py)`")


def model(name: str) -> Model:
    return Model.read(ROOT / "tla" / name / f"{name}.tla")


def unknown(records: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return the records that no endpoint gets: inputs that the role lacks, and messages of no known kind."""
    return [
        f"{role}: {name}({message})"
        for role, name, message in records
        if name not in INPUTS.get(role, ()) or (message not in MESSAGES if name == "Arrived" else message != "")
    ]


def test_every_model_is_in_the_table() -> None:
    assert {row[0] for row in TABLE} == set(MODELS) == {path.parent.name for path in ROOT.glob("tla/*/MC*.tla")}


@pytest.mark.parametrize("name", MODELS)
def test_the_actions_of_a_model_are_those_of_its_next_each_once(name: str) -> None:
    found, named = model(name), [row[1].strip("`") for row in TABLE if row[0] == name]
    assert sorted(named) == sorted(found.actions)
    assert set(named) <= found.defined


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1].strip('`')}")
def test_a_row_names_records_and_code_that_there_are(row: list[str]) -> None:
    """An action that nobody is told of says so, and runs nothing of the core."""
    _, _, record, code = row
    records, files = RECORD.findall(record), FILE.findall(code)
    assert unknown(records) == []
    assert [file for file in files if not any((folder / file).is_file() for folder in CODE)] == []
    if record.startswith("none: "):
        assert (records, code) == ([], "–")
    else:
        assert records
        assert files or code.startswith("– ")


def test_an_action_is_found_wherever_next_names_it() -> None:
    assert model("Rpp").actions >= {"Send", "Restart", "Join", "Ack"}
    assert model("ProxyElection").actions >= {"Silent", "Stand", "Original", "Die"}


def test_what_no_endpoint_is_told_is_seen() -> None:
    records = RECORD.findall("`store: Arrived(Register)` `store: Consumed` `store: Arrived` `source: Sent(Register)`")
    assert unknown(records) == ["store: Consumed()", "store: Arrived()", "source: Sent(Register)"]


def test_what_records_of_real_runs_are_found_to_be_is_in_the_table(traced: Path, tmp_path: Path) -> None:
    """Takeovers, stores with names that move, and a source that lives three times."""
    for seed in (9, 18):
        simulate(draw(seed), traces=tmp_path / str(seed))
    known = {
        (model, action.strip("`"), role, f"{kind}({message})" if message else kind)
        for model, action, record, _ in TABLE
        for role, kind, message in RECORD.findall(record)
    }
    for tally in followed(traced, tmp_path / "9", tmp_path / "18").values():
        assert tally.records
        role = tally.view.role.name.lower()
        found = {(tally.view.model, action, role, record) for record, action in tally.records}
        assert found <= known, tally.view.name


def test_every_step_that_traces_are_compared_with_is_of_an_action_with_a_record() -> None:
    rows_of = {(row[0], row[1].strip("`")): row[2] for row in TABLE}
    for view in VIEWS:
        for steps in KEPT.steps[view.name].values():
            for step in steps.all:
                record = rows_of[view.model, step.action.partition("(")[0]]
                assert record.startswith("none: ") or f"`{view.role.name.lower()}: " in record, step
