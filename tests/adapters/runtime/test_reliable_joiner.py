"""The callbacks of a joined LBT-RM or LBT-RU session."""

import asyncio
from typing import Any
from unittest import mock

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.inputs import Lost
from stablecast.runtime.ports import ScarcityError
from stablecast.runtime.reliable_receivers import Joined, ReliableReceivers
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.runtime.reliable_stream import ReliableJoiner
from stablecast.runtime.source_strings import Where
from stablecast.runtime.stream import Item
from stablecast.transports import codec
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.settings import ReceiverSettings, SourceSettings
from tests.support.network import until
from tests.transports.reliable.network import block

HOST = "127.0.0.1"
MS = MILLISECOND
SESSION_ID = 5
DEAF = ReceiverSettings(send_naks=False, generation_ns=20 * MS, loss_check_ns=5 * MS, connect_ns=5 * MS)


class Told:
    def __init__(self) -> None:
        self.items: list[tuple[int, Item]] = []
        self.lost: list[Lost] = []
        self.ended: list[bool] = []

    def on_items(self, session_id: int, items: list[Item]) -> None:
        self.items += ((session_id, item) for item in items)


async def test_items_losses_and_the_end_are_reported() -> None:
    """Losses are told by life and wire number; after the end nothing is told."""
    told = Told()
    sources, receivers = ReliableSources(LbtruSources(), HOST), ReliableReceivers(HOST)
    session = sources.open(settings=SourceSettings(linger_ns=0), session_id=SESSION_ID)
    joiner = ReliableJoiner(receivers, sources.where(session), DEAF, told.on_items, told.lost.append, told.ended.append)
    await until(lambda: sources.statistics(session)["num_clients"])
    joiner.pause()
    joiner.resume()
    for number in (0, 3):
        sources.offer(session, block(7, number, 1))
        sources.flush(session)
    await until(lambda: told.lost)
    assert told.lost == [Lost(codec.join(SESSION_ID, 7), 1, 2)]
    assert [session_id for session_id, _ in told.items] == [SESSION_ID] * 2
    sources.retire(session)
    await until(lambda: told.ended)
    assert told.ended == [True]
    await joiner.close()
    sources.close()
    receivers.close()


async def test_a_joiner_that_left_gets_no_callback() -> None:
    told = Told()
    sources, receivers = ReliableSources(LbtruSources(), HOST), ReliableReceivers(HOST)
    session = sources.open(session_id=SESSION_ID)

    def leave(session_id: int, items: list[Item]) -> None:
        told.on_items(session_id, items)
        joiner.abandon()

    at_once = attrs.evolve(DEAF, generation_ns=0)  # what came and what is lost are told together
    joiner = ReliableJoiner(receivers, sources.where(session), at_once, leave, told.lost.append, told.ended.append)
    await until(lambda: sources.statistics(session)["num_clients"])
    for number in (0, 3):
        sources.offer(session, block(7, number, 1))
    sources.flush(session)
    await until(lambda: told.items)
    joiner.abandon()
    sources.close()
    receivers.close()
    assert (len(told.lost), told.ended) == (0, [])


async def test_a_patient_joiner_joins_again_until_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is that of a connection; paused meanwhile, it goes on paused. A lack of descriptors passes."""
    monkeypatch.setattr("stablecast.runtime.reliable_stream.RETRY_SECONDS", 0.01)
    refusals: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: refusals.append(report["exception"]))
    told = Told()
    sources, receivers = ReliableSources(LbtruSources(), HOST), ReliableReceivers(HOST)
    session = sources.open(settings=SourceSettings(linger_ns=0), session_id=SESSION_ID)
    callbacks = (told.on_items, told.lost.append, told.ended.append)
    joiner = ReliableJoiner(receivers, sources.where(session), DEAF, *callbacks, patient=True)
    await until(lambda: sources.statistics(session)["num_clients"])
    sources.retire(session)
    await until(lambda: told.ended)
    assert told.ended == [False]
    join = receivers.join

    def scarce(*given: Any) -> Joined:
        if len(refusals) < 2:
            raise ScarcityError("no descriptor is free")
        return join(*given)

    monkeypatch.setattr(receivers, "join", scarce)
    joiner.pause()
    await until(receivers.all_statistics)
    assert [type(error) for error in refusals] == [ScarcityError] * 2
    joiner.resume()
    joiner.pause()
    joiner.resume()
    await joiner.close()
    assert receivers.all_statistics() == {}
    joiner.pause()
    joiner.resume()
    sources.close()
    receivers.close()


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_joiner_that_was_paused_without_a_session_joins_paused(
    monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    joined = mock.Mock()
    receivers: Any = mock.Mock(**{"join.return_value": joined})
    joiner = ReliableJoiner(receivers, Where(HOST, 1, SESSION_ID), DEAF, mock.Mock(), mock.Mock(), mock.Mock(), True)
    joiner.claim(7)
    joiner._perform(fx.SessionEnded("silence"))
    assert joined.mock_calls == [mock.call.claim(7), mock.call.close()]
    joined.reset_mock()
    joiner.pause()
    if resumed:
        joiner.resume()
    joiner._join_again()
    assert joined.mock_calls == [mock.call.claim(7), *[mock.call.pause()] * (not resumed)]
    joiner.abandon()
    assert joiner._again is not None
    assert joiner._again.cancelled()
