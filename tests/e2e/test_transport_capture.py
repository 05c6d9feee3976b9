"""LBT-RM and LBT-RU on the wire: topics with a common session, a store, loss, and messages larger than a datagram."""

import asyncio
from pathlib import Path

import pytest

from stablecast.client import Receiver, Source
from stablecast.config.option_kinds import Value
from stablecast.config.transport_options import split
from stablecast.evidence.capture.decoder import FAULTS, packets
from tests.e2e.test_capture import captured
from tests.support import tshark
from tests.support.captures import count
from tests.support.network import network, until

TOPICS = ("orders", "trades")
GROUP, PORT = "239.192.7.30", 14_497
MESSAGES = 100
LARGE = 20_000
"""Bytes of every tenth message, which needs several datagrams."""
REASSEMBLE = "lbmc.reassemble_fragments:TRUE"
OPTIONS: dict[str, dict[str, Value]] = {
    "lbtrm": {"transport_lbtrm_multicast_address": GROUP, "transport_lbtrm_destination_port": PORT},
    "lbtru": {"transport_lbtru_maximum_ports": 1},
}


def payload(number: int) -> bytes:
    return b"message %d " % number + bytes(0 if number % 10 else LARGE)


async def send(source: Source) -> None:
    last = 0
    for number in range(MESSAGES):
        last = (await source.send(payload(number))).number
        if number % 5 == 0:
            source.flush()
    await source.wait_stable_through(last)


async def receive(receiver: Receiver) -> None:
    for number in range(MESSAGES):
        message = await anext(receiver)
        message.consumed()
        assert message.payload == payload(number)


async def traffic(directory: Path, kind: str) -> dict[str, set[int]]:
    """Run a store, sources and receivers with ten per cent loss; return the ports by protocol."""
    lossy: dict[str, Value] = {f"transport_{kind}_loss_rate": 10, f"transport_{kind}_nak_suppress_interval": 50}
    async with network(directory) as net:
        store = await net.store(transports=split(lossy)[0])
        sending, hearing = await net.context(), await net.context()
        options: dict[str, Value] = {"transport": kind, f"transport_{kind}_ignore_interval": 20, **OPTIONS[kind]}
        sources = [await sending.source(topic, stores=[store], options=options) for topic in TOPICS]
        assert len({source.place for source in sources}) == 1
        receivers = [hearing.receiver(topic, options=lossy) for topic in TOPICS]
        await until(lambda: all(receiver._sessions for receiver in receivers))
        async with asyncio.TaskGroup() as tasks:
            for source, receiver in zip(sources, receivers, strict=True):
                tasks.create_task(send(source))
                tasks.create_task(receive(receiver))
        found = {"lbmr": {net.relays[0].port}, "lbttcp": {int(store.rpartition(":")[2])}}
        for context in (sending, hearing):
            for name, ports in context.ports().items():
                found.setdefault(name, set()).update(ports)
        return found


@pytest.mark.rows("P-953")
@pytest.mark.parametrize("kind", list(OPTIONS))
def test_public_dissectors_accept_all_frames_and_link_topics_to_sessions(tmp_path: Path, kind: str) -> None:
    """No frame is malformed, fragments are reassembled, and our own decoder encodes every byte again."""
    everything = tmp_path / "all.pcapng"
    with captured(everything):
        used = asyncio.run(traffic(tmp_path, kind))
    protocols = {"lbmr": "udp", "lbttcp": "tcp", "lbtrm": "udp", "lbtru": "udp"}
    ports = {f"{protocols[name]}.port=={port}": name for name, those in used.items() for port in those}
    path = tshark.cut(everything, " or ".join(port.replace("==", " == ") for port in ports))
    found = [packet for packet in tshark.dissect(path, ports, REASSEMBLE) if kind in packet.protocols]
    assert len(found) > MESSAGES
    problems = {problem for packet in found for problem in packet.problems}
    if "NAK" in problems:  # A busy machine lost a datagram, and dissectors look for no fragment that comes again.
        problems -= {"NAK", "Message not reassembled - reassembly data missing from capture"}
    assert problems == set()
    assert tshark.matching(path, ports, "_ws.malformed") == []
    assert any("lbmc.reassembly_frame" in packet.fields for packet in found)
    topics = {name for packet in found for name in packet.fields.get("lbmc.topic", [])}
    assert topics == set(TOPICS)

    tally = count(packets(path, roundtrip=True))
    assert not {verdict for verdict in FAULTS if tally.frames[verdict]}
    assert tally.types["LBMC DATA"] >= 2 * MESSAGES
