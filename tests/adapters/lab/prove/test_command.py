"""The output and the exit status of the command."""

import json
from pathlib import Path
from typing import Any

import pytest

from stablecast.core.source.lineage import Lineage
from stablecast.lab.prove.bounds import TAKEOVERS, ProofFault
from stablecast.lab.prove.command import ProofJob, run
from stablecast.lab.prove.instance import ProofBounds
from tests.adapters.lab.prove.examples import example

ONE = ProofBounds(1, faults=())


def prove(
    name: str, *options: str, profile: str = "safe", as_json: bool = False, bounds: ProofBounds = ONE
) -> tuple[int, list[str], list[str]]:
    said: list[str] = []
    noted: list[str] = []
    status = run(ProofJob([example(name)], options, profile, bounds, as_json), said.append, noted.append)
    return status, said, noted


def prove_json(name: str, *options: str, profile: str = "safe", bounds: ProofBounds = ONE) -> tuple[int, Any]:
    status, said, _ = prove(name, *options, profile=profile, as_json=True, bounds=bounds)
    (line,) = said
    return status, json.loads(line)


def test_none() -> None:
    status, said, noted = prove("two_groups_of_one")
    assert (status, noted) == (0, [])
    assert said[-1].startswith("profile safe: none within these bounds (messages 1, restarts of the source 1")
    assert said[-1].endswith("states)")
    assert any(line.startswith("note: group 0 of several has one store only") for line in said)


def test_none_as_json() -> None:
    status, told = prove_json("two_groups_of_one")
    assert status == 0
    assert (told["verdict"], told["complete"], told["steps"], told["lost"]) == ("none", True, [], None)
    bounds = {"messages": 1, "restarts": 1, "wipes": 0, "states": ProofBounds().states, "faults": []}
    assert told["bounds"] == bounds
    assert told["passes"] == [{"bounds": bounds, "verdict": "none", "states": told["states"], "complete": True}]
    assert {finding["code"] for finding in told["findings"]} >= {"one-store-group", "small-group"}


def test_a_search_that_was_cut_says_so() -> None:
    _, said, _ = prove("one_group_of_five", bounds=ProofBounds(1, states=100, faults=()))
    assert "100 states, and there are more: raise --bound" in said[-1]


@pytest.mark.rows("P-415")
def test_a_loss() -> None:
    """T5."""
    status, said, _ = prove("one_group_of_three", profile="5.3")
    assert status == 1
    assert "  1. the source starts and reaches A, B, C" in said
    assert "       reported to the application: stable: 0" in said
    assert "       A: 0   B: 0   C: (0)" in said
    assert "with ume_consensus_sequence_number_behavior highest: this run is harmless" in said
    assert said[-1].startswith("profile 5.3: loss (")


@pytest.mark.rows("P-523")
def test_a_loss_and_a_stall_as_json() -> None:
    status, told = prove_json("three_groups_all_active", profile="5.3", bounds=ProofBounds())
    assert (status, told["verdict"]) == (1, "loss")
    assert told["lost"] == {"kind": "reused", "message": "0"}
    assert len(told["steps"]) == len(told["stall"]) == 5
    assert told["remedies"]


def test_a_stall() -> None:
    """T2."""
    status, said, _ = prove("one_group_of_three", "ume_store_group=0:7")
    assert status == 1
    assert any(line.startswith("STALL: ") for line in said)


def test_two_processes_are_searched_in_a_pass_of_their_own() -> None:
    """Two messages and takeovers at once are too many states; with explicit faults there is one pass."""
    plain, rivals = ProofBounds().passes(3)
    assert (plain.messages, plain.faults) == (2, ())
    assert (rivals.messages, rivals.faults) == (1, TAKEOVERS)
    assert ProofBounds().passes(4) == [ProofBounds(1, faults=())]
    assert ProofBounds(faults=(ProofFault.RIVAL,)).passes(5) == [ProofBounds(1, faults=(ProofFault.RIVAL,))]
    assert ProofBounds(2, faults=(ProofFault.RIVAL,)).passes(3) == [ProofBounds(2, faults=(ProofFault.RIVAL,))]


def test_faults_are_said_with_the_bounds() -> None:
    status, said, _ = prove("two_groups_of_one", bounds=ProofBounds(1, faults=(ProofFault.RIVAL,)))
    assert status == 0
    assert "disks lost 0, faults rival; " in said[-1]


def test_each_pass_is_told_until_one_finds_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lineage, "succeeded", lambda *_: False)
    status, told = prove_json("two_groups_of_one", bounds=ProofBounds(1))
    assert (status, told["verdict"]) == (1, "loss")
    assert [one["verdict"] for one in told["passes"]] == ["none", "loss"]
    assert told["states"] == sum(one["states"] for one in told["passes"])
    assert told["bounds"]["faults"] == list(TAKEOVERS)
    _, said, _ = prove("two_groups_of_one", bounds=ProofBounds(1))
    assert [line.partition(" (")[0] for line in said if line.startswith("profile")] == [
        "profile safe: none within these bounds",
        "profile safe: loss",
    ]


@pytest.mark.rows("P-526")
def test_refused() -> None:
    """Stores in reserve."""
    status, said, noted = prove("backup_stores")
    assert (status, said) == (2, [])
    why = "group 0 of size 3 lists 5 stores: stable messages may become unavailable (P-526)"
    assert noted == [f"stablecast: refused under profile safe: {why}"]
    status, told = prove_json("backup_stores")
    assert (status, told["verdict"], told["reason"], told["steps"]) == (2, "refused", why, [])


@pytest.mark.parametrize("as_json", [False, True])
def test_unreadable(tmp_path: Path, as_json: bool) -> None:
    bad = tmp_path / "bad.cfg"
    bad.write_text("source ume_stores 1\n")
    for path, why in ((bad, "did you mean"), (tmp_path / "gone.cfg", "No such file or directory")):
        said: list[str] = []
        noted: list[str] = []
        assert run(ProofJob([path], [], "safe", ProofBounds(), as_json), said.append, noted.append) == 2
        assert why in noted[0]
        assert [json.loads(line)["verdict"] for line in said] == ["unreadable"] * as_json
