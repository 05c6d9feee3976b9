"""One holder of a RegID: what happens when a context, or two of them, make two sources of one topic."""

import asyncio

import pytest

from stablecast.client import Closed, NotRegistered, RegistrationFailed, Source, context
from stablecast.config.option_kinds import Value
from stablecast.core.errors import MisuseError
from stablecast.core.protocol.events import (
    Event,
    Overtaken,
    RegistrationComplete,
    RegistrationError,
    Stable,
    StableFlag,
    StoreUnresponsive,
)
from tests.support.network import Events, Network, until
from tests.support.traffic import send, take

QUICK: dict[str, Value] = {"ume_store_activity_timeout": 600, "ume_registration_interval": 200}


def stable(events: list[Event]) -> set[int]:
    """The numbers that a source called stable."""
    found = [event for event in events if isinstance(event, Stable) and event.flags & StableFlag.STABLE]
    return {number for event in found for number in range(event.first, event.last + 1)}


@pytest.mark.rows("P-242")
async def test_a_second_source_with_the_same_session_is_refused_while_the_first_lives(net: Network) -> None:
    """Per request, or per task; one after the other is fine."""
    store = await net.store()
    here = await net.context(session_id=7)
    first = await here.source("orders", stores=[store])
    text = "this context has a source of 'orders' with session id 7: use that one, or give another session id"
    with pytest.raises(MisuseError, match=text):
        await here.source("orders", stores=[store])
    await send(first, 5)
    other = await here.source("orders", stores=[store], session_id=8)
    trades = await here.source("trades", stores=[store])
    assert (other.next_number, trades.next_number) == (0, 0)
    await first.close()
    second = await here.source("orders", stores=[store])
    assert second.next_number == 5
    await second.deregister()
    await here.source("orders", stores=[store])


async def test_one_of_two_sources_made_together_is_refused(net: Network) -> None:
    store = await net.store()
    here = await net.context(session_id=7)
    made = await asyncio.gather(*(here.source("orders", stores=[store]) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in made] == [Source, MisuseError, MisuseError]
    assert len(here._sources) == 1


@pytest.mark.rows("P-017", "P-019")
async def test_a_reg_id_belongs_to_one_source_of_a_context(net: Network) -> None:
    """At one store, whatever the topic; sources without stores have none."""
    store = await net.store()
    here = await net.context()
    await here.source("orders", stores=[f"{store}:1000"])
    for topic in ("orders", "trades"):
        with pytest.raises(MisuseError, match=f"'orders' with RegID 1000 at store {store}: use that one, or give"):
            await here.source(topic, stores=[f"{store}:1000"])
    await here.source("orders", stores=[f"{store}:1001"])
    for _ in range(2):
        await here.source("orders", stores=[store])
        await here.source("orders", session_id=4)


async def test_a_new_source_asks_none_that_claims_something_else(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand sources of a context would be asked fifty million times."""
    asked = list[Source]()
    monkeypatch.setattr(Source, "over", property(asked.append))
    store = await net.store()
    here = await net.context()
    for number in range(8):
        await here.source("orders", stores=[store], session_id=number + 1, wait=False)
        await here.source("trades", stores=[f"{store}:{1_000 + number}"], wait=False)
    assert not asked


async def test_a_source_that_failed_or_was_overtaken_blocks_no_other(net: Network) -> None:
    here = await net.context(session_id=7)
    with pytest.raises(RegistrationFailed):
        await here.source("orders", stores=["127.0.0.1:1"], within=0)
    source = await here.source("orders", stores=[await net.store()])
    source._on_notify(Overtaken())
    await here.source("orders", stores=[net.stores["store"].address])


@pytest.mark.rows("P-019")
async def test_a_life_that_is_replaced_in_its_context_ends(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """7.6: what the stores and the machines do where a client does not refuse the second source.

    The later life holds the RegID at every store. The earlier one is not let in again: it hears `Overtaken`. Nothing is
    called stable by both, and what either called stable is delivered.
    """
    monkeypatch.setattr(context, "check_claims", lambda *_: None)
    stores = [await net.store(name) for name in ("a", "b", "c")]
    told, later = Events(), Events()
    here = await net.context(session_id=7)
    receiver = (await net.context(session_id=9)).receiver("orders")
    first = await here.source("orders", stores=stores, options=QUICK, on_event=told)
    await send(first, 10)
    assert await take(receiver, 10) == list(range(10))
    second = await here.source("orders", stores=stores, options=QUICK, on_event=later)
    assert second.next_number == 10

    async def go_on() -> None:
        while True:
            await first.send(b"too late")
            await asyncio.sleep(0.02)

    with pytest.raises((Closed, NotRegistered)):
        await go_on()
    await told.first(Overtaken)
    await send(second, 10)
    assert not stable(told) & stable(later)
    assert stable(told) >= set(range(10))
    assert stable(later) == set(range(10, 20))
    assert len(later.of(RegistrationComplete)) == 1
    await first.close()
    await until(lambda: second.stable_through == 19)


async def test_a_session_id_that_another_context_uses_is_named_with_the_remedy(net: Network) -> None:
    """T6: no word of addresses or of stores that do not answer: they answered."""
    events = Events()
    stores = [await net.store(name) for name in ("a", "b", "c")]
    one, two = await net.context(session_id=7), await net.context(session_id=7)
    await one.source("orders", stores=stores)
    with pytest.raises(RegistrationFailed) as raised:
        await two.source("orders", stores=stores, within=1.2, on_event=events)
    text = str(raised.value)
    assert text.startswith("source 'orders' is not registered with enough stores after 1.2 s: Store ")
    for name in ("a", "b", "c"):
        store = net.stores[name]
        [reg_id] = store._machine.clients.records
        assert f"Store {store.address} refused RegID {reg_id}: another context holds it for " in text
    assert text.count(" s more. Use another session id, or wait.") == 3
    assert "start the stores" not in text
    assert events.of(RegistrationError)
    assert events.of(StoreUnresponsive) == []
