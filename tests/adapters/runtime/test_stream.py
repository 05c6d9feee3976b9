"""The stream server and the reader of streams."""

import asyncio

import pytest

from stablecast.runtime import ports
from stablecast.runtime import stream as module
from stablecast.runtime.stream import TURN_BYTES, Item, StreamReader, StreamServer, Subscriber
from stablecast.transports.codec.lbttcp import Run
from tests.adapters.runtime.peers import LOCAL, data, hello, listener
from tests.support.network import connected, hung_up_on, knocking


class Reader(StreamReader):
    def __init__(self) -> None:
        super().__init__(self._take)
        self.items: list[Item] = []
        self.made = asyncio.Event()
        self._changed = asyncio.Event()

    def _take(self, items: list[Item]) -> None:
        self.items += items
        self._changed.set()

    @property
    def numbers(self) -> list[int]:
        runs = (item for item in self.items if isinstance(item, Run))
        return [run.first + at for run in runs for at in range(run.count)]

    async def read(self, count: int) -> list[Item]:
        while len(self.items) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.items


async def reader_at(address: tuple[str, int]) -> Reader:
    reader = Reader()
    await asyncio.get_running_loop().create_connection(lambda: reader, *address)
    return reader


async def server_of(greeting: bytes = hello(5)) -> tuple[StreamServer, tuple[str, int]]:
    listening = ports.listen(LOCAL, 0, "port")
    server = StreamServer(listening, lambda: greeting)
    await server.start()
    return server, listening.getsockname()


async def test_every_joiner_gets_the_greeting_and_then_the_same_blocks() -> None:
    server, at = await server_of()
    readers = [await reader_at(at), await reader_at(at)]
    for reader in readers:
        await reader.read(1)
    server.write(data(1) + data(2))
    for reader in readers:
        run = (await reader.read(2))[1]
        assert isinstance(run, Run)
        assert (run.first, run.count) == (1, 2)
    await server.close()
    for reader in readers:
        await reader.ended.wait()
        assert not reader.error


async def test_written_blocks_arrive_although_the_server_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stream ends by itself, and none because the time for that is over."""
    monkeypatch.setattr(module, "CLOSE_SECONDS", 3600.0)
    server, at = await server_of()
    readers = [await reader_at(at) for _ in range(2)]
    for reader in readers:
        await reader.read(1)
        reader.pause()
    server.write(data(1, bytes(60_000)) * 10)
    closing = asyncio.create_task(server.close())
    for reader in readers:
        reader.resume()
    await closing
    for reader in readers:
        await reader.ended.wait()
        assert sum(item.count for item in reader.items if isinstance(item, Run)) == 10


async def test_the_last_joiner_is_written_to_at_once_and_the_others_at_the_end_of_the_turn() -> None:
    server, at = await server_of()
    readers = [await reader_at(at), await reader_at(at)]
    for reader in readers:
        await reader.read(1)
    written = [_noted(one) for one in server.subscribers]
    blocks = [data(number) for number in (1, 2, 3)]
    for block in blocks:
        server.write(block)
    assert written == [[[block] for block in blocks], []]
    await asyncio.sleep(0)
    assert written == [[[block] for block in blocks], [blocks]]
    large = data(4, bytes(TURN_BYTES))
    server.write(large)
    assert written[1] == [blocks, [large]], "so much does not wait"
    server.write(data(5))
    server.remove(server.subscribers[0])
    assert written[1][2:] == [[data(5)]], "what waits is written before another is the last who joined"
    await server.close()
    for reader in readers:
        await reader.close()


def _noted(subscriber: Subscriber) -> list[list[bytes]]:
    """The later writes to a joiner, call by call."""
    assert subscriber.transport is not None
    written: list[list[bytes]] = []
    real = subscriber.transport

    class Noting:
        def writelines(self, blocks: list[bytes]) -> None:
            written.append(list(blocks))
            real.writelines(blocks)

        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

    subscriber.transport = Noting()  # type: ignore[assignment]
    return written


async def test_a_server_that_closes_cuts_no_joiner_off_for_a_newcomer() -> None:
    """Its joiners still get what was written."""
    server, at = await server_of()
    reader = await reader_at(at)
    await reader.read(1)
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    assert len(server.subscribers) == 1
    assert not server.make_room("10.0.0.9")
    await closing
    await reader.close()


async def test_a_joiner_that_left_is_forgotten() -> None:
    server, at = await server_of()
    reader = await reader_at(at)
    await reader.read(1)
    subscriber = server.subscribers[0]
    await reader.close()
    await subscriber.ended.wait()
    assert not server.subscribers
    server.write(data(1))
    await server.close()


@pytest.mark.rows("P-011")
async def test_a_joiner_that_does_not_keep_up_is_dropped() -> None:
    """The others do not wait for it."""
    server, at = await server_of()
    server.maximum = 1 << 20
    deaf = await connected(at[1])
    reader = await reader_at(at)
    await reader.read(1)
    good, slow = server.subscribers  # the last first
    number = 0
    while not slow.ended.is_set():
        number += 1
        server.write(data(number, bytes(60_000)))
        await reader.read(number + 1)
        await asyncio.sleep(0)
    assert server.subscribers == [good]
    deaf.close()
    await reader.close()
    await server.close()


async def test_closing_does_not_wait_for_a_deaf_joiner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.0)
    server, at = await server_of()
    deaf = await connected(at[1])
    reader = await reader_at(at)
    await reader.read(1)
    server.write(bytes(16 << 20))
    await reader.close()
    await server.close()
    assert not server.subscribers
    deaf.close()


@pytest.mark.parametrize("turns", range(5))
async def test_a_joiner_accepted_while_the_server_closes_is_disconnected(turns: int) -> None:
    """The loop accepts in one turn and makes the connection in the next; closing in between left a socket open."""
    server, at = await server_of()
    joining = knocking(at[1])
    for _ in range(turns):
        await asyncio.sleep(0)
    await server.close()
    assert await hung_up_on(joining)


@pytest.mark.parametrize("descriptors", [False, True])
async def test_no_more_joiners_than_allowed(monkeypatch: pytest.MonkeyPatch, descriptors: bool) -> None:
    """Nor while the last descriptors are left."""
    server, at = await server_of()
    first = await reader_at(at)
    await first.read(1)
    if descriptors:
        monkeypatch.setattr(ports, "has_room", lambda: False)
    else:
        monkeypatch.setattr(module, "MAX_JOINERS", 1)
    second = await reader_at(at)
    await second.ended.wait()
    assert not second.items
    await first.close()
    await server.close()


async def test_one_host_cannot_keep_the_joiners_of_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_JOINERS", 3)
    server, at = await server_of()
    joiners = [await connected(at[1], host) for host in ("127.0.0.3", "127.0.0.3", "127.0.0.2")]
    loop = asyncio.get_running_loop()
    for one in joiners:
        await loop.sock_recv(one, 1)
    joiners.append(await connected(at[1]))
    assert await loop.sock_recv(joiners[3], 1)
    assert sorted(one.host for one in server.subscribers) == [LOCAL, "127.0.0.2", "127.0.0.3"]
    await server.close()
    for one in joiners:
        one.close()


async def test_a_server_that_never_started_closes_its_socket() -> None:
    await StreamServer(ports.listen(LOCAL, 0, "port"), lambda: b"").close()


async def test_nonsense_ends_the_connection_and_nothing_else() -> None:
    async with listener(b"\xff" * 40) as peer:
        reader = await reader_at((LOCAL, int(peer.address.rpartition(":")[2])))
        await reader.ended.wait()
        assert reader.error
        assert not reader.items


async def test_reading_pauses() -> None:
    async with listener(data(1)) as peer:
        reader = await reader_at((LOCAL, int(peer.address.rpartition(":")[2])))
        await reader.read(1)
        reader.pause()
        reader.pause()
        (await peer.connection()).transport.write(data(2))
        await asyncio.sleep(0)
        assert len(reader.items) == 1
        reader.resume()
        reader.resume()
        await reader.read(2)
        await reader.close()
        await reader.close()
        reader.resume()


async def test_a_reader_that_was_closed_before_its_connection_hangs_up() -> None:
    async with listener(data(1)) as peer:
        reader = Reader()
        await reader.close()
        await asyncio.get_running_loop().create_connection(lambda: reader, LOCAL, int(peer.address.rpartition(":")[2]))
        await reader.ended.wait()
        assert not reader.items


@pytest.mark.rows("P-011")
async def test_a_slow_joiner_can_hold_the_source_until_it_has_room() -> None:
    """P-011 the other way: documented as normal; what waits is bounded, and nobody is dropped."""
    held: list[bool] = []
    listening = ports.listen(LOCAL, 0, "port")
    server = StreamServer(listening, lambda: hello(5), 100_000, held.append)
    await server.start()
    slow, quick = await reader_at(listening.getsockname()), await reader_at(listening.getsockname())
    for reader in (slow, quick):
        await reader.read(1)
    slow.pause()
    written = 0
    while not held:
        server.write(data(written, bytes(10_000)))
        written += 1
        await asyncio.sleep(0)
    assert held == [True]
    assert 100_000 < server.statistics()["bytes_buffered"] < 2 * 120_000
    slow.resume()
    while len(held) < 2:  # noqa: ASYNC110  # the loop's turns are what is waited for
        await asyncio.sleep(0)
    for reader in (slow, quick):
        while sum(item.count for item in reader.items if isinstance(item, Run)) < written:
            await reader.read(len(reader.items) + 1)
    assert held == [True, False]
    assert server.statistics() == {"num_clients": 2, "bytes_buffered": 0, "clients_dropped": 0}
    await server.close()


async def test_a_source_is_held_until_the_last_of_several_slow_joiners_has_room() -> None:
    held: list[bool] = []
    server = StreamServer(ports.listen(LOCAL, 0, "port"), lambda: hello(5), 100_000, held.append)
    joiners = [Subscriber(server) for _ in range(3)]
    for joiner in joiners:
        joiner.pause_writing()
    joiners[0].resume_writing()
    joiners[1].connection_lost(None)
    assert held == [True]
    joiners[2].resume_writing()
    assert held == [True, False]
    await server.close()


async def test_a_slow_joiner_that_leaves_releases_the_source() -> None:
    held: list[bool] = []
    listening = ports.listen(LOCAL, 0, "port")
    server = StreamServer(listening, lambda: hello(5), 100_000, held.append)
    await server.start()
    slow = await reader_at(listening.getsockname())
    await slow.read(1)
    slow.pause()
    while not held:
        server.write(data(0, bytes(10_000)))
        await asyncio.sleep(0)
    await slow.close()
    while len(held) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert held == [True, False]
    await server.close()


async def test_control_messages_of_a_held_source_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OVERHANG", 200_000)
    listening = ports.listen(LOCAL, 0, "port")
    server = StreamServer(listening, lambda: hello(5), 100_000, lambda _: None)
    await server.start()
    slow = await reader_at(listening.getsockname())
    await slow.read(1)
    slow.pause()
    while not server.dropped:
        server.write(data(0, bytes(10_000)))
        await asyncio.sleep(0)
    assert server.statistics()["clients_dropped"] == 1
    await slow.close()
    await server.close()


class WrittenBytes(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0


async def test_what_a_joiner_does_not_read_is_not_given_to_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd of joiners that never read must cost a source little; each gets all in order once it reads."""
    monkeypatch.setattr(module, "GIVEN_BYTES", 10_000)
    listening = ports.listen(LOCAL, 0, "port")
    server = StreamServer(listening, lambda: hello(5), 50_000_000)
    await server.start()
    slow = await reader_at(listening.getsockname())
    await slow.read(1)
    slow.pause()
    written, (joiner,) = 0, server.subscribers
    while server.statistics()["bytes_buffered"] < 500_000:
        server.write(data(written, bytes(1_000)))
        written += 1
        await asyncio.sleep(0)
    assert joiner.transport is not None
    assert joiner.transport.get_write_buffer_size() < 2 * 10_000
    slow.resume()
    while len(slow.numbers) < written:
        await slow.read(len(slow.items) + 1)
    slow.pause()
    while server.statistics()["bytes_buffered"] < 500_000:
        server.write(data(written, bytes(1_000)))
        written += 1
        await asyncio.sleep(0)
    closing = asyncio.create_task(server.close())
    slow.resume()
    await closing
    await slow.ended.wait()
    assert slow.numbers == list(range(written))


async def test_a_block_of_the_turn_in_which_a_joiner_comes_follows_its_greeting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "prepare", lambda _: None)
    server = StreamServer(ports.listen(LOCAL, 0, "port"), lambda: hello(5))
    subscriber, transport = Subscriber(server), WrittenBytes()
    subscriber.connection_made(transport)
    server.write(data(0))
    assert transport.data == hello(5) + data(0)
    subscriber.connection_lost(None)
    await server.close()


async def test_blocks_of_the_turn_in_which_a_third_joiner_comes_are_written_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are older than the third one, which is from then on the one that is written to at once."""
    monkeypatch.setattr(module, "prepare", lambda _: None)
    server = StreamServer(ports.listen(LOCAL, 0, "port"), lambda: hello(5))
    joined = [(Subscriber(server), WrittenBytes()) for _ in range(3)]
    for subscriber, transport in joined[:2]:
        subscriber.connection_made(transport)
    server.write(data(0))
    joined[2][0].connection_made(joined[2][1])
    await asyncio.sleep(0)
    assert [transport.data for _, transport in joined] == [hello(5) + data(0)] * 2 + [hello(5)]
    for subscriber, _ in joined:
        subscriber.connection_lost(None)
    await server.close()


async def test_nothing_is_handed_over_after_an_abort() -> None:
    """Bytes that were read before may still be on their way to the reader."""
    got: list[Item] = []
    reader = StreamReader(got.extend)
    reader.data_received(hello(5) + data(1))
    known = list(got)
    assert known
    reader.abort()
    reader.data_received(data(2))
    assert got == known
