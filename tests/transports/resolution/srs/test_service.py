"""The service: effects of each frame and record, refusals, and disconnections. See also `test_srs_traps`."""

from typing import Any

import attrs
import pytest

from stablecast.core.errors import InvariantError
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.srs.directory import Interest
from stablecast.transports.resolution.srs.events import BytesReceived, SendBytes
from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind
from tests.transports.resolution.invariants import check_service
from tests.transports.resolution.srs_played import (
    ASK,
    CONFIG,
    SETUP,
    Played,
    info,
    instance,
    matches,
    register,
    tell,
    wants,
)


@pytest.mark.rows("T-402", "T-408")
def test_registration_and_the_full_exchange() -> None:
    """An answer with an ID that names the life of the service, every source of interest, then the end."""
    played = Played()
    played.join(1, info("orders", 1), info("trades", 2))
    heard = played.join(2, wants("orders"))
    assert heard == [srs.RegistrationResponse(client_id=9 << 32 | 2), info("orders", 1), srs.StreamRequest()]
    assert played.send(2, ASK) == {}
    played.accept(3)
    data = rsocket.encode(SETUP) + rsocket.encode(register(3, counter=None))
    played.service.receive(BytesReceived(3, data), 0)
    (effect,) = (effect for effect in played.service.take_effects() if isinstance(effect, SendBytes))
    (frame,) = rsocket.FrameDecoder().feed(effect.data)
    assert (frame.kind, frame.stream, frame.flags, frame.metadata) == (
        FrameKind.PAYLOAD, 1, FrameFlag.COMPLETE | FrameFlag.NEXT, None,
    )  # fmt: skip


@pytest.mark.rows("T-403")
def test_changes_travel_one_by_one() -> None:
    """Creation, change, deletion in both forms; an unchanged record does not travel."""
    played = Played()
    played.join(1, info())
    played.join(2, wants("orders"))
    assert played.send(1, tell(info("orders", 2))) == {2: [info("orders", 2)]}
    assert played.send(1, tell(info("orders", 2))) == {}
    changed = attrs.evolve(info("orders", 2), ttl=16)
    assert played.send(1, tell(changed)) == {2: [changed]}
    gone = srs.SourceDelete(otid=info().otid, topic="orders")
    assert played.send(1, tell(gone)) == {2: [attrs.evolve(info(), cost=srs.ENDED)]}
    assert played.send(1, tell(attrs.evolve(changed, cost=srs.ENDED))) == {2: [attrs.evolve(changed, cost=srs.ENDED)]}
    assert played.send(1, tell(gone)) == {}
    assert played.service.counters()["ignored"] == 1


def test_a_source_whose_topic_changes_is_another_one() -> None:
    played = Played()
    played.join(1, info())
    played.join(2, wants("orders"))
    moved = attrs.evolve(info(), topic="trades")
    assert played.send(1, tell(moved)) == {2: [attrs.evolve(info(), cost=srs.ENDED)]}
    assert list(played.service.directory.topics) == ["trades"]


@pytest.mark.rows("T-404", "T-405")
def test_interest_is_answered_at_once_and_its_end_is_sent_back() -> None:
    played = Played()
    played.join(1, info("fx.eur", 1), info("bonds", 2))
    played.join(2)
    assert played.send(2, tell(wants("bonds"))) == {2: [info("bonds", 2)]}
    assert played.send(2, tell(matches("^fx"))) == {2: [info("fx.eur", 1)]}
    ends: tuple[srs.Message, ...] = (
        srs.ReceiverDelete(name="bonds", instance=b"instance"),
        srs.PatternDelete(name="^fx", instance=b"instance"),
        srs.PatternDelete(name="never", instance=b"instance"),
    )
    assert played.send(2, tell(*ends)) == {2: list(ends)}
    assert played.service.counters()["topics_wanted"] == played.service.counters()["patterns_wanted"] == 0


@pytest.mark.rows("T-402")
def test_a_client_without_stream_or_connection_receives_no_records() -> None:
    """The full exchange sends them."""
    played = Played()
    played.join(1)
    played.accept(2)
    played.send(2, SETUP, register(2), tell(wants("orders")))
    assert played.send(1, tell(info())) == {}
    played.lose(2)
    assert played.send(1, tell(info(index=2))) == {}
    assert played.join(3, wants("orders"), name=2, counter=2)[1:] == [info(), info(index=2), srs.StreamRequest()]


def test_flood_sends_every_source_once() -> None:
    played = Played()
    played.join(1, info("fx.eur", 1))
    played.accept(2)
    heard = played.send(2, SETUP, register(2, mode=srs.FLOOD), ASK)
    assert heard[2][1:] == [info("fx.eur", 1), srs.StreamRequest()]
    assert played.send(2, tell(wants("fx.eur"))) == {}
    played.lose(2)
    assert played.at(50 * SECOND) == {}
    assert played.service.directory.flooded == {}


def test_records_that_mean_nothing_here_are_counted() -> None:
    played = Played()
    played.join(1)
    leave = srs.LeaveInfo(otid=bytes(32), topic="orders", source="", instance=b"instance")
    assert played.send(1, tell(srs.ReceiverEnd(name="orders", instance=b"instance"), leave)) == {}
    assert played.service.counters()["ignored"] == 2


def test_a_source_that_is_up_belongs_to_who_announced_it() -> None:
    played = Played()
    played.join(1, info())
    played.join(2)
    played.send(2, tell(attrs.evolve(info(), ttl=1)))
    assert played.service.directory.sources[info().otid].owner == instance(1)
    played.lose(1)
    played.send(2, tell(attrs.evolve(info(), ttl=1)))
    assert played.service.directory.sources[info().otid].owner == instance(2)
    assert played.service.counters()["clients"] == 1


@pytest.mark.rows("T-413", "T-415")
def test_potentially_down_sources_go_after_their_lifetime_or_a_leave_record() -> None:
    """T27."""
    played = Played()
    left = srs.LeaveInfo(otid=info("orders", 2).otid, topic="orders", source="", instance=b"instance")
    played.join(1, info("orders", 1), info("orders", 2))
    played.join(2, wants("orders"))
    played.send(2, tell(left))
    assert played.at(SECOND) == {}
    played.lose(1)
    played.send(2, tell(left))
    assert played.at(2 * SECOND - 1) == {}
    assert played.at(2 * SECOND) == {2: [attrs.evolve(info("orders", 2), cost=srs.ENDED)]}
    played.send(2, tell(left))
    played.send(2, Frame(FrameKind.KEEPALIVE))
    for now in range(10, 101, 10):
        played.at(now * SECOND)
        played.send(2, Frame(FrameKind.KEEPALIVE))
    assert played.at(101 * SECOND) == {2: [attrs.evolve(info("orders", 1), cost=srs.ENDED)]}
    assert played.service.counters()["deleted"] == 2
    assert played.notes[-1] == f"client [{instance(1).hex()}] is forgotten"


def test_a_leave_record_of_a_source_that_went_by_itself_means_nothing() -> None:
    played = Played()
    left = srs.LeaveInfo(otid=info().otid, topic="orders", source="", instance=b"instance")
    played.join(1, info())
    played.join(2, wants("orders"))
    played.send(2, tell(left))
    played.send(1, tell(srs.SourceDelete(otid=info().otid, topic="orders")))
    assert played.at(SECOND) == {}
    assert played.service.counters()["deleted"] == 0


def test_the_last_source_of_a_lost_client_takes_it_along() -> None:
    played = Played()
    left = srs.LeaveInfo(otid=info().otid, topic="orders", source="", instance=b"instance")
    played.join(1, info())
    played.join(2)
    played.lose(1)
    played.send(2, tell(left))
    played.at(SECOND)
    assert played.service.counters()["clients"] == 1
    assert played.at(200 * SECOND) == {}


@pytest.mark.rows("T-414")
def test_a_client_that_came_back_is_not_forgotten() -> None:
    """Nothing is due for it."""
    played = Played()
    played.join(1, info())
    played.lose(1)
    played.now = 90 * SECOND
    played.join(2, info(), counter=2, name=1)
    for now in range(100, 201, 10):
        played.at(now * SECOND)
        played.send(2, Frame(FrameKind.KEEPALIVE))
    assert played.service.counters()["sources"] == 1


def test_a_newer_hello_ends_the_connection_before_and_an_older_one_is_refused() -> None:
    """Formal design, 7.10."""
    played = Played()
    played.join(1, info(), counter=5)
    played.join(2, counter=6, name=1)
    assert played.cut == [1]
    assert played.service.counters()["sources"] == 0
    assert played.raw(1, b"late") == {}
    played.lose(1)
    played.accept(3)
    assert played.send(3, SETUP, register(1, counter=6)) == {}
    assert played.cut == [1, 3]
    assert played.service.counters()["refused"] == 1
    played.accept(4)
    assert played.send(4, SETUP, register(1, counter=None))[4]
    assert played.cut == [1, 3, 2]


@pytest.mark.rows("T-406")
def test_silence_cuts_off() -> None:
    """U7: before SETUP too; a peer that sends anything stays."""
    played = Played()
    played.accept(1)
    played.join(2)
    played.at(9 * SECOND)
    assert played.send(2, Frame(FrameKind.KEEPALIVE, flags=FrameFlag.RESPOND)) == {2: []}
    played.at(10 * SECOND)
    assert played.cut == [1]
    played.at(23 * SECOND)
    assert played.cut == [1]
    assert played.service.next_timeout() == 24 * SECOND
    played.at(24 * SECOND)
    assert played.cut == [1, 2]
    assert played.service.counters()["silent"] == 2
    assert "it was silent for 15000 ms" in played.notes[-3]


NONSENSE = {
    "no frame": b"\0\0\0",
    "registration before SETUP": rsocket.encode(register(1)),
    "a second SETUP": rsocket.encode(SETUP) * 2,
    "records before registration": rsocket.encode(SETUP) + rsocket.encode(tell(wants("orders"))),
    "a stream before registration": rsocket.encode(SETUP) + rsocket.encode(ASK),
    "no registration": rsocket.encode(SETUP)
    + rsocket.encode(Frame(FrameKind.REQUEST_RESPONSE, 1, payload=srs.encode(srs.StreamRequest()))),
    "a second registration": rsocket.encode(SETUP) + rsocket.encode(register(2)) * 2,
    "a frame for clients": rsocket.encode(SETUP) + rsocket.encode(Frame(FrameKind.PAYLOAD)),
    "a giant frame": b"\xff\xff\xff",
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_counted_and_cut_off(data: bytes) -> None:
    played = Played()
    played.join(1, wants("orders"))
    played.accept(2)
    played.raw(2, data)
    assert played.cut == [2]
    assert played.service.counters()["malformed"] == 1
    assert any(note.startswith("10.0.0.1:2 is cut off: ") for note in played.notes)
    played.join(3, info())
    assert played.service.counters()["connections"] == 2


def test_a_frame_that_may_be_ignored_is_ignored() -> None:
    played = Played()
    played.join(1)
    played.send(1, Frame(FrameKind.EXT, flags=FrameFlag.IGNORE))
    assert played.cut == []


@pytest.mark.parametrize(
    "told",
    [
        [info(index=index) for index in range(3)],
        [wants(str(index)) for index in range(4)],
        [matches("a"), matches("b")],
    ],
)
def test_bounds_cut_off(told: list[Any]) -> None:
    """Sources, topics and patterns of one client."""
    played = Played()
    played.join(1, *told[:-1])
    assert played.cut == []
    played.send(1, tell(*told[:1]))
    assert played.cut == []
    played.send(1, tell(told[-1]))
    assert played.cut == [1]
    assert played.service.counters()["refused"] == 1


def test_a_client_that_floods_is_disconnected() -> None:
    """Records and frames count, and are forgotten with time; the others are served."""
    played = Played(attrs.evolve(CONFIG, max_burst=10, max_rate=1))
    played.join(1, info())
    played.join(2, wants("orders"))
    played.now = 100 * SECOND
    for _ in range(3):
        played.send(2, Frame(FrameKind.KEEPALIVE), Frame(FrameKind.KEEPALIVE, flags=FrameFlag.RESPOND))
    assert played.cut == []
    played.send(1, tell(*(info(index=index) for index in range(2) for _ in range(5))))
    assert played.cut == [1]
    assert "it floods: more than 10 records at once" in played.notes[-2]
    assert played.send(2, Frame(FrameKind.KEEPALIVE, flags=FrameFlag.RESPOND)) == {2: []}


def test_clients_and_connections_are_bounded() -> None:
    """Clients that are potentially down count."""
    played = Played()
    for connection in (1, 2, 3):
        played.join(connection, info(index=connection))
    played.accept(4)
    assert played.cut == [4]
    for connection in (1, 2, 3):
        played.lose(connection)
    played.join(5)
    assert played.cut == [4, 5]
    assert played.service.counters()["refused"] == 2
    assert played.service.counters()["lost"] == 3
    assert played.service.counters()["down"] == 3


def test_a_broken_invariant_is_found() -> None:
    played = Played()
    played.join(1, info())
    played.service.clients[instance(1)].sources.clear()
    with pytest.raises(InvariantError, match="sources"):
        check_service(played.service)
    played = Played()
    played.join(1, wants("orders"), matches("x"))
    del played.service.clients[instance(1)].interests[Interest("orders")]
    with pytest.raises(InvariantError, match="interest"):
        check_service(played.service)
