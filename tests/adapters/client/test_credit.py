"""A source's credit: never more in flight than allowed, nobody waits for room that is there."""

import asyncio
from typing import Any

import pytest

from stablecast.client import (
    Context,
    MessageTooLarge,
    NotRegistered,
    NotStable,
    Source,
)
from stablecast.client.loop_sender import MAX_CUT, MAX_PAYLOAD
from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.events import (
    FlightSize,
    Reclaimed,
    RegistrationSuccess,
    Stable,
    StableFlag,
    Wakeup,
)
from stablecast.core.source.outbox import FLUSH_BYTES, Outbox
from stablecast.core.source.stability import StabilityWindow
from tests.support.network import Events, Network, until

ENOUGH = StableFlag.STABLE


@pytest.fixture
def flights(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Messages and bytes in flight after each run that was sent."""
    found: list[tuple[int, int]] = []
    sent = StabilityWindow.sent

    def noted(window: StabilityWindow, count: int, payload_bytes: int, out: list[Effect]) -> None:
        sent(window, count, payload_bytes, out)
        found.append((window.unsettled_messages, window.unsettled_bytes))

    monkeypatch.setattr(StabilityWindow, "sent", noted)
    return found


@pytest.mark.rows("P-306", "P-351", "P-617", "P-851")
@pytest.mark.parametrize("flight", [1, 7, 100])
async def test_never_more_in_flight_than_the_flight_size(
    net: Network, flight: int, flights: list[tuple[int, int]]
) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size": flight})
    assert source.credit == flight
    last = await source.send_many([b"payload"] * 3 * flight)
    assert last == 3 * flight - 1
    await source.wait_stable_through(last)
    assert source.credit == flight
    assert max(messages for messages, _ in flights) == flight


async def test_a_flight_of_bytes(net: Network, flights: list[tuple[int, int]]) -> None:
    """T14: what can never fit is refused at once; what fits later waits."""
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size_bytes": 1000})
    with pytest.raises(MessageTooLarge, match="a message of 2000 bytes exceeds the flight of 1000 bytes"):
        source.try_send(bytes(2000))
    with pytest.raises(MessageTooLarge):
        await source.send(bytes(1001))
    assert source.try_send(bytes(600)) == 0
    assert source.try_send(bytes(600)) is None
    assert source.try_send(bytes(400)) == 1
    sent = await source.send(bytes(1000))
    await sent.stable()
    assert max(size for _, size in flights) == 1000


async def test_a_message_larger_than_any_may_be(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", options={"ume_flight_size_bytes": 10})
    with pytest.raises(MessageTooLarge, match=f"limit of {MAX_CUT} bytes"):
        await source.send(bytes(MAX_CUT + 1))
    assert source.try_send(bytes(MAX_PAYLOAD)) == 0
    assert source.try_send(bytes(MAX_PAYLOAD + 1)) == 2, "it is in two pieces"


async def test_a_payload_that_is_not_bytes(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders")
    with pytest.raises(TypeError, match="a payload must be bytes-like, not str: encode it"):
        source.try_send("text")  # type: ignore[arg-type]
    assert source.next_number == 0


async def test_wake_up_exactly_once_and_the_next_send_succeeds(net: Network) -> None:
    """T13: the acknowledgement comes before, while or after the sender begins to wait."""
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size": 1})
    for number in range(20):
        assert source.try_send(b"x") == number
        assert source.try_send(b"x") is None
        if number % 2:
            await source.wait_stable(number)  # the acknowledgement is there before anybody waits for room
        wakes = 0

        async def wait() -> None:
            nonlocal wakes
            await source.room()
            wakes += 1

        await wait()
        assert wakes == 1


async def test_all_blocked_senders_get_their_turn(net: Network) -> None:
    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], options={"ume_flight_size": 2})
    sent = await asyncio.gather(*(source.send(b"%d" % place) for place in range(20)))
    assert sorted(message.number for message in sent) == list(range(20))
    await source.wait_stable_through(19)


async def test_room_made_by_a_forced_reclaim_is_not_missed(net: Network) -> None:
    """T12: the flush that a blocked sender does itself may make the room it would wait for."""
    events = Events()
    context = await net.context()
    options = {"ume_flight_size": 2, "retransmit_retention_size_limit": 30, "retransmit_retention_size_threshold": 30}
    source = await context.source("orders", stores=[await net.store()], options=options, on_event=events)
    await net.stop()
    assert source.try_send(b"0123456789") == 0
    source.flush()
    assert source.try_send(b"0123456789") == 1
    sent = await source.send(b"0123456789")
    assert sent.number == 2
    assert events.of(Reclaimed)[0].forced
    with pytest.raises(NotStable, match="message 0 was reclaimed before it was stable"):
        await source.wait_stable(0)
    with pytest.raises(NotStable):
        await source.wait_stable_through(0)


async def test_who_waits_for_a_message_that_is_reclaimed_by_force_is_told(net: Network) -> None:
    options = {"retransmit_retention_size_limit": 30, "retransmit_retention_size_threshold": 30}
    source = await (await net.context()).source("orders", stores=[await net.store()], options=options)
    await net.stop()
    assert source.try_send(b"0123456789") == 0
    one, through = (asyncio.create_task(wait(0)) for wait in (source.wait_stable, source.wait_stable_through))
    await asyncio.sleep(0)
    assert source.try_send(b"0123456789") == 1
    for told in (one, through):
        with pytest.raises(NotStable, match="message 0 was reclaimed before it was stable"):
            await told
        assert through.done() or source._changed.is_set(), "both are woken by the same event"


async def test_who_found_no_credit_while_the_transport_was_full_is_told_of_room(net: Network) -> None:
    """Once, and nobody else."""
    events = Events()
    source = await (await net.context()).source("orders", stores=[await net.store()], on_event=events)
    for refused in (0, 1, 1):
        source.hold(True)
        if refused > len(events.of(Wakeup)):
            assert source.try_send(b"x") is None
        source.hold(False)
        assert len(events.of(Wakeup)) == refused


@pytest.mark.rows("P-310")
async def test_notify_mode_sends_and_tells(net: Network) -> None:
    """OVER once, UNDER once there is room again, and so on."""
    events = Events()
    context = await net.context()
    options: dict[str, int | str | bool] = {"ume_flight_size": 5, "ume_flight_size_behavior": "notify"}
    source = await context.source("orders", stores=[await net.store()], options=options, on_event=events)
    for turn in range(3):
        for _ in range(8):
            assert source.try_send(b"x") is not None
        await source.wait_stable_through(source.next_number - 1)
        assert [event.over for event in events.of(FlightSize)] == [True, False] * (turn + 1)


@pytest.mark.rows("P-308", "P-310")
async def test_the_send_that_exceeds_the_flight_is_notified(net: Network) -> None:
    """A full flight is not exceeded yet; it is below its limit when one fewer than the limit is left."""
    events = Events()
    context = await net.context()
    options: dict[str, int | str | bool] = {"ume_flight_size": 5, "ume_flight_size_behavior": "notify"}
    source = await context.source("orders", stores=[await net.store()], options=options, on_event=events)
    address = await net.stop()
    for count in range(1, 8):
        assert source.try_send(b"x") is not None
        await until(lambda: source._machine.next_number == source.next_number)
        assert [event.over for event in events.of(FlightSize)] == [True] * (count > 5)
    await net.store(listen=address)
    await source.wait_stable_through(6)
    assert [event.over for event in events.of(FlightSize)] == [True, False]


async def test_a_callback_may_send(net: Network, flights: list[tuple[int, int]]) -> None:
    """More than one block from inside an event: credit counts what the machine has not been told of."""
    sent: list[int] = []

    def on_event(event: object) -> None:
        if isinstance(event, Stable) and event.flags & ENOUGH and len(sent) < 200:
            while (number := source.try_send(bytes(FLUSH_BYTES // 4))) is not None:
                sent.append(number)

    context = await net.context()
    options: dict[str, int | str | bool] = {"ume_flight_size": 20, "ume_flight_size_bytes": 20 * FLUSH_BYTES // 4}
    source = await context.source("orders", stores=[await net.store()], options=options, on_event=on_event)
    await source.send(b"first")
    while len(sent) < 200:
        await source.wait_stable(sent[-1] if sent else 0)
    await source.wait_stable_through(sent[-1])
    assert max(messages for messages, _ in flights) == 20
    assert max(size for _, size in flights) <= 20 * FLUSH_BYTES // 4
    assert sent == list(range(1, len(sent) + 1))


async def test_a_callback_that_raises_is_reported_and_nothing_else(net: Network) -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))

    def on_event(event: object) -> None:
        raise ValueError("mine")

    context = await net.context()
    source = await context.source("orders", stores=[await net.store()], on_event=on_event)
    await (await source.send(b"x")).stable()
    assert reports[0]["message"] == "the on_event callback of source 'orders' failed"
    assert str(reports[0]["exception"]) == "mine"


async def test_nothing_is_sent_before_the_first_number_is_known(net: Network) -> None:
    """The machine may send when it reports the last store's success, but the number comes with the next event."""
    refused: list[object] = []

    def on_event(event: object) -> None:
        if isinstance(event, RegistrationSuccess):
            with pytest.raises(NotRegistered):
                contexts_source[0].try_send(b"x")
            refused.append(event)

    contexts_source: list[Source] = []
    context = await net.context(session_id=5)
    store = await net.store()
    async with Context(session_id=5) as earlier:
        await (await (await earlier.source("orders", stores=[store])).send(b"x")).stable()
    contexts_source.append(await context.source("orders", stores=[store], on_event=on_event, wait=False))
    await contexts_source[0].registered()
    assert contexts_source[0].try_send(b"x") == 1
    assert len(refused) == 1


async def test_numbers_beyond_32_bits(net: Network) -> None:
    """On the wire they wrap; the application's go on."""
    context = await net.context()
    source = await context.source("orders")
    source._machine.window.begin(serial.MODULUS - 2)
    source._out = Outbox(source._machine)
    source._out.begin(serial.MODULUS - 2)
    blocks: list[bytes] = []
    assert source.stream is not None
    source.stream.write = blocks.append  # type: ignore[method-assign, assignment]
    numbers = [source.try_send(b"x") for _ in range(4)]
    assert numbers == [serial.MODULUS + place for place in (-2, -1, 0, 1)]
    source.flush()
    octets = b"".join(blocks)
    wire = [int.from_bytes(octets[at + 8 : at + 12]) for at in range(0, len(octets), 13)]
    assert wire == [serial.MODULUS - 2, serial.MODULUS - 1, 0, 1]
    assert (await source.send(b"x")).sequence_number == 2
