"""A receiver whose application never reads: every queue on the way to it has its bound, and nothing is lost by that."""

from collections.abc import Iterator

import pytest

from stablecast.client import Receiver, Source
from stablecast.client.inbox import BATCH_BYTES
from stablecast.config.options import Value
from stablecast.core.source.outbox import MAX_BLOCK_BYTES
from stablecast.runtime.reliable_stream import MAX_WAITING, ReliableStream
from stablecast.runtime.stream import StreamServer
from stablecast.store.store import Store
from tests.support.network import Network, until

INBOX = 150_000
STREAM = 400_000
RETAINED = 300_000
STORED = 500_000
WINDOW = 65_536
READ = 256 * 1024
"""Bytes of one read: so much may come before reading stops."""
PROXIMITY = 100
ASKED = 20
SIZE = 3_000
MANY = 1_500
LARGE = 40_000

TRANSPORTS: dict[str, dict[str, Value]] = {
    "tcp": {},
    "lbtrm": {"transport": "lbtrm", "transport_lbtrm_multicast_address": "224.10.10.78"},
    "lbtru": {"transport": "lbtru"},
}
SENDING: dict[str, Value] = {
    "ume_flight_size": 50,
    "transport_session_maximum_buffer": STREAM,
    "ume_flight_size_bytes": RETAINED,
    "retransmit_retention_size_threshold": RETAINED,
    "retransmit_retention_size_limit": 2 * RETAINED,
    **{
        f"transport_{kind}_{name}": value
        for kind in ("lbtrm", "lbtru")
        for name, value in (("transmission_window_size", WINDOW), ("data_rate_limit", 1_000_000_000))
    },
}
READING: dict[str, Value] = {
    "retransmit_message_caching_proximity": PROXIMITY,
    "retransmit_request_outstanding_maximum": ASKED,
    **{f"transport_{kind}_nak_generation_interval": 200 for kind in ("lbtrm", "lbtru")},
}


@pytest.fixture(autouse=True)
def small_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.client.inbox.MAX_QUEUED_BYTES", INBOX)


def check(source: Source, receiver: Receiver, store: Store, size: int) -> None:
    """Every queue is within its bound."""
    stream = source.stream
    assert stream is not None
    if isinstance(stream, StreamServer):
        assert stream.statistics()["bytes_buffered"] <= len(stream.subscribers) * (STREAM + MAX_BLOCK_BYTES)
    if isinstance(stream, ReliableStream):
        assert len(stream._waiting) <= MAX_WAITING
        window = stream._sources.machine.sessions[stream._session].window
        held_up = sum(len(payload) for number, payload in window.datagrams.items() if number > window.sent)
        assert held_up <= MAX_BLOCK_BYTES  # by the rate limit, which a quick machine reaches
        assert window.payload_bytes - held_up <= WINDOW
    assert source._machine.window.retained_bytes <= 2 * RETAINED
    assert sum(len(block) for _, _, block in source._retained._blocks) <= 2 * RETAINED + MAX_BLOCK_BYTES
    for repository in store.machine.repositories.values():
        assert repository.window.bytes(repository.window.memory) <= STORED
    recovered = (PROXIMITY + ASKED) * (size + BATCH_BYTES)
    assert receiver.inbox._bytes <= INBOX + READ + recovered
    for session in receiver._sessions.values():
        assert len(session._machine.window.held) <= PROXIMITY
        assert len(session._tokens) <= PROXIMITY + ASKED
        session._pieces.check_invariants()


def payloads(size: int) -> Iterator[bytes]:
    """So much that each queue would overflow many times."""
    return (number.to_bytes(4) * (size // 4) for number in range(MANY * SIZE // size))


@pytest.mark.rows("P-011", "P-434")
@pytest.mark.parametrize("size", [SIZE, LARGE])
@pytest.mark.parametrize("kind", list(TRANSPORTS))
async def test_no_queue_grows_beyond_its_bound_and_all_arrives_in_the_end(net: Network, kind: str, size: int) -> None:
    """The source and the store do not wait for it; what it did not take the store has."""
    address = await net.store(size_threshold=STORED // 2, size_limit=STORED)
    sending, hearing = await net.context(), await net.context(session_id=5)
    source = await sending.source("orders", stores=[address], options=TRANSPORTS[kind] | SENDING)
    receiver = hearing.receiver("orders", source=source.place, options=READING)
    await until(lambda: any(session._machine.window.next is not None for session in receiver._sessions.values()))
    store = net.stores["store"]
    for payload in payloads(size):
        await source.send(payload)
        check(source, receiver, store, size)
    await source.wait_stable_through(source.next_number - 1)
    check(source, receiver, store, size)
    assert receiver.inbox.full
    expected = payloads(size)
    async for message in receiver:
        assert message.payload == next(expected)
        check(source, receiver, store, size)
        if message.sequence_number == source.next_number - 1:
            break
    assert next(expected, None) is None
    await source.close()


@pytest.mark.rows("P-011")
async def test_a_stream_without_stores_drops_who_does_not_read(net: Network) -> None:
    """Nobody waits; what was dropped is reported lost, or came before the receiver joined again."""
    sending, hearing = await net.context(), await net.context()
    source = await sending.source("orders", options={"late_join": 0})
    receiver = hearing.receiver("orders", source=source.place)
    await until(lambda: any(session._machine.window.next is not None for session in receiver._sessions.values()))
    for payload in payloads(SIZE):
        await source.send(payload)
        assert isinstance(source.stream, StreamServer)
        for subscriber in source.stream.subscribers:
            if subscriber.transport is not None:
                assert subscriber.transport.get_write_buffer_size() <= source.stream.maximum + MAX_BLOCK_BYTES
        assert receiver.inbox._bytes <= INBOX + READ
        source.flush()
        assert not source._retained._blocks
