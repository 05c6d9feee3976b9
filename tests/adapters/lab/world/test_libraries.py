"""Libraries above sockets and threads run unmodified in a world."""

import asyncio
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import aiosqlite
import fastapi
import httpx
import pytest
import uvicorn
import uvloop
import websockets
import websockets.sync.client
from aiohttp import web

from tests.adapters.lab.world.scene import Scene, scene

PORT = 8_080
SERVING_S = 60


async def answer(request: web.Request) -> web.Response:
    body = await request.text()
    return web.json_response({"number": request.query.get("number"), "size": len(body)})


async def talk(request: web.Request) -> web.WebSocketResponse:
    sock = web.WebSocketResponse()
    await sock.prepare(request)
    async for message in sock:
        await sock.send_str(message.data.upper())
    return sock


async def drip(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse()
    await stream.prepare(request)
    for _ in range(5):
        await stream.write(b"x" * 10_000)
        await asyncio.sleep(0.5)
    return stream


def application() -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/", answer)
    app.router.add_get("/talk", talk)
    app.router.add_get("/drip", drip)
    return app


async def serve() -> None:
    runner = web.AppRunner(application())
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", PORT).start()
    await asyncio.sleep(SERVING_S)
    await runner.cleanup()


def ask(client: Callable[[], Any]) -> Any:
    """Run a client, a coroutine function, beside the server; return its result."""

    async def late() -> Any:
        await asyncio.sleep(1)
        return await client()

    with scene() as world:
        server = world.start(serve, "server")
        process = world.start(late, "client")
        world.finish(process, server)
        return process.status


def test_aiohttp_serves_and_asks() -> None:
    async def client() -> list[Any]:
        found: list[Any] = []
        async with aiohttp.ClientSession(f"http://server:{PORT}") as session:
            for number in range(3):
                async with session.post("/", params={"number": number}, data="b" * 100_000) as got:
                    found.append(await got.json())
            async with session.get("/drip") as got:
                found.append(len(await got.read()))
            async with session.ws_connect("/talk") as sock:
                await sock.send_str("hello")
                found.append((await sock.receive()).data)
            with pytest.raises(TimeoutError):
                async with session.get("/drip", timeout=aiohttp.ClientTimeout(total=1)) as got:
                    await got.read()
        return found

    sizes = [{"number": str(number), "size": 100_000} for number in range(3)]
    assert ask(client) == [*sizes, 50_000, "HELLO"]


def test_aiohttp_reports_what_tcp_reports() -> None:
    async def client() -> list[str]:
        found = []
        async with aiohttp.ClientSession() as session:
            for place in ("server:1", "nobody:80"):
                try:
                    await session.get(f"http://{place}/")
                except aiohttp.ClientConnectorError as error:
                    found.append(type(error).__name__)
        return found

    assert ask(client) == ["ClientConnectorError", "ClientConnectorDNSError"]


def test_aiohttp_runs_an_application_until_a_signal() -> None:
    def server() -> str:
        web.run_app(application(), host="0.0.0.0", port=PORT)
        return "ended"

    def client() -> bytes:
        time.sleep(1)
        with urllib.request.urlopen(f"http://server:{PORT}/?number=7", timeout=5) as got:
            body: bytes = got.read()
            return body

    with scene() as world:
        process = world.call(server, "server")
        asker = world.call(client, "client")
        world.finish(asker)
        assert asker.status == b'{"number": "7", "size": 0}'
        process.signal(15)
        world.finish(process)
        assert process.status == "ended"


def test_a_client_notices_the_death_of_its_server() -> None:
    async def client(world: Scene) -> str:
        await asyncio.sleep(1)
        async with aiohttp.ClientSession(f"http://server:{PORT}") as session:
            try:
                async with session.get("/drip") as got:
                    await got.read()
            except aiohttp.ClientPayloadError:
                return f"broken at {world.seconds:.0f}"
        return "whole"

    with scene() as world:
        server = world.start(serve, "server")
        process = world.start(lambda: client(world), "client")
        world.kernel.after(2 * 10**9, server.kill)
        world.finish(process)
        assert process.status == "broken at 2"


def test_httpx_asks_in_both_styles() -> None:

    async def client() -> list[Any]:
        url = f"http://server:{PORT}/"

        def blocking() -> list[Any]:
            with httpx.Client() as one:
                return [one.get(url, params={"number": number}).json()["number"] for number in range(3)]

        async with httpx.AsyncClient() as one:
            answers = await asyncio.gather(*[one.get(url, params={"number": number}) for number in range(3)])
            with pytest.raises(httpx.ConnectError):
                await one.get("http://server:1/")
        return [[got.json()["number"] for got in answers], await asyncio.to_thread(blocking)]

    assert ask(client) == [["0", "1", "2"], ["0", "1", "2"]]


def test_websockets_talk_in_both_styles() -> None:

    async def server() -> None:
        async def echo(sock: Any) -> None:
            async for message in sock:
                await sock.send(message.upper())

        async with websockets.serve(echo, "", PORT):
            await asyncio.sleep(SERVING_S)

    async def client() -> list[Any]:
        await asyncio.sleep(1)

        def blocking() -> Any:
            with websockets.sync.client.connect(f"ws://server:{PORT}") as sock:
                sock.send("blocking")
                return sock.recv()

        async with websockets.connect(f"ws://server:{PORT}") as sock:
            await sock.send("a" * 100_000)
            return [len(await sock.recv()), await asyncio.to_thread(blocking)]

    with scene() as world:
        processes = [world.start(server, "server"), world.start(client, "client")]
        world.finish(*processes)
        assert processes[1].status == [100_000, "BLOCKING"]


def test_a_web_service_of_fastapi_runs_on_uvicorn_and_the_loop_that_it_chooses() -> None:
    """With uvloop installed, uvicorn imports and chooses it when it runs."""

    def server() -> None:
        service = fastapi.FastAPI()

        @service.get("/{number}")
        async def double(number: int) -> int:
            await asyncio.sleep(1_000)
            return 2 * number

        uvicorn.run(service, host="0.0.0.0", port=PORT)

    def client() -> Any:
        time.sleep(1)
        with urllib.request.urlopen(f"http://server:{PORT}/7") as got:
            return got.read()

    with scene() as world:
        world.call(server, "server")
        asker = world.call(client, "client")
        world.finish(asker)
        assert asker.status == b"14"
        assert world.seconds >= 1_000


@pytest.mark.parametrize(
    "run",
    [
        lambda main: uvloop.run(main),  # noqa: PLW0108 - the function that stands in the module then
        lambda main: asyncio.Runner(loop_factory=uvloop.new_event_loop).run(main),
    ],
    ids=["run", "runner"],
)
def test_a_program_that_asks_for_uvloop_runs_on_the_loop_of_the_world(run: Callable[[Any], Any]) -> None:
    async def main() -> str:
        await asyncio.sleep(1_000)
        return type(asyncio.get_running_loop()).__name__

    with scene() as world:
        process = world.call(lambda: run(main()), "host")
        world.finish(process)
        assert process.status == "SimulatedEventLoop"
        assert world.seconds >= 1_000


def test_aiosqlite_keeps_a_database_in_memory() -> None:

    async def main() -> Any:
        async with aiosqlite.connect(":memory:") as database:
            await database.execute("create table numbers (number)")
            await database.execute("insert into numbers values (7)")
            async with database.execute("select * from numbers") as found:
                return await found.fetchall()

    with scene() as world:
        process = world.start(main, "host")
        world.finish(process)
        assert list(process.status) == [(7,)]
