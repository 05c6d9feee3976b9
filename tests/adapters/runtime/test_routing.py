"""Unicast to and from other domains: routes that come late, messages that come twice, origins that are not believed."""

import asyncio
from collections import Counter

import attrs
import pytest

from stablecast.core.protocol.events import StoreUnresponsive
from stablecast.core.protocol.messages import Message, Register, RetransmitRequest, Role, StableAck
from stablecast.runtime import connection_pool as pool_module
from stablecast.runtime import routing as module
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.origins import Origin, Origins
from stablecast.runtime.request_port import FarPeer, Found, Peer, decoded
from stablecast.runtime.routing import Routing
from stablecast.runtime.stream import Item
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import StreamDecoder
from stablecast.transports.codec.routed import Endpoint, destination_of, routed
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from tests.adapters.runtime.peers import LOCAL, listener
from tests.support.network import until
from tests.support.retransmissions import encode_recovered

HERE, ROUTER, STORE = "10.0.0.1:14391", "10.0.0.9:14392", "2:10.0.0.2:14567"
ASKED = RetransmitRequest(Role.RECEIVER, 7, 1, 1, 0, 5, HERE)
ACK = StableAck(0, 7, 0, 5, False)
OTHER = "2:10.0.0.8:1"
"""Another process behind the router."""


@attrs.define
class Sent:
    """A routing whose messages are kept."""

    sent: list[tuple[str, bytes]] = attrs.field(factory=list)
    lost: list[str] = attrs.field(factory=list)
    reported: asyncio.Event = attrs.field(factory=asyncio.Event)
    routing: Routing = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.routing = Routing(lambda to, data: self.sent.append((to, data)), self.report, Origins())
        self.routing.here = HERE

    def report(self, address: str) -> None:
        self.lost.append(address)
        self.reported.set()

    @property
    def counted(self) -> Counter[str]:
        return self.routing.origins.oddities


def settled() -> Sent:
    """A routing in domain 1 with a route to domain 2."""
    sent = Sent()
    sent.routing.learn(1)
    sent.routing.route(2, ROUTER)
    return sent


@pytest.mark.rows("R-201")
def test_a_message_goes_to_the_router_of_its_domain_and_is_numbered() -> None:
    sent = settled()
    assert not sent.routing.takes(HERE, b"within the domain")
    repairs = [encode_recovered(codec.Recovered(5, 6, number, b"x")) for number in (1, 2)]
    assert sent.routing.takes(STORE, codec.encode(ASKED))
    assert sent.routing.takes(STORE, b"".join(repairs))
    assert [to for to, _ in sent.sent] == [ROUTER, ROUTER]
    items = StreamDecoder().feed(b"".join(data for _, data in sent.sent))
    ways = [destination_of(item) for item in items if isinstance(item, lbmc.Message)]
    assert [(way.destination, way.origin) for way in ways if way] == [
        (Endpoint.of(STORE), Endpoint.of(f"1:{HERE}"))
    ] * 3
    assert [way.stream.sqn for way in ways if way and way.stream] == [0, 1, 2]
    assert sent.routing.behind(ROUTER) == [STORE]


def test_a_message_that_becomes_too_large_is_left_out() -> None:
    sent = settled()
    sizes = (10, lbmc.MAX_MESSAGE - 50, 20)
    repairs = [encode_recovered(codec.Recovered(5, 6, number, bytes(size))) for number, size in enumerate(sizes)]
    sent.routing.takes(STORE, b"".join(repairs))
    ((_, data),) = sent.sent
    items = [one for one in StreamDecoder().feed(data) if isinstance(one, lbmc.Message)]
    assert [len(one.payload) for one in items] == [10, 20]
    assert [way.stream.sqn for one in items if (way := destination_of(one)) and way.stream] == [0, 1]
    assert sent.counted["not-routed"] == 1


@pytest.mark.parametrize("address", ["2:a:b", "2:host:1", "2:10.0.0.1:99999"])
def test_an_address_that_is_none_ends_nothing(address: str) -> None:
    sent = settled()
    assert sent.routing.takes(address, codec.encode(ACK))
    assert not sent.sent
    assert sent.counted["not-routed"] == 1


@pytest.mark.rows("R-202")
def test_the_own_domain_written_out_is_no_domain() -> None:
    sent = settled()
    assert sent.routing.takes(f"1:{HERE}", b"data")
    assert sent.sent == [(HERE, b"data")]
    assert sent.routing.behind(HERE) == [f"1:{HERE}"]


def test_routers_are_heard_from_the_first_message_to_another_domain_on() -> None:
    heard: list[int] = []
    sent = settled()
    sent.routing.on_far = lambda: heard.append(1)
    for to in (HERE, f"1:{HERE}"):
        sent.routing.takes(to, b"data")
    assert not heard
    for _ in range(2):
        sent.routing.takes(STORE, codec.encode(ASKED))
    assert heard == [1]


@pytest.mark.rows("R-112")
async def test_the_first_messages_wait_for_the_domain_and_for_the_route() -> None:
    sent = Sent()
    for number in (1, 2):
        assert sent.routing.takes(STORE, codec.encode(attrs.evolve(ASKED, request=number)))
    sent.routing.learn(1)
    assert not sent.sent
    sent.routing.route(3, ROUTER)
    assert not sent.sent
    sent.routing.route(2, ROUTER)
    assert [to for to, _ in sent.sent] == [ROUTER, ROUTER]
    assert not sent.lost
    assert sent.routing._waiting_bytes == 0, "what left makes room"
    sent.routing.close()


async def test_what_waits_leaves_once_the_domain_is_known_if_the_route_was_before() -> None:
    sent = Sent()
    sent.routing.route(2, ROUTER)
    assert sent.routing.takes(STORE, codec.encode(ASKED))
    assert not sent.sent
    sent.routing.learn(1)
    assert [to for to, _ in sent.sent] == [ROUTER]
    sent.routing.close()
    assert sent.routing._timer is None, "the timer is given back"


@pytest.mark.rows("R-098")
async def test_a_message_without_a_route_counts_as_lost_in_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.001)
    sent = settled()
    for _ in range(2):
        assert sent.routing.takes("3:10.0.0.3:14567", b"data")
    while sent.counted["without-route"] < 2:
        sent.reported.clear()
        await sent.reported.wait()
    assert set(sent.lost) == {"3:10.0.0.3:14567"}
    assert len(caplog.records) == 1
    sent.routing.route(3, ROUTER)
    assert not sent.sent


async def test_each_message_without_a_route_is_given_up_in_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one still waits when the first one is given up, and the third one comes when nothing waits."""
    sent, far = settled(), ["3:10.0.0.3:14567", "4:10.0.0.4:14567", "5:10.0.0.5:14567"]
    for seconds, address in ((0.001, far[0]), (0.1, far[1])):
        monkeypatch.setattr(module, "WAIT_SECONDS", seconds)
        assert sent.routing.takes(address, b"data")
    while sent.lost != far[:2]:
        sent.reported.clear()
        await sent.reported.wait()
    assert sent.routing.takes(far[2], b"data")
    while sent.lost != far:
        sent.reported.clear()
        await sent.reported.wait()
    assert (sent.counted["without-route"], sent.routing._waiting_bytes) == (3, 0)
    assert sent.routing._timer is None


@pytest.mark.rows("R-204")
async def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 10)
    sent = Sent()
    for _ in range(2):
        sent.routing.takes(STORE, bytes(8))
    assert sent.lost == [STORE]
    assert sent.counted["routed-waiting-full"] == 1
    sent.routing.close()


def test_a_lost_route_makes_messages_wait_again() -> None:
    sent = settled()
    sent.routing.route(2, "")
    assert sent.routing.hop(STORE) == ""
    assert not sent.routing._told


def test_a_route_that_one_kind_of_resolution_loses_may_be_known_to_another() -> None:
    sent = settled()
    sent.routing.route(2, ROUTER, "services")
    sent.routing.route(2, "")
    assert sent.routing.hop(STORE) == ROUTER
    sent.routing.route(2, "", "services")
    assert sent.routing.hop(STORE) == ""


def heard(routing: Routing, *data: bytes, host: str = "10.0.0.9") -> list[tuple[object, Peer | FarPeer]]:
    peer = Peer(lambda *_: None, lambda _: None)
    peer.origin = Origin(host)
    return list(decoded(StreamDecoder(series=True).feed(b"".join(data)), peer, routing.origins.oddities, routing))


def early_peer(routing: Routing, *data: bytes, host: str = "10.0.0.9") -> list[Found]:
    """Pass on what a router sends, and return what its messages are found to be, now and later."""
    found = list[Found]()

    def on_items(items: list[Item], peer: Peer) -> None:
        found.extend(message for message, _ in decoded(items, peer, routing.origins.oddities, routing))

    peer = Peer(on_items, lambda _: None)
    peer.origin = Origin(host)
    peer.on_items(StreamDecoder(series=True).feed(b"".join(data)))
    return found


def from_far(message: Message, number: int = 0, domain: int = 2, to: int = 1) -> bytes:
    position = h.Stream(stream_id=1, sqn=number, ctxinst=b"INSTANCE")
    here = Endpoint.of(f"{to}:{HERE}")
    return routed(codec.encode(message), here, Endpoint(domain, "10.0.0.2", 14567), position)


def test_a_message_from_another_domain_is_of_a_process_there() -> None:
    sent = settled()
    asked = attrs.evolve(ASKED, reply_to="10.0.0.2:14567")
    ((found, sender),) = heard(sent.routing, from_far(asked))
    assert found == attrs.evolve(asked, reply_to="2:10.0.0.2:14567")
    assert sender.origin == Origin("2:10.0.0.2")
    origins = sent.routing.origins
    assert origins.speaks_for(sender.origin, ["2:10.0.0.2:14391"], found)
    assert not origins.speaks_for(sender.origin, ["10.0.0.2:14391"], found)
    assert not origins.speaks_for(sender.origin, ["3:10.0.0.2:14391"], found)
    assert not origins.speaks_for(Origin("10.0.0.2"), ["2:10.0.0.2:14391"], found)
    assert not origins.answers(sender.origin, found)
    sent.routing.takes("2:10.0.0.2:14567", codec.encode(ASKED))
    assert origins.answers(sender.origin, found)
    assert origins.agree(sender.origin, Origin("2:10.0.0.2"), found)
    assert not origins.agree(sender.origin, Origin("10.0.0.2"), found)


@pytest.mark.rows("R-203")
def test_a_repeated_message_is_taken_once() -> None:
    sent = settled()
    found = heard(sent.routing, from_far(ACK), from_far(ACK, 1), from_far(ACK), from_far(ACK, 1))
    assert [message for message, _ in found] == [ACK, ACK]
    assert sent.counted["routed-twice"] == 2


def test_only_the_router_of_the_domain_is_believed() -> None:
    """A stranger is refused, and so are messages for another domain, from ones own, or without a stream."""
    sent = settled()
    assert heard(sent.routing, from_far(ACK), host="10.0.0.66") == []
    assert sent.counted["foreign-Routed"] == 1
    old = lbmc.Message(
        lbmc.MessageKind.CONTROL,
        headers=tuple(one for one in lbmc.decode(from_far(ACK))[0].headers if not isinstance(one, h.Stream)),
    )
    wrong = [from_far(ACK, to=3), from_far(ACK, domain=1), from_far(ACK, domain=0), lbmc.encode(old)]
    assert heard(sent.routing, *wrong) == []
    assert sent.counted["routed-elsewhere"] == 3
    assert sent.counted["routed-without-stream"] == 1


async def test_what_comes_before_the_routes_are_known_waits_for_them() -> None:
    """Only the receiver knew the router: its single confirmation must reach a source that has just started."""
    sent, asked = Sent(), list[str]()
    sent.routing.on_far = lambda: asked.append("routers")
    later = early_peer(sent.routing, from_far(ACK), from_far(ACK, 1, domain=3), from_far(ACK, 2, to=4))
    assert later == []
    assert asked == ["routers"]
    sent.routing.learn(1)
    sent.routing.route(4, ROUTER)
    assert later == []
    sent.routing.route(2, ROUTER)
    assert later == [ACK]
    sent.routing.route(3, ROUTER)
    assert later == [ACK, ACK]
    assert sent.counted == {"routed-elsewhere": 1}


async def test_what_comes_early_is_believed_from_the_router_only_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = Sent()
    later = early_peer(sent.routing, from_far(ACK), host="10.0.0.66")
    sent.routing.learn(1)
    sent.routing.route(2, ROUTER)
    assert later == []
    assert sent.counted == {"foreign-Routed": 1}
    late, loop = settled(), asyncio.get_running_loop()
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    for number in range(2):
        later = early_peer(late.routing, from_far(ACK, number, domain=3))
        dropped = loop.create_future()
        loop.call_soon(loop.call_later, 0.0, dropped.set_result, None)
        await dropped
        assert late.counted == {"routed-unknown-route": number + 1}
    late.routing.route(3, ROUTER)
    assert later == []


async def test_what_comes_early_is_bounded_and_carries_no_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EARLY", 2)
    sent = Sent()
    sent.routing.learn(1)
    again_sent = routed(
        encode_recovered(codec.Recovered(5, 6, 1, b"x")),
        Endpoint.of(f"1:{HERE}"),
        Endpoint(2, "10.0.0.2", 1),
        h.Stream(stream_id=1, sqn=0, ctxinst=b"INSTANCE"),
    )
    later = early_peer(sent.routing, again_sent, *(from_far(ACK, number) for number in range(1, 4)))
    assert sent.counted == {"routed-unknown-route": 1, "routed-waiting-full": 1}
    sent.routing.close()
    sent.routing.route(2, ROUTER)
    assert later == []


def test_an_endpoint_without_a_domain_takes_messages_of_its_own() -> None:
    assert [message for message, _ in heard(Sent().routing, codec.encode(ACK))] == [ACK]


def test_addresses_in_the_own_domain_are_known_without_its_number() -> None:
    sent = settled()
    ((found, _),) = heard(sent.routing, codec.encode(attrs.evolve(ASKED, reply_to=f"1:{HERE}")))
    assert found == ASKED


def test_the_streams_of_an_endpoint_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STREAMS", 2)
    sent = settled()
    for number in range(4):
        sent.routing.takes(f"2:10.0.0.{number}:1", codec.encode(ACK))
    assert len(sent.routing.behind(ROUTER)) == 2


async def test_the_end_of_the_connection_to_a_router_is_a_break_for_all_behind_it() -> None:
    """A router that is gone says nothing about the processes behind it."""
    reports = list[tuple[str, str]]()
    report = reports.append
    pool = ConnectionPool(lambda peer: report(("reset", peer)), lambda peer: report(("gone", peer)), LOCAL)
    async with listener() as router:
        pool.routing.learn(1)
        pool.routing.here = HERE
        pool.routing.route(2, router.address)
        assert not pool.connected(STORE)
        pool.send(STORE, codec.encode(ASKED))
        connection = await router.connection()
        await connection.hear(len(codec.encode(ASKED)) + 48)
        pool.send(OTHER, codec.encode(ACK))
        assert pool.connected(STORE)
        assert pool.room(STORE)
    await until(lambda: ("gone", router.address) in reports)
    assert {where for _, where in reports} == {router.address, STORE, OTHER}
    assert [where for what, where in reports if what == "gone"] == [router.address]
    assert not pool.refused(STORE)
    await pool.close()


async def test_who_waits_for_room_behind_a_router_is_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those who were told to wait: a store has thousands of clients behind a router."""
    monkeypatch.setattr(pool_module, "ROOM_BYTES", 4)
    room, told = list[str](), asyncio.Event()

    def tell(address: str) -> None:
        room.append(address)
        if address == OTHER:
            told.set()

    pool = ConnectionPool(lambda _: None, lambda _: None, LOCAL)
    pool.on_room = tell
    async with listener() as router:
        pool.routing.learn(1)
        pool.routing.here = HERE
        pool.routing.route(2, router.address)
        pool.send("2:10.0.0.7:1", codec.encode(ACK))
        pool.send(STORE, codec.encode(ASKED))
        pool.send(OTHER, codec.encode(ACK))
        assert [pool.room(one) for one in (STORE, OTHER)] == [False, False]
        await told.wait()
        assert room == [router.address, STORE, OTHER]
        assert pool.room(STORE)
        assert not pool._held
        await pool.close()


@pytest.mark.parametrize("refused", [False, True])
async def test_who_waits_for_room_is_not_kept_when_the_router_is_gone(
    refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it waited for is lost, and it is told of that instead."""
    monkeypatch.setattr(pool_module, "ROOM_BYTES", 4)
    reset = asyncio.Event()
    pool = ConnectionPool(lambda peer: reset.set() if peer == STORE else None, lambda _: None, LOCAL)
    async with listener() as router:
        if refused:
            await router.close()
        pool.routing.learn(1)
        pool.routing.here = HERE
        pool.routing.route(2, router.address)
        pool.send(STORE, codec.encode(ASKED))
        if refused:
            assert not pool.room(STORE)
        else:
            connection = await router.connection()
            await connection.hear(1)
            assert not pool.room(STORE, 4)
            await connection.hang_up()
        await reset.wait()
        assert not pool._held
        await pool.close()


async def test_a_pool_that_closes_ends_the_wait_for_routes() -> None:
    pool = ConnectionPool(lambda _: None, lambda _: None, LOCAL)
    pool.send(STORE, codec.encode(ASKED))
    assert pool.routing._timer is not None
    await pool.close()
    assert pool.routing._timer is None


async def test_a_store_without_a_route_is_silent_for_a_known_reason() -> None:
    """Also for the event about it."""
    pool = ConnectionPool(lambda _: None, lambda _: None, LOCAL)
    assert "no router was heard" in pool.cause(STORE)
    pool.routing.learn(1)
    event = pool.explained(StoreUnresponsive(0, STORE, f"store 0 [{STORE}] unresponsive."))
    assert isinstance(event, StoreUnresponsive)
    assert event.text.endswith("no router is known that reaches domain 2.")
    pool.routing.route(2, ROUTER)
    assert pool.cause(STORE) == ""


def test_a_registration_names_where_its_answers_go() -> None:
    """The reply address of a client in another domain has the number of that domain."""
    sent = settled()
    asked = Register(Role.RECEIVER, 0, 1, 0, 7, 0, "orders", 5, "10.0.0.2:14391", "", 0, 0, 77)
    ((found, _),) = heard(sent.routing, from_far(asked))
    assert isinstance(found, Register)
    assert found.reply_to == "2:10.0.0.2:14391"


def test_another_endpoint_of_the_process_learns_what_the_first_one_knows() -> None:
    first, other = settled(), Sent()
    with first.routing.leading(other.routing):
        assert (other.routing.domain, other.routing.hop(STORE)) == (1, ROUTER)
        first.routing.route(3, ROUTER)
        first.routing.route(2, "")
    first.routing.route(4, ROUTER)
    assert other.routing.routes == {3: ROUTER}
