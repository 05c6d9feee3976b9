"""Connections that end unseen, begin again at the same ports, or are not in the capture at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from stablecast.core.protocol import messages as core
from stablecast.core.protocol.messages import Role
from stablecast.evidence.capture.judge import CaptureFindings, RuleStanding, judge
from stablecast.transports import codec
from tests.adapters.evidence.capture.judge.wire_session import (
    LIFE,
    READER,
    REQUEST,
    SID,
    STORES,
    STREAM,
    SYN,
    World,
    ends,
    paced,
    settled,
    stream,
)
from tests.support.captures import segment

BROKEN: Final = RuleStanding.BROKEN
FIN: Final = 0x11
STORE: Final = "10.0.1.1:50000"
AGAIN: Final = "10.0.1.1:50001"
"""Endpoints of the store in the middle, before and after its restart."""


def judged(world: World, tmp_path: Path) -> CaptureFindings:
    return judge(world.talk.write(tmp_path / "talk.pcap"))


def reopened(world: World, source: str, target: str, distance: int) -> None:
    """Close the connection and open another one between the same ports `distance` later."""
    sequence = world.talk.sequences.pop((source, target))
    world.talk.add(segment(ends(source), ends(target), sequence, b"", FIN))
    world.talk.sequences[source, target] = (sequence + distance + 1) % (1 << 32)
    world.talk.add(segment(ends(source), ends(target), sequence + distance, b"", SYN))


@pytest.mark.parametrize("distance", [100_000, 10**9, 3 * 10**9])
def test_ports_that_are_used_again_are_another_connection(tmp_path: Path, distance: int) -> None:
    """D1, A1: a receiver joins again later in the stream; who acknowledges there may be behind who did before."""
    world = settled(World())
    missed = (40, 41, 42)
    world.send(*missed, listeners=(0, 1, 2))
    reopened(world, STREAM, stream(3), distance)
    world.talk.say(STREAM, stream(3), codec.greeting(SID))
    world.send(43, 44)
    reopened(world, "10.0.0.9:24392", STORES[1], distance)
    world.consume(1, 30)
    assert [one for one in judged(world, tmp_path).found if one.standing is BROKEN] == []


def test_without_a_new_connection_it_is_broken(tmp_path: Path) -> None:
    world = settled(World())
    world.send(40, listeners=(0, 1, 2))
    world.send(41)
    world.consume(1, 30)
    assert {one.rule for one in judged(world, tmp_path).found if one.standing is BROKEN} == {"D3", "A1"}


def answers(world: World, source: str, first: int, last: int) -> None:
    """Let the store in the middle acknowledge these, from this place."""
    world.message(source, REQUEST, core.StableAck(1, LIFE, first, last))


def goes_on(world: World) -> None:
    """Let all stores acknowledge after a release."""
    world.wait(2_000)
    world.send(44)
    for store in (0, 2):
        world.ack(store, 44, 44)
    answers(world, AGAIN, 44, 44)


def lost_the_end(world: World) -> None:
    """Drop the last words of a store before it was killed."""
    answers(world, AGAIN, 42, 43)


def lost_the_connection(world: World) -> None:
    """Drop everything that a store sent before it was killed."""
    gone = segment(ends(STORE), ends(REQUEST), 0, b"")[12:24]
    world.talk.packets = [one for one in world.talk.packets if one[1][12:24] != gone]
    answers(world, AGAIN, 42, 43)


def lost_the_connection_before_a_grant(world: World) -> None:
    """Drop the same of a store that registers the source again and has its messages."""
    lost_the_connection(world)
    at = world.talk.packets.pop()
    granted = core.Registered(Role.SOURCE, 1, 2, 101, LIFE, True, 0, 41, 10_000, 600_000)
    del world.talk.sequences[AGAIN, REQUEST]
    world.talk.packets.pop()
    world.talk.now = at[0]
    world.message(AGAIN, REQUEST, granted)
    answers(world, AGAIN, 42, 43)


def release(spoil: Callable[[World], None]) -> World:
    """Let a source release what only one of three stores has, as far as the capture shows."""
    world = settled(World())
    world.send(40, 41, 42, 43)
    world.ack(0, 40, 43)
    spoil(world)
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 44, 43))
    goes_on(world)
    return world


@pytest.mark.parametrize("spoil", [lost_the_end, lost_the_connection, lost_the_connection_before_a_grant])
def test_acknowledgements_on_an_earlier_connection_may_be_missing(
    tmp_path: Path, spoil: Callable[[World], None]
) -> None:
    """C1: nothing shows that the end of a connection, or all of it, is not in the capture."""
    standings = judged(release(spoil), tmp_path).standings
    assert [standing for (rule, _), standing in standings.items() if rule == "C1"] == [RuleStanding.CANNOT_TELL]


def test_a_store_on_one_connection_said_all_of_it(tmp_path: Path) -> None:
    world = settled(World())
    world.send(40, 41, 42, 43)
    world.ack(0, 40, 43)
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 44, 43))
    world.wait(2_000)
    world.send(44)
    for store in range(len(STORES)):
        world.ack(store, 44, 44)
    assert judged(world, tmp_path).standings["C1", "10.0.0.1:41000"] is BROKEN


def test_a_connection_whose_opening_is_captured_late_is_one(tmp_path: Path) -> None:
    """Frames of one connection that change places are read as they were sent, its first one, too."""
    world = settled(World())
    whole = judged(world, tmp_path)
    opening = [at for at, (_, packet) in enumerate(world.talk.packets) if packet[33] & SYN]
    for at in opening:
        ours = world.talk.packets[at][1][12:24]
        behind = [place for place in range(at, len(world.talk.packets)) if world.talk.packets[place][1][12:24] == ours]
        times = [world.talk.packets[place][0] for place in behind[:3]]
        packets = [world.talk.packets[place][1] for place in behind[:3]]
        for place, time, packet in zip(behind[:3], times, packets[::-1], strict=True):
            world.talk.packets[place] = time, packet
    found = judged(world, tmp_path)
    assert {one.rule for one in found.found if one.standing is BROKEN} == set()
    assert found.asked["D3", STREAM] == whole.asked["D3", STREAM]


def test_a_port_that_another_process_is_given_again_is_no_second_holder(tmp_path: Path) -> None:
    """R1: three processes in turn, the third one where the first one was."""
    world = settled(World())
    for reply_to in ("10.0.0.8:14391", READER):
        world.register(Role.RECEIVER, 1, reply_to)
        world.grant(Role.RECEIVER, 1, reply_to, 200)
    for _ in range(8):
        world.consume(1, 39)
        world.wait(500)
    assert judged(world, tmp_path).standings["R1", STORES[1]] is RuleStanding.FINE


@pytest.mark.parametrize(("old", "standing"), [(True, set()), (False, {BROKEN})])
def test_a_paced_receiver_that_returns_starts_where_it_was(
    tmp_path: Path, old: bool, standing: set[RuleStanding]
) -> None:
    """P2: what a new one is offered says from where on the store has messages; who returns is offered its own rest."""
    world = World()
    world.begin(**paced())
    world.register(Role.RECEIVER, 1, READER, **paced())
    world.grant(Role.RECEIVER, 1, READER, 200, **paced())
    world.send(*range(10))
    world.consume(1, 4)
    granted = core.Registered(Role.RECEIVER, 1, 1, 201, LIFE, old, 8, 9, 10_000, 600_000, pace=core.Pace.RECEIVERS)
    world.message("10.0.1.1:50000", "10.0.0.8:14391", granted)
    assert {verdict for (rule, _), verdict in judged(world, tmp_path).standings.items() if rule == "P2"} == standing
