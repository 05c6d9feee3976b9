"""`stablecast incident` names the files that it could not read, and never is silent about one."""

from pathlib import Path

import pytest

from stablecast.evidence.incident import command
from stablecast.evidence.incident.report import MAX_NAMES, Incident, not_read

OURS = "2026-11-28 10:00:00.123 [WARNING] store: something\n"
FOREIGN = "Sat Nov 28 10:00:00 2026: something else\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"our.log": OURS}, "a log alone shows no messages: {}/our.log. Name the traces"),
        ({"their.log": FOREIGN}, "1 file was not read, neither a trace, a capture, nor a log of stablecast: {}/their"),
        ({"our.log": OURS, "their.log": FOREIGN}, "a log alone shows no messages: {}/our.log; 1 file was not read"),
    ],
)
def test_logs_alone_are_no_incident(
    files: dict[str, str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence never says that a log is no trace file."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert command.run(command.IncidentRequest([tmp_path])) == command.UNREADABLE
    error = capsys.readouterr().err
    assert told.format(tmp_path) in error
    assert "is not a trace file" not in error


def test_files_of_other_kinds_are_named_beside_the_report() -> None:
    names = [f"{number}.txt" for number in range(MAX_NAMES + 2)]
    report = Incident([], [], [], [], foreign=names)
    assert list(report.lines())[-1] == not_read(names)
    assert not_read(names).endswith("9.txt and 2 more")
    assert report.as_json()["foreign"] == names
