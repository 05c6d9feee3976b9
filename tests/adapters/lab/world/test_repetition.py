"""A seed repeats a run event by event: in one interpreter, and in others with other hashes of text."""

import asyncio
import hashlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from contextlib import closing, suppress
from functools import partial
from pathlib import Path as FilePath

import pytest

from stablecast.lab.world.network import Path
from tests.adapters.lab.world.scene import Scene, scene

ROOT = FilePath(__file__).parents[4]
PORT = 5_000
SECONDS = 60


def transcript(seed: int) -> list[object]:
    """Return the transcript of a world of several programs and faults."""
    with scene(seed) as world:
        world.network.usual = Path(loss=0.05, duplication=0.05, reordering=0.05)
        server = world.start(lambda: serve(world), "server")
        others = [world.start(partial(dial, world, name), name) for name in ("one", "two", "three")]
        others.append(world.call(lambda: gossip(world), "gossip"))
        hosts = world.hosts
        world.kernel.after(10 * 10**9, lambda: world.cut(hosts["one"], hosts["server"]))
        world.kernel.after(15 * 10**9, lambda: world.heal(hosts["one"], hosts["server"]))
        world.kernel.after(20 * 10**9, server.kill)
        world.kernel.after(25 * 10**9, lambda: world.start(lambda: serve(world), "server"))
        world.kernel.after(30 * 10**9, others[1].kill)
        world.pass_time(SECONDS)
        outputs = [process.output for host in hosts.values() for process in host.processes]
        return [*world.log, outputs, world.kernel.steps, world.kernel.now]


async def serve(world: Scene) -> None:
    names = set[str]()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            names.add(line.decode().split()[0])
            await asyncio.sleep(random.random() / 10)
            world.note("server", line, sorted(names), repr(asyncio.current_task()).partition(" coro")[0])
            writer.write(line.upper())
        writer.close()

    async with await asyncio.start_server(on_connection, "", PORT) as server:
        await server.serve_forever()


async def dial(world: Scene, name: str) -> None:
    while True:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(8):
                reader, writer = await asyncio.open_connection("server", PORT)
                with closing(writer):
                    for number in range(10):
                        writer.write(f"{name} {number} {uuid.uuid4()}\n".encode())
                        world.note(name, await reader.readline())
        await asyncio.sleep(1)


def gossip(world: Scene) -> None:
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.bind(("", PORT))

    def hear() -> None:
        while True:
            print(time.time(), sock.recvfrom(100))

    threading.Thread(target=hear, daemon=True).start()
    for number in range(100):
        sock.sendto(b"%d" % number, ("localhost", PORT))
        time.sleep(random.random())
    world.note("gossip", "done")


def digest(seed: int) -> str:
    text = "\n".join(map(repr, transcript(seed)))
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_repeats_its_run(seed: int) -> None:
    first, second = transcript(seed), transcript(seed)
    assert len(first) > 100
    assert first == second


def test_seeds_differ() -> None:
    assert len({digest(seed) for seed in range(5)}) == 5


def test_hashes_of_text_change_nothing() -> None:
    """The digests come from interpreters with three seeds of hashes."""
    code = "from tests.adapters.lab.world import test_repetition as t; print(t.digest(7))"
    places = [str(ROOT / folder) for folder in (".", "core", "transports", "adapters")]
    found = set()
    for number in ("0", "1", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": os.pathsep.join(places)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert found == {f"{digest(7)}\n"}
