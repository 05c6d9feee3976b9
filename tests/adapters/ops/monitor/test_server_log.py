"""Lines for what a server complains of: few, short, and without a peer's bytes."""

import logging

from stablecast.ops.monitor.server import EVERY, MAX_KINDS, logger
from stablecast.store.log_lines import Severity


def test_the_first_and_each_thousandth_of_a_kind_is_a_line() -> None:
    lines: list[str] = []
    told = logger(lambda severity, who, code, text: lines.append(f"{severity.value} {who}{code}: {text}"))
    for _ in range(EVERY + 1):
        try:
            int("bytes of the peer")
        except ValueError:
            told.exception("Error handling request from %s", "10.0.0.1")
    assert len(lines) == 2
    assert lines[0].startswith(f"{Severity.WARNING.value} monitor-request: a request failed: ValueError")
    assert lines[1].endswith("1001 times so far")
    assert "peer" not in "".join(lines)


def test_what_is_no_error_is_named_by_its_place() -> None:
    lines: list[str] = []
    told = logger(lambda *words: lines.append(str(words[3])))
    told.warning("something")
    told.debug("nothing")
    [line] = lines
    assert "test_server_log.py:" in line


def test_kinds_are_bounded() -> None:
    lines: list[str] = []
    told = logger(lambda *words: lines.append(str(words[3])))
    for number in range(3 * MAX_KINDS):
        told.handle(logging.LogRecord("x", logging.ERROR, f"file{number}.py", 1, "", None, None))
    assert len(lines) == MAX_KINDS + 1
    assert "others" in lines[-1]
