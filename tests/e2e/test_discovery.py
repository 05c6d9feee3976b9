"""Discovery by each kind of topic resolution and by pairs of kinds, with real processes on one host and on two."""

from contextlib import ExitStack

import pytest

from tests.support.discovery import RECEIVERS
from tests.support.namespaces import inside, one_network, reason_to_skip
from tests.support.network import unused_port
from tests.support.program import Program

WHY_NOT = reason_to_skip()
EXPECTED = sorted(f"{topic} by {kinds}" for topic, receivers in RECEIVERS.items() for kinds in receivers)


def discovered(left: tuple[str, str], right: tuple[str, str]) -> list[str]:
    """Return the names of the receivers on the left that got data of sources on the right.

    Each side is a namespace, which may be empty, and an address. The daemons run on the left.
    """
    (here, address), (there, other) = left, right
    with ExitStack() as stack:

        def start(namespace: str, module: str, *arguments: str) -> Program:
            return stack.enter_context(inside(namespace, module, *arguments))

        relay = start(here, "stablecast.cli.main", "lbmrd", "--listen", f"{address}:0", "--json")
        service = start(here, "stablecast.cli.main", "srs", "--interface", address, "--port", "0", "--json")
        where = (str(unused_port()), f"{address}:{relay.json_line()['port']}", service.json_line()["address"])
        receiver = start(here, "tests.support.discovery", "receiver", address, *where)
        source = start(there, "tests.support.discovery", "source", other, *where)
        assert (receiver.line(), source.line()) == ("ready", "ready")
        found = [receiver.line() for _ in EXPECTED]
        assert receiver.process.wait() == 0
        return sorted(found)


@pytest.mark.rows("T-007", "T-008", "T-011")
def test_each_kind_and_each_pair_on_one_host() -> None:
    """A context with two kinds is found by either. Two such contexts exchange a message once."""
    assert discovered(("", "127.0.0.1"), ("", "127.0.0.1")) == EXPECTED


@pytest.mark.rows("T-007", "T-008", "T-011", "T-022", "T-211")
@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_each_kind_and_each_pair_on_two_hosts() -> None:
    """The same over a network."""
    with one_network() as (left, right):
        assert discovered((left, "10.29.3.1"), (right, "10.29.3.2")) == EXPECTED
