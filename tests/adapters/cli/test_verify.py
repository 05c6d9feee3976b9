"""`stablecast verify` with files and directories."""

import json
import os
from pathlib import Path

import pytest

from tests.adapters.evidence.capture.judge.wire_session import World, settled
from tests.support.program import outcome, store


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A directory with the trace of a store that did nothing."""
    with store(tmp_path / "store", "--trace", tmp_path / "traces") as (program, _):
        program.interrupt()
        assert program.end()[0] == 0
    return tmp_path / "traces"


def test_the_traces_of_a_directory(traces: Path) -> None:
    (traces / "notes.txt").write_text("no trace")
    (file,) = traces.glob("*.sct")
    for argument in (traces, file):
        status, out, err = outcome("verify", argument, "--json")
        assert (status, err) == (0, "")
        said = json.loads(out)
        assert said["violations"] == said["errors"] == said["truncated"] == []
        assert [found["file"] for found in said["files"]] == [str(file)]
        assert said["records"] > 0


def test_captures_of_a_directory_and_of_a_pattern(traces: Path, tmp_path: Path) -> None:
    """Beside traces, too; a pipe is a sentence, and not waited for."""
    place = tmp_path / "captures"
    place.mkdir()
    for name in ("a.pcap", "b.pcap"):
        settled(World()).talk.write(place / name)
    for argument in (place, place / "*.pcap"):
        status, out, err = outcome("verify", argument)
        assert (status, err) == (0, "")
        assert [line.partition(":")[0] for line in out.splitlines() if " broken, " in line] == [
            str(place / "a.pcap"),
            str(place / "b.pcap"),
        ]
    settled(World()).talk.write(traces / "c.pcap")
    status, out, _ = outcome("verify", traces)
    assert status == 0
    assert "c.pcap: 0 broken" in out
    assert "in 1 file, 0 violations" in out
    os.mkfifo(tmp_path / "pipe")
    status, out, err = outcome("verify", tmp_path / "pipe")
    assert (status, out) == (2, "")
    assert err.endswith("pipe is a pipe, and captures are read twice; write what comes to a file first\n")
