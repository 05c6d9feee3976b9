"""Option files of clients."""

from pathlib import Path

import pytest

from stablecast.config.option_files import FlatFileError, Setting, read

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
    assert read(path) == (
        Setting("context", "operational_mode", "embedded", 3),
        Setting("source", "ume_store", "127.0.0.1:14567", 4),
        Setting("source", "ume_store_group", "0:3", 5),
        Setting("receiver", "ume_session_id", "17", 7),
    )


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"source ume_store", "client.cfg:1: 'source ume_store' is not a setting: write scope option value"),
        (b"\nstore a b", "client.cfg:2: there is no scope 'store': write one of context, source, receiver"),
        (b"\xff\xfe", "is not a UTF-8 text of scope, option and value lines"),
    ],
)
def test_a_malformed_line_is_refused(data: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "client.cfg"
    path.write_bytes(data)
    with pytest.raises(FlatFileError, match=told):
        read(path)
