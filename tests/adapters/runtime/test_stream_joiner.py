"""A joined stream: refusals, other lives, broken connections, and abandoning in every callback."""

import asyncio
from collections.abc import Callable

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.lab.world.world import World
from stablecast.runtime import stream as module
from stablecast.runtime.address import join
from stablecast.runtime.join_attempts import AT_ONCE
from stablecast.runtime.stream import Item, StreamJoiner
from tests.adapters.runtime.peers import LOCAL, data, hello, listener
from tests.support.network import unused_port


class Told:
    """The reports of a joiner, in order: ("items", session, count) and ("end", gone)."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.react: Callable[[], None] = lambda: None
        self._changed = asyncio.Event()

    def items(self, session_id: int, items: list[Item]) -> None:
        self._tell("items", session_id, len(items))

    def end(self, gone: bool) -> None:
        self._tell("end", gone)

    def _tell(self, *what: object) -> None:
        self.told.append(what)
        self._changed.set()
        self.react()

    async def until(self, count: int) -> list[tuple[object, ...]]:
        while len(self.told) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.told


def joiner_of(address: str, session_id: int | None, told: Told) -> StreamJoiner:
    return StreamJoiner(address, session_id, told.items, told.end)


async def test_the_greeting_is_kept_and_the_rest_handed_over() -> None:
    told = Told()
    async with listener(hello(5) + data(1)) as source:
        joiner = joiner_of(source.address, 5, told)
        await told.until(1)
        (await source.connection()).transport.write(data(2))
        assert await told.until(2) == [("items", 5, 1), ("items", 5, 1)]
        await joiner.close()


async def test_any_life_will_do_but_then_only_that() -> None:
    told = Told()
    async with listener(hello(5) + data(1)) as source:
        joiner = joiner_of(source.address, None, told)
        await told.until(1)
        source.greeting = hello(6) + data(1)
        await (await source.connection()).hang_up()
        assert await told.until(3) == [("items", 5, 1), ("end", False), ("end", True)]
        await joiner.close()


@pytest.mark.rows("R-064")
async def test_another_life_means_gone() -> None:
    told = Told()
    async with listener(hello(6) + data(1)) as source:
        joiner = joiner_of(source.address, 5, told)
        assert await told.until(1) == [("end", True)]
        await (await source.connection()).over.wait()
        await joiner.close()
    assert told.told == [("end", True)]


async def test_a_refusal_means_gone() -> None:
    told = Told()
    joiner = joiner_of(join(LOCAL, unused_port()), 5, told)
    assert await told.until(1) == [("end", True)]
    await joiner.close()
    assert told.told == [("end", True)]


async def test_a_life_that_ends_while_joined() -> None:
    """The connection ends first; then the port refuses."""
    told = Told()
    async with listener(hello(5) + data(1)) as source:
        joiner = joiner_of(source.address, 5, told)
        await told.until(1)
        await source.close()
        assert await told.until(3) == [("items", 5, 1), ("end", False), ("end", True)]
        await joiner.close()


async def test_a_lost_connection_is_joined_again() -> None:
    told = Told()
    async with listener(hello(5) + data(1)) as source:
        joiner = joiner_of(source.address, 5, told)
        await told.until(1)
        await (await source.connection()).hang_up()
        assert await told.until(3) == [("items", 5, 1), ("end", False), ("items", 5, 1)]
        await joiner.close()
        assert len(source.connections) == 2


async def test_the_counters_of_a_joiner_go_on_over_its_connections() -> None:
    told = Told()
    async with listener(hello(5) + data(1)) as source:
        joiner = joiner_of(source.address, 5, told)
        await told.until(1)
        assert joiner.statistics() == {"bytes_rcved": len(source.greeting), "lbmc_msgs_rcved": 2}
        await (await source.connection()).hang_up()
        await told.until(3)
        assert joiner.statistics() == {"bytes_rcved": 2 * len(source.greeting), "lbmc_msgs_rcved": 4}
        await joiner.close()


@pytest.mark.parametrize("greeting", [b"", data(1), b"\xff" * 40], ids=["silence", "no greeting", "nonsense"])
async def test_no_tight_loop_with_a_rude_peer(greeting: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """However quickly connections end, there is one for each pause."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    told = Told()
    async with listener(greeting) as source:
        source.rude = not greeting
        monkeypatch.setattr(asyncio, "sleep", counted)
        joiner = joiner_of(source.address, 5, told)
        await told.until(4)
        await joiner.close()
        assert set(told.told) == {("end", False)}
        assert len(pauses) >= len(source.connections) - 1 >= 3
        assert all(0 < pause <= module.RETRY_SECONDS for pause in pauses)


@pytest.mark.parametrize("alive", [1, module.UNGREETED_ATTEMPTS, module.UNGREETED_ATTEMPTS + 2])
async def test_a_source_that_never_greets_is_reported_and_one_that_died_is_not(
    alive: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A source killed between its accept and its greeting looks like one with TLS, but once only."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0)
    told = Told()
    async with listener(b"") as source:
        source.rude = True
        told.react = lambda: source.refuse() if len(told.told) == alive else None
        joiner = joiner_of(source.address, 5, told)
        await told.until(alive + 1)
        await joiner.close()
    assert told.told == [("end", False)] * alive + [("end", True)]
    assert [module.UNGREETED in record.getMessage() for record in caplog.records] == [True] * (alive > 1)


async def test_a_peer_out_of_reach_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    loop = asyncio.get_running_loop()
    connect, attempts = loop.create_connection, list[int]()

    async def failing(*arguments: object, **more: object) -> object:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError(113, "No route to host")
        return await connect(*arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(loop, "create_connection", failing)
    async with listener(hello(5) + data(1)) as source:
        joiner = joiner_of(source.address, 5, told)
        assert await told.until(1) == [("items", 5, 1)]
        await joiner.close()
    assert len(attempts) == 2


async def test_reading_pauses_and_resumes_before_there_is_a_connection() -> None:
    told = Told()
    async with listener(hello(5)) as source:
        joiner = joiner_of(source.address, 5, told)
        joiner.pause()
        joiner.resume()
        await joiner.close()


async def test_pausing_lasts() -> None:
    """Also when it was asked for before there was a connection."""
    told = Told()
    async with listener(hello(5)) as source:
        joiner = joiner_of(source.address, 5, told)
        joiner.pause()
        connection = await source.connection()
        connection.transport.write(data(1))
        joiner.resume()
        await told.until(1)
        joiner.pause()
        joiner.resume()
        connection.transport.write(data(2))
        await told.until(2)
        await joiner.close()


@pytest.mark.parametrize("greeting", [hello(5) + data(1), hello(6), b""], ids=["items", "gone", "ended"])
async def test_abandoning_from_inside_a_callback(greeting: bytes) -> None:
    told = Told()
    async with listener(greeting) as source:
        source.rude = not greeting
        joiner = joiner_of(source.address, 5, told)
        told.react = joiner.abandon
        await told.until(1)
        await (await source.connection()).over.wait()
        await joiner.close()
    assert len(told.told) == 1


async def test_closing_at_any_step() -> None:
    """After so many turns of the event loop, from before the connection to long after it."""
    async with listener(hello(5) + data(1)) as source:
        for turns in range(12):
            told = Told()
            joiner = joiner_of(source.address, 5, told)
            for _ in range(turns):
                await asyncio.sleep(0)
            await joiner.close()
            seen = len(told.told)
            await asyncio.sleep(0)
            assert len(told.told) == seen


@pytest.mark.parametrize("joiners", [1, 20 * AT_ONCE])
def test_joiners_return_soon_after_a_long_partition(joiners: int) -> None:
    """The kernel repeats a connection request ever later, so an attempt has a time limit.

    Few attempts at a host that fail are made at a time. Those that succeed wait for none of the others.
    """
    world = World(1)
    joined: list[int] = []
    server, client = world.host("server"), world.host("client")

    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        joined.append(world.now)
        writer.write(hello(7))

    async def serve() -> None:
        await asyncio.start_server(greet, server.address, 5000)
        await asyncio.Event().wait()

    async def join_stream() -> None:
        kept = [StreamJoiner(f"{server.address}:5000", 7, lambda *_: None, lambda _: None) for _ in range(joiners)]
        await asyncio.Event().wait()
        assert kept

    async def observe() -> int:
        world.start(serve, "server")
        for one, other in ((server, client), (client, server)):
            world.network.cut(one.address, other.address)
        world.start(join_stream, "client")
        await asyncio.sleep(40)
        for one, other in ((server, client), (client, server)):
            world.network.heal(one.address, other.address)
        healed = world.now
        await asyncio.sleep(30)
        return healed

    healed = world.run(observe)
    assert len(joined) == joiners
    assert joined[0] - healed < 7 * SECOND
    assert joined[-1] - joined[0] < SECOND


def test_a_stream_that_is_joined_while_reading_pauses_is_not_read() -> None:
    """A receiver whose inbox is full would else fill its memory from a source that came back meanwhile."""
    world = World(1)
    told: list[int] = []
    server = world.host("server")
    world.host("client")

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(hello(7))
        await asyncio.sleep(1)
        writer.write(data(1))

    async def serve() -> None:
        await asyncio.start_server(greet, server.address, 5000)
        await asyncio.Event().wait()

    async def join_stream() -> None:
        joiner = StreamJoiner(f"{server.address}:5000", 7, lambda _, items: told.append(len(items)), lambda _: None)
        joiner.pause()
        await asyncio.sleep(5)
        assert not told
        joiner.resume()
        await asyncio.sleep(1)
        told.append(0)

    async def observe() -> None:
        world.start(serve, "server")
        await asyncio.sleep(1)
        world.start(join_stream, "client")
        await asyncio.sleep(20)

    world.run(observe)
    assert told == [1, 0]
