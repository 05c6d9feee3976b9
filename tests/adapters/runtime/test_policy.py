"""Who may be what, by the policy beside the certificates: its file, and each place that asks it."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
import trustme

from stablecast.client import Context
from stablecast.client.range_inquiry import RangeRoutes
from stablecast.client.receiver import Receiver
from stablecast.client.request_inputs import RequestInputs
from stablecast.client.source import Source
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.events import RegistrationError
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.protocol.stored_contents import StoredQuestion
from stablecast.resolver.srs.config import SrsConfig
from stablecast.resolver.srs.daemon import SrsDaemon
from stablecast.runtime import policy as module
from stablecast.runtime import tls
from stablecast.runtime.origins import MAX_REPORTS, Origin, Origins
from stablecast.runtime.policy import POLICY, Names, Policy, PolicyError, Right
from stablecast.runtime.request_port import Found, Peer
from stablecast.runtime.routing import Routing
from stablecast.runtime.tls import TlsError
from stablecast.transports import codec
from tests.adapters.runtime.test_tls import certified
from tests.adapters.store.test_permissions import INFO, LIFE, PLACE, REGISTER, Known, peer, permissions
from tests.adapters.store.test_store import serving
from tests.support.network import Events, until

RULES = """
[[allow]]
names = ["orders-*", "10.0.0.7"]
roles = ["source", "receiver"]
topics = ["orders/.*", "orders"]

[[allow]]
names = ["store-?"]
roles = ["store"]

[[allow]]
names = ["spiffe://edge"]
roles = ["router"]

[[allow]]
names = ["reader"]
roles = ["receiver"]
"""

SHOP, STORE, ROUTER, READER, NOBODY = (
    ("commonName:orders-1",),
    ("organizationName:orders-1", "DNS:store-1"),
    ("URI:spiffe://edge",),
    ("commonName:reader",),
    ("organizationName:orders-1", "emailAddress:store-1"),
)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Policy:
    policy = Policy.parse(RULES.encode())
    monkeypatch.setattr(Origins, "policy", policy)
    return policy


@pytest.mark.parametrize(
    ("names", "right", "topic", "allowed"),
    [
        (SHOP, Right.SOURCE, "orders/eu", True),
        (SHOP, Right.SOURCE, "orders/eu\n", False),
        (SHOP, Right.SOURCE, "my/orders/eu", False),
        (SHOP, Right.RECEIVER, "", False),
        (SHOP, Right.RECEIVER, None, True),
        (SHOP, Right.STORE, None, False),
        (("IP Address:10.0.0.7",), Right.SOURCE, "orders/", True),
        (STORE, Right.STORE, "orders/eu", True),
        (STORE, Right.SOURCE, "orders/eu", False),
        (ROUTER, Right.ROUTER, "quotes", True),
        (READER, Right.RECEIVER, "", True),
        (NOBODY, Right.STORE, None, False),
        ((), Right.RECEIVER, None, False),
    ],
)
def test_what_a_rule_gives(names: Names, right: Right, topic: str | None, allowed: bool, rules: Policy) -> None:
    for _ in range(2):  # The second answer is remembered.
        assert rules.allows(names, (right,), topic) is allowed


def test_remembered_answers_are_bounded(rules: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN", 2)
    for number in range(5):
        assert not rules.allows(SHOP, (Right.SOURCE,), f"quotes/{number}")
    assert len(rules._known) <= 2


@pytest.mark.parametrize(
    "text",
    [
        "allow",
        "\xff",
        "deny = []",
        "allow = 1",
        "allow = [1]",
        "[allow]",
        "[[allow]]\nnames = ['a']",
        "[[allow]]\nroles = ['source']",
        "[[allow]]\nnames = ['a']\nroles = ['operator']",
        "[[allow]]\nnames = ['a']\nroles = 'source'",
        "[[allow]]\nnames = [1]\nroles = ['source']",
        "[[allow]]\nnames = []\nroles = ['source']",
        "[[allow]]\nnames = 'ab'\nroles = ['source']",
        "[[allow]]\nnames = ['a', '']\nroles = ['source']",
        "[[allow]]\nnames = ['a']\nroles = ['source']\ntopics = 'ab'",
        "[[allow]]\nnames = ['a']\nroles = ['source']\ntopics = ['(']",
        "[[allow]]\nnames = ['a']\nroles = ['store']\ntopics = ['a']",
        "[[allow]]\nnames = ['a']\nroles = ['source']\ntopic = ['a']",
    ],
)
def test_a_wrong_file_is_refused(text: str) -> None:
    with pytest.raises(PolicyError) as refused:
        Policy.parse(text.encode("latin-1"))
    assert POLICY not in str(refused.value), "its reader knows the path, and names that"


def test_a_large_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    with pytest.raises(PolicyError):
        Policy.parse(b"#" * 11)


# -------------------- the file of a process


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of this process, whose certificate is for `orders-1`."""
    place = certified(tmp_path / "ours", trustme.CA(), common_name="orders-1")
    monkeypatch.setenv(tls.VARIABLE, str(place))
    monkeypatch.setattr(tls, "RELOAD_SECONDS", 0)
    return place


def allow(place: Path, *roles: str, topics: str = "") -> None:
    (place / POLICY).write_text(f"[[allow]]\nnames = ['orders-1']\nroles = {list(roles)}\n{topics}")


def test_a_changed_file_counts_at_once_and_a_broken_one_never(ours: Path, caplog: pytest.LogCaptureFixture) -> None:
    allow(ours, "source")
    tls.require_right(Right.SOURCE, "orders", "it")
    allow(ours, "receiver")
    with pytest.raises(TlsError, match="commonName:orders-1"):
        tls.require_right(Right.SOURCE, "orders", "it")
    before = tls.policy()
    (ours / POLICY).write_text("broken")
    assert tls.policy() is before
    (ours / POLICY).unlink()  # A gap between two files must not open everything.
    assert tls.policy() is before
    assert sum("stay in use" in record.getMessage() for record in caplog.records) >= 2


def test_a_process_does_not_start_with_a_broken_file(ours: Path) -> None:
    (ours / POLICY).write_text("broken")
    with pytest.raises(TlsError, match=POLICY):
        tls.use(ours)


def test_without_a_file_everybody_may_do_everything(ours: Path) -> None:
    assert tls.policy() is None
    tls.require_right(Right.STORE, "", "it")
    assert Origins().has_right(Origin(), (Right.STORE,), None, "it")


async def test_a_source_and_a_store_begin_only_if_their_own_policy_lets_them(ours: Path, tmp_path: Path) -> None:
    allow(ours, "source", topics="topics = ['orders']")
    async with Context(session_id=1) as context:
        await context.source("orders")
        with pytest.raises(TlsError, match="'quotes'"):
            await context.source("quotes")
        with pytest.raises(TlsError, match="role receiver"):
            context.receiver("orders", source="127.0.0.1:1")
    with pytest.raises(TlsError, match="role store"):
        async with serving(tmp_path):
            pass


# -------------------- at a store


REQUEST = msg.RetransmitRequest(Role.RECEIVER, LIFE, 1, 1, 0, 1, PLACE)
QUESTION = StoredQuestion(request=1, reply_to=PLACE, topic="orders")


@pytest.mark.parametrize(
    ("message", "allowed", "barred"),
    [
        (REGISTER, (SHOP,), (STORE, READER, ROUTER, NOBODY)),
        (attrs.evolve(REGISTER, topic="quotes"), (), (SHOP,)),
        (attrs.evolve(REGISTER, election=msg.ElectionToken(1, 0, LIFE)), (SHOP, STORE), (READER,)),
        (attrs.evolve(REGISTER, role=Role.RECEIVER), (SHOP, READER), (STORE, NOBODY)),
        (REQUEST, (SHOP, READER, STORE), (ROUTER, NOBODY)),
        (QUESTION, (SHOP, READER), (STORE, NOBODY)),
        (attrs.evolve(QUESTION, topic=""), (READER,), (SHOP,)),
        (attrs.evolve(QUESTION, topic="", reg_id=1), (READER, SHOP), (STORE,)),
        (msg.ConsumptionAck(LIFE, 1, 2, 4), (SHOP, READER), (STORE,)),
        (msg.Keepalive(Role.SOURCE, LIFE, 1, False, 0), (SHOP,), (READER,)),
        (INFO, (SHOP, STORE), (READER,)),
        (msg.LateJoinInfo(LIFE, 1, 0, 4), (SHOP, STORE), (READER,)),
        (codec.Recovered(LIFE, LIFE, 4, b""), (SHOP, STORE), (READER,)),
        (msg.Deregister(Role.SOURCE, 0, 1, 1, LIFE, 0, PLACE), (SHOP, NOBODY), ()),
    ],
)
def test_a_store_asks_the_policy(
    message: Found, allowed: tuple[Names, ...], barred: tuple[Names, ...], rules: Policy
) -> None:
    judge, pool = permissions(Known())
    refused: list[msg.Register] = []
    judge = attrs.evolve(judge, refuse=refused.append)
    host = PLACE.partition(":")[0]
    pool.origins.dial(PLACE)
    pool.origins._met.update(dict.fromkeys((*allowed, *barred)))

    def may(names: Names) -> bool:
        one = peer(host)
        one.origin = Origin(host, names)
        return judge.may_say(message, one)

    assert [may(names) for names in allowed] == [True] * len(allowed)
    assert not pool.origins.oddities
    assert [may(names) for names in barred] == [False] * len(barred)
    assert pool.origins.oddities.total() == len(barred)
    assert all(name.startswith("barred-") for name in pool.origins.oddities)
    assert len(refused) == (len(barred) if isinstance(message, msg.Register) else 0)


def test_what_comes_from_another_domain_counts_if_a_router_passed_it_on(rules: Policy) -> None:
    origins = Origins()
    assert origins.may_say(Origin("2:10.0.0.1", router=ROUTER), REGISTER, "orders")
    assert not origins.may_say(Origin("2:10.0.0.1", router=SHOP), REGISTER, "orders")
    assert origins.oddities == {"barred-router": 1}


def test_an_identity_is_logged_once_for_a_kind(rules: Policy, caplog: pytest.LogCaptureFixture) -> None:
    origins = Origins()
    for _ in range(3):
        assert not origins.may_say(Origin("192.0.2.1", READER), REGISTER, "orders")
    for number in range(2 * MAX_REPORTS):
        assert not origins.may_say(Origin("192.0.2.1", (f"DNS:{number}",)), REGISTER, "orders")
    assert origins.oddities == {"barred-source": 3 + 2 * MAX_REPORTS}
    assert len(caplog.records) == MAX_REPORTS


async def test_a_refused_registration_is_answered(ours: Path, tmp_path: Path) -> None:
    """The client hears a reason, and is not left to silence."""
    allow(ours, "store", "source", topics="topics = ['orders']")
    (tmp_path / "store").mkdir()
    events = Events()
    async with serving(tmp_path / "store") as store, Context(session_id=1) as context:
        await context.source("orders", stores=[store.address])
        source = await context.host(context._source_config("quotes", [store.address], 1), events)
        refused = await events.first(RegistrationError)
        assert msg.Refusal.NOT_PERMITTED.text in refused.text
        assert store.oddities["barred-source"] >= 1
        assert {client.client.topic for client in store.machine.status.clients.values()} == {"orders"}
        await source.close()


# -------------------- at a source or a receiver


class Client:
    """A source or a receiver of `orders` that keeps what it gets."""

    topic = "orders"

    def __init__(self) -> None:
        self.told: list[Any] = []

    def receive(self, event: Any) -> None:
        self.told.append(event)

    def on_control(self, message: Any) -> None:
        self.told.append(message)

    def on_recovered(self, _: int, messages: Any) -> None:
        self.told += messages

    def stores_of(self, *_: Any) -> list[str]:
        return []


class FakeSource(Client, Source):
    """A source as the request port sees it."""


class FakeReceiver(Client, Receiver):
    """A receiver as the request port sees it."""


@pytest.mark.parametrize(
    ("kind", "message", "allowed", "barred"),
    [
        (FakeSource, msg.StableAck(0, LIFE, 0, 0), STORE, SHOP),
        (FakeSource, msg.Refused(Role.SOURCE, 0, 1, 1, LIFE, msg.Refusal.NO_PATTERN), STORE, READER),
        (FakeSource, msg.ConsumptionAck(LIFE, 0, 5, 4), READER, STORE),
        (FakeSource, msg.RetransmitRequest(Role.STORE, LIFE, 0, 1, 0, 1, PLACE), READER, NOBODY),
        (FakeSource, msg.SourceInfoRequest(LIFE), STORE, NOBODY),
        (FakeReceiver, INFO, SHOP, READER),
        (FakeReceiver, msg.Keepalive(Role.STORE, LIFE, 1, False, 0), STORE, SHOP),
    ],
)
def test_a_source_and_a_receiver_ask_the_policy(
    kind: type[Client], message: msg.Message, allowed: Names, barred: Names, rules: Policy
) -> None:
    client, oddities = cast("Any", kind.__new__(kind)), Counter[str]()
    client.topic, client.told = "orders", []
    origins = Origins()
    origins.oddities = oddities
    origins.dial(PLACE)
    routing = Routing(lambda *_: None, lambda _: None, origins)
    known = ({LIFE: client}, {}) if kind is FakeSource else ({}, {LIFE: client})
    inputs = RequestInputs(*known, oddities, RangeRoutes(), routing)
    for names, told in ((barred, 0), (allowed, 1)):
        one = Peer(lambda *_: None, lambda _: None)
        one.origin = Origin(PLACE.partition(":")[0], names)
        origins._met[names] = None
        inputs._route(message, one)
        assert len(client.told) == told
    assert [name.partition("-")[0] for name in oddities] == ["barred"]


@pytest.mark.parametrize(
    ("roles", "barred"),
    [(("source", "receiver"), ""), (("source",), "barred-receiver"), (("receiver",), "barred-source")],
)
async def test_a_stream_is_joined_by_who_may_from_who_may(roles: tuple[str, ...], barred: str, ours: Path) -> None:
    """The source judges who joins, and the receiver whose stream it joins."""
    allow(ours, "source", "receiver")
    async with Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source("orders")
        receiver = other.receiver("orders", source=source.config.transport)
        allow(ours, *roles)  # Before the loop turns, and the stream is joined.
        if barred:
            await until(lambda: context.oddities[barred] + other.oddities[barred])
            assert not receiver.every_session
            allow(ours, "source", "receiver")  # Both try again, so nobody has to restart.
        await until(lambda: receiver.every_session)
        await source.send(b"x")
        assert (await anext(receiver)).payload == b"x"


async def test_a_service_asks_the_policy(ours: Path) -> None:
    service = await SrsDaemon.start(SrsConfig("127.0.0.1", 0), lambda _: None)
    try:
        allow(ours, "source", "receiver", topics="topics = ['orders']")
        async with Context(session_id=1, resolver_service=[service.address]) as context:
            for topic in ("orders", "quotes"):
                await context.host(SourceConfig(topic, 0, "", ""))
                assert context._resolver is not None
                context._resolver.add_receiver(topic)
            await until(partial(_barred, service))
            assert [one.topic for one in service._machine.directory.sources.values()] == ["orders"]
            assert [*service._machine.directory.wanted] == ["orders"]
    finally:
        await service.close()


def _barred(service: SrsDaemon) -> bool:
    found = service.statistics()
    seen = found["sources"] and found["topics_wanted"]
    return bool(found.get("barred-source") and found.get("barred-receiver") and seen)
