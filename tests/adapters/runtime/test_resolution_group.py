"""Which interface, which group, and what is said when the network has none."""

import errno
import socket

import attrs
import pytest

from stablecast.resolver import ResolverError
from stablecast.runtime.resolution_group import Interface, MulticastSettings, choose, interfaces, member, sender
from tests.support.network import unused_port

LOOPBACK = Interface("lo", "127.0.0.1", up=True, loopback=True, multicast=False)
DOWN = Interface("eth9", "10.0.0.9", up=False, loopback=False, multicast=True)
TUNNEL = Interface("tun0", "10.8.0.1", up=True, loopback=False, multicast=False)
ETHERNET = Interface("eth0", "10.29.3.41", up=True, loopback=False, multicast=True)
ALL = (LOOPBACK, DOWN, TUNNEL, ETHERNET)
GROUP = MulticastSettings("239.255.77.77", interface="127.0.0.1", ttl=0)


@pytest.mark.parametrize(
    ("wanted", "address"),
    [
        ("", "10.29.3.41"),
        ("0.0.0.0", "10.29.3.41"),
        ("10.8.0.1", "10.8.0.1"),
        ("10.29.0.0/16", "10.29.3.41"),
        ("10.29.3.1/24", "10.29.3.41"),
        ("tun0", "10.8.0.1"),
        ('"lo"', "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("localhost/8", "127.0.0.1"),
    ],
)
def test_an_interface_by_address_network_or_name(wanted: str, address: str) -> None:
    assert choose(wanted, ALL) == address


@pytest.mark.parametrize(
    ("wanted", "devices", "text"),
    [
        ("", (LOOPBACK, DOWN, TUNNEL), "no interface of this machine is up and can multicast"),
        ("10.30.0.0/16", ALL, r"no interface of this machine is '10.30.0.0/16': it has lo \(127.0.0.1\), "),
        ("10.30.0.1", (), "it has none with an IPv4 address"),
        ("10.0.0.0/99", ALL, "'10.0.0.0/99' is no interface"),
        ("no such host.invalid", ALL, "is no interface: write an address"),
    ],
)
def test_there_is_none_like_that(wanted: str, devices: tuple[Interface, ...], text: str) -> None:
    with pytest.raises(ResolverError, match=text):
        choose(wanted, devices)


def test_the_interfaces_of_this_machine() -> None:
    loopback = next(device for device in interfaces() if device.address == "127.0.0.1")
    assert (loopback.up, loopback.loopback) == (True, True)


def test_the_options_of_the_sender() -> None:
    sock = sender(attrs.evolve(GROUP, ttl=3, loop=False), "127.0.0.1")
    options = [sock.getsockopt(socket.IPPROTO_IP, name) for name in (socket.IP_MULTICAST_TTL, socket.IP_MULTICAST_LOOP)]
    sock.close()
    assert options == [3, 0]


def test_contexts_of_one_host_share_the_port() -> None:
    group = attrs.evolve(GROUP, port=unused_port())
    members = [member(group, "127.0.0.1"), member(attrs.evolve(group, receive_buffer=0), "127.0.0.1")]
    with sender(group, "127.0.0.1") as sock:
        sock.sendto(b"hello", (group.group, group.port))
    for one in members:
        one.setblocking(True)
        assert one.recv(100) == b"hello"
        one.close()


class Refusing(socket.socket):
    """A socket that cannot be bound, for the reason `number`."""

    number = 0

    def bind(self, address: object) -> None:
        raise OSError(self.number, "refused")


@pytest.mark.parametrize(
    ("number", "text"),
    [(errno.EADDRINUSE, "another program keeps the port for itself"), (errno.ENODEV, "refused; name one with")],
)
def test_a_group_that_cannot_be_joined(monkeypatch: pytest.MonkeyPatch, number: int, text: str) -> None:
    monkeypatch.setattr(Refusing, "number", number)
    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(ResolverError, match=text):
        member(GROUP, "127.0.0.1")
    with pytest.raises(ResolverError, match=r"cannot multicast from 127\.0\.0\.1: refused"):
        sender(GROUP, "127.0.0.1")
