"""The rules of persistence on the wire: sessions that keep them, that break them, and of which too little is seen."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.core.protocol import messages as core
from stablecast.core.protocol.messages import AckFlag, Role
from stablecast.evidence.capture.judge import CaptureFindings, RuleStanding, judge
from stablecast.evidence.capture.judge.persistence_rules import forget_oldest
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from tests.adapters.evidence.capture.judge.wire_session import (
    LIFE,
    READER,
    REQUEST,
    STORES,
    STREAM,
    TOPIC,
    World,
    client,
    settled,
    stream,
)

OTHER = "10.0.0.8:14391"
FINE, CANNOT_TELL, BROKEN = RuleStanding
SPOILED = settled(World())


def judged(world: World, tmp_path: Path) -> CaptureFindings:
    return judge(world.talk.write(tmp_path / "talk.pcap"))


def standings(world: World, tmp_path: Path) -> dict[str, RuleStanding]:
    found: dict[str, RuleStanding] = {}
    for (rule, _), standing in judged(world, tmp_path).standings.items():
        found[rule] = max(standing, found.get(rule, FINE))
    return found


def test_an_ordinary_session_is_fine(tmp_path: Path) -> None:
    findings = judged(settled(World()), tmp_path)
    assert findings.found == []
    assert {rule for rule, _ in findings.standings} == {"P7", "A1", "A4", "D3", "R1"}
    assert {whose for rule, whose in findings.standings if rule in ("P7", "R1")} == set(STORES)
    assert findings.asked["A4", f"receiver {READER}"] == 24


def acks_too_much(world: World) -> None:
    world.ack(1, 39, 4_000)
    world.wait(2_000)
    world.send(40)


def consumes_too_much(world: World) -> None:
    world.consume(1, 900)
    world.wait(2_000)
    world.send(40)


def goes_back(world: World) -> None:
    world.consume(2, 30)


def sends_twice(world: World) -> None:
    world.send(39)


def leaves_out(world: World) -> None:
    world.send(41)


def reuses(world: World) -> None:
    later = World(world.talk, world.sid + 1)
    later.begin(low=38)
    later.send(38)


def reclaims_early(world: World) -> None:
    world.send(40, 41)
    world.ack(0, 40, 41)
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 42, 41))
    world.wait(2_000)
    world.send(42)
    for store in range(len(STORES)):
        world.ack(store, 42, 42)


def two_holders(world: World) -> None:
    world.register(Role.RECEIVER, 1, OTHER)
    world.grant(Role.RECEIVER, 1, OTHER, 200)
    for _ in range(8):
        world.consume(1, 39)
        world.consume(1, 39, reply_to=OTHER)
        world.wait(500)


@pytest.mark.parametrize(
    ("plant", "rule", "whose"),
    [
        (acks_too_much, "P7", STORES[1]),
        (consumes_too_much, "A4", f"receiver {READER}"),
        (goes_back, "A1", f"receiver {READER}"),
        (sends_twice, "D3", STREAM),
        (leaves_out, "D3", STREAM),
        (reuses, "S2", STREAM),
        (reclaims_early, "C1", "10.0.0.1:41000"),
        (two_holders, "R1", STORES[1]),
    ],
)
def test_each_fault_is_found_and_blamed(tmp_path: Path, plant: Callable[[World], None], rule: str, whose: str) -> None:
    world = settled(World())
    before = len(world.talk.packets)
    plant(world)
    findings = judged(world, tmp_path)
    assert {key for key, standing in findings.standings.items() if standing is BROKEN} == {(rule, whose)}
    assert all(before < one.frame <= len(world.talk.packets) for one in findings.found if one.standing is BROKEN)


def test_paced_stores_keep_what_is_not_consumed(tmp_path: Path) -> None:
    """Rule P2, also for several receivers."""
    for low, standing in ((5, FINE), (6, BROKEN)):
        world = World()
        world.begin(pace=core.Pace.RECEIVERS)
        world.register(Role.RECEIVER, 0, READER)
        world.grant(Role.RECEIVER, 0, READER, 200, pace=core.Pace.RECEIVERS)
        world.send(*range(10))
        world.consume(0, 4)
        world.register(Role.RECEIVER, 0, OTHER)
        world.grant(Role.RECEIVER, 0, OTHER, 201, low=low, pace=core.Pace.RECEIVERS)
        assert standings(world, tmp_path)["P2"] is standing


def test_a_receiver_that_is_silent_for_long_paces_nobody(tmp_path: Path) -> None:
    world = World()
    world.begin(pace=core.Pace.RECEIVERS)
    world.grant(Role.RECEIVER, 0, READER, 200, pace=core.Pace.RECEIVERS)
    world.register(Role.RECEIVER, 0, READER)
    world.send(*range(10))
    world.consume(0, 4)
    world.wait(20_000)
    world.grant(Role.RECEIVER, 0, OTHER, 201, low=9, pace=core.Pace.RECEIVERS)
    assert standings(world, tmp_path)["P2"] is FINE


def test_one_that_wakes_up_may_end_now(tmp_path: Path) -> None:
    """R1: a process that was frozen, and whose RegID went to another."""
    world = settled(World())
    world.register(Role.RECEIVER, 1, OTHER)
    world.grant(Role.RECEIVER, 1, OTHER, 200)
    world.message(client(READER, 1), STORES[1], core.Keepalive(Role.RECEIVER, LIFE, 200, respond=True))
    assert standings(world, tmp_path)["R1"] is CANNOT_TELL


def test_a_regid_that_was_given_back_is_free(tmp_path: Path) -> None:
    world = settled(World())
    world.message("10.0.1.1:50000", READER, core.Deregistered(Role.RECEIVER, 1, 1, 200, LIFE, 39))
    world.register(Role.RECEIVER, 1, OTHER)
    world.grant(Role.RECEIVER, 1, OTHER, 200)
    world.consume(1, 39)
    assert standings(world, tmp_path)["R1"] is FINE


def test_receivers_that_come_back_to_the_same_port_are_the_same(tmp_path: Path) -> None:
    world = settled(World())
    world.register(Role.RECEIVER, 1, READER, 200)
    world.grant(Role.RECEIVER, 1, READER, 200)
    world.consume(1, 39)
    assert standings(world, tmp_path)["R1"] is FINE


@pytest.mark.parametrize(
    "loose",
    [core.ConsumptionAck(LIFE, 101, 200, 5, AckFlag.EXPLICIT), core.ConsumptionAck(LIFE, 101, 200, 5, first=3)],
    ids=["explicit", "repeated"],
)
def test_explicit_acknowledgements_and_repeated_confirmations_may_go_back(
    loose: core.ConsumptionAck, tmp_path: Path
) -> None:
    world = settled(World())
    world.message(client(READER, 1), STORES[1], loose)
    assert standings(world, tmp_path)["A1"] is FINE


def test_stability_by_only_some_rules_is_undecidable(tmp_path: Path) -> None:
    """C1, S2: two stores of three are enough for a majority, and not for all."""
    world = settled(World())
    world.send(40)
    world.ack(0, 40, 40)
    world.ack(1, 40, 40)
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 41, 40))
    later = World(world.talk, world.sid + 1)
    later.begin(low=40)
    later.send(40, 41)
    found = standings(world, tmp_path)
    assert (found["C1"], found["S2"]) == (CANNOT_TELL, CANNOT_TELL)


def released(tmp_path: Path, spoil: Callable[[World], None], later: bool = True) -> RuleStanding:
    """C1 of a source that keeps nothing of what only some stores have acknowledged."""
    world = settled(World())
    reclaims_early(world)
    if not later:
        world.talk.packets = world.talk.packets[:-7]
    spoil(world)
    return standings(world, tmp_path)["C1"]


def test_a_release_is_early_only_if_acknowledgements_cannot_be_missing(tmp_path: Path) -> None:
    """C1: those that the capture lost, and the last ones."""

    def loses(world: World) -> None:
        acks = [one for one in world.talk.packets if ports(one[1]) == (50_000, 14391)]
        world.talk.packets.remove(acks[20])

    assert released(tmp_path, lambda world: None) is BROKEN
    assert released(tmp_path, loses) is CANNOT_TELL
    assert released(tmp_path, lambda world: None, later=False) is CANNOT_TELL


def test_an_acknowledgement_behind_the_release_may_be_of_another_place(tmp_path: Path) -> None:
    world = settled(World())
    world.send(40)
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 41, 40))
    for store in range(len(STORES)):
        world.ack(store, 40, 40)
    world.wait(2_000)
    world.send(41)
    assert standings(world, tmp_path)["C1"] is CANNOT_TELL


def test_messages_before_the_capture_may_have_been_acknowledged(tmp_path: Path) -> None:
    world = settled(World())
    first = len(world.talk.packets)
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 40, 39))
    world.talk.packets = world.talk.packets[first - 40 :]
    assert BROKEN not in judged(world, tmp_path).standings.values()


def test_messages_that_all_have_may_go(tmp_path: Path) -> None:
    world = settled(World())
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 0, 39))
    world.message("10.0.0.1:41000", STORES[1], core.LateJoinInfo(LIFE, 1, 40, 39))
    later = World(world.talk, world.sid + 1)
    later.begin(low=40)
    later.send(40)
    found = standings(world, tmp_path)
    assert (found["C1"], found["S2"]) == (FINE, FINE)


def test_an_ack_before_the_data_cannot_be_told(tmp_path: Path) -> None:
    """P7: a capture of several places has its packets in another order."""
    world = settled(World())
    world.ack(1, 40, 40)
    world.send(40)
    world.wait(2_000)
    world.send(41)
    assert standings(world, tmp_path)["P7"] is CANNOT_TELL


def without(world: World, keep: Callable[[bytes], bool]) -> World:
    world.talk.packets = [(at, packet) for at, packet in world.talk.packets if keep(packet)]
    return world


def ports(packet: bytes) -> tuple[int, int]:
    return int.from_bytes(packet[20:22]), int.from_bytes(packet[22:24])


def test_one_direction_alone_is_undecidable(tmp_path: Path) -> None:
    """Only what stores say to the source is captured."""
    world = settled(World())
    found = standings(without(world, lambda packet: ports(packet)[1] == 14391), tmp_path)
    assert found == {"P7": CANNOT_TELL, "R1": FINE}


def test_a_capture_that_begins_late_learns(tmp_path: Path) -> None:
    """The first second is missing, and with it the session of the stream."""
    world = settled(World())
    world.talk.packets = world.talk.packets[100:]
    for store in range(4):
        entries = tuple(core.StoreEntry(index, 0, STORES[index], 100 + index, 1) for index in range(3))
        info = core.SourceInfo(LIFE, "topic", 1, 0, 39, REQUEST, (3,), False, entries)
        world.message(STREAM, stream(store), info)
    world.send(40, 41)
    world.ack(0, 40, 41)
    world.wait(2_000)
    world.send(42)
    findings = judged(world, tmp_path)
    assert findings.gravest is CANNOT_TELL
    assert findings.standings["D3", STREAM] is FINE
    assert findings.standings["P7", STORES[0]] is FINE


def test_a_packet_that_the_capture_lost_leaves_doubt(tmp_path: Path) -> None:
    world = settled(World())
    of_stream = [at for at, (_, packet) in enumerate(world.talk.packets) if ports(packet) == (14371, 40000)]
    for at in (of_stream[90], of_stream[70], of_stream[20]):
        del world.talk.packets[at]
    found = standings(world, tmp_path)
    assert found["D3"] is CANNOT_TELL
    assert BROKEN not in found.values()


@pytest.mark.parametrize("seed", range(4))
def test_a_capture_that_loses_packets_blames_nobody(tmp_path: Path, seed: int) -> None:
    world, chance = settled(World()), Random(seed)
    world.talk.packets = [one for one in world.talk.packets if chance.random() > 0.03]
    assert BROKEN not in standings(world, tmp_path).values()


def test_packets_twice_and_out_of_order_are_the_network(tmp_path: Path) -> None:
    world = settled(World())
    packets = world.talk.packets
    packets[60:60] = [packets[59]]
    packets[101], packets[104] = packets[104], packets[101]
    assert judged(world, tmp_path).gravest is FINE


def test_pieces_of_large_messages_have_numbers_of_their_own(tmp_path: Path) -> None:
    world = settled(World())
    for number, offset in ((40, 0), (41, 5)):
        piece = h.Fragment(first_sqn=40, offset=offset, len=10)
        octets = lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, TOPIC, number, (piece,), b"hello"))
        for store in range(4):
            world.talk.say(STREAM, stream(store), octets)
    world.ack(0, 40, 41)
    world.send(42)
    findings = judged(world, tmp_path)
    assert findings.found == []
    assert findings.asked["D3", STREAM] == 4 * 43


def test_remembered_statements_are_bounded() -> None:
    table = dict.fromkeys(range(3))
    forget_oldest(table, 3)
    forget_oldest(table, 2)
    assert [*table] == [1, 2]


@pytest.mark.no_cover
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0), st.integers(0), st.integers(0, 255)), min_size=1, max_size=30))
def test_no_capture_makes_it_fail(tmp_path: Path, spoils: list[tuple[int, int, int]]) -> None:
    """Any bytes behind the headers of the network may be anything."""
    packets = SPOILED.talk.packets
    before = [*packets]
    for which, where, value in spoils:
        at, packet = packets[which % len(packets)]
        place = 40 + where % max(1, len(packet) - 40)
        packets[which % len(packets)] = (at, packet[:place] + bytes([value]) + packet[place + 1 :])
    judged(SPOILED, tmp_path)
    packets[:] = before
