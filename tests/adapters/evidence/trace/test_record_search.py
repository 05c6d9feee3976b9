"""The exact record of a suspect."""

from pathlib import Path

import attrs

from stablecast.evidence.trace import container
from stablecast.evidence.trace.cross_rules import Suspect
from stablecast.evidence.trace.trace_judge import violation
from tests.adapters.evidence.trace.traced import FIRST_LIFE, first_trace, records, take_apart


def suspect(path: Path, number: int, offset: int, kind: str = "sent") -> Suspect:
    return Suspect(str(path), 0, "D1", number, kind, FIRST_LIFE, "", offset)


def first_source(directory: Path) -> Path:
    return first_trace(directory, "source")


def test_the_record_is_found_in_the_frame(whole_world: Path) -> None:
    path = first_source(whole_world)
    line = next(one for one in records(take_apart(path)) if one["in"]["_"] == "Sent" and one["in"]["first"] > 4)
    number = line["in"]["first"] + 1
    found = [violation(suspect(path, number, offset)) for offset in container.offsets(path)[:-1]]
    (hit,) = [one for one in found if one.record == line["n"]]
    assert hit.time == line["t"]
    assert (
        hit.text
        == f"record {line['n']}: number {number} is delivered as one of life {FIRST_LIFE:#x}, which never sent it"
    )
    assert hit.found == {"kind": "sent", "life": hex(FIRST_LIFE), "peer": "", "number": number}


def test_a_suspect_of_a_changed_file_keeps_its_place(whole_world: Path, tmp_path: Path) -> None:
    path = first_source(whole_world)
    end = path.stat().st_size
    for gone in (suspect(path, 1, end), suspect(tmp_path / "gone.sct", 1, 0), suspect(path, 10**6, 0)):
        one = violation(attrs.evolve(gone, record=17))
        assert (one.record, one.time) == (17, None)
