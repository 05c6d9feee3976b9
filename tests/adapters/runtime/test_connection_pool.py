"""Outgoing connections are made on demand, kept and made again; refusals differ from breaks; all is bounded."""

import asyncio
import time
from collections.abc import Callable
from unittest.mock import Mock, call

import pytest
import uvloop

from stablecast.core.protocol.events import Overtaken, StoreUnresponsive
from stablecast.runtime import connection_pool as module
from stablecast.runtime.address import join
from stablecast.runtime.connection_pool import ConnectionPool
from tests.adapters.runtime.peers import LOCAL, listener
from tests.support.network import until, unused_port


class Told:
    def __init__(self) -> None:
        self.reports: list[tuple[str, str]] = []
        self._changed = asyncio.Event()
        self.pool = ConnectionPool(lambda peer: self._tell("reset", peer), lambda peer: self._tell("gone", peer), LOCAL)

    def _tell(self, what: str, peer: str) -> None:
        self.reports.append((what, peer))
        self._changed.set()

    async def until(self, count: int) -> list[tuple[str, str]]:
        while len(self.reports) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.reports


async def test_one_connection_for_all_messages() -> None:
    told = Told()
    async with listener() as peer:
        told.pool.send(peer.address, b"one ")
        told.pool.send(peer.address, b"two ")
        assert not told.pool.connected(peer.address)
        connection = await peer.connection()
        await connection.hear(8)
        assert told.pool.connected(peer.address)
        told.pool.send(peer.address, b"three")
        assert await connection.hear(13) == b"one two three"
        await told.pool.close()
        assert len(peer.connections) == 1
    assert not told.reports


async def test_what_waited_for_the_connection_makes_room_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that answers a peer waits for room before it reads more from its disk."""
    monkeypatch.setattr(module, "ROOM_BYTES", 4)
    told, room = Told(), list[str]()
    told.pool.on_room = room.append
    async with listener() as peer:
        told.pool.send(peer.address, b"one two")
        assert not told.pool.room(peer.address)
        await (await peer.connection()).hear(7)
        assert room == [peer.address]
        await told.pool.close()
    assert not told.reports


async def test_what_waited_for_the_end_of_a_turn_makes_room_when_it_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel took all of it at once, so the transport never paused and reports nothing."""
    monkeypatch.setattr(module, "ROOM_BYTES", 4)
    told, room = Told(), list[str]()
    async with listener() as peer:
        told.pool.send(peer.address, b"0")
        connection = await peer.connection()
        await connection.hear(1)
        told.pool.on_room = room.append
        for octets in (b"1", b"2345"):
            told.pool.send(peer.address, octets)
        assert not told.pool.room(peer.address)
        await connection.hear(6)
        assert room == [peer.address]
        await told.pool.close()
    assert not told.reports


async def test_later_messages_of_a_turn_leave_together_and_in_order() -> None:
    """The first does not wait for what may follow."""
    told = Told()
    async with listener() as peer:
        told.pool.send(peer.address, b"0")
        connection = await peer.connection()
        await connection.hear(1)
        for number in range(1, 10):
            told.pool.send(peer.address, b"%d" % number)
        assert await connection.hear(10) == b"0123456789"
        told.pool.send(peer.address, b"a")
        told.pool.send(peer.address, b"b")
        await told.pool.close()
        assert await connection.hear(12) == b"0123456789ab"
    assert not told.reports


async def test_bytes_of_a_peer_are_ignored() -> None:
    told = Told()
    async with listener(b"hello") as peer:
        told.pool.send(peer.address, b"one")
        await (await peer.connection()).hear(3)
        await told.pool.close()
    assert not told.reports


async def test_a_refusal_is_gone_once_for_each_try() -> None:
    told = Told()
    address = join(LOCAL, unused_port())
    told.pool.send(address, b"one")
    assert await told.until(1) == [("gone", address)]
    assert not len(told.pool)
    told.pool.send(address, b"two")
    assert await told.until(2) == [("gone", address)] * 2
    assert told.pool.refused(address)
    await told.pool.close()


async def test_a_broken_connection_is_made_again_by_itself() -> None:
    told = Told()
    async with listener() as peer:
        told.pool.send(peer.address, b"one")
        connection = await peer.connection()
        await connection.hear(3)
        await connection.hang_up()
        await peer.connection(2)
        assert told.reports == [("reset", peer.address)]
        told.pool.send(peer.address, b"two")
        assert await peer.connections[1].hear(3) == b"two"
        await told.pool.close()


async def test_a_pool_that_moved_connects_from_the_new_address_also_where_another_was_asked() -> None:
    told, came_from = Told(), list[str]()
    async with listener() as peer:
        told.pool.answer_from("127.0.0.2", LOCAL)
        told.pool.send(peer.address, b"one")
        for count in (1, 2):
            connection = await peer.connection(count)
            came_from.append(connection.transport.get_extra_info("peername")[0])
            told.pool.move("127.0.0.3")
        await told.pool.close()
    assert came_from == ["127.0.0.2", "127.0.0.3"]


async def test_a_peer_that_ended_is_reset_and_then_gone() -> None:
    """Nobody had to say anything: registrations depend on hearing of it."""
    told = Told()
    async with listener() as peer:
        told.pool.send(peer.address, b"one")
        await (await peer.connection()).hear(3)
        await peer.close()
        assert not told.pool.refused(peer.address)
        assert await told.until(2) == [("reset", peer.address), ("gone", peer.address)]
        assert told.pool.refused(peer.address)
        await told.pool.close()


async def test_a_reaction_to_gone_may_send() -> None:
    told = Told()
    address = join(LOCAL, unused_port())

    def gone(peer: str) -> None:
        told._tell("gone", peer)
        if len(told.reports) < 3:
            told.pool.send(peer, b"x")

    told.pool._on_gone = gone
    told.pool.send(address, b"x")
    await told.until(3)
    await told.pool.close()


async def test_no_tight_loop_with_a_peer_that_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that did not last is made again after a pause."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", counted)
    told = Told()
    async with listener() as peer:
        peer.rude = True
        told.pool.send(peer.address, b"one")
        await told.until(4)
        await told.pool.close()
    assert pauses[0] == 0
    assert set(pauses[1:]) == {module.PAUSE_SECONDS}
    assert len(pauses) >= 4


async def test_out_of_reach_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network failure proves nothing about a process: its RegIDs must not be given to others."""
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    attempts: list[int] = []

    async def failing(*_: object, **__: object) -> None:
        attempts.append(1)
        raise OSError(113, "No route to host")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", failing)
    told = Told()
    told.pool.send("192.0.2.1:14567", b"one")
    assert await told.until(1) == [("reset", "192.0.2.1:14567")]
    assert len(attempts) == module.MAX_ATTEMPTS
    assert not len(told.pool)
    await told.pool.close()


async def test_a_peer_that_never_answers_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.001)

    async def hanging(*_: object, **__: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", hanging)
    told = Told()
    told.pool.send("192.0.2.1:14567", b"one")
    assert await told.until(1) == [("reset", "192.0.2.1:14567")]
    await told.pool.close()


async def test_the_queue_of_a_peer_that_never_accepts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 100)
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.0)

    async def hanging(*_: object, **__: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", hanging)
    told = Told()
    for _ in range(10):
        told.pool.send("192.0.2.1:14567", bytes(30))
    link = told.pool._links["192.0.2.1:14567"]
    assert told.reports == [("reset", "192.0.2.1:14567")] * 2
    assert link._queued_bytes == 60
    await told.pool.close()


async def test_a_peer_that_does_not_read_counts_as_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 1 << 20)
    told = Told()
    async with listener() as peer:
        peer.deaf = True
        told.pool.send(peer.address, b"one")
        await peer.connection()
        while not told.reports:
            told.pool.send(peer.address, bytes(1 << 20))
            await asyncio.sleep(0)
        assert told.reports == [("reset", peer.address)]
        await told.pool.close()


@pytest.mark.parametrize(("bound", "size", "turns"), [(1 << 20, 1 << 21, 1), (1 << 24, 1 << 24, 2)])
async def test_later_messages_of_a_turn_to_a_peer_that_does_not_read_are_bounded(
    monkeypatch: pytest.MonkeyPatch, bound: int, size: int, turns: int
) -> None:
    """Too much in one turn breaks the connection at once; of two turns, what the first one left counts."""
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", bound)
    told = Told()
    async with listener() as peer:
        peer.deaf = True
        told.pool.send(peer.address, b"one")
        await peer.connection()
        for _ in range(turns):
            assert not told.reports
            told.pool.send(peer.address, b"two")
            told.pool.send(peer.address, bytes(size))
            await asyncio.sleep(0)
        assert await told.until(1) == [("reset", peer.address)]
        await told.pool.close()


async def test_closing_does_not_wait_for_a_deaf_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.0)
    told = Told()
    async with listener() as peer:
        peer.deaf = True
        told.pool.send(peer.address, bytes(10 << 20))
        await peer.connection()
        await told.pool.close()
    assert not told.reports


async def test_closing_lets_out_what_is_queued() -> None:
    """Also when there is no connection yet: a last acknowledgement is not lost."""
    told = Told()
    async with listener() as peer:
        told.pool.send(peer.address, bytes(1 << 20))
        await told.pool.close()
        connection = await peer.connection()
        assert len(await connection.hear(1 << 20)) == 1 << 20
    told.pool.send(peer.address, b"nothing")
    assert not told.reports


async def test_closing_gives_up_on_a_peer_that_never_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.0)

    async def hanging(*_: object, **__: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", hanging)
    told = Told()
    told.pool.send("192.0.2.1:14567", b"one")
    await asyncio.sleep(0)
    await told.pool.close()
    assert not told.reports


async def test_closing_does_not_wait_to_dial_for_nothing() -> None:
    """A connection that would only be made again for its own sake."""
    told = Told()
    async with listener() as peer:
        peer.rude = True
        told.pool.send(peer.address, b"one")
        await told.until(1)
        await told.pool.close()
        assert len(peer.connections) == 1


async def test_the_oldest_connection_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINKS", 1)
    told = Told()
    async with listener() as first, listener() as second, listener() as third:
        told.pool.send(first.address, b"one")
        await (await first.connection()).hear(3)
        told.pool.send(second.address, b"never said: it has not been connected when the third one comes")
        await first.connections[0].over.wait()
        dialling = told.pool._links[second.address].task
        told.pool.send(third.address, b"three")
        await (await third.connection()).hear(5)
        assert dialling is not None
        assert dialling.cancelled()
        told.pool.send(first.address, b"again")
        await (await first.connection(2)).hear(5)
        await third.connections[0].over.wait()
        assert len(told.pool) == 1
        assert not told.pool._ending, "those that have ended are forgotten"
        await told.pool.close()
    assert not told.reports


async def test_a_connection_that_makes_room_sends_the_messages_of_its_turn_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody is told of a connection that made room, so none of its messages may be lost."""
    monkeypatch.setattr(module, "MAX_LINKS", 1)
    told = Told()
    async with listener() as first, listener() as second:
        told.pool.send(first.address, b"one ")
        await (await first.connection()).hear(4)
        for word in (b"two ", b"three ", b"four"):
            told.pool.send(first.address, word)
        told.pool.send(second.address, b"five")
        await first.connections[0].over.wait()
        assert first.connections[0].data == b"one two three four"
        await (await second.connection()).hear(4)
        await told.pool.close()
    assert not told.reports


async def test_closing_waits_for_a_connection_that_made_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a process that ends then would take its last acknowledgement along."""
    monkeypatch.setattr(module, "MAX_LINKS", 1)
    monkeypatch.setattr(module, "CLOSE_SECONDS", 60.0)
    told = Told()
    async with listener() as first, listener() as second:
        told.pool.send(first.address, b"one")
        await (await first.connection()).hear(3)
        first.connections[0].transport.pause_reading()
        told.pool.send(first.address, bytes(10 << 20))
        told.pool.send(second.address, b"two")
        await (await second.connection()).hear(3)
        closing = asyncio.create_task(told.pool.close())
        await second.connections[0].over.wait()
        for _ in range(9):
            await asyncio.sleep(0)
        assert not closing.done()
        first.connections[0].transport.resume_reading()
        await closing
        assert len(await first.connections[0].hear(3 + (10 << 20))) == 3 + (10 << 20)
    assert not told.reports


class Sink(asyncio.Protocol):
    def __init__(self, found: list[bytes]) -> None:
        self.found = found

    def data_received(self, data: bytes) -> None:
        self.found.append(data)


async def starved_while_connecting(turns: int, found: list[bytes]) -> list[str]:
    """A process that is stopped for longer than an attempt may take, some turns after it dialled; then it sends."""
    reports: list[str] = []
    server = await asyncio.get_running_loop().create_server(lambda: Sink(found), LOCAL, 0)
    address = join(LOCAL, server.sockets[0].getsockname()[1])
    pool = ConnectionPool(lambda _: reports.append("reset"), lambda _: reports.append("gone"), LOCAL)
    pool.send(address, b"early")
    for _ in range(turns):
        await asyncio.sleep(0)
    time.sleep(2 * module.CONNECT_SECONDS)  # noqa: ASYNC251 - as if it were stopped
    await until(lambda: b"early" in found or reports)
    for number in range(3):
        pool.send(address, b"late %d" % number)
        await asyncio.sleep(0)
    await until(lambda: b"late 2" in b"".join(found))
    await pool.close()
    server.close()
    return reports


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_is_made_too_late_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """uvloop reports that it is made, never that it ended; each write raised, and cost the effects of that turn."""
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.001)
    outcomes = []
    for turns in range(6):
        found: list[bytes] = []
        with asyncio.Runner(loop_factory=loop) as runner:
            outcomes.append(runner.run(starved_while_connecting(turns, found)))
        assert b"".join(found).endswith(b"late 0late 1late 2")
    assert [] in outcomes, "where it was in time nobody is told anything"
    assert ["reset"] in outcomes, "what was written into a connection that came too late may be lost: that is told"


async def test_a_transport_that_raises_is_a_reset_and_the_next_send_connects_anew() -> None:
    class Raising(asyncio.Transport):
        def write(self, _: object) -> None:
            raise RuntimeError("closed")

        def is_closing(self) -> bool:
            return False

        def abort(self) -> None:
            handled.append("aborted")
            raise RuntimeError("closed, too")

    handled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: handled.append(context["message"]))
    async with listener() as there:
        told = Told()
        told.pool.send(there.address, b"a")
        connection = await there.connection(1)
        assert await connection.hear(1) == b"a"
        real = told.pool._links[there.address]._transport
        told.pool._links[there.address]._transport = Raising()
        told.pool.send(there.address, b"b")
        assert told.reports == [("reset", there.address)]
        told.pool.send(there.address, b"c")
        assert await (await there.connection(2)).hear(1) == b"c"
        assert handled == [f"the connection to {there.address} failed", "aborted"]
        assert real is not None
        real.abort()
        for _ in range(3):
            await asyncio.sleep(0)
        assert told.reports == [("reset", there.address)], "the end of a link is told once"
        assert told.pool.connected(there.address)
        await told.pool.close()


async def test_an_attempt_that_was_given_up_uses_no_connection() -> None:
    """The one that is made after all is aborted, and its end is nobody's."""
    link = Mock()
    for made in (False, True):
        attempt, transport = module.Attempt(link), Mock()
        if made:
            attempt.connection_made(transport)
            link.reset_mock()
        attempt.give_up()
        if not made:
            attempt.connection_made(transport)
        attempt.resume_writing()
        attempt.connection_lost(None)
        assert transport.abort.mock_calls == [call()]
        assert link.mock_calls == []


async def test_a_silent_store_is_told_with_the_cause_if_it_is_known() -> None:
    told, silent = Told(), StoreUnresponsive(0, "192.0.2.1:14567", "it is silent.")
    assert told.pool.explained(silent) is silent
    told.pool._failed(silent.store, "no room")
    assert told.pool.explained(silent) == StoreUnresponsive(0, silent.store, "it is silent: no room.")
    assert told.pool.explained(Overtaken()) == Overtaken()
    told.pool._failed(silent.store, "")
    assert told.pool.explained(silent) is silent


async def test_only_a_refusal_shows_that_a_peer_has_ended() -> None:
    """The monitor calls a client ended by that, and raises no alarm for it."""
    told, peer = Told(), "192.0.2.1:14567"
    for cause, refused in ((None, True), ("TLS: it accepts other certificates", False), (None, True), ("", False)):
        told.pool._failed(peer, cause)
        assert told.pool.refused(peer) is refused


async def test_what_is_remembered_of_peers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest: why they failed, and at which address of this host they asked."""
    monkeypatch.setattr(module, "MAX_LINKS", 2)
    pool = Told().pool
    for host in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"):
        pool._failed(host, "no room")
        pool.answer_from(LOCAL, host)
    assert (list(pool._causes), list(pool._asked_at)) == (["192.0.2.1", "192.0.2.3"],) * 2


async def test_a_malformed_address_is_reported_and_not_kept() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)
    told = Told()
    told.pool.send("nonsense", b"x")
    assert await told.until(1) == [("reset", "nonsense")]
    assert len(told.pool) == 0
    await told.pool.close()


async def test_a_peer_that_broke_the_connection_costs_no_line_of_asyncio(caplog: pytest.LogCaptureFixture) -> None:
    """`socket.send() raised exception.`, once for each message, says nothing to a user."""
    told = Told()
    async with listener() as peer:
        told.pool.send(peer.address, b"one")
        connection = await peer.connection()
        await connection.hear(3)
        link = told.pool._links[peer.address]
        assert link._transport is not None
        link._transport.abort()
        for _ in range(100):
            told.pool.send(peer.address, b"again")
        await told.until(1)
        await told.pool.close()
    assert [record.name for record in caplog.records] == []
