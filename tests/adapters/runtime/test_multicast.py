"""Multicast sockets: members of a group, and senders to groups."""

import errno
import socket
from typing import Any

import pytest

from stablecast.runtime import multicast
from stablecast.runtime.datagrams import DatagramSocket, Sent
from stablecast.runtime.ports import PortError
from tests.support.network import until, unused_port

HOST = "127.0.0.1"
GROUP = "239.192.7.9"
PORT = 14488


async def test_every_member_on_this_host_receives_a_datagram() -> None:
    reads: list[tuple[str, bytes]] = []

    def received(found: list[Sent]) -> None:
        reads.extend((sender, bytes(octets)) for sender, those in found for octets in those)

    hearing = [DatagramSocket(multicast.hearing(GROUP, PORT, HOST), received) for _ in range(2)]
    saying = DatagramSocket(multicast.sending(HOST, hops=1), lambda _: None)
    saying.send(f"{GROUP}:{PORT}", [b"all"])
    await until(lambda: len(reads) == 2)
    assert reads == [(f"{HOST}:{saying.port}", b"all")] * 2
    for sock in (*hearing, saying):
        sock.close()


@pytest.mark.parametrize(("group", "interface"), [("10.0.0.1", HOST), (GROUP, "192.0.2.1")])
def test_a_group_that_cannot_be_joined_is_named_with_the_remedy(group: str, interface: str) -> None:
    with pytest.raises(PortError, match="give a group"):
        multicast.hearing(group, PORT, interface)


def test_the_sender_has_the_configured_options() -> None:
    with multicast.sending(HOST, 3, loop=False) as sock:
        names = (socket.IP_MULTICAST_TTL, socket.IP_MULTICAST_LOOP)
        assert [sock.getsockopt(socket.IPPROTO_IP, name) for name in names] == [3, 0]


def test_members_of_one_host_share_the_port() -> None:
    port = unused_port()
    members = [multicast.hearing(GROUP, port, HOST), multicast.hearing(GROUP, port, HOST, 0)]
    with multicast.sending(HOST, 0) as sock:
        sock.sendto(b"hello", (GROUP, port))
    for one in members:
        one.setblocking(True)
        assert one.recv(100) == b"hello"
        one.close()


class Refusing(socket.socket):
    """A socket that cannot join or send to groups, for the reason `number`."""

    number = 0

    def bind(self, address: object) -> None:
        assert isinstance(address, tuple)
        if address[0] == GROUP:
            raise OSError(self.number, "refused")
        super().bind(address)

    def setsockopt(self, level: int, option: int, value: Any) -> None:  # type: ignore[override]
        if (level, option) == (socket.IPPROTO_IP, socket.IP_MULTICAST_IF):
            raise OSError(self.number, "refused")
        super().setsockopt(level, option, value)


@pytest.mark.parametrize(
    ("number", "text"),
    [(errno.EADDRINUSE, "refused; stop the program that holds the port"), (errno.ENODEV, "refused; give a group")],
)
def test_the_reason_of_a_refusal_is_named(monkeypatch: pytest.MonkeyPatch, number: int, text: str) -> None:
    monkeypatch.setattr(Refusing, "number", number)
    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(PortError, match=text):
        multicast.hearing(GROUP, PORT, HOST)
    with pytest.raises(PortError, match=r"cannot multicast from 127\.0\.0\.1: refused"):
        multicast.sending(HOST)


def test_a_member_has_the_configured_buffer() -> None:
    """The kernel counts twice what it is asked for."""
    with multicast.hearing(GROUP, PORT, HOST, 50_000) as sock, multicast.hearing(GROUP, PORT, HOST, 0) as usual:
        sizes = [one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for one in (sock, usual)]
    assert sizes[0] == 100_000 < sizes[1]
