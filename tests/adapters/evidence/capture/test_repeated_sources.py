"""A capture on both sides of a router: what it repeats is of the life that its advertisement names."""

from pathlib import Path

import attrs

from stablecast.core.protocol import messages as core
from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.judge import judge
from stablecast.evidence.capture.statements import SentStatement, StatedMessage, StatementReader
from stablecast.transports import codec
from stablecast.transports.resolution.records import SourceRecord, advertisement, named
from stablecast.transports.resolution.srs.source_records import source_info
from stablecast.transports.wire import lbmr, srs
from tests.adapters.evidence.capture.judge.wire_session import LIFE, SID, STREAM, TOPIC, World, settled
from tests.adapters.runtime.peers import data, hello
from tests.support.captures import datagram

SOURCE = named(SourceRecord(STREAM, SID, TOPIC, instance=b"instance"))
HOP, INDEX = 99, 8
REPEATED = attrs.evolve(SOURCE, address="10.0.9.1:14371", session_id=HOP, index=INDEX, instance=b"router..", hops=1)
RELAY = ("10.0.9.254", 15_380)
INFO = core.SourceInfo(codec.join(HOP, INDEX), "orders", 1, 0, 39, "10.0.0.1:14391", (), False, (), 1, ((LIFE, 0),))


def repeat(world: World, numbers: range) -> None:
    """Advertise what a router repeats, and repeat it for a receiver behind it."""
    packet = lbmr.Packet(
        lbmr.PacketKind.NORMAL, (), (advertisement("orders", REPEATED, 60),), lbmr.standard_options(b"router..")
    )
    world.talk.add(datagram(("10.0.9.1", 15_380), RELAY, lbmr.encode(packet)))
    messages = b"".join(data(number, b"%d" % number, INDEX) for number in numbers)
    world.talk.say(REPEATED.address, "10.0.9.9:40000", hello(HOP), codec.encode(INFO), messages)


def test_what_a_router_repeats_is_of_the_life_of_the_source(tmp_path: Path) -> None:
    world = settled(World())
    repeat(world, range(30, 40))
    path, reader = world.talk.write(tmp_path / "both.pcap"), StatementReader()
    statements = [one for packet in packets(path) for one in reader.statements_of(packet)]
    sent = [one for one in statements if isinstance(one, SentStatement)]
    assert {one.life for one in sent} == {LIFE}
    assert REPEATED.address in {f"{one.at.ends[0][0]}:{one.at.ends[0][1]}" for one in sent}
    told = [one.message for one in statements if isinstance(one, StatedMessage)]
    assert {one.incarnation for one in told if isinstance(one, core.SourceInfo)} == {LIFE}
    assert judge(path).found == []


def test_records_of_services_name_lives_too() -> None:
    reader = StatementReader()
    (said,) = srs.decode(srs.encode(source_info("orders", REPEATED)))
    assert isinstance(said, srs.SourceInfo)
    reader.learn(said)
    assert reader.lives == {codec.join(HOP, INDEX): LIFE}
