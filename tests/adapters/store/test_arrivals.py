"""Arrivals at a store are fed once, counted and paused."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

from stablecast.core.protocol.effects import Join, Leave
from stablecast.core.protocol.inputs import Arrived, Data, Ended, Gone, Lost, StoreInput
from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.core.protocol.messages import SourceInfo, SourceInfoRequest
from stablecast.runtime.origins import Origins
from stablecast.runtime.policy import Policy
from stablecast.runtime.ports import PortError
from stablecast.runtime.routing import Routing
from stablecast.runtime.stream import Admits
from stablecast.store import arrivals
from stablecast.store.arrivals import StoreArrivals
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import UnknownHeader
from stablecast.transports.wire.lbmc import MessageKind
from tests.adapters.runtime.peers import data
from tests.support.retransmissions import encode_recovered

SESSION, TOPIC_INDEX = 5, 7
LIFE = codec.join(SESSION, TOPIC_INDEX)
NONSENSE = lbmc.Message(MessageKind.CONTROL, headers=(UnknownHeader(200, b"xx"),))


class Joiner:
    """A joined stream that nobody sends on."""

    def __init__(
        self, transport: str, session: int, on_items: Any, on_end: Callable[[bool], None], admits: Admits
    ) -> None:
        self.made, self.admits = (transport, session), admits
        self.on_items, self.on_end = on_items, on_end
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.calls.append(name)

    async def close(self) -> None:
        self.calls.append("close")


class Bench:
    def __init__(self) -> None:
        self.fed: list[StoreInput] = []
        self.told: list[ControlMessage] = []
        self.oddities: Counter[str] = Counter()
        routing = Routing(lambda *_: None, lambda _: None, Origins())
        routing.origins.oddities = self.oddities
        self.inlet = StoreArrivals(self.fed.append, self.told.append, lambda *_: True, routing, "127.0.0.1")

    def joiner(self) -> Any:
        return self.inlet.joiners[LIFE]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(arrivals, "StreamJoiner", Joiner)
    return Bench()


def deaf(*_: object, **__: object) -> None:
    raise PortError("this interface cannot hear groups")


def run(first: int, count: int) -> Run:
    block = b"".join(data(number, b"x") for number in range(first, first + count))
    return Run(TOPIC_INDEX, first, count, count, block)


@pytest.mark.parametrize(
    ("topic", "names", "admitted"),
    [("orders", "shop", True), ("quotes", "shop", False), ("quotes", "edge", True), ("orders", "desk", False)],
)
def test_a_store_joins_whom_the_policy_lets_send(
    topic: str, names: str, admitted: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = """[[allow]]\nnames = ["shop"]\nroles = ["source"]\ntopics = ["orders"]\n
    [[allow]]\nnames = ["edge"]\nroles = ["router"]\n[[allow]]\nnames = ["desk"]\nroles = ["receiver"]"""
    monkeypatch.setattr(Origins, "policy", Policy.parse(rules.encode()))
    bench.inlet.join(Join(LIFE, "a:1"), topic)
    sender = asyncio.BaseTransport({"peercert": {"subject": ((("commonName", names),),)}})
    assert bench.joiner().admits(sender) is admitted
    assert bench.oddities == ({} if admitted else {"barred-source": 1})


@pytest.mark.rows("P-917", "P-920")
async def test_items_of_a_stream_are_fed_and_counted(bench: Bench) -> None:
    """A gap is told behind the run that shows it."""
    bench.inlet.join(Join(LIFE, "a:1"))
    bench.inlet.on_stream(SESSION, [run(0, 3), run(5, 1)])
    first, second, lost = bench.fed
    assert isinstance(first, Data)
    assert isinstance(second, Data)
    assert (first.count, second.wire_first, lost) == (3, 5, Lost(LIFE, 3, 2))
    traffic = bench.inlet.traffic[LIFE]
    assert (traffic.received, traffic.payload_bytes, traffic.reads, traffic.lost) == (4, 4, 2, 2)
    assert len(bench.inlet.tokens) == 2


async def test_late_items_of_a_stream_that_was_left_are_counted(bench: Bench) -> None:
    bench.inlet.on_stream(SESSION, [run(0, 1)])
    assert bench.inlet.traffic[LIFE].received == 1


async def test_a_stream_is_joined_once_and_forgotten_when_it_is_left(bench: Bench) -> None:
    bench.inlet.join(Join(LIFE, "a:1"))
    joiner = bench.joiner()
    bench.inlet.join(Join(LIFE, "a:1"))
    assert bench.joiner() is joiner
    assert joiner.made == ("a:1", SESSION)
    bench.inlet.leave(Leave(LIFE))
    bench.inlet.leave(Leave(LIFE))
    assert (joiner.calls, bench.inlet.joiners, bench.inlet.traffic) == (["abandon"], {}, {})
    assert not bench.inlet._joined


async def test_a_stream_that_ends_is_told(bench: Bench) -> None:
    bench.inlet.join(Join(LIFE, "a:1"))
    joiner = bench.joiner()
    joiner.on_end(False)
    joiner.on_end(True)
    joiner.on_end(True)
    assert bench.fed == [Ended(LIFE), Gone("a:1"), Gone("a:1")]
    assert not bench.inlet.joiners


@pytest.mark.parametrize("place", ["a:1", "LBTRM:10.0.0.1:5:00000005:224.1.1.1:6"])
async def test_a_stream_that_nobody_hears_any_more_is_joined_again(
    place: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The life registers again at the same place: its port refused, or its session could not be joined, for a while."""
    if place == "a:1":
        bench.inlet.join(Join(LIFE, place))
        bench.joiner().on_end(True)
    else:
        monkeypatch.setattr(arrivals, "ReliableJoiner", deaf)
        bench.inlet.join(Join(LIFE, place))
        monkeypatch.setattr(arrivals, "ReliableJoiner", Over)
    assert not bench.inlet.joiners
    bench.inlet.join(Join(LIFE, place))
    assert bench.joiner()


async def test_while_it_is_paused_nothing_is_read_not_even_of_a_new_stream(bench: Bench) -> None:
    bench.inlet.pause(False)
    bench.inlet.join(Join(LIFE, "a:1"))
    bench.inlet.pause(True)
    bench.inlet.pause(True)
    other = codec.join(6, 7)
    bench.inlet.join(Join(other, "a:2"))
    later: Any = bench.inlet.joiners[other]
    bench.inlet.pause(False)
    assert bench.joiner().calls == later.calls == ["pause", "resume"]
    await bench.inlet.close()
    assert later.calls[-1] == "close"


async def test_messages_on_the_port_are_told_and_retransmissions_fed(bench: Bench) -> None:
    recovered = codec.Recovered(LIFE, LIFE, 4, b"x")
    items = [item for stored in (encode_recovered(recovered),) for item in decoded(stored)]
    asks = decoded(codec.encode(SourceInfoRequest(LIFE)))
    bench.inlet.on_items([*asks, *items, run(0, 1), NONSENSE], None)  # type: ignore[arg-type]
    assert bench.told == [SourceInfoRequest(LIFE)]
    assert [type(one) for one in bench.fed] == [Data]
    assert bench.oddities == {"data-on-request-port": 1, "malformed-on-request-port": 1}


async def test_announcements_on_a_stream_are_fed(bench: Bench) -> None:
    bench.inlet.on_stream(SESSION, [*decoded(codec.encode(SourceInfoRequest(LIFE))), NONSENSE])
    assert bench.fed == [Arrived(SourceInfoRequest(LIFE))]
    assert bench.oddities == {"malformed-on-stream": 1}


def decoded(stored: bytes) -> list[Any]:
    return list(StreamDecoder().feed(stored))


class Over:
    """A session over LBT-RM or LBT-RU that is joined; `made` are all of them."""

    made: ClassVar[list["Over"]] = []

    def __init__(self, *made: Any, patient: bool) -> None:
        _, self.where, self.settings, self.on_items, self.on_lost, self.on_end = made
        self.patient = patient
        self.calls: list[str] = []
        Over.made.append(self)

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.calls.append(name)


@pytest.mark.rows("P-401")
@pytest.mark.parametrize("place", ["LBT-RU:10.0.0.1:5:00000005", "LBTRM:10.0.0.1:5:00000005:224.1.1.1:6"])
async def test_a_shared_session_feeds_the_topics_of_the_store_and_its_gaps_are_not_losses(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The transport repairs what is missing; only what it gives up is lost, and its end is no proof of one."""
    monkeypatch.setattr(arrivals, "ReliableJoiner", Over)
    Over.made.clear()
    bench.inlet.join(Join(LIFE, place))
    (over,) = Over.made
    assert (str(over.where), over.patient) == (place, True)
    other = Run(TOPIC_INDEX + 1, 0, 1, 1, b"")
    over.on_items(SESSION, [run(0, 3), other, run(5, 1), *decoded(codec.encode(SourceInfoRequest(LIFE)))])
    first, second, told = bench.fed
    assert isinstance(first, Data)
    assert isinstance(second, Data)
    assert (first.count, second.wire_first, told) == (3, 5, Arrived(SourceInfoRequest(LIFE)))
    over.on_lost(Lost(LIFE + 1, 3, 2))
    over.on_lost(Lost(LIFE, 3, 2))
    over.repairs = lambda: (3, 4)  # type: ignore[attr-defined]
    traffic = bench.inlet.traffic_of(LIFE)
    assert (traffic.received, traffic.naks, traffic.duplicates) == (4, 3, 4)
    over.on_end(False)
    assert bench.fed[3:] == [Lost(LIFE, 3, 2), Ended(LIFE)]
    assert bench.inlet.traffic[LIFE].lost == 2
    bench.inlet.leave(Leave(LIFE))
    over.on_lost(Lost(LIFE, 7, 1))
    assert bench.inlet.statistics() == {}


async def test_a_session_that_cannot_be_joined_is_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "ReliableJoiner", deaf)
    bench.inlet.join(Join(LIFE, "LBTRM:10.0.0.1:5:00000005:224.1.1.1:6"))
    assert (bench.oddities, bench.inlet.joiners) == ({"stream-not-joined": 1}, {})


@pytest.mark.rows("P-250")
async def test_a_session_is_joined_once_for_all_its_sources_and_left_with_the_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An announcement is fed once, however many sources share the session."""
    monkeypatch.setattr(arrivals, "ReliableJoiner", Over)
    Over.made.clear()
    place, second = "LBT-RU:10.0.0.1:5:00000005", LIFE + 1
    bench.inlet.join(Join(LIFE, place))
    bench.inlet.pause(True)
    bench.inlet.join(Join(second, place))
    (over,) = Over.made
    other = Run(TOPIC_INDEX + 1, 0, 1, 1, b"")
    over.on_items(SESSION, [run(0, 1), other, *decoded(codec.encode(SourceInfoRequest(LIFE)))])
    assert [fed.session for fed in bench.fed if isinstance(fed, Data)] == [LIFE, second]
    assert len(bench.fed) == 3
    monkeypatch.setattr(bench.inlet._sessions._receivers, "all_statistics", lambda: {f"receiver {place}": {"lost": 1}})
    assert bench.inlet.statistics() == {f"receiver {place}": {"lost": 1, "joined": 2}}
    over.on_end(False)
    assert bench.fed[3:] == [Ended(LIFE), Ended(second)]
    bench.inlet.pause(False)
    bench.inlet.leave(Leave(LIFE))
    assert over.calls == ["pause", "pause", "resume", "resume"]
    bench.inlet.leave(Leave(second))
    assert over.calls[4:] == ["abandon"]


async def test_a_life_that_takes_the_place_of_another_on_a_session_keeps_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "ReliableJoiner", Over)
    Over.made.clear()
    place, same_topic = "LBT-RU:10.0.0.1:5:00000005", codec.join(SESSION + 1, TOPIC_INDEX)
    bench.inlet.join(Join(LIFE, place))
    bench.inlet.join(Join(same_topic, place))
    bench.inlet.leave(Leave(LIFE))
    (over,) = Over.made
    over.on_items(SESSION, [run(0, 1)])
    over.on_lost(Lost(LIFE, 1, 2))
    fed, lost = bench.fed
    assert isinstance(fed, Data)
    assert (fed.session, over.calls) == (same_topic, [])
    assert lost == Lost(same_topic, 1, 2)
    await bench.inlet.close()
    assert over.calls == ["abandon"]


async def test_what_a_router_repeats_gets_the_names_of_the_life(bench: Bench) -> None:
    """So the journal, and all that is sent again, have no others. Other sources of the router's stream are left out."""
    bench.inlet.join(Join(LIFE, "7:a:1"), "orders")
    assert bench.fed == []
    assert LIFE not in bench.inlet.joiners
    origin = named(SourceRecord("10.0.0.1:1", SESSION, TOPIC_INDEX, instance=b"instance")).origin
    bench.inlet.distant.found("orders", SourceRecord("10.0.1.1:1", 99, 8, origin=origin))
    assert bench.joiner().made == ("10.0.1.1:1", 99)
    block = b"".join(data(number, b"x", 8) for number in range(3))
    hop, lives = codec.join(99, 8), ((LIFE, 0),)
    info = SourceInfo(hop, "orders", 1, 1, 0, "10.0.0.1:1", (), False, (), 1, lives, late_join=False)
    (message,) = StreamDecoder().feed(codec.encode(info))
    bench.joiner().on_items(99, [message, Run(9, 0, 1, 1, data(0, b"x", 9)), Run(8, 0, 3, 3, block)])
    told, arrived = bench.fed
    assert isinstance(told, Arrived)
    assert told.message == attrs.evolve(info, incarnation=LIFE)
    assert isinstance(arrived, Data)
    assert (arrived.session, arrived.incarnation, arrived.count) == (LIFE, LIFE, 3)
    kept, life = bench.inlet.tokens.use(arrived.token, done=True)
    assert (kept, life) == (run(0, 3), LIFE)
    # A router repeats an announcement also of a source that is gone: only a new one is a sign of life.
    (newer,) = StreamDecoder().feed(codec.encode(attrs.evolve(info, high=2)))
    bench.joiner().on_items(99, [message, newer, newer])
    assert bench.fed[2:] == [Arrived(attrs.evolve(info, incarnation=LIFE, high=2))]
    bench.joiner().on_end(True)
    assert bench.fed[3:] == [Ended(LIFE)], "the source may go on, where another router repeats it"
    bench.inlet.distant.found("orders", SourceRecord("10.0.1.1:1", 99, 8, origin=origin))
    bench.joiner().on_items(99, [newer])
    assert bench.fed[4:] == [Arrived(attrs.evolve(info, incarnation=LIFE, high=2))], "the same router repeats it again"
    bench.inlet.leave(Leave(LIFE))
    assert not bench.inlet.distant._topics
