"""Processes: timers on drifting clocks, freezing, leaping, closing; connections that are made and kept."""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.effects import Discard, Effect
from stablecast.core.protocol.inputs import Gone, Reset, Start, Tick
from stablecast.core.protocol.messages import Keepalive, Role
from stablecast.lab.sim.network import Connection, VirtualNetwork
from stablecast.lab.sim.process import Item, VirtualDriver, VirtualJoiner, VirtualProcess, serve
from stablecast.lab.sim.virtual_time import VirtualClock, VirtualWorld
from stablecast.runtime.driver import Driven
from stablecast.transports import codec


class Alarm:
    """A machine that wants to be woken up at an instant of its clock, and again after another thousand."""

    def __init__(self, due: int) -> None:
        self.due = due
        self.log: list[tuple[str, int]] = []

    def receive(self, event: Any, now: int) -> None:
        self.log.append((type(event).__name__, now))

    def handle_timeout(self, now: int) -> None:
        if now >= self.due:
            self.log.append(("due", now))
            self.due += 1000

    def next_timeout(self) -> int:
        return self.due

    def take_effects(self) -> list[Effect]:
        return []


def driven(due: int, clock: VirtualClock | None = None) -> tuple[VirtualProcess, Alarm, "VirtualDriver[Any, Effect]"]:
    process = VirtualProcess(VirtualNetwork(VirtualWorld(Random(0))), "p", "h", clock or VirtualClock(0, 0))
    alarm = Alarm(due)
    return process, alarm, VirtualDriver(process, Driven(alarm), lambda effect: pytest.fail(str(effect)))


def test_a_timer_fires_when_the_clock_of_the_process_shows_it() -> None:
    process, alarm, driver = driven(2000, VirtualClock(1000, 10_000))
    driver.feed(Start())
    process.world.run(985)
    assert alarm.log == [("Start", 1000)]
    process.world.run(1000)
    assert alarm.log == [("Start", 1000), ("due", 2000)]


@pytest.mark.parametrize(("timers_first", "order"), [(True, ["due", "Tick"]), (False, ["Tick", "due"])])
def test_a_frozen_process_finds_timers_and_mail(timers_first: bool, order: list[str]) -> None:
    process, alarm, driver = driven(10)
    driver.feed(Start())
    process.freeze()
    process.deliver(lambda: driver.feed(Tick()))
    process.world.run(100)
    assert [what for what, _ in alarm.log] == ["Start"]
    process.thaw(timers_first=timers_first)
    assert [what for what, _ in alarm.log] == ["Start", *order]


def test_a_leap_brings_timers_forward() -> None:
    process, alarm, driver = driven(500)
    driver.feed(Start())
    process.leap(450)
    process.world.run(50)
    assert alarm.log[-1] == ("due", 500)


def test_the_dead_hear_nothing_and_the_closed_do_nothing() -> None:
    process, alarm, driver = driven(500)
    driver.close()
    driver.close()
    driver.feed(Start())
    process.crash()
    process.deliver(lambda: driver.feed(Start()))
    process.thaw(timers_first=True)
    process.world.run(2000)
    assert alarm.log == []


ADDRESS = "h:1"
MESSAGE = Keepalive(Role.STORE, 7, 50, False, 0)


class Stream(VirtualProcess):
    """Greets as the life with session id 7, then says something on every connection."""

    def __init__(self, network: VirtualNetwork) -> None:
        super().__init__(network, "stream", "h", VirtualClock(0, 0))
        self.open: list[Connection] = []
        self.listen(ADDRESS, self.accept)

    def accept(self, connection: Connection) -> None:
        self.open.append(connection)
        if not connection.broken:
            connection.write(self, codec.greeting(7))
            self.network.world.after(100, lambda: connection.write(self, codec.encode(MESSAGE)))


class Caller(VirtualProcess):
    def __init__(self, network: VirtualNetwork) -> None:
        super().__init__(network, "caller", "c", VirtualClock(0, 0))
        self.told: list[Reset | Gone] = []
        self.heard: list[Item] = []
        self.ends: list[bool] = []

    def broken(self, event: Reset | Gone) -> None:
        self.told.append(event)

    def join(self, session_id: int) -> VirtualJoiner:
        def hear(session: int, items: Sequence[Item]) -> None:
            assert session == session_id
            self.heard.extend(items)

        return VirtualJoiner(self, ADDRESS, session_id, hear, self.ends.append)


@pytest.fixture
def network() -> VirtualNetwork:
    return VirtualNetwork(VirtualWorld(Random(0)))


def test_a_process_says_nothing_of_broken_connections_by_itself(network: VirtualNetwork) -> None:
    with pytest.raises(NotImplementedError):
        VirtualProcess(network, "p", "h", VirtualClock(0, 0)).broken(Gone(ADDRESS))


def test_a_process_may_stop_listening(network: VirtualNetwork) -> None:
    stream = Stream(network)
    stream.leave(ADDRESS)
    caller = Caller(network)
    caller.pool.send(ADDRESS, b"x")
    network.world.run(SECOND)
    assert caller.told == [Gone(ADDRESS)]


def test_what_is_sent_while_connecting_goes_first(network: VirtualNetwork) -> None:
    heard: list[Item] = []
    stream, caller = VirtualProcess(network, "s", "h", VirtualClock(0, 0)), Caller(network)
    stream.listen(ADDRESS, serve(heard.extend))
    octets = codec.encode(MESSAGE)
    for part in (octets[:5], octets[5:], octets):
        caller.pool.send(ADDRESS, part)
    network.world.run(SECOND)
    caller.pool.send(ADDRESS, octets[:3])
    network.world.run(2 * SECOND)
    caller.pool.send(ADDRESS, octets[3:])
    network.world.run(3 * SECOND)
    assert heard == [MESSAGE] * 3


def test_a_connection_that_is_broken_when_it_is_made_is_made_anew(network: VirtualNetwork) -> None:
    """As of a pool, so of a stream, of which is read what had come."""
    stream, caller = Stream(network), Caller(network)
    caller.freeze()
    caller.pool.send(ADDRESS, b"")
    caller.join(7)
    network.world.run(SECOND)
    for connection in stream.open:
        connection.snap()
    caller.thaw(timers_first=False)
    network.world.run(2 * SECOND)
    assert caller.told == [Reset(ADDRESS)]
    assert (caller.ends, caller.heard) == ([False], [MESSAGE, MESSAGE])


def test_who_joins_stays_joined_until_the_life_is_over(network: VirtualNetwork) -> None:
    stream, caller = Stream(network), Caller(network)
    caller.join(7)
    network.world.run(SECOND)
    stream.open[0].snap()
    network.world.run(2 * SECOND)
    assert (caller.ends, caller.heard) == ([False], [MESSAGE, MESSAGE])
    stream.crash()
    network.world.run(3 * SECOND)
    assert caller.ends == [False, False, True]


def test_another_life_is_not_joined(network: VirtualNetwork) -> None:
    Stream(network)
    caller = Caller(network)
    caller.join(8)
    network.world.run(SECOND)
    assert (caller.ends, caller.heard) == ([True], [])


@pytest.mark.parametrize("after", [0, MILLISECOND * 5])
def test_who_abandons_a_stream_hears_no_more_of_it(network: VirtualNetwork, after: int) -> None:
    stream, caller = Stream(network), Caller(network)
    joiner = caller.join(7)
    network.world.run(after)
    joiner.abandon()
    network.world.run(SECOND)
    for connection in stream.open:
        connection.snap()
    stream.crash()
    network.world.run(2 * SECOND)
    assert caller.ends == []
    assert len(caller.heard) <= 1


@pytest.mark.parametrize("broken", [False, True])
def test_who_abandons_a_stream_reads_no_mail_of_it(network: VirtualNetwork, broken: bool) -> None:
    stream, caller = Stream(network), Caller(network)
    joiner = caller.join(7)
    network.world.run(SECOND)
    caller.freeze()
    stream.open[0].write(stream, codec.encode(MESSAGE))
    network.world.run(2 * SECOND)
    if broken:
        stream.open[0].snap()
    network.world.run(3 * SECOND)
    joiner.abandon()
    caller.thaw(timers_first=False)
    assert (caller.heard, caller.ends) == ([MESSAGE], [])


def test_who_abandons_a_stream_is_not_refused_any_more(network: VirtualNetwork) -> None:
    caller = Caller(network)
    caller.join(7).abandon()
    network.world.run(SECOND)
    assert caller.ends == []


def test_a_greeting_may_come_in_pieces(network: VirtualNetwork) -> None:
    stream, caller = VirtualProcess(network, "s", "h", VirtualClock(0, 0)), Caller(network)
    octets = codec.greeting(7) + codec.encode(MESSAGE)

    def accept(connection: Connection) -> None:
        for number, octet in enumerate(octets):
            network.world.after(number * MILLISECOND * 100, partial(connection.write, stream, bytes([octet])))

    stream.listen(ADDRESS, accept)
    caller.join(7)
    network.world.run(20 * SECOND)
    assert (caller.heard, caller.ends) == ([MESSAGE], [])


def test_a_machine_that_waits_for_nothing_any_more_is_not_woken_up() -> None:
    process, chain = VirtualProcess(VirtualNetwork(VirtualWorld(Random(0))), "p", "h", VirtualClock(0, 0)), Chain()
    driver: VirtualDriver[Any, Effect] = VirtualDriver(process, Driven(chain), lambda _: None)
    driver.feed(Start())
    chain.due = None
    driver.feed(Tick())
    process.world.run(SECOND)
    assert chain.log == ["Start", "Tick"]


def test_what_arises_meanwhile_waits(network: VirtualNetwork) -> None:
    """An effect that is performed may bring the next input; a driver that is closed takes no more."""
    process, alarm = VirtualProcess(network, "p", "h", VirtualClock(0, 0)), Chain()
    network.world.transcript = []
    driver: VirtualDriver[Any, Effect] = VirtualDriver(process, Driven(alarm), lambda _: driver.feed(Tick()))
    driver.feed(Start())
    assert alarm.log == ["Start", "Tick", "Tick"]
    assert [line.split()[1:3] for line in network.world.transcript] == [
        ["p", "Start()"],
        ["p", "Tick()"],
        ["p", "Tick()"],
    ]
    network.world.run(SECOND)
    assert alarm.log == ["Start", "Tick", "Tick", "due", "Tick"]


class Chain:
    """Has two things to be done after the start, and one when it is due."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.left = 2
        self.due: int | None = 5

    def receive(self, event: Any, now: int) -> None:
        self.log.append(type(event).__name__)

    def handle_timeout(self, now: int) -> None:
        self.log.append("due")
        self.left, self.due = 1, None

    def next_timeout(self) -> int | None:
        return self.due

    def take_effects(self) -> list[Effect]:
        self.left -= 1
        return [Discard(0)] if self.left >= 0 else []


def test_a_timer_of_one_who_is_frozen_waits_and_of_one_who_is_closed_never_comes() -> None:
    process, alarm, driver = driven(10)
    driver.feed(Start())
    process.freeze()
    process.world.run(50)
    process.thaw(timers_first=False)
    assert alarm.log[-1] == ("due", 50)
    driver.close()
    process.world.run(5000)
    assert alarm.log[-1] == ("due", 50)


def test_who_is_not_due_goes_on_waiting() -> None:
    process, alarm, driver = driven(500)
    driver.feed(Start())
    process.freeze()
    process.world.run(50)
    process.thaw(timers_first=True)
    process.thaw(timers_first=True)
    process.world.run(500)
    assert [what for what, _ in alarm.log] == ["Start", "due"]
