"""`stablecast whatif` as people use it."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.evidence.trace.tools.analysis import percentiles
from stablecast.evidence.whatif import command
from stablecast.evidence.whatif.replay import WhatIfError
from tests.adapters.evidence.trace.traced import TracedWorld, play, tapping
from tests.support.program import outcome


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("world")
    play(TracedWorld(wrap=tapping(directory, kill=False)))
    return directory


Told = Callable[[command.WhatIfJob], list[str]]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Return a function that runs a job and returns its lines."""

    def run(job: command.WhatIfJob) -> list[str]:
        assert command.run(job, as_json=False) == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_variants_stand_beside_what_was(world: Path, told: Told) -> None:
    lines = told(command.WhatIfJob([world], {"ume_flight_size": "2"}, {}))
    assert lines[0].endswith("80 messages")
    assert lines[1].startswith("  as recorded: sent 80, stable 80; to stable p50 ")
    assert lines[2].startswith("  ume_flight_size=2: sent 80, stable 80;")


def test_a_sweep_tries_all_combinations(world: Path, told: Told) -> None:
    """Many replays run in processes of their own."""
    sweep = {"ume_flight_size": ["1", "5"], "ume_retention_intragroup_stability_behavior": ["quorum", "all"]}
    lines = told(command.WhatIfJob([world], {}, sweep))
    sources = sum(line.startswith("source") for line in lines)
    assert sum(line.startswith("  ume_flight_size=1,") for line in lines) == 2 * sources


def test_on_the_command_line(world: Path) -> None:
    status, out, err = outcome("whatif", str(world), "--set", "ume_flight_size=2", "--json")
    assert (status, err) == (0, "")
    runs = json.loads(out)["runs"]
    assert [run["options"] for run in runs[:2]] == [{}, {"ume_flight_size": "2"}]
    assert runs[1]["most_exposed"] == 2
    assert runs[0]["latency_us"]["p50"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing is to be tried"),
        (["--set", "ume_flight_size"], "write name=value"),
        (["--set", "ume_flight_sise=2"], "ume_flight_size"),
        (["--sweep", f"ume_flight_size={','.join(map(str, range(1001)))}"], "1001 variants are too many"),
    ],
)
def test_an_impossible_variant_is_one_sentence(world: Path, words: list[str], sentence: str) -> None:
    status, out, err = outcome("whatif", str(world), *words)
    assert (status, out) == (1, "")
    assert sentence in err
    assert "Traceback" not in err


def test_a_configuration_that_no_source_starts_with_is_told(world: Path) -> None:
    job = command.WhatIfJob([world], {"ume_proxy_source": "1", "ume_store_behavior": "rr"}, {})
    with pytest.raises(WhatIfError, match="does not run with"):
        command.run(job, as_json=True)


def test_percentiles_are_those_of_messages() -> None:
    assert percentiles(Counter()) == {}
    assert percentiles(Counter({1_000: 98, 5_000: 2})) == {"p50": 1, "p99": 5, "max": 5}
