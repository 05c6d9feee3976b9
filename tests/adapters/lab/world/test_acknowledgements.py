"""Streams of a world repeat lost packets and wait for acknowledgements, as TCP does."""

import errno
import socket
import time

import pytest

from stablecast.lab.world.network import REPEAT_NS
from stablecast.lab.world.stream_end import WINDOWS
from tests.adapters.lab.world.connections import accepted, dial, read_all
from tests.adapters.lab.world.scene import error_of, scene

SEEDS = range(12)


def test_the_time_to_each_repetition_doubles() -> None:
    """At a loss of 50 %, a packet arrives after 0, 0.2, 0.6, 1.4, 3, ... seconds."""

    def took(seed: int) -> float:
        with scene(seed) as world:
            there = world.path(world.host("client"), world.host("server"))

            def client() -> None:
                sock = dial()
                there.loss = 0.5
                began[:] = [world.seconds]
                sock.send(b"1")

            def server() -> float:
                accepted().recv(1)
                return world.seconds

            began = [0.0]
            found, _ = world.run_programs(server=server, client=client)
            return float(found.status) - began[0]

    waits = {round(took(seed), 1) for seed in range(30)}
    assert waits <= {round(REPEAT_NS / 1e9 * (2**losses - 1), 1) for losses in range(60)}
    assert len(waits) > 4


@pytest.mark.parametrize("seed", SEEDS)
def test_without_acknowledgements_an_end_soon_sends_nothing_new(seed: int) -> None:
    """Packets reach the server, but nothing comes back for a minute."""
    with scene(seed) as world:
        client_host, server_host = world.host("client"), world.host("server")
        world.kernel.after(5 * 10**9, lambda: world.network.cut(server_host.address, client_host.address))
        world.kernel.after(65 * 10**9, lambda: world.network.heal(server_host.address, client_host.address))

        def client() -> None:
            with dial() as sock:
                time.sleep(5)
                for number in range(20):
                    sock.sendall(bytes([number]))
                    time.sleep(0.15)

        def server() -> tuple[bytes, bytes]:
            sock = accepted()
            time.sleep(59)
            early = sock.recv(100)
            return early, early + read_all(sock)

        found, _ = world.run_programs(server=server, client=client)
        early, everything = found.status
        assert everything == bytes(range(20))
        assert early == bytes(range(len(early)))
        assert 1 <= len(early) <= 3
        assert 65 < world.seconds < 67


@pytest.mark.parametrize("heals", [True, False])
def test_bytes_that_arrived_count_as_sent_when_that_is_acknowledged(heals: bool) -> None:
    """The send buffer stays full, and the connection fails at last, although the peer has read the bytes."""
    with scene() as world:
        client_host, server_host = world.host("client"), world.host("server")
        world.kernel.after(5 * 10**9, lambda: world.network.cut(server_host.address, client_host.address))
        if heals:
            world.kernel.after(65 * 10**9, lambda: world.network.heal(server_host.address, client_host.address))

        def client() -> tuple[int | None, float]:
            sock = dial()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 90_000)
            time.sleep(5)
            found = error_of(lambda: sock.sendall(bytes(2 * max(WINDOWS))))
            return found, world.seconds

        def server() -> int:
            sock = accepted()
            return len(read_all(sock)) if heals else len(sock.recv(max(WINDOWS)))

        receiving = world.call(server, "server")
        sending = world.call(client, "client")
        world.finish(sending)
        error, at = sending.status
        if heals:
            world.finish(receiving)
            assert (error, receiving.status) == (None, 2 * max(WINDOWS))
            assert 65 < at < 67
        else:
            assert error == errno.ETIMEDOUT
            assert at == pytest.approx(5.5 + 90, abs=1)
