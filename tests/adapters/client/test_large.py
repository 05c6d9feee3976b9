"""Messages larger than a datagram, and messages with properties, end to end."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from stablecast.client import Context, Message, MessageTooLarge, NotStable, NotStableYet, Receiver
from stablecast.client.loop_sender import MAX_PAYLOAD
from stablecast.config.options import Value
from stablecast.core.protocol.events import (
    Confirmed,
    RegistrationComplete,
    SequenceNumberInfo,
    Stable,
    StableFlag,
    UnrecoverableLoss,
)
from stablecast.core.protocol.inputs import Lost
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.transports.codec import fragments
from stablecast.transports.wire.properties import Value as Property
from tests.support.network import Events, Network, until

SMALL_DATAGRAMS = {"transport_lbtrm_datagram_max_size": 1500, "transport_lbtru_datagram_max_size": 1500}
GROUP = "224.10.10.77"
OPTIONS: dict[str, dict[str, Value]] = {
    "tcp": {},
    "lbtrm": {"transport": "lbtrm", "transport_lbtrm_multicast_address": GROUP, **SMALL_DATAGRAMS},
    "lbtru": {"transport": "lbtru", **SMALL_DATAGRAMS},
}
LOSSY: dict[str, Value] = {
    f"transport_{kind}_{name}": value
    for kind in ("lbtrm", "lbtru")
    for name, value in (("loss_rate", 10), ("nak_backoff_interval", 20), ("nak_suppress_interval", 30))
}
KINDS = tuple(OPTIONS)


def contents(count: int, largest: int, seed: int = 1) -> list[bytes]:
    """Payloads of many sizes: from none to so many bytes."""
    chance = Random(seed)
    return [chance.randbytes(chance.choice((0, 10, 1000, 1400, 3000, largest))) for _ in range(count)]


async def take(receiver: Receiver, count: int) -> list[Message]:
    found: list[Message] = []
    async for message in receiver:
        found.append(message)
        if len(found) == count:
            break
    return found


async def joined(receiver: Receiver) -> None:
    """The receiver hears the source."""
    await until(lambda: any(session._machine.window.next is not None for session in receiver._sessions.values()))


@pytest.mark.rows("P-129", "P-131", "P-334")
@pytest.mark.parametrize("kind", KINDS)
async def test_messages_of_all_sizes_arrive_whole_and_in_order(net: Network, kind: str) -> None:
    """Each piece has a number; events and messages tell the first and the last."""
    events = Events()
    largest = 200_000 if kind == "tcp" else 20_000
    sent = contents(40, largest)
    context = await net.context()
    options = OPTIONS[kind]
    source = await context.source("orders", stores=[await net.store()], options=options, on_event=events)
    receiver = context.receiver("orders", source=source.place, options=LOSSY)
    numbers = [(await source.send(payload)).number for payload in sent]
    found = await take(receiver, len(sent))
    assert [message.payload for message in found] == sent
    assert [message.sequence_number for message in found] == numbers
    found[-1].consumed()
    assert receiver.unconsumed == 0
    firsts = [0, *(number + 1 for number in numbers[:-1])]
    assert [message.numbers for message in found] == list(zip(firsts, numbers, strict=True))
    cut = [(first, last) for first, last in zip(firsts, numbers, strict=True) if first != last]
    assert [(event.first, event.last) for event in events.of(SequenceNumberInfo)] == cut
    assert len(cut) == sum(fragments.count(len(payload), 0, source.max_payload + 12) > 1 for payload in sent)
    await source.wait_stable(numbers[-1])
    await source.close()


async def test_a_receiver_that_comes_late_gets_whole_messages_from_the_stores(net: Network) -> None:
    """Pieces and properties are kept and recovered as they were sent; the source is gone by then."""
    sent = contents(20, 150_000)
    store = await net.store()
    async with Context(session_id=3) as context:
        source = await context.source("orders", stores=[store])
        for number, payload in enumerate(sent):
            await source.send(payload, {"number": number})
        await source.wait_stable_through(source.next_number - 1)
    await net.stop()
    await net.store(listen=store)
    async with Context(session_id=3) as context:
        source = await context.source("orders", stores=[store])
        receiver = context.receiver("orders", source=source.place)
        found = await take(receiver, len(sent))
        assert [message.payload for message in found] == sent
        assert [message.properties for message in found] == [{"number": number} for number in range(len(sent))]
        assert all(message.recovered for message in found)


async def test_an_application_that_returns_goes_on_behind_the_last_whole_message(net: Network) -> None:
    """Acknowledgements end with a message, never amid one."""
    sent = [bytes([number]) * (MAX_PAYLOAD + 1) for number in range(6)]
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    for payload in sent:
        await source.send(payload)
    async with Context(session_id=9) as reading:
        receiver = reading.receiver("orders", source=source.place)
        found = await take(receiver, 3)
        found[1].consumed()
    async with Context(session_id=9) as reading:
        receiver = reading.receiver("orders", source=source.place)
        assert [message.payload for message in await take(receiver, 4)] == sent[2:]


async def test_arrival_order_gives_whole_messages(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options=OPTIONS["lbtru"])
    receiver = context.receiver("orders", source=source.place, options={**LOSSY, "ordered_delivery": 0})
    await joined(receiver)
    sent = contents(60, 20_000, seed=2)
    for payload in sent:
        await source.send(payload)
    found = await take(receiver, len(sent))
    assert sorted(message.payload for message in found) == sorted(sent)
    await source.close()


@pytest.mark.rows("P-334", "P-335")
async def test_stable_is_a_message_all_of_whose_pieces_are(net: Network) -> None:
    """With notices for whole messages there is one, for all numbers."""
    events = Events()
    context = await net.context()
    options: dict[str, Value] = {"ume_message_stability_notification": 3}
    source = await context.source("orders", stores=[await net.store()], options=options, on_event=events)
    sent = await source.send(bytes(3 * MAX_PAYLOAD))
    await sent.stable()
    whole = [event for event in events.of(Stable) if event.flags & StableFlag.WHOLE_MESSAGE]
    assert [(event.first, event.last) for event in whole] == [(0, sent.number)] == [(0, 3)]


async def test_no_call_takes_the_last_piece_for_the_message(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces may become stable in any order. Every way to wait asks for all of them, with a limit and without."""
    source = await (await net.context()).source("orders", stores=[await net.store()])
    reported: list[tuple[int, int]] = []
    monkeypatch.setattr(source._stability, "on_reclaimed", lambda *_: None)
    monkeypatch.setattr(source, "_on_stable", lambda *part: reported.append(part))
    sent = await source.send(bytes(3 * MAX_PAYLOAD))
    await until(lambda: sum(last + 1 - first for first, last in reported) == 4)
    monkeypatch.undo()
    calls: list[Callable[[], Awaitable[None]]] = [
        sent.stable,
        lambda: sent.stable(60),
        lambda: source.wait_stable_through(sent.number),
    ]
    for first, last in (3, 3), (1, 2), (0, 0):
        for call in calls:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await call()
        with pytest.raises(NotStableYet, match="message 3 "):
            await sent.stable(0)
        source._on_stable(first, last)
    for call in calls:
        await call()
    await sent.stable(0)


@pytest.mark.rows("P-313")
async def test_a_message_that_was_cut_counts_once_in_the_flight(net: Network) -> None:
    """U4: however many pieces it has, collected or sent, also as the first one with a flight of one."""
    context = await net.context()
    store = await net.store()
    single = await context.source("single", stores=[store], options={"ume_flight_size": 1})
    assert (await single.send(bytes(4 * MAX_PAYLOAD + 1))).number == 4
    source = await context.source("orders", stores=[store], options={"ume_flight_size": 4})
    with source.batch():
        assert source.try_send(bytes(2 * MAX_PAYLOAD)) == 2
        assert source.credit == 3
        assert source.try_send(b"small") == 3
        assert source.try_send(bytes(3 * MAX_PAYLOAD)) == 7
        assert source.credit == 1
    assert source.try_send(bytes(MAX_PAYLOAD + 1)) == 9
    assert source.credit == 0
    assert source.try_send(b"small") is None
    assert (await source.send(bytes(2 * MAX_PAYLOAD))).number == 12
    await source.wait_stable_through(12)
    assert source.credit == 4


@pytest.mark.rows("P-314")
async def test_a_flight_in_bytes_refuses_a_message_that_never_fits(net: Network) -> None:
    """T14."""
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size_bytes": 1000})
    with pytest.raises(MessageTooLarge, match="a message of 1001 bytes exceeds the flight of 1000"):
        await source.send(bytes(1001))


async def test_more_pieces_than_a_receiver_asks_for_are_refused(net: Network) -> None:
    context = await net.context()
    options: dict[str, Value] = {"transport": "lbtru", "transport_lbtru_datagram_max_size": 500}
    source = await context.source("orders", options=options)
    with pytest.raises(MessageTooLarge, match=f"has more than {fragments.MAX_PIECES}: raise the datagram size"):
        source.try_send(bytes(source.max_payload * fragments.MAX_PIECES))
    with pytest.raises(MessageTooLarge, match="the limit of 8388608 bytes"):
        await source.room(1 << 24)
    await source.close()


async def test_a_payload_that_is_not_bytes_is_refused_whatever_its_size(net: Network) -> None:
    source = await (await net.context()).source("orders")
    with pytest.raises(TypeError, match="must be bytes-like, not list"):
        source.try_send([0] * (MAX_PAYLOAD + 1))  # type: ignore[arg-type]
    assert source.next_number == 0


async def test_pieces_of_a_message_that_lost_one_are_reported_lost(net: Network) -> None:
    """The transport gives up on a piece and nobody can be asked: the message is not delivered, and all of it told."""
    events = Events()
    context = await net.context()
    source = await context.source("orders", options=OPTIONS["lbtru"])
    receiver = context.receiver("orders", source=source.place, options=LOSSY, on_event=events)
    await joined(receiver)
    (session,) = receiver._sessions.values()
    start = source.next_number
    payload = bytes(10_000)
    pieces = fragments.count(len(payload), 0, source.max_payload + 12)
    blocks: list[bytes] = []
    assert source.stream is not None
    write, source.stream.write = source.stream.write, blocks.append  # type: ignore[method-assign, assignment]
    await source.send(payload)
    source.flush()
    source.stream.write = write  # type: ignore[method-assign]
    lengths = [len(piece) for piece in fragments.encode_pieces(0, 0, payload, source.max_payload + 12)]
    third = sum(lengths[:3])
    write(blocks[0][: sum(lengths[:2])] + blocks[0][third:])
    await until(session._machine.window.missing)
    session.receive(Lost(session.incarnation, start + 2, 1))
    await source.send(b"behind")
    assert [message.payload for message in await take(receiver, 1)] == [b"behind"]
    told = sorted((event.first, event.last) for event in events.of(UnrecoverableLoss))
    assert sorted(number for first, last in told for number in range(first, last + 1)) == list(
        range(start, start + pieces)
    )
    await source.close()


async def test_a_message_that_began_before_the_application_is_passed_over(net: Network) -> None:
    """It begins amid a large one: what is left of that is neither delivered nor called lost."""
    events = Events()
    context = await net.context(session_id=4)
    source = await context.source("orders", stores=[await net.store()])
    await source.send(bytes(3 * MAX_PAYLOAD))
    await (await source.send(b"behind")).stable()
    receiver = context.receiver("orders", source=source.place, start_at=lambda _: 2, on_event=events)
    (message,) = await take(receiver, 1)
    assert (message.payload, message.numbers) == (b"behind", (4, 4))
    assert events.of(UnrecoverableLoss) == []
    message.consumed()
    (session,) = receiver._sessions.values()
    await until(lambda: session._machine.window.acked == 4)


@pytest.mark.rows("P-349")
async def test_a_message_that_the_store_has_only_in_part_is_lost_and_not_confirmed(net: Network) -> None:
    """Its first pieces had to go. A new receiver begins with the next, of which no message comes (P-349)."""
    at_source, at_receiver = Events(), Events()
    context = await net.context(session_id=4)
    store = await net.store(size_threshold=MAX_PAYLOAD, disk_limit=3 * MAX_PAYLOAD + 1000)
    options: dict[str, Value] = {"ume_confirmed_delivery_notification": 1}
    source = await context.source("orders", stores=[store], options=options, on_event=at_source)
    whole = await source.send(bytes(5 * MAX_PAYLOAD))
    behind = await source.send(b"behind")
    await behind.stable()
    receiver = context.receiver("orders", source=source.place, on_event=at_receiver)
    (message,) = await take(receiver, 1)
    assert (message.payload, message.numbers) == (b"behind", (behind.number, behind.number))
    message.consumed()
    (began,) = at_receiver.of(RegistrationComplete)
    assert 0 < began.number <= whole.number, "the store has the message in part"
    lost = [number for event in at_receiver.of(UnrecoverableLoss) for number in range(event.first, event.last + 1)]
    assert lost == list(range(began.number, whole.number + 1))
    (session,) = receiver._sessions.values()
    await until(lambda: session._machine.window.acked == behind.number)
    await until(lambda: at_source.of(Confirmed))
    assert [(event.first, event.last) for event in at_source.of(Confirmed)] == [(behind.number, behind.number)]


async def test_properties_go_with_a_message(net: Network) -> None:
    """Small ones and large ones, one by one and many together; beside them plain ones have none."""
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    receiver = context.receiver("orders", source=source.place)
    told: dict[str, Property] = {"symbol": "ABC", "count": -3, "price": 1.5, "open": True}
    sent: list[tuple[bytes, dict[str, Property]]] = [
        (b"one", told),
        (b"", {"empty": ""}),
        (b"plain", {}),
        (bytes(MAX_PAYLOAD), told),
        (bytes(2 * MAX_PAYLOAD), {"k": 1}),
    ]
    for payload, properties in sent:
        await source.send(payload, properties)
    found = await take(receiver, len(sent))
    assert [(message.payload, message.properties) for message in found] == sent
    with pytest.raises(TypeError, match="the property 'x' must be a bool"):
        source.try_send(b"", {"x": [1]})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="needs a key"):
        await source.send(b"", {"": 1})


async def test_batches_and_callbacks_have_numbers_and_properties(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    seen: list[Message] = []
    receiver = (await net.context()).receiver("orders", source=source.place, on_message=seen.append)
    for number in range(5):
        source.try_send(b"x" * number, {"n": number})
    last = await source.send(bytes(MAX_PAYLOAD + 1))
    await until(lambda: len(seen) == 6)
    assert [message.properties for message in seen] == [*({"n": number} for number in range(5)), {}]
    assert seen[-1].numbers == (5, 6) == (5, last.number)
    assert f" 6 of {seen[-1].source}, {MAX_PAYLOAD + 1} bytes" in repr(seen[-1])
    (session,) = receiver._sessions.values()
    await until(lambda: session._machine.window.acked == 6)


@pytest.mark.rows("P-323")
async def test_a_large_message_reclaimed_by_force_is_not_stable(net: Network) -> None:
    """Its pieces go together."""
    context = await net.context()
    options: dict[str, Value] = {
        "retransmit_retention_size_limit": 200_000,
        "retransmit_retention_size_threshold": 200_000,
    }
    source = await context.source("orders", stores=[await net.store()], options=options)
    await net.stop()
    sent = await source.send(bytes(150_000))
    source.flush()
    await source.send(bytes(150_000))
    source.flush()
    with pytest.raises(NotStable):
        await sent.stable()


async def test_a_message_of_many_megabytes(net: Network) -> None:
    payload = Random(5).randbytes(8 << 20)
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()])
    receiver = context.receiver("orders", source=source.place)
    sent = await source.send(payload)
    (message,) = await take(receiver, 1)
    assert hashlib.sha256(message.payload).digest() == hashlib.sha256(payload).digest()
    await sent.stable()


async def test_traces_of_large_messages_replay_and_are_judged(net: Network, tmp_path: Path) -> None:
    """The trace records pieces; replaying it changes nothing."""
    folder = tmp_path / "traces"
    folder.mkdir()
    async with Context(session_id=3, trace=folder) as context:
        source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size": 40})
        receiver = context.receiver("orders", source=source.place, on_message=lambda _: None)
        for payload in contents(30, 400_000):
            await source.send(payload, {"k": 1})
        await source.wait_stable_through(source.next_number - 1)
        await until(lambda: receiver._sessions)
        (session,) = receiver._sessions.values()
        await until(lambda: session._machine.window.acked == source.next_number - 1)
    summary = verify_paths(sorted(folder.iterdir()))
    assert [violation.text for violation in summary.violations] == []
    assert sorted(report.role for report in summary.files) == ["receiver", "source"]
    assert summary.clean
