"""Simulated UDP: datagrams arrive whole, late, twice or never; groups, refusals and full buffers act as in Linux."""

import errno
import socket
import struct
import time
from collections.abc import Callable

import pytest

from stablecast.lab.world.network import Path
from tests.adapters.lab.world.scene import Scene, error_of, scene

PORT = 6_000
GROUP = "239.1.2.3"
COUNT = 200
ANYWHERE = "0.0.0.0"


def opened(address: str = ANYWHERE, port: int = PORT) -> socket.socket:
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    return sock


def read_all(sock: socket.socket, seconds: float = 5) -> list[bytes]:
    """The datagrams until nothing comes for some time."""
    sock.settimeout(seconds)
    found = []
    try:
        while True:
            found.append(sock.recv(65_536))
    except TimeoutError:
        return found


def carried(path: Path, *, wait: float = 0.0, seed: int = 1) -> list[int]:
    """Send numbers over a path; return those that arrive, in their order."""
    with scene(seed) as world:
        world.network.usual = path

        def sender() -> None:
            time.sleep(1)
            sock = socket.socket(type=socket.SOCK_DGRAM)
            for number in range(COUNT):
                sock.sendto(number.to_bytes(2, "big"), ("receiver", PORT))
                time.sleep(wait)

        receiver, _ = world.run_programs(receiver=lambda: read_all(opened()), sender=sender)
        return [int.from_bytes(data, "big") for data in receiver.status]


def test_a_good_path_carries_all_in_order() -> None:
    assert carried(Path()) == list(range(COUNT))


def test_a_lossy_path_loses_some() -> None:
    found = carried(Path(loss=0.3))
    assert COUNT * 0.55 < len(found) < COUNT * 0.85
    assert found == sorted(found)


def test_a_path_may_duplicate() -> None:
    found = carried(Path(duplication=0.3))
    assert sorted(set(found)) == list(range(COUNT))
    assert COUNT * 1.15 < len(found) < COUNT * 1.45


def test_a_path_may_reorder() -> None:
    found = carried(Path(reordering=0.1), wait=0.000_1)
    assert sorted(found) == list(range(COUNT))
    assert found != sorted(found)


def test_a_cut_path_carries_nothing_and_nobody_is_told() -> None:
    assert carried(Path(cut=True)) == []


def test_the_seed_chooses_what_is_lost() -> None:
    path = Path(loss=0.3)
    assert carried(path, seed=1) == carried(path, seed=1)
    assert carried(path, seed=1) != carried(path, seed=2)


def test_a_datagram_names_its_sender_and_is_cut_to_the_size_of_the_read() -> None:
    with scene() as world:

        def receiver() -> object:
            return opened().recvfrom(4)

        def sender() -> object:
            time.sleep(1)
            sock = opened(port=7_000)
            sock.sendto(b"0123456789", ("receiver", PORT))
            return sock.getsockname()

        found, _ = world.run_programs(receiver=receiver, sender=sender)
        assert found.status == (b"0123", (world.host("sender").address, 7_000))


def test_a_full_buffer_loses_the_newest() -> None:
    with scene() as world:

        def receiver() -> list[bytes]:
            sock = opened()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 5_000)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 10_000
            time.sleep(5)
            return read_all(sock)

        def sender() -> None:
            time.sleep(1)
            sock = socket.socket(type=socket.SOCK_DGRAM)
            for number in range(100):
                sock.sendto(bytes([number]) * 1_000, ("receiver", PORT))

        found, _ = world.run_programs(receiver=receiver, sender=sender)
        assert [data[0] for data in found.status] == list(range(7))


@pytest.mark.parametrize(("connected", "number"), [(True, errno.ECONNREFUSED), (False, None)])
def test_a_connected_socket_learns_that_nobody_listens(connected: bool, number: int | None) -> None:
    with scene() as world:
        world.host("receiver")

        def sender() -> int | None:
            sock = socket.socket(type=socket.SOCK_DGRAM)
            if connected:
                sock.connect(("receiver", PORT))
                sock.send(b"hello")
            else:
                sock.sendto(b"hello", ("receiver", PORT))
            time.sleep(1)
            return error_of(lambda: sock.sendto(b"again", ("receiver", PORT)))

        (process,) = world.run_programs(sender=sender)
        assert process.status == number


def test_a_connected_socket_receives_from_its_peer_only() -> None:
    with scene() as world:

        def receiver() -> list[bytes]:
            sock = opened()
            sock.connect(("friend", 7_000))
            return read_all(sock)

        def sender(data: bytes) -> Callable[[], None]:
            def run() -> None:
                time.sleep(1)
                opened(port=7_000).sendto(data, ("receiver", PORT))

            return run

        found, *_ = world.run_programs(receiver=receiver, friend=sender(b"friend"), stranger=sender(b"stranger"))
        assert found.status == [b"friend"]


def test_of_several_sockets_the_most_particular_one_receives() -> None:
    with scene() as world:

        def receiver() -> list[list[bytes]]:
            address = socket.gethostbyname("receiver")
            sockets = [opened(address), opened(), opened()]
            time.sleep(2)
            return [read_now(sock) for sock in sockets]

        def sender() -> None:
            time.sleep(1)
            socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("receiver", PORT))

        found, _ = world.run_programs(receiver=receiver, sender=sender)
        assert found.status == [[b"x"], [], []]


def read_now(sock: socket.socket) -> list[bytes]:
    found = []
    sock.setblocking(False)
    while error_of(lambda: found.append(sock.recv(100))) is None:
        pass
    return found


def test_too_large_a_datagram_is_refused() -> None:
    with scene() as world:
        world.host("receiver")

        def sender() -> int | None:
            return error_of(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x" * 65_508, ("receiver", PORT)))

        (process,) = world.run_programs(sender=sender)
        assert process.status == errno.EMSGSIZE


# ------------------------------------------------------------------------------------------------------------- groups


def membership(interface: str = ANYWHERE, group: str = GROUP) -> bytes:
    return struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton(interface))


def joined(sock: socket.socket, interface: str = ANYWHERE) -> socket.socket:
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership(interface))
    return sock


def send_to_group(*options: tuple[int, int | bytes]) -> None:
    time.sleep(1)
    sock = socket.socket(type=socket.SOCK_DGRAM)
    for option, value in options:
        sock.setsockopt(socket.IPPROTO_IP, option, value)
    sock.sendto(b"to all", (GROUP, PORT))


def test_each_member_of_a_group_receives_what_is_sent_to_it() -> None:
    with scene() as world:
        found = world.run_programs(
            one=lambda: read_all(joined(opened())),
            two=lambda: read_all(joined(opened(GROUP))),
            none=lambda: read_all(opened()),
            elsewhere=lambda: read_all(joined(opened(port=PORT + 1))),
            sender=send_to_group,
        )
        assert [process.status for process in found] == [[b"to all"], [b"to all"], [], [], None]


def test_a_member_that_left_receives_nothing() -> None:
    with scene() as world:

        def member() -> list[bytes]:
            sock = joined(opened())
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, membership())
            return read_all(sock)

        found, _ = world.run_programs(member=member, sender=send_to_group)
        assert found.status == []


def on_one_host(world: Scene, interface: str, *options: tuple[int, int | bytes]) -> list[bytes]:
    process = world.call(lambda: read_all(joined(opened(), interface)), "host")
    world.finish(process, world.call(lambda: send_to_group(*options), "host"))
    found: list[bytes] = process.status
    return found


@pytest.mark.parametrize("off", [0, b"\0"])
def test_the_own_host_receives_unless_the_loop_is_off(off: int | bytes) -> None:
    with scene() as world:
        assert on_one_host(world, ANYWHERE) == [b"to all"]
    with scene() as world:
        assert on_one_host(world, ANYWHERE, (socket.IP_MULTICAST_LOOP, off)) == []


def test_the_interface_decides_where_a_group_is() -> None:
    loopback = socket.inet_aton("127.0.0.1")
    with scene() as world:
        assert on_one_host(world, "127.0.0.1", (socket.IP_MULTICAST_IF, loopback)) == [b"to all"]
    with scene() as world:
        assert on_one_host(world, "127.0.0.1") == []
    with scene() as world:
        assert on_one_host(world, ANYWHERE, (socket.IP_MULTICAST_IF, loopback)) == []


@pytest.mark.parametrize(
    ("option", "value", "number"),
    [
        (socket.IP_ADD_MEMBERSHIP, membership(group="10.0.0.1"), errno.EINVAL),
        (socket.IP_ADD_MEMBERSHIP, membership("10.77.0.1"), errno.ENODEV),
        (socket.IP_ADD_MEMBERSHIP, membership(), errno.EADDRINUSE),
        (socket.IP_DROP_MEMBERSHIP, membership("127.0.0.1"), errno.EADDRNOTAVAIL),
    ],
)
def test_a_wrong_membership_is_refused(option: int, value: bytes, number: int) -> None:
    with scene() as world:
        (process,) = world.run_programs(
            host=lambda: error_of(lambda: joined(opened()).setsockopt(socket.IPPROTO_IP, option, value))
        )
        assert process.status == number


def test_a_killed_process_leaves_its_groups_and_ports() -> None:
    with scene() as world:
        process = world.call(lambda: read_all(joined(opened())), "host")
        world.pass_time(1)
        process.kill()
        found = world.call(lambda: (opened(), 1)[1], "host")
        world.finish(found)
        assert not process.output
        assert [sockets for hosts in world.network._datagrams.values() for sockets in hosts.values() if sockets] == []
