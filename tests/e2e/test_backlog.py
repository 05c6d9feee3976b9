"""Applications that are slower than their source, as processes: killed sources and repeated crashes."""

import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.program import Program, lbmrd, running, store

APPLICATION = (sys.executable, str(Path(__file__).with_name("application.py")))
MESSAGES = 300
"""Number of messages of one life of the source."""


def send(stack: ExitStack, relay: str, where: str, count: int = MESSAGES) -> Program:
    """Start a life of the source; return it when its messages are stable. Each payload is the message's number."""
    source = stack.enter_context(running(relay, "source", "0", str(count), where, program=APPLICATION))
    assert source.line() == "stable"
    return source


def numbers(application: Program, count: int) -> list[int]:
    """Return the numbers that an application prints until it has handled `count` messages or ended."""
    found: list[int] = []
    while len(found) < count and (line := application.line()):
        if line != "begun":
            found.append(int(line))
    return found


def kill(*programs: Program) -> None:
    """End processes as a crash does."""
    for program in programs:
        program.process.kill()
        program.process.wait()


def test_a_backlog_while_the_source_is_killed_and_returns(tmp_path: Path) -> None:
    """A running application receives each message once and in order, over both lives of the source."""
    with ExitStack() as stack:
        _, relay = stack.enter_context(lbmrd())
        _, where = stack.enter_context(store(tmp_path / "store"))
        slow = stack.enter_context(running(relay, "wait", "0", "0", program=APPLICATION))
        source = send(stack, relay, where)
        assert numbers(slow, 1) == [0]
        kill(source)
        send(stack, relay, where)
        while slow.line() != "begun":  # the session with the second life
            pass
        slow.write("\n")
        assert numbers(slow, 2 * MESSAGES - 1) == list(range(1, 2 * MESSAGES))


def test_a_life_with_another_store_does_not_bring_the_backlog_twice(tmp_path: Path) -> None:
    """The source and its store are killed; the source uses another store for a while, and returns to the first.

    The application works 20 ms on each message. This is longer than a turn of the event loop, so the client reports
    consumed messages in time.
    """
    few = 30
    with ExitStack() as stack:
        _, relay = stack.enter_context(lbmrd())
        keeping, where = stack.enter_context(store(tmp_path / "store"))
        _, elsewhere = stack.enter_context(store(tmp_path / "other"))
        slow = stack.enter_context(running(relay, "wait", "0.02", "0", program=APPLICATION))
        source = send(stack, relay, where, few)
        assert numbers(slow, 1) == [0]
        slow.write("5\n")
        assert numbers(slow, 5) == list(range(1, 6))
        kill(source, keeping)
        source = send(stack, relay, elsewhere, 0)
        while slow.line() != "begun":  # the session with the second life, whose store knows five messages
            pass
        slow.write("\n")
        assert numbers(slow, few - 6) == list(range(6, few))
        kill(source)
        stack.enter_context(store(tmp_path / "store", listen=where))
        send(stack, relay, where, few)
        assert numbers(slow, few) == list(range(few, 2 * few))


@pytest.mark.rows("P-343")
@pytest.mark.parametrize("form", ["each", "batches", "callback"])
def test_an_application_that_crashes_repeatedly_advances(form: str, tmp_path: Path) -> None:
    """It works 20 ms on each message, blocks the event loop meanwhile, and crashes after 30 messages (P-343)."""
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
