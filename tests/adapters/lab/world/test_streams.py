"""Simulated TCP acts as TCP does: order, windows, half-closed and reset connections, silence, and power cuts."""

import errno
import socket
import struct
import time
from collections.abc import Callable

import pytest

from stablecast.lab.world.stream_end import WINDOWS
from tests.adapters.lab.world.connections import PORT, accepted, dial, listener, read_all
from tests.adapters.lab.world.scene import Scene, error_of, scene

SEEDS = range(12)


def keepalive(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 2), (socket.TCP_KEEPCNT, 3)):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


@pytest.mark.parametrize("seed", SEEDS)
def test_bytes_arrive_in_order_and_then_the_end(seed: int) -> None:
    sent = bytes(range(256)) * 4_000
    with scene(seed) as world:

        def server() -> bytes:
            return read_all(accepted())

        def client() -> None:
            with dial() as sock:
                sock.sendall(sent)

        found, _ = world.run_programs(server=server, client=client)
        assert found.status == sent


def test_a_message_does_not_always_arrive_in_one_piece() -> None:
    pieces = set()
    for seed in SEEDS:
        with scene(seed) as world:

            def client() -> None:
                with dial() as sock:
                    for _ in range(20):
                        sock.sendall(b"message")
                        time.sleep(1)

            def server() -> list[int]:
                sock, sizes = accepted(), []
                while data := sock.recv(100):
                    sizes.append(len(data))
                return sizes

            found, _ = world.run_programs(server=server, client=client)
            assert sum(found.status) == 20 * 7
            pieces |= set(found.status)
    assert len(pieces) > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_writer_waits_for_a_slow_reader(seed: int) -> None:
    with scene(seed) as world:

        def server() -> int:
            sock = accepted()
            time.sleep(10)
            return len(read_all(sock))

        def client() -> None:
            with dial() as sock:
                sock.setblocking(False)
                while error_of(lambda: sock.send(b"x" * 100_000)) is None:
                    time.sleep(0.1)
                with pytest.raises(BlockingIOError):
                    sock.send(b"x")
                world.note("full")
                sock.setblocking(True)
                sock.sendall(b"y" * 1_000_000)
                world.note("sent")

        found, _ = world.run_programs(server=server, client=client)
        assert found.status >= 1_000_000 + min(WINDOWS)
        (full, _), (sent, _) = world.log
        assert full < 10 < sent


def test_both_directions_end_for_themselves() -> None:
    with scene() as world:

        def server() -> bytes:
            with accepted() as sock:
                sock.sendall(b"greeting")
                sock.shutdown(socket.SHUT_WR)
                assert error_of(lambda: sock.send(b"more")) == errno.EPIPE
                return read_all(sock)

        def client() -> bytes:
            with dial() as sock:
                found = read_all(sock)
                time.sleep(5)
                sock.sendall(b"answer")
                return found

        first, second = world.run_programs(server=server, client=client)
        assert (first.status, second.status) == (b"answer", b"greeting")
        assert not world.network.ends


def test_unread_bytes_reset_the_connection_at_the_close() -> None:
    with scene() as world:

        def server() -> None:
            sock = accepted()
            time.sleep(1)
            sock.close()

        def client() -> tuple[int | None, ...]:
            sock = dial()
            sock.sendall(b"never read")
            time.sleep(5)
            return error_of(lambda: sock.recv(1)), error_of(lambda: sock.send(b"x")), error_of(lambda: sock.send(b"x"))

        _, found = world.run_programs(server=server, client=client)
        assert found.status == (errno.ECONNRESET, errno.EPIPE, errno.EPIPE)


def test_bytes_that_arrived_before_a_reset_can_be_read() -> None:
    with scene() as world:

        def server() -> None:
            sock = accepted()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(b"last words")
            time.sleep(1)
            sock.close()

        def client() -> tuple[bytes, int | None]:
            sock = dial()
            time.sleep(5)
            return sock.recv(100), error_of(lambda: sock.recv(10))

        _, found = world.run_programs(server=server, client=client)
        assert found.status == (b"last words", errno.ECONNRESET)


def test_bytes_for_a_closed_socket_are_answered_by_a_reset() -> None:
    with scene() as world:

        def server() -> None:
            accepted().close()

        def client() -> tuple[bytes, int | None]:
            sock = dial()
            time.sleep(1)
            end = sock.recv(1)
            sock.send(b"too late")
            time.sleep(1)
            return end, error_of(lambda: sock.send(b"x"))

        _, found = world.run_programs(server=server, client=client)
        assert found.status == (b"", errno.EPIPE)


@pytest.mark.parametrize(
    ("host", "number", "seconds"),
    [("server", errno.ECONNREFUSED, 1), ("10.9.9.9", errno.EHOSTUNREACH, 1), ("silent", errno.ETIMEDOUT, 127.5)],
)
def test_a_connection_attempt_fails(host: str, number: int, seconds: float) -> None:
    with scene() as world:
        world.cut(world.host("client"), world.host("silent"))

        def client() -> int | None:
            return error_of(lambda: dial(host))

        _, found = world.run_programs(server=lambda: None, client=client)
        assert found.status == number
        assert world.seconds == pytest.approx(seconds, abs=0.6)


def test_an_attempt_that_outlasts_its_timeout_is_given_up() -> None:
    with scene() as world:
        world.cut(world.host("client"), world.host("server"))

        def client() -> None:
            with pytest.raises(TimeoutError):
                socket.create_connection(("server", PORT), timeout=3)

        world.run_programs(client=client)
        assert world.seconds == pytest.approx(3, abs=0.1)


def test_an_attempt_succeeds_once_the_path_is_whole() -> None:
    with scene() as world:
        client_host, server_host = world.host("client"), world.host("server")
        world.cut(client_host, server_host)
        world.kernel.after(10 * 10**9, lambda: world.heal(client_host, server_host))
        _, found = world.run_programs(server=lambda: accepted().close(), client=lambda: dial().getpeername())
        assert found.status == (server_host.address, PORT)
        assert 10 < world.seconds < 20


def test_a_stream_goes_on_after_a_partition() -> None:
    with scene() as world:
        client_host, server_host = world.host("client"), world.host("server")
        at = world.kernel.after
        at(5 * 10**9, lambda: world.cut(client_host, server_host))
        at(300 * 10**9, lambda: world.heal(client_host, server_host))

        def client() -> None:
            with dial() as sock:
                for number in range(20):
                    sock.sendall(bytes([number]))
                    time.sleep(1)

        found, _ = world.run_programs(server=lambda: read_all(accepted()), client=client)
        assert found.status == bytes(range(20))
        assert 300 < world.seconds < 302


def test_bytes_that_nobody_acknowledges_fail_after_a_quarter_of_an_hour() -> None:
    with scene() as world:
        client_host, server_host = world.host("client"), world.host("server")
        world.kernel.after(5 * 10**9, lambda: world.cut(client_host, server_host))

        def client() -> tuple[int | None, float]:
            sock = dial()
            time.sleep(10)
            sock.send(b"lost")
            return error_of(lambda: sock.recv(1)), world.seconds

        server = world.call(lambda: accepted().recv(1), "server")
        process = world.call(client, "client")
        world.finish(process)
        assert process.status == (errno.ETIMEDOUT, pytest.approx(10.5 + 924, abs=1))
        assert not server.gone


def test_the_user_timeout_of_a_socket_is_shorter() -> None:
    with scene() as world:
        client_host, server_host = world.host("client"), world.host("server")
        world.kernel.after(5 * 10**9, lambda: world.cut(client_host, server_host))

        def client() -> tuple[int | None, float]:
            sock = dial()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000)
            time.sleep(10)
            sock.send(b"lost")
            return error_of(lambda: sock.recv(1)), world.seconds

        world.call(lambda: accepted().recv(1), "server")
        process = world.call(client, "client")
        world.finish(process)
        assert process.status == (errno.ETIMEDOUT, pytest.approx(30.5, abs=1))


def silence(world: Scene, prepare: Callable[[socket.socket], None]) -> tuple[int | None, float] | None:
    """Cut the path of an idle connection; return the error of the reader and its time, None without one."""
    client_host, server_host = world.host("client"), world.host("server")
    world.kernel.after(5 * 10**9, lambda: world.cut(client_host, server_host))

    def client() -> tuple[int | None, float]:
        sock = dial()
        prepare(sock)
        return error_of(lambda: sock.recv(1)), world.seconds

    world.call(lambda: accepted().recv(1), "server")
    process = world.call(client, "client")
    world.pass_time(10_000)
    found: tuple[int | None, float] | None = process.status
    return found


def test_only_a_keepalive_finds_a_silent_peer() -> None:
    with scene() as world:
        assert silence(world, lambda _: None) is None
    with scene() as world:
        found = silence(world, keepalive)
        assert found is not None
        assert found[0] == errno.ETIMEDOUT
        assert 5 + 6 < found[1] <= 5 + 5 + 6 + 0.1


@pytest.mark.parametrize("unread", [False, True])
def test_the_peer_of_a_killed_process_learns_it(unread: bool) -> None:
    with scene() as world:

        def server() -> None:
            sock = accepted()
            try:
                if not unread:
                    sock.recv(10)
                time.sleep(1_000)
            finally:
                world.note("finally")

        def client() -> bytes | int | None:
            sock = dial()
            sock.send(b"hello")
            try:
                return sock.recv(1)
            except ConnectionResetError as error:
                return error.errno

        process = world.call(server, "server")
        reader = world.call(client, "client")
        world.kernel.after(5 * 10**9, process.kill)
        world.finish(reader)
        assert reader.status == (errno.ECONNRESET if unread else b"")
        assert world.log == []


def test_a_power_cut_is_silent_and_noticed_by_the_next_bytes() -> None:
    with scene() as world:
        server_host = world.host("server")

        def client() -> tuple[int | None, float]:
            sock = dial()
            sock.settimeout(100)
            with pytest.raises(TimeoutError):
                sock.recv(1)
            sock.send(b"anybody?")
            return error_of(lambda: sock.recv(1)), world.seconds

        world.call(lambda: accepted().recv(1), "server")
        process = world.call(client, "client")
        world.kernel.after(5 * 10**9, server_host.cut_power)
        world.kernel.after(50 * 10**9, server_host.restore_power)
        world.finish(process)
        assert process.status == (errno.ECONNRESET, pytest.approx(100.5, abs=0.1))


def test_bytes_for_a_host_without_power_are_repeated_until_it_is_back() -> None:
    with scene() as world:
        server_host = world.host("server")

        def client() -> tuple[int | None, float]:
            sock = dial()
            time.sleep(10)
            sock.send(b"anybody?")
            return error_of(lambda: sock.recv(1)), world.seconds

        world.call(lambda: accepted().recv(1), "server")
        process = world.call(client, "client")
        world.kernel.after(5 * 10**9, server_host.cut_power)
        world.kernel.after(50 * 10**9, server_host.restore_power)
        world.finish(process)
        number, seconds = process.status
        assert number == errno.ECONNRESET
        assert 50 < seconds <= 55


def test_a_full_backlog_lets_clients_wait() -> None:
    with scene() as world:

        def server() -> None:
            with listener(1) as sock:
                time.sleep(10)
                for _ in range(4):
                    sock.accept()[0].close()

        def client() -> None:
            dial().close()
            world.note("connected")

        server_process = world.call(server, "server")
        clients = [world.call(client, "client") for _ in range(4)]
        world.finish(server_process, *clients)
        early = [when for when, _ in world.log if when < 10]
        assert (len(early), len(world.log)) == (2, 4)


def test_connections_that_nobody_accepted_are_reset() -> None:
    with scene() as world:

        def server() -> None:
            with listener():
                time.sleep(5)

        _, found = world.run_programs(server=server, client=lambda: error_of(lambda: dial().recv(1)))
        assert found.status == errno.ECONNRESET


def test_a_port_has_one_listener_and_a_restarted_one_gets_it_again() -> None:
    with scene() as world:

        def server() -> list[int | None]:
            first = listener()
            found = [error_of(listener)]
            first.close()
            return [*found, error_of(listener)]

        (process,) = world.run_programs(server=server)
        assert process.status == [errno.EADDRINUSE, None]


def test_a_process_has_a_limit_of_descriptors() -> None:
    with scene() as world:

        def server() -> list[int | None]:
            running = world.running()
            assert running is not None
            running.limit = 2
            kept = [socket.socket(), socket.socket()]
            found = [error_of(socket.socket)]
            kept.pop().close()
            return [*found, error_of(socket.socket)]

        (process,) = world.run_programs(server=server)
        assert process.status == [errno.EMFILE, None]


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (lambda sock: sock.recv(1), errno.ENOTCONN),
        (lambda sock: sock.send(b"x"), errno.ENOTCONN),
        (lambda sock: sock.shutdown(socket.SHUT_WR), errno.ENOTCONN),
        (lambda sock: sock.getpeername(), errno.ENOTCONN),
        (lambda sock: sock.accept(), errno.EINVAL),
        (lambda sock: sock.bind(("10.77.0.1", PORT)), errno.EADDRNOTAVAIL),
        (lambda sock: sock.bind(("", 80)), errno.EACCES),
        (lambda sock: (sock.close(), sock.getsockname()), errno.EBADF),
    ],
)
def test_misuse_raises_the_error_of_the_system(call: Callable[[socket.socket], object], number: int) -> None:
    with scene() as world:
        (process,) = world.run_programs(server=lambda: error_of(lambda: call(socket.socket())))
        assert process.status == number
