"""UDP sockets that read many datagrams at a time."""

import asyncio
import errno
import socket

import pytest

from stablecast.runtime import datagrams
from stablecast.runtime.address import join
from stablecast.runtime.datagrams import READ_DATAGRAMS, DatagramSocket, Sent, bind, bind_near
from stablecast.runtime.ports import PortError
from tests.support.network import until

HOST = "127.0.0.1"


class Reading:
    """A socket and what each read brought, a datagram at a time with its sender."""

    def __init__(self, peer: str = "") -> None:
        self.reads: list[list[tuple[bytes, str]]] = []
        self.socket = DatagramSocket(bind(HOST, 0), self.read, peer)
        self.address = join(HOST, self.socket.port)

    def read(self, found: list[Sent]) -> None:
        self.reads.append([(bytes(octets), sender) for sender, those in found for octets in those])

    async def until(self, count: int) -> None:
        await until(lambda: sum(map(len, self.reads)) >= count)


async def test_datagrams_that_wait_are_read_together_with_their_sender() -> None:
    one, other = Reading(), Reading()
    other.socket.send(one.address, [bytes([n]) for n in range(READ_DATAGRAMS + 6)])
    await one.until(READ_DATAGRAMS + 6)
    assert len(one.reads[0]) == READ_DATAGRAMS
    assert [octets[0] for read in one.reads for octets, _ in read] == list(range(READ_DATAGRAMS + 6))
    assert one.reads[0][0][1] == other.address
    for end in (one, other):
        end.socket.close()


async def test_consecutive_datagrams_of_one_sender_are_one_list() -> None:
    one, other, third = Reading(), Reading(), Reading()
    for sender, number in ((other, 1), (other, 2), (third, 3), (other, 4)):
        sender.socket.send(one.address, [bytes([number])])
    await one.until(4)
    assert [place for read in one.reads for _, place in read] == [other.address] * 2 + [third.address, other.address]
    assert [octets for read in one.reads for octets, _ in read] == [b"\1", b"\2", b"\3", b"\4"]
    for end in (one, other, third):
        end.socket.close()


async def test_datagrams_reach_the_peer_and_other_addresses() -> None:
    one, other = Reading(), Reading()
    sender = Reading(peer=one.address)
    sender.socket.send(one.address, [b"near"])
    sender.socket.send(other.address, [b"far"])
    await one.until(1)
    await other.until(1)
    assert (one.reads, other.reads) == ([[(b"near", sender.address)]], [[(b"far", sender.address)]])
    for end in (one, other, sender):
        end.socket.close()


@pytest.mark.parametrize("held", [False, True])
async def test_a_socket_that_moved_reaches_its_peer_and_reads_at_its_new_address(held: bool) -> None:
    """With another address of the host; a socket that is paused stays so."""
    one = Reading()
    sender = Reading(peer=one.address)
    if held:
        sender.socket.pause()
    sender.socket.move(bind(HOST, 0))
    moved = join(HOST, sender.socket.port)
    assert moved != sender.address
    sender.socket.send(one.address, [b"there"])
    await one.until(1)
    assert (one.reads, sender.socket.errors) == ([[(b"there", moved)]], 0)
    one.socket.send(moved, [b"back"])
    if held:
        one.socket.send(one.address, [b"later"])
        await one.until(2)
        assert sender.reads == []
        sender.socket.resume()
    await sender.until(1)
    assert sender.reads == [[(b"back", one.address)]]
    for end in (one, sender):
        end.socket.close()
    sender.socket.move(left := bind(HOST, 0))
    assert left.fileno() < 0


@pytest.mark.parametrize("paused", [False, True])
async def test_a_socket_that_is_left_is_closed_and_no_longer_watched(paused: bool) -> None:
    """Its descriptor may be another file's by the next turn of the loop."""
    loop = asyncio.get_running_loop()
    first, second = bind(HOST, 0), bind(HOST, 0)
    numbers = first.fileno(), second.fileno()
    sock = DatagramSocket(first, lambda _: None)
    if paused:
        sock.pause()
    sock.move(second)
    assert first.fileno() < 0
    assert not loop.remove_reader(numbers[0])
    sock.close()
    assert second.fileno() < 0
    assert not loop.remove_reader(numbers[1])


async def test_an_unreachable_peer_is_an_error_of_each_send() -> None:
    nobody = "255.255.255.255:9"
    sender = Reading(peer=nobody)
    sender.socket.send(nobody, [b"a"])
    assert sender.socket.errors == 1
    sender.socket.close()


async def test_a_paused_socket_leaves_datagrams_to_the_kernel() -> None:
    one, other = Reading(), Reading()
    one.socket.pause()
    one.socket.pause()
    other.socket.send(one.address, [b"x"])
    other.socket.send(other.address, [b"later"])
    await other.until(1)
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
    one.socket.send(one.address, [b"later"])
    await one.until(1)
    assert one.reads == [[(b"later", one.address)]]
    one.socket.close()


class Stubborn:
    """A socket that does not send."""

    def __init__(self, *errors: OSError) -> None:
        self.errors = list(errors)
        self.pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

    def sendto(self, *_: object) -> None:
        raise self.errors.pop(0)

    def fileno(self) -> int:
        return self.pair[0].fileno()

    def close(self) -> None:
        for end in self.pair:
            end.close()


async def test_datagrams_that_the_kernel_refuses_are_counted() -> None:
    """No queue of ours: the protocol repairs it."""
    stubborn = Stubborn(BlockingIOError(), OSError(errno.ENETUNREACH, "unreachable"))
    sock = DatagramSocket(stubborn, lambda _: None)  # type: ignore[arg-type]
    sock.send("10.0.0.1:1", [b"a", b"b"])
    assert (sock.dropped, sock.errors) == (1, 1)
    sock.close()


async def test_an_error_report_of_the_network_does_not_end_the_socket() -> None:
    """Nobody is where it went, which the next read says; then somebody is."""
    with bind(HOST, 0) as gone:
        port = gone.getsockname()[1]
    one = Reading(peer=join(HOST, port))
    one.socket.send(join(HOST, port), [b"anybody?"])
    await until(lambda: one.socket.read_errors)
    with bind(HOST, port) as back:
        back.sendto(b"came", (HOST, one.socket.port))
        await one.until(1)
    assert one.reads == [[(b"came", join(HOST, port))]]
    one.socket.close()


async def test_a_wake_up_without_a_datagram_reads_nothing() -> None:
    one = Reading()
    one.socket._read()
    assert (one.reads, one.socket.read_errors) == ([], 0)
    one.socket.close()


def test_the_first_free_port_of_a_range_is_taken() -> None:
    first = bind(HOST, 0)
    port = first.getsockname()[1]
    with first, bind(HOST, port, port + 20) as second:
        assert port < second.getsockname()[1] <= port + 20
        with pytest.raises(PortError, match="in use"):
            bind(HOST, port)


def test_an_interface_of_another_host_is_named() -> None:
    with pytest.raises(PortError, match=r"192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_there_is_room_for_a_burst() -> None:
    with bind(HOST, 0) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= min(datagrams.RECEIVE_BUFFER, 200_000)


def test_a_range_that_is_full_gives_a_port_of_the_system() -> None:
    with bind(HOST, 0) as first:
        port = first.getsockname()[1]
        with bind_near(HOST, port, port) as other:
            assert other.getsockname()[1] != port


def test_the_configured_buffers_are_requested() -> None:
    with bind(HOST, 0, 0, 1 << 14, 1 << 14) as small, bind(HOST, 0, 0, 0, 0) as usual:
        sizes = [sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for sock in (small, usual)]
    assert sizes[0] < sizes[1]


class Refusing(socket.socket):
    """A socket that cannot be bound, for the reason `number`."""

    number = 0

    def bind(self, address: object) -> None:
        raise OSError(self.number, "refused")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EACCES, "this user may not use port 80 on 127.0.0.1: choose a port above 1023"),
        (errno.EADDRNOTAVAIL, "127.0.0.1 is not an address of this machine: choose another port or interface"),
        (
            errno.EADDRINUSE,
            "port 80 on 127.0.0.1 is in use: stop the program that holds it or choose another port or interface",
        ),
        (errno.ENOBUFS, "cannot use port 80 on 127.0.0.1: refused"),
    ],
)
def test_the_reason_why_a_port_cannot_be_bound_is_named(
    monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    monkeypatch.setattr(Refusing, "number", number)
    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(PortError, match=text):
        bind(HOST, 80)
