"""Lines of text on the console and in a file."""

import io
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from stablecast.runtime.logs import LineLog, RollingPolicy


@pytest.mark.rows("T-501")
def test_the_console() -> None:
    stream = io.StringIO()
    log = LineLog(None, RollingPolicy(), stream, lambda: datetime(2017, 8, 20, 23, 5, tzinfo=UTC))
    log.write("one")
    log.warning("two")
    log.reopen()
    log.close()
    assert stream.getvalue() == "2017-08-20 23:05:00 [INFO] one\n2017-08-20 23:05:00 [WARNING] two\n"


def test_each_line_leaves_at_once() -> None:
    """Whoever follows a log must not wait for a buffer to fill."""
    stream = Mock()
    log = LineLog(None, RollingPolicy(), stream, lambda: datetime(2017, 8, 20, tzinfo=UTC))
    log.write("one")
    assert stream.flush.mock_calls == [call()]
    log.close()


@pytest.mark.rows("T-501")
def test_a_file_has_the_instant_of_each_line(tmp_path: Path) -> None:
    at = datetime(2017, 8, 20, 23, 5, tzinfo=UTC)
    log = LineLog(tmp_path / "srs.log", RollingPolicy(), io.StringIO(), lambda: at)
    log.write("one")
    log.close()
    assert (tmp_path / "srs.log").read_text() == "2017-08-20 23:05:00 [INFO] one\n"
