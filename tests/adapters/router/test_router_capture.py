"""What passes a router, on the wire of both domains: public dissectors read it, and lengths and numbers stay."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest

from stablecast.evidence.capture.decoder import packets
from stablecast.lab.world import stream_end
from stablecast.transports.codec.identity import find
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Capability, Destination, PregResp, StoreId, Stream
from stablecast.transports.wire.lbmc import DATA_HEADER, MessageKind
from tests.adapters.lab.world.scene import scene
from tests.adapters.router.test_daemon import TRANSPORTS
from tests.adapters.router.test_hosts import EDGE, NAMES, RELAY, STORE, Site
from tests.support import tshark
from tests.support.world_capture import WorldCapture, captured

PAYLOAD = 700
MESSAGES = [b"%03d" % number + bytes(PAYLOAD - 3) for number in range(30)]
LATE = 7
"""Messages that the receiver gets from the store, because it comes later, as in the documented run."""

SHOP, DESK, ROUTER = "10.0.0.1", "10.0.0.2", "10.0.0.3"
TCP = 6
RUNS = [("tcp", (1,)), ("tcp", ()), ("lbtrm", (2,)), ("lbtru", ())]
"""The transport, and the domains with a service; the others have a relay."""

DOCUMENTED = (Destination, Stream, PregResp, StoreId, Capability)
"""The headers that the answer to a registration had in the documented run."""

RECORD = slice(18, 22)
"""The kind of a record of a service in a frame with one, in hexadecimal digits."""

NEWER_RECORDS = {"000d", "000f"}
"""Records of services that stock dissectors do not know yet: routes and domains."""


async def sell(site: Site) -> None:
    async with site.context(1) as shop:
        options = TRANSPORTS[site.transport]
        source = await shop.source("orders", stores=[f"{site.address(1)}:{STORE}"], options=options, wait=False)
        await source.registered()
        await source.send_many(MESSAGES[:LATE])
        await asyncio.sleep(20)
        for payload in MESSAGES[LATE:]:
            await source.send(payload)
            await asyncio.sleep(1)
        await source.wait_stable(source.next_number - 1)
        await asyncio.sleep(5)


async def book(site: Site, found: list[bytes]) -> None:
    await asyncio.sleep(10)
    async with site.context(2) as desk:
        async for message in desk.receiver("orders"):
            found.append(message.payload)
            if len(found) == len(MESSAGES):
                await asyncio.sleep(2)
                return


@cache
def documented_run(kind: str, services: tuple[int, ...]) -> WorldCapture:
    """Play the run of the reference: a store beside the source, and a late receiver in the other domain."""
    found: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch, captured() as capture, scene() as world:
        patch.setattr(stream_end, "SPLIT_BITS", 64)  # Public dissectors give up at a piece of a header.
        site = Site.of(world, kind, services)
        assert [world.host(name).address for name in (NAMES[1], NAMES[2], EDGE)] == [SHOP, DESK, ROUTER]
        world.start(lambda: site.store(1), NAMES[1])
        world.finish(world.start(lambda: sell(site), NAMES[1]), world.start(lambda: book(site, found), NAMES[2]))
    assert found == MESSAGES
    return capture


Sent = tuple[MessageKind, tuple[str, ...], int, int]
"""The kind of a message, its headers, its length and its number."""


def messages(capture: WorldCapture, directory: Path, source: str, target: str) -> Iterator[lbmc.Message]:
    """Yield the messages that one host sent another one, once each."""
    capture.write(directory)
    for packet in packets(directory / f"{ROUTER}.pcap"):
        if packet.source and packet.target and (packet.source[0], packet.target[0]) == (source, target):
            yield from (layer.record for layer in packet.layers if isinstance(layer.record, lbmc.Message))


def sent(found: Iterator[lbmc.Message]) -> Counter[Sent]:
    return Counter(
        (one.kind, tuple(type(header).__name__ for header in one.headers), len(lbmc.encode(one)), one.sequence)
        for one in found
    )


@pytest.mark.rows("R-056", "R-057", "R-201")
@pytest.mark.parametrize(("kind", "services"), RUNS[:2])
def test_lengths_and_numbers_are_those_of_the_documented_run(
    kind: str, services: tuple[int, ...], tmp_path: Path
) -> None:
    """Data has 712 bytes on both sides, a confirmation 80, and a grant 84 without our own headers."""
    capture = documented_run(kind, services)
    ways = [(SHOP, ROUTER), (ROUTER, DESK), (DESK, ROUTER), (ROUTER, SHOP)]
    entered, left, answered, returned = (sent(messages(capture, tmp_path, *way)) for way in ways)
    (granted,) = [one for one in messages(capture, tmp_path, ROUTER, DESK) if isinstance(find(one, PregResp), PregResp)]
    documented = [one for one in granted.headers if isinstance(one, DOCUMENTED)]
    assert len(lbmc.encode(attrs.evolve(granted, headers=tuple(documented)))) == 84
    assert {length for (_, headers, length, _) in answered if headers[2:] == ("Ack", "TopicIdx")} == {80}
    data = [(length, number) for (kind, _, length, number) in sorted(entered) if kind is MessageKind.DATA]
    assert data == [(DATA_HEADER.size + PAYLOAD, number) for number in range(LATE, len(MESSAGES))]
    repaired = [number for (kind, _, _, number) in sorted(entered) if kind is MessageKind.RETRANSMISSION]
    assert repaired == list(range(LATE))
    assert (left - entered, returned - answered) == (Counter(), Counter())
    # The store still asks the receiver for a sign of life when that has gone.
    assert {headers[-2:] for _, headers, _, _ in entered - left} <= {("Keepalive", "StoreId")}
    assert answered == returned


@pytest.mark.parametrize(("kind", "services"), RUNS)
def test_public_dissectors_read_both_sides(kind: str, services: tuple[int, ...], tmp_path: Path) -> None:
    capture = documented_run(kind, services)
    for path in capture.write(tmp_path):
        streams = [one[20:24] for _, one in capture.hosts[path.stem] if one[9] == TCP]
        called = {min(int.from_bytes(ends[:2]), int.from_bytes(ends[2:])) for ends in streams}
        ports = {f"tcp.port=={port}": "lbmsrs" if port == RELAY else "lbttcp" for port in called}
        ports[f"udp.port=={RELAY}"] = "lbmr"
        assert [line for line in tshark.summary(path, ports) if "LBM" in line or "LBT" in line] == []
        assert tshark.matching(path, ports, "_ws.malformed") == []
        assert tshark.matching(path, ports, "udp and not icmp and not (lbmr or lbtrm or lbtru)") == []
        unread = "tcp.len > 0 and not (lbttcp or lbmsrs) and not tcp.reassembled_in"
        found = tshark.matching(path, ports, unread, "tcp.payload")
        assert {payload[RECORD] for payload in found} <= NEWER_RECORDS
        assert len(tshark.matching(path, ports, "lbmc")) > len(MESSAGES)
