"""Questions of a receiver to its application, and sources whose address the application gives."""

import asyncio
from typing import Any

import pytest

from stablecast.client import Context, Message, RegIdRequest, RegistrationFailed
from stablecast.core.errors import MisuseError
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import (
    RegistrationError,
    RegistrationSuccess,
)
from stablecast.core.subscription import subscription
from stablecast.transports import codec
from tests.adapters.runtime.peers import hello, listener
from tests.support.network import Events, Network, until
from tests.support.traffic import info, send, source_of, take


async def test_a_given_address_needs_no_resolver(net: Network) -> None:
    context, source = await source_of(net, "a")
    async with Context(session_id=1) as receiving:
        receiver = receiving.receiver("orders", source=source.config.transport)
        await send(source, 3)
        assert await take(receiver, 3) == [0, 1, 2]
        await context.close()
        await until(lambda: not receiver._joiners)
        assert receiver.subscription.rejoins


async def test_a_given_address_is_joined_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens: one attempt for each pause, until somebody does."""
    monkeypatch.setattr(subscription, "REJOIN_NS", 0)
    async with listener(hello(5) + info(codec.join(5, 7))) as source, Context() as receiving:
        await source.close()
        receiver = receiving.receiver("orders", source=source.address)
        for _ in range(3):
            await until(lambda: receiver.subscription.rejoins)
            await until(lambda: receiver.subscription.joined)
        await source.again()
        await until(lambda: receiver._sessions)


# The application's callbacks.


@pytest.mark.rows("P-248", "P-249")
async def test_reg_ids_are_the_application_s(net: Network) -> None:
    """Asked for each store, with what identifies the source."""
    asked: list[RegIdRequest] = []
    events = Events()

    def reg_id(request: RegIdRequest) -> int:
        asked.append(request)
        return 1100

    _, source = await source_of(net, "a")
    (await net.context()).receiver("orders", reg_id=reg_id, on_event=events)
    success = await events.first(RegistrationSuccess)
    assert success.reg_id == 1100
    store = net.stores["a"].address
    assert asked == [RegIdRequest(0, store, success.source_reg_id, f"TCP:{source.config.transport}")]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ValueError("no file"), "ValueError: no file"),
        (-1, "ValueError: -1 is not a number from 0 to 4294967295"),
        (None, "TypeError: 'NoneType' object cannot be interpreted as an integer"),
    ],
)
async def test_a_reg_id_callback_that_fails_is_told(net: Network, answer: Any, why: str) -> None:
    """By an event, to the loop's exception handler, and to whoever waits for messages."""
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))

    def reg_id(_: RegIdRequest) -> int:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    events = Events()
    _, source = await source_of(net, "a")
    receiver = (await net.context()).receiver("orders", reg_id=reg_id, on_event=events)
    text = f"the reg_id callback of receiver 'orders' failed: {why}"
    for _ in range(2):
        with pytest.raises(RegistrationFailed) as raised:
            await anext(receiver)
        assert str(raised.value) == text
        assert raised.value.__cause__ is reports[0]["exception"]
    assert events.of(RegistrationError) == [RegistrationError(0, net.stores["a"].address, text)]
    await send(source, 1)


@pytest.mark.rows("P-421", "P-651")
async def test_the_application_chooses_where_to_start(net: Network) -> None:
    asked: list[AskLow] = []

    def start_at(question: AskLow) -> int:
        asked.append(question)
        return question.high - 1

    _, source = await source_of(net, "a")
    await send(source, 10)
    receiver = (await net.context()).receiver("orders", start_at=start_at)
    assert await take(receiver, 2) == [8, 9]
    assert asked == [AskLow(9, 0, 0)]


@pytest.mark.rows("P-676")
async def test_a_negative_start_is_refused(net: Network) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)
    await source_of(net, "a")
    receiver = (await net.context()).receiver("orders", start_at=lambda _: -5)
    with pytest.raises(RegistrationFailed, match=r"start_at returned -5: return a number from 0, or question\.low"):
        await anext(receiver)


async def test_a_start_at_callback_that_fails_is_told(net: Network) -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))

    def start_at(_: AskLow) -> int:
        raise KeyError("orders")

    await source_of(net, "a")
    receiver = (await net.context()).receiver("orders", start_at=start_at)
    with pytest.raises(
        RegistrationFailed, match="the start_at callback of receiver 'orders' failed: KeyError: 'orders'"
    ):
        await anext(receiver)
    assert len(reports) == 1


async def test_an_event_callback_that_raises_is_reported(net: Network) -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))

    def on_event(_: object) -> None:
        raise ValueError("mine")

    _, source = await source_of(net, "a")
    receiver = (await net.context()).receiver("orders", on_event=on_event)
    await send(source, 1)
    assert await take(receiver, 1) == [0]
    assert {report["message"] for report in reports} == {"the on_event callback of receiver 'orders' failed"}


@pytest.mark.rows("P-342", "P-651")
async def test_messages_can_be_handed_over_as_they_come(net: Network) -> None:
    """Each is consumed when its call has returned: a receiver that comes back gets only what came meanwhile."""
    _, source = await source_of(net, "a")
    got: list[tuple[int, bytes]] = []

    def on_message(message: Message) -> None:
        got.append((message.sequence_number, message.payload))

    context = await net.context(session_id=5)
    receiver = context.receiver("orders", on_message=on_message)
    await send(source, 3)
    await until(lambda: len(got) == 3)
    assert [number for number, _ in got] == [0, 1, 2]
    await context.close()
    await send(source, 1)
    again = (await net.context(session_id=5)).receiver("orders")
    assert await take(again, 1) == [3]
    with pytest.raises(MisuseError, match="it cannot be iterated"):
        await anext(receiver)


async def test_a_callback_that_raises_gets_no_more_and_acknowledges_none(net: Network) -> None:
    """The message in hand and those behind it come again to the receiver's next life."""
    _, source = await source_of(net, "a")
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: reported.append(told))
    got: list[int] = []

    def on_message(message: Message) -> None:
        if message.sequence_number == 2:
            raise ValueError("not this one")
        got.append(message.sequence_number)

    context = await net.context(session_id=5)
    context.receiver("orders", on_message=on_message)
    await send(source, 5)
    await until(lambda: bool(reported))
    await send(source, 1)
    await context.close()
    assert got == [0, 1]
    assert [told["message"] for told in reported] == ["the on_message callback of receiver 'orders' failed"]
    again = (await net.context(session_id=5)).receiver("orders")
    assert await take(again, 4) == [2, 3, 4, 5]
