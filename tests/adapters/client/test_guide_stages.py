"""The stages of the guide's example programs through the client, and features that applications build on them."""

import pytest

from stablecast.client import Context, RegIdRequest
from stablecast.config.option_kinds import Value
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import (
    RegistrationComplete,
    RegistrationError,
    RegistrationSuccess,
    StoreUnresponsive,
)
from stablecast.core.protocol.messages import Pace
from tests.support.network import Events, Network, drop, until
from tests.support.traffic import send, source_of, take

SOURCE_ID, RECEIVER_ID = 1000, 1100
"""The RegIDs of the guide's second stage."""


@pytest.mark.rows("P-604")
async def test_stage_1_streams_without_stores(net: Network) -> None:
    """The receiver goes on when the source ends, and gets the messages of the next one."""
    receiver = (await net.context()).receiver("orders")
    for _ in range(2):
        context = await net.context()
        source = await context.source("orders", options={"late_join": 1})
        for number in range(3):
            await source.send(b"%d" % number)
        assert await take(receiver, 3) == [0, 1, 2]
        await context.close()


@pytest.mark.rows("P-236", "P-606")
async def test_stage_2_resumes_by_fixed_reg_ids(net: Network) -> None:
    store = f"{await net.store()}:{SOURCE_ID}"
    for first in (0, 3):
        sending, receiving = await net.context(), await net.context()
        granted = Events()
        source = await sending.source("orders", stores=[store], on_event=granted, within=None)
        assert (await granted.first(RegistrationSuccess)).reg_id == SOURCE_ID
        assert source.next_number == first
        heard = Events()
        receiver = receiving.receiver("orders", reg_id=lambda _: RECEIVER_ID, on_event=heard)
        assert (await heard.first(RegistrationSuccess)).reg_id == RECEIVER_ID
        await send(source, 3)
        assert await take(receiver, 3) == [first, first + 1, first + 2]
        await receiving.close()
        await drop(sending)


@pytest.mark.rows("P-607")
async def test_no_other_program_may_use_the_reg_ids_of_stage_2(net: Network) -> None:
    store = f"{await net.store()}:{SOURCE_ID}"
    await (await net.context()).source("orders", stores=[store])
    refused = Events()
    second = await (await net.context()).source("orders", stores=[store], on_event=refused, wait=False)
    await refused.first(RegistrationError)
    assert not second._machine.can_send


@pytest.mark.rows("P-250", "P-618")
async def test_a_receiver_keeps_the_reg_ids_of_several_sources(net: Network) -> None:
    store = await net.store()
    sources = [await (await net.context()).source("orders", stores=[f"{store}:{number}"]) for number in (501, 502)]
    saved: dict[int, int] = {}

    async def receive(count: int) -> dict[int, list[int]]:
        asked: list[RegIdRequest] = []

        def choose(request: RegIdRequest) -> int:
            asked.append(request)
            return saved.get(request.source_reg_id, 0)

        context, events = await net.context(), Events()
        receiver = context.receiver("orders", reg_id=choose, on_event=events)
        for _ in sources:
            await events.first(RegistrationSuccess, 2)
        found: dict[int, list[int]] = {}
        for _ in range(count):
            message = await anext(receiver)
            message.consumed()
            found.setdefault(int(message.payload), []).append(message.sequence_number)
        saved.update((event.source_reg_id, event.reg_id) for event in events.of(RegistrationSuccess))
        await context.close()
        return found

    for source, number in zip(sources, (501, 502), strict=True):
        await source.send_many([b"%d" % number] * 3)
        await source.wait_stable_through(2)
    assert await receive(6) == {501: [0, 1, 2], 502: [0, 1, 2]}
    assert saved.keys() == {501, 502}
    for source, number in zip(sources, (501, 502), strict=True):
        await source.send_many([b"%d" % number] * 2)
        await source.wait_stable_through(4)
    granted = dict(saved)
    assert await receive(4) == {501: [3, 4], 502: [3, 4]}
    assert saved == granted


@pytest.mark.parametrize(("offset", "expected"), [(2, [5, 6]), (-1, [2, 3]), (-9, [3, 4])])
@pytest.mark.rows("P-425")
async def test_the_start_moves_by_an_offset_unless_that_is_negative(
    net: Network, offset: int, expected: list[int]
) -> None:
    _, source = await source_of(net, "a")
    await send(source, 8)
    first = await net.context(session_id=9)
    await take(first.receiver("orders"), 3)
    await first.close()

    def start_at(question: AskLow) -> int:
        moved = question.low + offset
        return moved if moved >= 0 else question.low

    again = (await net.context(session_id=9)).receiver("orders", start_at=start_at)
    assert await take(again, 2) == expected


PACE: dict[str, Value] = {"ume_receiver_paced_persistence": 1}
PACED = {**PACE, "ume_flight_size_bytes": 1000}


@pytest.mark.rows("P-560")
async def test_options_alone_switch_receiver_pacing_on(net: Network) -> None:
    """The calls are the same as ever. The repository keeps messages until the receiver has consumed them."""
    store = await net.store(allow_rpp=True)
    source = await (await net.context(session_id=1)).source("orders", stores=[store], options=PACED)
    events = Events()
    receiver = (await net.context(session_id=2)).receiver("orders", on_event=events, options=PACE)
    await events.first(RegistrationComplete)
    await send(source, 3)
    [repository] = net.stores["store"]._machine.status.repositories.values()
    assert repository.terms.pace is Pace.RECEIVERS
    assert repository.messages == 3
    assert await take(receiver, 3) == [0, 1, 2]
    await until(lambda: repository.messages == 0)


@pytest.mark.rows("P-964")
async def test_any_payload_works_with_receiver_pacing(net: Network) -> None:
    store = await net.store(allow_rpp=True)
    source = await (await net.context(session_id=1)).source("orders", stores=[store], options=PACED)
    events = Events()
    receiver = (await net.context(session_id=2)).receiver("orders", on_event=events, options=PACE)
    await events.first(RegistrationComplete)
    payloads = [b"", b"\0", bytes(range(256)), "Größe".encode(), b"\xff" * 700]
    for payload in payloads:
        await source.send(payload)
    found = []
    for _ in payloads:
        message = await anext(receiver)
        message.consumed()
        found.append(message.payload)
    assert found == payloads


@pytest.mark.rows("P-016", "P-126")
async def test_stores_serve_sources_in_several_arrangements(net: Network) -> None:
    """Three stores as one group, as round robin, and one of them alone, for three sources of one context."""
    stores = [await net.store(name) for name in ("a", "bb", "ccc")]
    context: Context = await net.context(session_id=1)
    group = await context.source("group", stores=stores)
    turns = await context.source("turns", stores=stores, options={"ume_store_behavior": "rr", "late_join": 1})
    alone = await context.source("alone", stores=stores[2:])
    for source in (group, turns, alone):
        await send(source, 4)
    held = {
        name: sorted(one.messages for one in store._machine.status.repositories.values() if one.messages)
        for name, store in net.stores.items()
    }
    assert held["ccc"][-1] == 4
    assert sum(map(len, held.values())) >= 2 + 1 + 1
    await net.stop("ccc")
    await group.send(b"a quorum is enough")
    await group.wait_stable_through(4)
    await until(lambda: not alone._machine.can_send)


@pytest.mark.rows("P-318")
async def test_a_store_keeps_messages_that_the_source_has_released(net: Network) -> None:
    _, source = await source_of(net, "a", options={"retransmit_retention_size_threshold": 0})
    await send(source, 50)
    await until(lambda: source._machine.window.retained_bytes == 0)
    receiver = (await net.context(session_id=9)).receiver("orders", start_at=lambda _: 0)
    assert await take(receiver, 50) == list(range(50))


@pytest.mark.rows("P-658")
async def test_a_silent_store_is_named(net: Network) -> None:
    events = Events()
    _, source = await source_of(net, "a", on_event=events)
    address = await net.stop("a")
    assert address in (await events.first(StoreUnresponsive)).text
    await until(lambda: not source._machine.can_send)
