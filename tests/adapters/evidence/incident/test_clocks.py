"""The clocks of hosts, by the messages that they exchanged."""

from pathlib import Path

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Role
from stablecast.evidence.incident.actors import Actor
from stablecast.evidence.incident.clocks import align


def actor(host: int, shift: int, *, known: bool = True) -> Actor:
    one = Actor(Path(f"{host}.sct"), Role.STORE, "s", f"10.0.0.{host}:1", 0, began=0, ended=10 * SECOND)
    one.shift, one.wall_known = shift, known
    return one


def pass_on(sender: Actor, receiver: Actor, key: str, at: int, delay: int) -> None:
    """A message leaves at a true time and arrives later; both note it by their own machines' clocks."""
    sender.went[key] = at
    receiver.came[key] = at + delay


def pair(ahead: int) -> list[Actor]:
    """Return two actors whose machines' clocks agree; the wall clock of the second one is ahead."""
    first, second = actor(1, 5 * SECOND), actor(2, 5 * SECOND + ahead)
    for number in range(5):
        pass_on(first, second, f"to {number}", number * SECOND, (2 + number) * MILLISECOND)
        pass_on(second, first, f"back {number}", number * SECOND, (1 + number) * MILLISECOND)
    return [first, second]


def test_a_clock_that_is_ahead_is_corrected() -> None:
    actors = pair(3 * SECOND)
    clocks = {one.host: one for one in align(actors)}
    # The quickest messages took 2 ms and 1 ms, so the difference is known to half of 3 ms.
    (apart,) = {abs(one.ahead) for one in clocks.values()} - {0}
    assert abs(apart - 3 * SECOND) <= MILLISECOND
    assert max(one.error for one in clocks.values()) == 3 * MILLISECOND // 2
    assert abs(actors[0].shift - actors[1].shift) <= MILLISECOND


def test_messages_that_come_twice_say_nothing() -> None:
    actors = pair(0)
    pass_on(actors[0], actors[1], "twice", 0, -20 * SECOND)
    actors[0].repeated.add("twice")
    assert max(one.error for one in align(actors)) == 3 * MILLISECOND // 2


def test_a_host_that_nobody_hears_of_is_not_aligned() -> None:
    alone = actor(3, 99 * SECOND)
    clocks = {one.host: one.error for one in align([*pair(0), alone])}
    assert clocks["10.0.0.3"] == -1
    assert alone.shift == 99 * SECOND


def test_a_trace_without_a_wall_clock_gets_that_of_its_peers() -> None:
    actors = pair(0)
    actors[1].shift, actors[1].wall_known = 0, False
    align(actors)
    assert abs(actors[0].shift - actors[1].shift) <= MILLISECOND
