"""Discovery by each kind of resolution and by pairs of them, with real processes: on loopback, and on two hosts."""

import sys
from contextlib import ExitStack

import pytest

from tests.support.meeting import RECEIVERS
from tests.support.namespaces import one_network, reason_to_skip
from tests.support.network import unused_port
from tests.support.program import Program, running

WHY_NOT = reason_to_skip()
EXPECTED = sorted(f"{topic} by {kinds}" for topic, receivers in RECEIVERS.items() for kinds in receivers)


def start(stack: ExitStack, namespace: str, module: str, *arguments: str) -> Program:
    """A module as a program, in a namespace unless that is empty."""
    command = (sys.executable, "-m", module)
    program = ("ip", "netns", "exec", namespace, *command) if namespace else command
    return stack.enter_context(running(*arguments, program=program))


def met(stack: ExitStack, left: tuple[str, str], right: tuple[str, str]) -> list[str]:
    """Which receivers on the left got data of sources on the right; daemons are on the left. Namespaces, addresses."""
    relay = start(stack, left[0], "stablecast.cli.main", "lbmrd", "--listen", f"{left[1]}:0", "--json")
    service = start(stack, left[0], "stablecast.cli.main", "srs", "--interface", left[1], "--port", "0", "--json")
    where = (str(unused_port()), f"{left[1]}:{relay.said()['port']}", service.said()["address"])
    receiver = start(stack, left[0], "tests.support.meeting", "receiver", left[1], *where)
    source = start(stack, right[0], "tests.support.meeting", "source", right[1], *where)
    assert (receiver.line(), source.line()) == ("ready", "ready")
    found = [receiver.line() for _ in EXPECTED]
    assert receiver.process.wait() == 0
    return sorted(found)


def test_each_kind_and_each_pair_on_one_host() -> None:
    """T-007, T-008, T-011: who uses two kinds is found by either, and its messages come once to who uses both, too."""
    with ExitStack() as stack:
        assert met(stack, ("", "127.0.0.1"), ("", "127.0.0.1")) == EXPECTED


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_each_kind_and_each_pair_on_two_hosts() -> None:
    """T-007, T-008, T-011, T-022, T-211: the same over a network."""
    with one_network() as (left, right), ExitStack() as stack:
        assert met(stack, (left, "10.29.3.1"), (right, "10.29.3.2")) == EXPECTED
