"""Connections: ordered bytes that stall, break and are told of."""

from random import Random

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.lab.sim.network import Connection, VirtualNetwork
from stablecast.lab.sim.process import VirtualProcess
from stablecast.lab.sim.virtual_time import VirtualClock, VirtualWorld

ADDRESS = "b:1"


class Listener(VirtualProcess):
    def __init__(self, network: VirtualNetwork, host: str) -> None:
        super().__init__(network, host, host, VirtualClock(0, 0))
        self.heard = b""
        self.accepted: list[Connection] = []
        self.lost = 0
        self.told: list[Reset | Gone] = []

    def accept(self, connection: Connection) -> None:
        self.accepted.append(connection)
        connection.on_data = self.hear
        connection.on_lost[False] = self.lose

    def hear(self, data: bytes) -> None:
        self.heard += data

    def lose(self) -> None:
        self.lost += 1

    def broken(self, event: Reset | Gone) -> None:
        self.told.append(event)


@pytest.fixture
def network() -> VirtualNetwork:
    return VirtualNetwork(VirtualWorld(Random(1)))


def pair(network: VirtualNetwork) -> tuple[Listener, Listener]:
    first, second = Listener(network, "a"), Listener(network, "b")
    second.listen(ADDRESS, second.accept)
    return first, second


def test_bytes_arrive_in_order_in_any_pieces(network: VirtualNetwork) -> None:
    first, second = pair(network)
    parts = [bytes([number]) * number for number in range(1, 200)]
    for part in parts:
        first.pool.send(ADDRESS, part)
        network.world.run(network.world.now + MILLISECOND // 3)
    network.world.run(network.world.now + SECOND)
    assert second.heard == b"".join(parts)


def test_a_partition_delays_and_loses_nothing(network: VirtualNetwork) -> None:
    first, second = pair(network)
    network.block("a", "b")
    first.pool.send(ADDRESS, b"x")
    network.world.run(SECOND)
    assert not second.heard
    network.unblock("a", "b")
    network.world.run(2 * SECOND)
    assert (second.heard, first.told) == (b"x", [])


def test_nobody_listening_is_gone(network: VirtualNetwork) -> None:
    first, second = pair(network)
    second.crash()
    first.pool.send(ADDRESS, b"x")
    network.world.run(SECOND)
    assert first.told == [Gone(ADDRESS)]


def test_a_crash_resets_and_then_refuses(network: VirtualNetwork) -> None:
    first, second = pair(network)
    first.pool.send(ADDRESS, b"x")
    network.world.run(SECOND)
    second.crash()
    network.world.run(2 * SECOND)
    assert first.told == [Reset(ADDRESS), Gone(ADDRESS)]


def test_a_cut_resets_and_connects_anew(network: VirtualNetwork) -> None:
    first, second = pair(network)
    first.pool.send(ADDRESS, b"x")
    network.world.run(SECOND)
    network.cut("a", "b", [first, second])
    network.world.run(2 * SECOND)
    first.pool.send(ADDRESS, b"y")
    network.world.run(3 * SECOND)
    assert (first.told, second.heard, second.lost, len(second.accepted)) == ([Reset(ADDRESS)], b"xy", 1, 2)


@pytest.mark.parametrize(("flush", "heard"), [(True, b"last"), (False, b"")])
def test_what_a_dying_process_wrote_may_still_arrive(network: VirtualNetwork, flush: bool, heard: bytes) -> None:
    first, second = pair(network)
    first.pool.send(ADDRESS, b"")
    network.world.run(SECOND)
    first.pool.send(ADDRESS, b"last")
    first.crash(flush=flush)
    network.world.run(2 * SECOND)
    assert (second.heard, second.lost) == (heard, 1)


def test_a_frozen_process_reads_its_mail_when_it_runs_again(network: VirtualNetwork) -> None:
    first, second = pair(network)
    second.freeze()
    first.pool.send(ADDRESS, b"x")
    network.world.run(SECOND)
    assert (second.heard, first.told) == (b"", [])
    second.thaw(timers_first=True)
    assert second.heard == b"x"


def connected(network: VirtualNetwork) -> tuple[Listener, Listener, Connection]:
    """Both ends are up."""
    first, second = pair(network)
    first.pool.send(ADDRESS, b"x")
    network.world.run(SECOND)
    return first, second, second.accepted[0]


def test_who_is_cut_off_twice_is_reached_after_the_second_time(network: VirtualNetwork) -> None:
    first, second, _ = connected(network)
    network.block("a", "b")
    network.block("a", "b")
    first.pool.send(ADDRESS, b"y")
    network.world.run(2 * SECOND)
    network.unblock("a", "b")
    network.world.run(3 * SECOND)
    assert second.heard == b"x"
    network.unblock("a", "b")
    network.world.run(4 * SECOND)
    assert second.heard == b"xy"


def test_what_waits_for_other_hosts_goes_on_waiting(network: VirtualNetwork) -> None:
    first, second, _ = connected(network)
    for who in ("a", "c"):
        network.block(who, "b")
    first.pool.send(ADDRESS, b"y")
    network.world.run(2 * SECOND)
    network.unblock("c", "b")
    network.world.run(3 * SECOND)
    assert second.heard == b"x"
    network.unblock("a", "b")
    network.world.run(4 * SECOND)
    assert second.heard == b"xy"


def test_a_cut_spares_connections_with_others(network: VirtualNetwork) -> None:
    first, second, _ = connected(network)
    third = Listener(network, "c")
    third.pool.send(ADDRESS, b"z")
    network.world.run(2 * SECOND)
    network.cut("a", "b", [first, second, third])
    network.world.run(3 * SECOND)
    assert (first.told, third.told) == ([Reset(ADDRESS)], [])


def test_the_dead_do_not_dial(network: VirtualNetwork) -> None:
    first, second = pair(network)
    first.pool.send(ADDRESS, b"x")
    first.crash()
    network.world.run(SECOND)
    assert second.accepted == []


def test_a_connection_breaks_once(network: VirtualNetwork) -> None:
    """And nothing goes over it then, without a word."""
    first, second, connection = connected(network)
    connection.write(first, b"lost")
    for _ in range(2):
        connection.snap()
    connection.write(first, b"y")
    connection.close(second)
    connection.close(first)
    network.world.run(2 * SECOND)
    assert (second.heard, second.lost, first.told) == (b"x", 1, [Reset(ADDRESS)])


def test_who_hung_up_hears_no_more_of_it(network: VirtualNetwork) -> None:
    first, second, connection = connected(network)
    connection.close(second)
    connection.close(first)
    connection.snap()
    network.world.run(2 * SECOND)
    assert (second.lost, first.told) == (0, [Reset(ADDRESS)])
