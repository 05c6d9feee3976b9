"""Multicast as a carrier."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.udp.carriers import DEFAULT_GROUP, MulticastGroup


def test_a_group_asks_for_nothing() -> None:
    """T-022: everything goes to the group, all senders are accepted, and there are no keepalives."""
    group = MulticastGroup()
    before = group.running
    group.start(0)
    assert (before, group.running) == (False, True)
    assert (group.pick(0), group.accepts("10.0.0.1:5")) == (DEFAULT_GROUP, True)
    group.sent(DEFAULT_GROUP, 0)
    group.handle_timeout(0)
    assert (group.take_keepalives(0), group.next(), group.take_remarks()) == ((), None, [])
    assert group.complaint() == f"no other context was heard in the group {DEFAULT_GROUP}"
    group.on_heard("10.0.0.1:5", 0)
    assert group.complaint() == ""
    group.stop()
    assert not group.running


@pytest.mark.parametrize("address", ["10.0.0.1:12965", "224.9.10.11:0", "224.9.10.11", "group:1"])
def test_an_address_that_is_no_group_is_refused(address: str) -> None:
    with pytest.raises(MisuseError, match=address.partition(":")[0]):
        MulticastGroup(address)
