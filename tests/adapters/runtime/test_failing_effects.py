"""A failing effect in each driver: no other effect is lost, and the machine learns of it or the endpoint ends.

An endpoint that ends says why. The fault is planted in what performs the effect; the rest is the shipped driver on
real sockets.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Closed
from stablecast.client.errors import EndpointFailed
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import RegistrationComplete
from stablecast.resolver import Listeners, Resolver
from stablecast.resolver import resolver as resolver_module
from stablecast.resolver.combined_resolver import Combined
from stablecast.resolver.srs.daemon import SrsDaemon
from stablecast.runtime import multicast
from stablecast.runtime.connection_pool import PeerLink
from stablecast.runtime.multicast import MulticastSettings
from stablecast.runtime.ports import PortError
from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.runtime.reliable_stream import ReliableStream
from stablecast.runtime.stream import StreamServer
from stablecast.store.journal import JournalError
from stablecast.transports.reliable.lbtrm import LbtrmSources
from stablecast.transports.resolution.records import SourceRecord
from tests.adapters.resolver.srs.services import Place, place
from tests.support.network import LOCAL, Events, Network, network, until
from tests.transports.reliable.network import block


class PlantedError(RuntimeError):
    """The exception of the planted fault, which no program expects."""


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Network]:
    async with network(tmp_path) as started:
        yield started


@pytest.fixture
async def reports() -> list[dict[str, Any]]:
    """The arguments of the loop's exception handler."""
    found: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
    return found


def failing(real: Callable[..., Any], when: Callable[..., object]) -> Callable[..., Any]:
    """`real`, which raises when its arguments are those."""

    def act(*arguments: Any) -> Any:
        if when(*arguments):
            raise PlantedError("planted")
        return real(*arguments)

    return act


def once(count: int = 1) -> Callable[..., bool]:
    """True for the first calls."""
    left = [count]

    def when(*_: object) -> bool:
        left[0] -= 1
        return left[0] >= 0

    return when


async def test_a_connection_that_raises_is_a_reset_and_the_source_goes_on(
    net: Network, monkeypatch: pytest.MonkeyPatch, reports: list[dict[str, Any]]
) -> None:
    """Source, receiver and store send by the pool: the machine is fed `Reset`, and says again what matters."""
    stores = [await net.store(name) for name in ("a", "b", "c")]
    options = {"ume_message_stability_timeout": 100}
    source = await (await net.context()).source("orders", stores=stores, options=options)
    await (await source.send(b"one")).stable()
    monkeypatch.setattr(PeerLink, "write", failing(PeerLink.write, once(4)))
    receiver = (await net.context()).receiver("orders", source=source.place, session_id=5)
    await (await source.send(b"two")).stable()
    assert [(await anext(receiver)).payload for _ in range(2)] == [b"one", b"two"]
    await until(lambda: len(reports) == 4)
    assert {str(report["exception"]) for report in reports} == {"planted"}


async def test_a_joiner_whose_connection_raises_costs_the_others_nothing(
    net: Network, monkeypatch: pytest.MonkeyPatch, reports: list[dict[str, Any]]
) -> None:
    source = await (await net.context()).source("orders", stores=[await net.store()])
    receivers = [(await net.context()).receiver("orders", source=source.place, session_id=n) for n in (5, 6)]
    await until(lambda: all(receiver._sessions for receiver in receivers))
    stream = source.stream
    assert isinstance(stream, StreamServer)
    assert stream.subscribers[0].transport is not None

    class Raising:
        """A transport that fails when it is written to."""

        def __init__(self, real: asyncio.Transport) -> None:
            self.real = real

        def writelines(self, _: object) -> None:
            raise PlantedError("planted")

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    stream.subscribers[0].transport = Raising(stream.subscribers[0].transport)  # type: ignore[assignment]
    await (await source.send(b"one")).stable()
    assert [(await anext(receiver)).payload for receiver in receivers] == [b"one", b"one"], "it joins again"
    assert stream.dropped == 1
    assert reports[0]["message"].startswith("a joiner is dropped")


async def test_a_source_that_cannot_perform_an_effect_ends_with_the_reason(
    net: Network, monkeypatch: pytest.MonkeyPatch, reports: list[dict[str, Any]]
) -> None:
    source = await (await net.context()).source("orders", stores=[await net.store()], options={"ume_flight_size": 1})
    performed: list[object] = []
    perform = source._driver._perform

    def act(effect: fx.SourceEffect) -> None:
        performed.append(type(effect))
        if isinstance(effect, fx.Notify):
            raise PlantedError("planted")
        perform(effect)

    source._driver._perform = act
    source.try_send(b"one")
    waiting = [asyncio.ensure_future(act) for act in (source.send(b"two"), source.wait_stable(0))]
    why = await source.until_failed()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, Closed) and "planted" in str(outcome) for outcome in outcomes)
    assert str(why).startswith("source 'orders' ended: the effect 'Notify' failed: PlantedError: planted")
    assert performed.index(fx.Notify) < len(performed) - 1, "the effects behind it were performed"
    assert reports[0]["message"] == str(why)


@pytest.mark.parametrize("later", [False, True])
async def test_a_source_whose_session_refuses_its_messages_ends_with_the_reason(
    net: Network, reports: list[dict[str, Any]], later: bool
) -> None:
    """At once, or when it is let go on after the rate limit."""
    options: dict[str, Any] = {"transport": "lbtru", "transport_lbtru_data_rate_limit": 50_000}
    source = await (await net.context()).source("orders", stores=[await net.store()], options=options)
    stream = source.stream
    assert isinstance(stream, ReliableStream)
    await (await source.send(b"one")).stable()
    await until(lambda: not source._out.held)
    if later:
        source.try_send(bytes(5000))
        for number in range(3):
            stream.write(block(1, number, 1))
        assert stream._waiting
    stream._sources.offer = failing(stream._sources.offer, once())  # type: ignore[method-assign]
    if not later:
        source.try_send(b"two")
    why = await source.until_failed()
    assert str(why).startswith("source 'orders' ended: to ")
    assert "PlantedError: planted" in str(why)
    with pytest.raises(Closed, match="planted"):
        source.try_send(b"three")


async def test_a_receiver_that_cannot_perform_an_effect_ends_with_the_reason(
    net: Network, monkeypatch: pytest.MonkeyPatch, reports: list[dict[str, Any]]
) -> None:
    source = await (await net.context()).source("orders", stores=[await net.store()])
    events = Events()
    context = await net.context()
    receiver = context.receiver("orders", source=source.place, session_id=5, on_event=events)
    await events.first(RegistrationComplete)
    await (await source.send(b"one")).stable()
    assert (await anext(receiver)).payload == b"one"
    (session,) = receiver._sessions.values()
    session._give = failing(session._give, once())
    await (await source.send(b"two")).stable()
    with pytest.raises(EndpointFailed, match=r"receiver 'orders' ended: .* failed: PlantedError: planted; make"):
        await anext(receiver)
    await receiver.close()
    again = context.receiver("orders", source=source.place, session_id=5)
    assert b"two" in [(await anext(again)).payload for _ in range(2)], "it was not acknowledged, so it comes again"
    assert len(reports) == 1


async def test_a_store_that_cannot_perform_an_effect_fails_and_acknowledges_nothing(
    net: Network, reports: list[dict[str, Any]]
) -> None:
    address = await net.store()
    store = net.stores.pop("store")
    source = await (await net.context()).source("orders", stores=[address])
    await (await source.send(b"one")).stable()
    store._messages.persist = failing(store._messages.persist, once())  # type: ignore[method-assign]
    sent = await source.send(b"two")
    failure = await store.failed
    assert "the effect 'PersistMessages' failed: PlantedError: planted" in str(failure)
    assert source.stable_through == 0
    with pytest.raises(JournalError, match="planted"):
        await store.stop()
    assert sent.number == 1
    assert "serves no more" in reports[0]["message"]


async def test_a_session_of_reliable_datagrams_loses_no_effect(reports: list[dict[str, Any]]) -> None:
    """A datagram that was not sent is one that was lost: receivers ask for it."""
    sources = ReliableSources(LbtrmSources(), LOCAL)
    sessions = [sources.open("239.192.7.9:14499") for _ in range(2)]
    saying = sources._sessions[sessions[0]].saying
    saying.send = failing(saying.send, once())  # type: ignore[method-assign]
    try:
        for session in sessions:
            sources.offer(session, block(7, 0, 1))
            sources.flush(session)
        sources.offer(sessions[0], block(7, 1, 1))
        sources.flush(sessions[0])
        assert [sources.statistics(session)["msgs_sent"] for session in sessions] == [2, 1]
        assert len(reports) == 1
    finally:
        sources.close()


async def test_a_resolver_whose_listener_raises_reports_the_source_again(reports: list[dict[str, Any]]) -> None:
    found: list[str] = []
    combined = Combined(failing(lambda topic, _: found.append(topic), once()))
    record = SourceRecord("1.2.3.4:5", 1, 2)
    with pytest.raises(PlantedError):
        combined.found("orders", record)
    combined.found("orders", record)
    combined.found("orders", record)
    assert found == ["orders"]
    await combined.close()


async def test_a_group_that_cannot_be_joined_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver_module, "JOIN_SECONDS", 0.01)
    real, tries = multicast.hearing, [0]

    def hearing(*arguments: Any) -> Any:
        tries[0] += 1
        if tries[0] < 3:
            raise PortError("cannot join the group: no buffer space")
        return real(*arguments)

    monkeypatch.setattr(multicast, "hearing", hearing)
    remarks: list[str] = []
    listeners = Listeners(lambda *_: None, remark=lambda text, _: remarks.append(text))
    resolver = await Resolver.meet(MulticastSettings(group="239.192.7.8", interface=LOCAL), listeners)
    try:
        resolver.add_receiver("orders")
        await until(lambda: resolver._member is not None)
        assert tries == [3]
        assert len([text for text in remarks if "trying again" in text]) == 2
    finally:
        await resolver.close()


@pytest.fixture
async def here() -> AsyncIterator[Place]:
    async with place() as started:
        yield started


async def test_a_service_that_cannot_write_breaks_that_connection_and_the_client_comes_back(
    here: Place, reports: list[dict[str, Any]]
) -> None:
    service = await here.service()
    service._write = failing(service._write, once(2))  # type: ignore[method-assign]
    left, right = await here.context(service.address), await here.context(service.address, instance=b"neighbor")
    left.announce("orders")
    right.resolver.add_receiver("orders")
    assert (await right.found.get())[0] == "orders"
    assert isinstance(service, SrsDaemon)
    assert len(reports) == 2


async def test_a_context_that_cannot_write_to_its_service_connects_again(
    here: Place, reports: list[dict[str, Any]]
) -> None:
    service = await here.service()
    left, right = await here.context(service.address), await here.context(service.address, instance=b"neighbor")
    for party in (left, right):
        channels = party.resolver._channels
        channels.write = failing(channels.write, once())  # type: ignore[method-assign]
    left.announce("orders")
    right.resolver.add_receiver("orders")
    assert (await right.found.get())[0] == "orders"
    assert len(reports) == 2
