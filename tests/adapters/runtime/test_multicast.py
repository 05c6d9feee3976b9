"""Sockets for groups."""

import pytest

from stablecast.runtime import multicast
from stablecast.runtime.datagrams import DatagramSocket, Sent
from stablecast.runtime.ports import PortError
from tests.support.network import until

HOST = "127.0.0.1"
GROUP = "239.192.7.9"
PORT = 14488


async def test_everybody_on_this_host_who_joined_hears_a_group() -> None:
    reads: list[tuple[str, bytes]] = []

    def heard(found: list[Sent]) -> None:
        reads.extend((sender, bytes(octets)) for sender, those in found for octets in those)

    hearing = [DatagramSocket(multicast.hearing(GROUP, PORT, HOST), heard) for _ in range(2)]
    saying = DatagramSocket(multicast.sending(HOST, hops=1), lambda _: None)
    saying.send(f"{GROUP}:{PORT}", [b"all"])
    await until(lambda: len(reads) == 2)
    assert reads == [(f"{HOST}:{saying.port}", b"all")] * 2
    for sock in (*hearing, saying):
        sock.close()


@pytest.mark.parametrize(("group", "interface"), [("10.0.0.1", HOST), (GROUP, "192.0.2.1")])
def test_what_cannot_be_joined_is_named_with_the_remedy(group: str, interface: str) -> None:
    with pytest.raises(PortError, match="give a group"):
        multicast.hearing(group, PORT, interface)
