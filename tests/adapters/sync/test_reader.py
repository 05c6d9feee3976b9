"""The task that reads for threads that block: what comes too late is kept, and a loop that was left begins again."""

import asyncio
import contextlib
from typing import Any
from unittest import mock

import pytest

from stablecast import client
from stablecast.sync.reader import MessageLoop, Reader


def reader() -> Reader[Any]:
    return Reader(mock.MagicMock(spec=client.Receiver), mock.Mock())


def loop_of(one: Reader[Any], thread: int) -> MessageLoop:
    loop = MessageLoop(one)
    loop.thread = thread
    return loop


@pytest.mark.parametrize("outcome", ["message", "error", "nothing"])
async def test_a_message_that_comes_as_the_time_runs_out_is_kept_for_the_next_call(outcome: str) -> None:
    one, message = reader(), mock.Mock()
    one._reading = mock.Mock()
    call = asyncio.create_task(one._next(None, None))
    wish, _ = await one._wishes.get()
    if outcome == "message":
        wish.set_result(message)
    elif outcome == "error":
        wish.set_exception(client.EndpointFailed("planted"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert one._kept is (message if outcome == "message" else None)


async def test_what_was_kept_comes_first() -> None:
    one, kept, later = reader(), mock.Mock(), mock.Mock()
    one._inner.__aiter__.return_value = [later]
    one._kept = kept
    assert [await one._next(None, None) for _ in range(3)] == [kept, later, None]
    assert one._reading is not None
    one._reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await one._reading


@pytest.mark.parametrize(
    ("thread", "same", "left"), [(1, True, False), (1, False, True), (2, False, False), (None, False, False)]
)
def test_a_loop_is_left_when_another_of_its_thread_asks(thread: int | None, same: bool, left: bool) -> None:
    """`next` and other threads share the messages with it."""
    one = reader()
    holder = loop_of(one, 1)
    asking = holder if same else None if thread is None else loop_of(one, thread)
    assert not one._left(asking)
    one._holder = mock.Mock(return_value=holder), 1
    assert one._left(asking) is left
    one._holder = mock.Mock(return_value=None), 1
    assert one._left(asking)
