"""Delivery confirmations over real sockets: what a source hears of messages that a receiver lost for good."""

import pytest

from stablecast.config.option_kinds import Value
from stablecast.core.protocol.events import Confirmed, Reclaimed, UnrecoverableLoss
from tests.support.network import Events, Network, until

CONFIRMED: dict[str, Value] = {
    "ume_confirmed_delivery_notification": 1,
    "ume_retention_unique_confirmations": 1,
    "retransmit_retention_size_threshold": 1,
}
WITHOUT_RECOVERY: dict[str, Value] = {"use_otr": 0}


def numbers(events: list[Confirmed] | list[Reclaimed]) -> list[int]:
    return [number for event in events for number in range(event.first, event.last + 1)]


@pytest.mark.rows("P-307", "P-349")
async def test_messages_lost_for_good_are_not_confirmed(net: Network) -> None:
    """0 arrives. The stream loses 1 to 3, the store fetches them, the receiver gives them up."""
    at_source, at_receiver = Events(), Events()
    context = await net.context(session_id=4)
    source = await context.source("orders", stores=[await net.store()], options=CONFIRMED, on_event=at_source)
    receiver = context.receiver("orders", source=source.place, options=WITHOUT_RECOVERY, on_event=at_receiver)
    await until(lambda: any(one._machine.window.next == 0 for one in receiver._sessions.values()))
    await source.send(b"0")
    assert (await anext(receiver)).payload == b"0"
    assert source.stream is not None
    write, source.stream.write = source.stream.write, lambda block: None  # type: ignore[method-assign]
    await source.send_many([b"1", b"2", b"3"])
    source.flush()
    source.stream.write = write  # type: ignore[method-assign]
    await source.send_many([b"4", b"5", b"6"])
    source.flush()
    taken = [await anext(receiver) for _ in range(3)]
    assert [message.payload for message in taken] == [b"4", b"5", b"6"]
    assert [(event.first, event.last) for event in at_receiver.of(UnrecoverableLoss)] == [(1, 3)]
    taken[-1].consumed()
    await source.wait_stable_through(6)
    await until(lambda: 6 in numbers(at_source.of(Confirmed)))
    assert numbers(at_source.of(Confirmed)) == [0, 4, 5, 6]
    assert numbers(at_source.of(Reclaimed)) == [0]
