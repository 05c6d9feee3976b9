"""Many datagrams are read by one call, with the same result as by one call each."""

import socket
from collections.abc import Iterator

import pytest

from stablecast.runtime.datagrams import MAX_DATAGRAM, READ_DATAGRAMS, DatagramBuffers, bind
from stablecast.runtime.machine import datagram_reading

HOST = "127.0.0.1"


@pytest.fixture(params=[datagram_reading.together, datagram_reading.one_by_one], ids=["together", "one by one"])
def buffers(request: pytest.FixtureRequest) -> DatagramBuffers:
    return DatagramBuffers(request.param)


@pytest.fixture
def ends() -> Iterator[list[socket.socket]]:
    """One that reads, and two that send."""
    found = [bind(HOST, 0) for _ in range(3)]
    yield found
    for sock in found:
        sock.close()


def read(buffers: DatagramBuffers, sock: socket.socket) -> list[tuple[str, list[bytes]]]:
    return [(sender, [bytes(octets) for octets in those]) for sender, those in buffers.read(sock)]


def place(sock: socket.socket) -> str:
    return f"{HOST}:{sock.getsockname()[1]}"


def test_all_of_one_sender_is_one_list_in_order(buffers: DatagramBuffers, ends: list[socket.socket]) -> None:
    reading, sending, _ = ends
    sent = [bytes([number]) * number for number in range(40)]
    for octets in sent:
        sending.sendto(octets, reading.getsockname())
    assert read(buffers, reading) == [(place(sending), sent)]


def test_senders_that_take_turns_have_a_list_for_each_turn(buffers: DatagramBuffers, ends: list[socket.socket]) -> None:
    reading, one, other = ends
    for sock, octets in ((one, b"a"), (one, b"b"), (other, b"c"), (one, b"d")):
        sock.sendto(octets, reading.getsockname())
    assert read(buffers, reading) == [(place(one), [b"a", b"b"]), (place(other), [b"c"]), (place(one), [b"d"])]


def test_a_read_has_an_end_and_room_for_the_largest(buffers: DatagramBuffers, ends: list[socket.socket]) -> None:
    reading, sending, _ = ends
    for number in range(READ_DATAGRAMS + 1):
        sending.sendto(bytes([number]), reading.getsockname())
    ((_, those),) = buffers.read(reading)
    assert len(those) == READ_DATAGRAMS
    ((_, those),) = buffers.read(reading)
    assert those == [bytes([READ_DATAGRAMS])]
    largest = bytes(MAX_DATAGRAM - 28)  # less the headers of IP and UDP
    sending.setblocking(True)
    sending.sendto(largest, reading.getsockname())
    assert read(buffers, reading) == [(place(sending), [largest])]


def test_an_empty_socket_and_an_error_of_the_network_raise(buffers: DatagramBuffers, ends: list[socket.socket]) -> None:
    reading, gone, _ = ends
    with pytest.raises(BlockingIOError):
        buffers.read(reading)
    reading.connect(gone.getsockname())
    gone.close()
    reading.send(b"anybody?")
    with pytest.raises(ConnectionRefusedError):
        buffers.read(reading)
