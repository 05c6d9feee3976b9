"""Applications that are slower than their source, as processes: killed sources, crashes again and again."""

import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.program import Program, lbmrd, running, store

pytestmark = pytest.mark.timeout(300)

APPLICATION = (sys.executable, str(Path(__file__).with_name("application.py")))
MESSAGES = 300
"""Of a life of the source."""


def send(stack: ExitStack, relay: str, where: str) -> Program:
    """A life of the source, whose messages are stable: each says its number."""
    source = stack.enter_context(running(relay, "source", "0", str(MESSAGES), where, program=APPLICATION))
    assert source.line() == "stable"
    return source


def numbers(application: Program, count: int) -> list[int]:
    """What it prints until it has handled so many messages, or ended."""
    found: list[int] = []
    while len(found) < count and (line := application.line()):
        if line != "begun":
            found.append(int(line))
    return found


def test_a_backlog_while_the_source_is_killed_and_returns(tmp_path: Path) -> None:
    """Each message comes once and in order in one run; the next run begins behind it."""
    with ExitStack() as stack:
        _, relay = stack.enter_context(lbmrd())
        _, where = stack.enter_context(store(tmp_path / "store"))
        slow = stack.enter_context(running(relay, "wait", "0", "0", program=APPLICATION))
        source = send(stack, relay, where)
        assert numbers(slow, 1) == [0]
        source.process.kill()
        source.process.wait()
        send(stack, relay, where)
        while slow.line() != "begun":  # the session with the second life
            pass
        slow.write("\n")
        assert numbers(slow, 2 * MESSAGES - 1) == list(range(1, 2 * MESSAGES))


@pytest.mark.parametrize("form", ["each", "batches", "callback"])
def test_an_application_that_crashes_again_and_again_advances(form: str, tmp_path: Path) -> None:
    """It works for 20 ms a message, keeps the event loop meanwhile, and crashes after 30 messages (P-343)."""
    with ExitStack() as stack:
        _, relay = stack.enter_context(lbmrd())
        _, where = stack.enter_context(store(tmp_path / "store"))
        send(stack, relay, where)
        handled: set[int] = set()
        begins = []
        for _ in range(4):
            with running(relay, form, "0.02", "30", program=APPLICATION) as application:
                found = numbers(application, 30)
                assert application.process.wait() == 7
            assert found == list(range(found[0], found[0] + 30))
            assert set(range(found[0])) <= handled
            begins.append(found[0])
            handled |= set(found)
    assert all(before + 5 <= after for before, after in pairwise(begins)), begins
