"""Option files of clients."""

from pathlib import Path

import pytest

from stablecast.config.findings import ConfigFileError
from stablecast.config.option_files import SCOPES, Setting, read

SAMPLE = """
# Major Options
context  operational_mode embedded
SOURCE Ume_Store 127.0.0.1:14567  # the first
source ume_store_group 0:3

receiver ume_session_id 17
"""


@pytest.mark.rows("P-850", "P-851")
def test_lines_are_scope_option_value(tmp_path: Path) -> None:
    path = tmp_path / "client.cfg"
    path.write_text(SAMPLE)
    assert read(path).settings == (
        Setting("context", "operational_mode", "embedded", 3),
        Setting("source", "ume_store", "127.0.0.1:14567", 4),
        Setting("source", "ume_store_group", "0:3", 5),
        Setting("receiver", "ume_session_id", "17", 7),
    )


def test_each_malformed_line_is_a_problem_and_hides_no_other(tmp_path: Path) -> None:
    """A line without a value sets an empty one, the documented default of some options."""
    path = tmp_path / "client.cfg"
    path.write_text("source\ncontext broker\nstore a b\nsource ume_flight_size 5\n")
    found = read(path)
    assert [problem.told("") for problem in found.problems] == [
        f"{path}:1: <source>: 'source' is not a setting: write scope option value",
        f"{path}:3: <store>: there is no scope 'store': write one of {', '.join(SCOPES)}",
    ]
    assert [(one.name, one.value, one.line) for one in found.settings] == [
        ("broker", "", 2),
        ("ume_flight_size", "5", 4),
    ]


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "client.cfg"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigFileError, match="is not a UTF-8 text of scope, option and value lines"):
        read(path)
