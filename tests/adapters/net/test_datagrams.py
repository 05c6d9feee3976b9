"""UDP sockets that read many datagrams at a time."""

import asyncio
import errno
import socket

import pytest

from stablecast.net import datagrams
from stablecast.net.address import join
from stablecast.net.datagrams import READ_DATAGRAMS, Datagram, DatagramSocket, bind
from stablecast.net.ports import PortError
from tests.support.network import until

HOST = "127.0.0.1"


class Reading:
    """A socket and what each read brought."""

    def __init__(self) -> None:
        self.reads: list[list[Datagram]] = []
        self.socket = DatagramSocket(bind(HOST, 0), self.reads.append)
        self.address = join(HOST, self.socket.port)

    async def until(self, count: int) -> None:
        await until(lambda: sum(map(len, self.reads)) >= count)


async def test_datagrams_that_wait_are_read_together_and_tell_their_sender() -> None:
    one, other = Reading(), Reading()
    other.socket.send(one.address, [bytes([n]) for n in range(READ_DATAGRAMS + 6)])
    await one.until(READ_DATAGRAMS + 6)
    assert len(one.reads[0]) == READ_DATAGRAMS
    assert [octets[0] for read in one.reads for octets, _ in read] == list(range(READ_DATAGRAMS + 6))
    assert one.reads[0][0][1] == other.address
    for end in (one, other):
        end.socket.close()


async def test_a_paused_socket_leaves_them_to_the_kernel() -> None:
    one, other = Reading(), Reading()
    one.socket.pause()
    one.socket.pause()
    other.socket.send(one.address, [b"x"])
    await asyncio.sleep(0.02)
    assert one.reads == []
    one.socket.resume()
    one.socket.resume()
    await one.until(1)
    for end in (one, other):
        end.socket.close()


async def test_a_closed_socket_does_nothing() -> None:
    one, other = Reading(), Reading()
    other.socket.close()
    other.socket.close()
    other.socket.resume()
    other.socket.send(one.address, [b"x"])
    await asyncio.sleep(0.01)
    assert one.reads == []
    one.socket.close()


class Stubborn:
    """A socket that fails as it is told."""

    def __init__(self, *errors: OSError) -> None:
        self.errors = list(errors)
        self.pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

    def sendto(self, *_: object) -> None:
        raise self.errors.pop(0)

    def recvfrom_into(self, buffer: bytearray) -> tuple[int, tuple[str, int]]:
        if self.errors:
            raise self.errors.pop(0)
        return self.pair[0].recv_into(buffer), (HOST, 1)

    def fileno(self) -> int:
        return self.pair[0].fileno()

    def close(self) -> None:
        for end in self.pair:
            end.close()


async def test_what_the_kernel_does_not_take_is_counted() -> None:
    """No queue of ours: the protocol repairs it."""
    stubborn = Stubborn(BlockingIOError(), OSError(errno.ENETUNREACH, "unreachable"))
    sock = DatagramSocket(stubborn, lambda _: None)  # type: ignore[arg-type]
    sock.send("10.0.0.1:1", [b"a", b"b"])
    assert (sock.dropped, sock.errors) == (1, 1)
    sock.close()


async def test_the_answer_of_the_network_to_what_we_sent_ends_nothing() -> None:
    stubborn = Stubborn(ConnectionRefusedError(), BlockingIOError())
    reads: list[list[Datagram]] = []
    sock = DatagramSocket(stubborn, reads.append)  # type: ignore[arg-type]
    stubborn.pair[0].setblocking(False)
    stubborn.pair[1].send(b"came")
    await until(lambda: reads)
    assert (sock.errors, reads) == (1, [[(b"came", f"{HOST}:1")]])
    sock.close()


def test_the_first_free_port_of_a_range_is_taken() -> None:
    first = bind(HOST, 0)
    port = first.getsockname()[1]
    with first, bind(HOST, port, port + 20) as second:
        assert port < second.getsockname()[1] <= port + 20
        with pytest.raises(PortError, match="in use"):
            bind(HOST, port)


def test_an_interface_that_is_none_is_named() -> None:
    with pytest.raises(PortError, match=r"192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_there_is_room_for_a_burst() -> None:
    with bind(HOST, 0) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= min(datagrams.RECEIVE_BUFFER, 200_000)
