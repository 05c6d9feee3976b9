"""Clients that leave for good, and sources that learn that a receiver is gone."""

import asyncio

import pytest

from stablecast.client import Closed, Context, NotRegistered
from stablecast.client.request_inputs import RequestInputs
from stablecast.core.protocol.events import (
    Confirmed,
    DeregistrationComplete,
    DeregistrationSuccess,
    LivenessFlag,
    ReceiverGone,
    RegistrationComplete,
    StoreMoved,
    Wakeup,
)
from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import ReceiverAlive
from stablecast.runtime.request_port import Peer
from tests.support.network import Events, Network, until
from tests.support.traffic import send, source_of, take


@pytest.mark.rows("P-584", "P-664", "P-665")
async def test_a_source_deregisters(net: Network) -> None:
    """Its stores forget it and what it sent; then it is of no more use."""
    events = Events()
    _, source = await source_of(net, "a", "b", "c", on_event=events)
    await send(source, 5)
    await source.deregister()
    assert len(events.of(DeregistrationSuccess)) == 3
    assert len(events.of(DeregistrationComplete)) == 1
    await until(lambda: not any(store.statistics()["clients"] for store in net.stores.values()))
    with pytest.raises(Closed, match="source 'orders' was deregistered"):
        source.try_send(b"x")
    with pytest.raises(Closed, match="was deregistered"):
        await source.deregister()


async def test_closing_ends_the_wait_for_a_store_that_is_away(net: Network) -> None:
    _, source = await source_of(net, "a")
    await net.stop("a")
    leaving = asyncio.create_task(source.deregister())
    await asyncio.sleep(0)
    with pytest.raises(NotRegistered):
        source.try_send(b"what nobody would keep")
    await source.close()
    with pytest.raises(Closed):
        await leaving


@pytest.mark.rows("P-584", "P-588", "P-670", "P-671")
async def test_a_receiver_deregisters(net: Network) -> None:
    """Messages are delivered still, and nothing is acknowledged."""
    events = Events()
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=2)).receiver("orders", on_event=events)
    await send(source, 5)
    assert await take(receiver, 5) == list(range(5))
    await receiver.deregister()
    assert len(events.of(DeregistrationComplete)) == 1
    assert net.stores["a"].statistics()["clients"] == 1
    await send(source, 1)
    assert await take(receiver, 1) == [5]
    await receiver.close()
    again = (await net.context(session_id=2)).receiver("orders")
    assert await take(again, 6) == list(range(6))


async def test_what_a_receiver_consumed_before_it_deregisters_is_confirmed(net: Network) -> None:
    """Its interval of acknowledgements is long, and nothing is confirmed after it."""
    events = Events()
    _, source = await source_of(net, "a", on_event=events, options={"ume_confirmed_delivery_notification": 1})
    patient = {"ume_ack_batching_interval": 3_600_000}
    receiver = (await net.context(session_id=2)).receiver("orders", options=patient)
    await send(source, 5)
    await take(receiver, 5)
    await receiver.deregister()
    assert (await events.first(Confirmed)).last == 4


async def test_a_receiver_that_leaves_while_it_deregisters_waits_no_more(net: Network) -> None:
    _, source = await source_of(net, "a")
    receiver = (await net.context(session_id=2)).receiver("orders")
    await send(source, 1)
    await take(receiver, 1)
    await net.stop("a")
    leaving = asyncio.create_task(receiver.deregister())
    await asyncio.sleep(0)
    await receiver.close()
    await leaving


@pytest.mark.rows("P-338")
async def test_a_connection_that_ends_takes_its_receivers_along(net: Network) -> None:
    """The source learns that a receiver which kept in touch is gone."""
    events = Events()
    context, source = await source_of(net, "a", on_event=events, options={"ume_source_liveness_timeout": 60_000})
    life = source.config.incarnation
    peer = Peer(lambda items, peer: None, lambda peer: None)
    peer.alive(77)
    source.receive(Arrived(ReceiverAlive(life, 5, 2, 77)))
    RequestInputs(context._sources, context.lives, context.oddities, context.reads, context.pool.routing).on_left(peer)
    gone = await events.first(ReceiverGone)
    assert (gone.receiver_reg_id, gone.session_id, gone.flags) == (5, 2, LivenessFlag.END)


@pytest.mark.rows("P-203", "P-207", "P-680")
async def test_a_store_is_found_by_its_name_and_may_move(net: Network) -> None:
    events = Events()
    first = await net.store("a")
    context = await net.context(session_id=1, store_names={"alpha": first})
    source = await context.source("orders", stores=["alpha"], on_event=events)
    await send(source, 3)
    await net.stop("a")
    second = await net.store("a")
    assert second != first
    context.locate("alpha", second)
    assert (await events.first(StoreMoved)) == StoreMoved("alpha", first, second)
    await source.registered()
    await send(source, 1)


async def test_a_source_without_credit_is_notified_when_there_is_some(net: Network) -> None:
    """T13: exactly once for one refusal."""
    events = Events()
    _, source = await source_of(net, "a", on_event=events, options={"ume_flight_size": 5})
    for number in range(5):
        assert source.try_send(b"x") == number
    assert source.try_send(b"x") is None
    await events.first(Wakeup)
    assert source.try_send(b"x") == 5
    assert len(events.of(Wakeup)) == 1
    assert len(events.of(RegistrationComplete)) == 1


@pytest.mark.rows("P-338")
async def test_a_receiver_that_kept_in_touch_and_ends_is_gone_at_once(net: Network) -> None:
    """Its connection says so, long before the timeout."""
    events = Events()
    _, source = await source_of(net, "a", on_event=events, options={"ume_source_liveness_timeout": 3_600_000})
    async with Context(resolver=[net.relays[0].address], session_id=1) as context:
        context.receiver("orders", options={"ume_receiver_liveness_interval": 10})
        await until(lambda: source._machine.sending.liveness.watched)
    await events.first(ReceiverGone)
