"""Multicast as a carrier."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.carriers import DEFAULT_GROUP, MulticastGroup
from stablecast.transports.resolution.udp.context import ResolutionContext
from stablecast.transports.resolution.udp.effects import SendDatagram
from stablecast.transports.resolution.udp.inputs import AddReceiver, AddSource
from stablecast.transports.resolution.udp.presets import PRESETS
from stablecast.transports.wire import lbmr


@pytest.mark.rows("T-022")
def test_a_group_asks_for_nothing() -> None:
    """Everything goes to the group, all senders are accepted, and there are no keepalives."""
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


def sent(context: ResolutionContext) -> list[tuple[int, int, int]]:
    """Return when how many queries and advertisements leave within 20 s."""
    source = AddSource("a", "10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True)
    for event in (source, AddReceiver("b")):
        context.receive(event, 0)
    found: list[tuple[int, int, int]] = []
    now = 0
    while now < 20 * SECOND:
        for effect in context.take_effects():
            if isinstance(effect, SendDatagram):
                packet = lbmr.decode(effect.data)
                assert isinstance(packet, lbmr.Packet)
                if packet.queries or packet.advertisements:
                    found.append((now, len(packet.queries), len(packet.advertisements)))
        due = context.next_timeout()
        now = 20 * SECOND if due is None else due
        context.handle_timeout(now)
    return found


@pytest.mark.rows("T-302")
@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.config is not None])
def test_a_strategy_is_the_same_over_a_relay_and_in_a_group(name: str) -> None:
    config = PRESETS[name].config
    assert config is not None
    group = sent(ResolutionContext.create(b"instance", MulticastGroup(), config))
    assert group == sent(ResolutionContext.over_relays(b"instance", ["10.0.0.9:15380"], config))
    assert group
