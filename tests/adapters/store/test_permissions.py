"""Who may say what to a store: a client for its registration, and what was asked for what is an answer."""

from typing import cast

import attrs
import pytest

from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.core.store.status import StoreStatus
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.origins import Origin
from stablecast.runtime.request_port import Peer
from stablecast.store.permissions import Permissions
from stablecast.transports import codec
from tests.core import samples
from tests.core.drivers import StoreDriver
from tests.core.samples import register

LIFE, SOURCE, RECEIVER = 7, 1, 2
HOME, OTHER, PROXY, ASKED = "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"
PLACE = f"{HOME}:14391"


@attrs.define
class Known:
    """The clients of a store; a proxy may stand in for its source."""

    proxy: bool = False

    def leaver(self, request: msg.Deregister) -> Client | None:
        return self.holder(request.reg_id, request.incarnation)

    def holder(self, reg_id: int, incarnation: int | None = None) -> Client | None:
        if reg_id not in (SOURCE, RECEIVER) and incarnation != LIFE:
            return None
        place, token = (f"{PROXY}:1", msg.ElectionToken(1, 0, LIFE)) if self.proxy else (PLACE, None)
        return Client(Role.SOURCE, SOURCE, 0, "orders", 1, LIFE, 0, place, "", 0, 0, -1, (), election=token)


def permissions(known: Known, *, everywhere: bool = False) -> tuple[Permissions, ConnectionPool]:
    pool = ConnectionPool(lambda _: None, lambda _: None, "192.0.2.9")
    pool.origins.dial(f"{ASKED}:14567")
    return Permissions(lambda: cast("StoreStatus", known), pool, everywhere, lambda _: None), pool


def peer(host: str) -> Peer:
    made = Peer(lambda *_: None, lambda _: None)
    made.origin, made.own = Origin(host), "192.0.2.8"
    return made


REGISTER = msg.Register(Role.SOURCE, 0, 1, SOURCE, LIFE, 0, "orders", 1, PLACE, "", 0, 0)
INFO = msg.SourceInfo(LIFE, "orders", 1, 0, 0, PLACE, (1,), False, ())


@pytest.mark.parametrize(
    ("message", "rightful"),
    [
        (REGISTER, HOME),
        (msg.RetransmitRequest(msg.Role.RECEIVER, LIFE, SOURCE, 1, 0, 1, PLACE), HOME),
        (msg.LateJoinRequest(LIFE, 1, PLACE), HOME),
        (msg.Deregister(Role.SOURCE, 0, 1, SOURCE, LIFE, 0, PLACE), HOME),
        (msg.Deregister(Role.SOURCE, 0, 1, 99, LIFE, 0, f"{OTHER}:1"), HOME),
        (msg.ConsumptionAck(LIFE, SOURCE, RECEIVER, 4), HOME),
        (msg.Keepalive(Role.SOURCE, LIFE, SOURCE, False, 0), HOME),
        (INFO, HOME),
        (msg.LateJoinInfo(LIFE, 1, 0, 4), ASKED),
        (codec.Recovered(LIFE, LIFE, 4, b""), ASKED),
        (codec.RecoveredRun(LIFE, LIFE, 4, [b""]), ASKED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_the_process_whose_business_it_is(message: msg.Message, rightful: str) -> None:
    judge, pool = permissions(Known())
    assert [judge.may_say(message, peer(host)) for host in (rightful, OTHER)] == [True, False]
    assert pool.origins.oddities == {f"foreign-{type(message).__name__}": 1}


def test_a_source_leaves_while_a_proxy_stands_in_for_it() -> None:
    judge, _ = permissions(Known(proxy=True))
    leave = msg.Deregister(Role.SOURCE, 0, 1, SOURCE, LIFE, 0, PLACE)
    assert [judge.may_say(leave, peer(host)) for host in (HOME, OTHER)] == [True, False]


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_store_at_all_addresses_answers_from_the_one_that_was_asked(everywhere: bool) -> None:
    """Its clients believe no other one."""
    judge, pool = permissions(Known(), everywhere=everywhere)
    assert judge.may_say(REGISTER, peer(HOME))
    assert pool._asked_at == ({HOME: "192.0.2.8"} if everywhere else {})


@pytest.mark.parametrize("taken", [False, True], ids=["unknown", "of another client"])
def test_a_receiver_leaves_a_store_that_lost_its_records(taken: bool) -> None:
    """Its RegID is unknown there or another's, and its source is known: nobody goes, and it gets its answer."""
    store = StoreDriver.with_source()
    if taken:
        store.hear(register(role=Role.SOURCE, reg_id=70, incarnation=LIFE + 1, topic="another", reply_to=f"{OTHER}:1"))
    judge = Permissions(lambda: store.machine.status, permissions(Known())[1], False, lambda _: None)
    leave = msg.Deregister(Role.RECEIVER, 0, 3, 70, samples.LIFE, 50, PLACE)
    assert [judge.may_say(leave, peer(host)) for host in (HOME, OTHER)] == [True, False]
