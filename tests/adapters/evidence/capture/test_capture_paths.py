"""Names of captures: files, directories and patterns."""

from pathlib import Path

import pytest

from stablecast.evidence.capture.files import CaptureError, captures_in, files_of
from stablecast.evidence.trace.file_names import is_pattern

NAMES = ["a.pcap", "b.pcapng.gz", "c.cap"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in [*NAMES, "d.sct", "pcap"]:
        (tmp_path / name).touch()
    return tmp_path


def test_a_directory_and_a_pattern(place: Path) -> None:
    assert [path.name for path in captures_in(place)] == NAMES
    assert files_of([place]) == captures_in(place)
    assert files_of([place / "*.p*"]) == [place / "a.pcap", place / "b.pcapng.gz"]
    assert files_of([place / "gone", place / "d.sct"]) == [place / "gone", place / "d.sct"]


def test_a_name_may_have_the_letters_of_a_pattern(place: Path) -> None:
    odd = place / "[1].pcap"
    odd.touch()
    assert not is_pattern(odd)
    assert files_of([odd]) == [odd]


def test_none_is_a_sentence(place: Path) -> None:
    with pytest.raises(CaptureError, match=r"there are no captures that match .*\.foo: name files of pcap or pcapng"):
        files_of([place / "*.foo"])
