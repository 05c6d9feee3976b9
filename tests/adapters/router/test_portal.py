"""What a portal tells its router of the streams that it joined, and what it knows of its connections."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from stablecast.router.config import PortalConfig
from stablecast.router.portal import PortalContext
from stablecast.router.unicast_port import MAX_CARRIED, MessagePeer
from stablecast.transports.codec.routed import Endpoint
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from tests.adapters.router.test_daemon import GROUPS, HERE, configuration
from tests.transports.routing.bench import ORIGIN, SOURCE


@attrs.define
class Joiner:
    """A stream that is joined; the test says when it ends."""

    ended: Callable[[bool], None]

    def claim(self, topic: int) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing: a stream that is left takes until the next turn of the loop."""


async def test_a_stream_that_was_left_says_nothing_of_the_next_place(monkeypatch: pytest.MonkeyPatch) -> None:
    told, joiners = list[ev.RouterInput](), list[Joiner]()
    options = configuration({"resolver_multicast_address": GROUPS[0], "default_interface": HERE}, {})
    portal = PortalContext("edge", 0, PortalConfig("near", 1, options=options), told.append, lambda *_: None)

    def joiner(*args: Any, **_: Any) -> Joiner:
        joiners.append(Joiner(args[-1]))
        return joiners[-1]

    monkeypatch.setattr(portal.transports, "joiner", joiner)
    portal.join(fx.JoinSource(0, ORIGIN, "orders", SOURCE))
    portal.leave(ORIGIN)
    portal.join(fx.JoinSource(0, ORIGIN, "orders", attrs.evolve(SOURCE, address="10.0.1.2:14371")))
    joiners[0].ended(True)
    assert not told
    joiners[1].ended(True)
    assert told == [ev.StreamEnded(ORIGIN)]
    portal.transports.close()


@pytest.mark.parametrize(
    ("domain", "address", "carried"),
    [
        (3, "", True),
        (3, "10.0.3.1:14391", True),
        (2, "", False),
        (3, "10.0.3.1:7", False),
        (2, "10.0.3.1:14391", False),
    ],
)
def test_a_connection_knows_where_its_messages_went(domain: int, address: str, carried: bool) -> None:
    peer = MessagePeer(lambda *_: None, lambda *_: None)
    peer.note(Endpoint(3, "10.0.3.1", 14_391))
    assert peer.carried(domain, address) is carried


def test_a_connection_that_went_to_too_many_may_have_carried_to_any() -> None:
    peer = MessagePeer(lambda *_: None, lambda *_: None)
    for port in range(1, MAX_CARRIED + 1):
        peer.note(Endpoint(3, "10.0.3.1", port))
    assert not peer.carried(2, "")
    peer.note(Endpoint(3, "10.0.3.1", MAX_CARRIED + 1))
    assert peer.carried(2, "")
