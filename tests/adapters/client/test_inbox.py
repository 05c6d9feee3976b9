"""The queue between sessions and the application, and the batches in it."""

import asyncio

import attrs
import pytest

from stablecast.client import inbox as module
from stablecast.client.errors import RegistrationFailed
from stablecast.client.inbox import BATCH_BYTES, Inbox
from stablecast.client.message import Batch, Message
from stablecast.core import serial
from stablecast.core.errors import MisuseError
from stablecast.transports.lbttcp import Run
from tests.adapters.net.peers import data


@attrs.define
class Told:
    """A session that remembers what it was told."""

    consumptions: list[tuple[int, int]] = attrs.field(factory=list)
    acknowledged: list[tuple[int, int]] = attrs.field(factory=list)

    def consumed(self, first: int, last: int) -> None:
        self.consumptions.append((first, last))

    def acknowledge(self, first: int, number: int) -> None:
        self.acknowledged.append((first, number))


def batch_of(count: int, first: int = 0, told: Told | None = None, skip: int = 0) -> Batch:
    block = b"".join(data(serial.wire(first - skip + place)) for place in range(skip + count))
    run = Run(7, serial.wire(first - skip), skip + count, skip + count, block)
    return Batch(run, skip, count, first, 99, told or Told())


async def test_first_in_first_out() -> None:
    inbox = Inbox(lambda: None)
    batches = [batch_of(1), batch_of(2)]
    for batch in batches:
        inbox.put(batch)
    assert len(inbox) == 2
    assert [await inbox.take(), await inbox.take()] == batches
    inbox.close()
    assert await inbox.take() is None


async def test_full_and_half_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    room: list[int] = []
    size = batch_of(1).size + BATCH_BYTES
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 4 * size)
    inbox = Inbox(lambda: room.append(len(inbox)))
    fullness: list[bool] = []
    for _ in range(5):
        inbox.put(batch_of(1))
        fullness.append(inbox.full)
    for _ in range(4):
        await inbox.take()
        fullness.append(inbox.full)
    assert fullness == [False] * 4 + [True] * 3 + [False] * 2
    assert room == [2]


async def test_a_failure_comes_after_what_was_delivered() -> None:
    inbox = Inbox(lambda: None)
    cause = ValueError("why")
    inbox.put(batch_of(1))
    inbox.fail(RegistrationFailed("first"), cause)
    inbox.fail(RegistrationFailed("second"), ValueError())
    assert await inbox.take() is not None
    for _ in range(2):
        with pytest.raises(RegistrationFailed, match="first") as raised:
            await inbox.take()
        assert raised.value.__cause__ is cause
    inbox.close()
    assert await inbox.take() is None


async def test_closing_drops_what_nobody_took() -> None:
    inbox = Inbox(lambda: None)
    inbox.put(batch_of(1))
    inbox.close()
    assert await inbox.take() is None


async def test_one_taker() -> None:
    inbox = Inbox(lambda: None)
    waiting = asyncio.create_task(inbox.take())
    await asyncio.sleep(0)
    with pytest.raises(MisuseError):
        await inbox.take()
    waiting.cancel()
    await asyncio.wait([waiting])
    inbox.put(batch_of(1))
    assert await inbox.take() is not None


def test_a_batch_reports_each_message_once() -> None:
    told = Told()
    batch = batch_of(5, first=serial.MODULUS - 2, told=told, skip=3)
    assert (len(batch), batch.sequence_number, batch.payloads()) == (5, serial.MODULUS - 2, [b"x"] * 5)
    batch.consumed(0)
    batch.consumed(2)
    batch.consumed(1)
    batch.consumed()
    batch.consumed(9)
    assert told.consumptions == [(serial.MODULUS - 2, serial.MODULUS - 1), (serial.MODULUS, serial.MODULUS + 2)]


def test_a_message_knows_its_number() -> None:
    told = Told()
    message = Message(b"abc", batch_of(5, first=serial.MODULUS - 2, told=told), 3)
    assert (message.sequence_number, message.incarnation, message.recovered, message.otr) == (1, 99, False, False)
    message.consumed()
    assert told.consumptions == [(serial.MODULUS - 2, serial.MODULUS + 1)]
    assert repr(message) == "<Message 1, 3 bytes>"


def test_acknowledging_oneself() -> None:
    """P-346..P-348: a message, a batch, and by a handle any number at any time; wire numbers will do."""
    told = Told()
    batch = batch_of(5, first=serial.MODULUS - 2, told=told)
    message = Message(b"abc", batch, 3)
    message.ack()
    batch.ack()
    handle = message.ack_handle()
    del message, batch
    handle.ack()
    handle.ack(serial.MODULUS - 1)
    handle.ack(0)
    handle.ack(serial.MODULUS + 100)
    top = serial.MODULUS
    assert told.acknowledged == [
        (top - 2, top + 1),
        (top - 2, top + 2),
        (top - 2, top + 1),
        (top - 2, top - 1),
        (top - 2, top),
        (top + 100, top + 100),
        (top - 2, top + 1),
    ]
