"""The host of a context gets another address: everything that named the last one follows."""

import errno
import logging

import attrs
import pytest

from stablecast.core.protocol.events import RegistrationComplete
from stablecast.runtime import own_address
from stablecast.runtime.own_address import OwnAddress
from stablecast.store import store as store_module
from tests.adapters.client.test_transport_sessions import KINDS, OPTIONS
from tests.support.machine import replace
from tests.support.network import LOCAL, Events, Network, until, unused_port

HERE, THERE = "127.0.0.2", "127.0.0.3"
WAYS = {"lbttcp": {}, **{kind: OPTIONS[kind] for kind in KINDS}}


@pytest.mark.parametrize("kind", WAYS)
async def test_a_source_goes_on_at_its_hosts_next_address(
    net: Network, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Its life, its numbers and its registration stay; the store and the receivers, old and new, follow."""
    store = await net.store()
    sending = await net.context(interface=HERE)
    source = await sending.source("orders", stores=[store], session_id=7, options=WAYS[kind])
    listening = await net.context()
    receiver = listening.receiver("orders", session_id=8)
    await (await source.send(b"one")).stable()
    assert (await anext(receiver)).payload == b"one"
    life, before = source.life, (sending.request_address, source.place)
    [joiner] = receiver._joiners.values()
    left: list[object] = []
    abandon = type(joiner).abandon

    def leave(one: object) -> None:
        left.append(one)
        abandon(one)

    monkeypatch.setattr(type(joiner), "abandon", leave)
    await sending._move(THERE)
    assert all(HERE in place for place in before)
    assert all(THERE in place for place in (sending.request_address, source.place))
    await (await source.send(b"two")).stable()
    assert (await anext(receiver)).payload == b"two"
    assert list(receiver._joiners) == [source.place]
    assert joiner in left, "nobody joins there again"
    later = await net.context()
    assert (await anext(later.receiver("orders", session_id=9))).payload == b"one"
    assert source.life == life


async def test_a_request_port_is_the_chosen_one_or_in_the_range_at_the_next_address(net: Network) -> None:
    context = await net.context(interface=HERE)
    await context._move(THERE)
    host, _, port = context.request_address.rpartition(":")
    low, high = context.config.ports
    assert (host, low <= int(port) <= high) == (THERE, True)
    chosen = unused_port()
    context.config = attrs.evolve(context.config, request_port=chosen)
    await context._move(HERE)
    assert context.request_address == f"{HERE}:{chosen}"
    assert (context.interface, context.template(None).reply_to) == (HERE, context.request_address)


@pytest.mark.parametrize("kind", WAYS)
async def test_a_receiver_goes_on_at_its_hosts_next_address(net: Network, kind: str) -> None:
    """It gets what was sent before and after, each once, and a store sends it what it missed."""
    store = await net.store()
    sending = await net.context()
    source = await sending.source("orders", stores=[store], session_id=7, options=WAYS[kind])
    events = Events()
    listening = await net.context(interface=HERE)
    receiver = listening.receiver("orders", session_id=8, on_event=events)
    await events.first(RegistrationComplete)
    await (await source.send(b"one")).stable()
    await listening._move(THERE)
    await (await source.send(b"two")).stable()
    assert [(await anext(receiver)).payload for _ in range(2)] == [b"one", b"two"]


async def test_a_member_of_a_group_goes_on_at_its_hosts_next_address(net: Network) -> None:
    """Each share has a request port of its own, at which the stores must reach it."""
    source = await (await net.context()).source("orders", stores=[await net.store()], session_id=7)
    listening = await net.context(interface=HERE)
    member = listening.receiver("orders", group="billing", shares=2)
    await until(lambda: member.shares == (0, 1))
    await (await source.send(b"one")).stable()
    assert (await anext(member)).payload == b"one"
    await listening._move(THERE)
    places = [share.place.request_address for share in member._open.values()]
    assert [place.partition(":")[0] for place in places] == [THERE] * 2
    for share, place in zip(member._open.values(), places, strict=True):
        [session] = share.sessions
        assert {one.request.reply_to for one in session._machine.enrollment.registrations.values()} == {place}
    await (await source.send(b"two")).stable()
    assert (await anext(member)).payload == b"two"
    await member.close()


async def moves(has: set[str], choice: str, *, silent: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where a context at `HERE` goes, at a host that has these addresses and whose rule chooses this one."""
    monkeypatch.setattr(own_address, "has_address", has.__contains__)
    went: list[str] = []

    async def move(found: str) -> None:
        went.append(found)

    own = OwnAddress(HERE, lambda: choice, move, lambda: silent)
    for _ in range(3):
        await own.look()
    return went


async def test_an_address_is_chosen_anew_only_when_it_is_gone_or_useless(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An address that the host has stays while a relay answers; one sentence names what happened."""
    assert await moves({HERE, THERE}, THERE, silent=False, monkeypatch=monkeypatch) == []
    assert await moves({HERE, THERE}, THERE, silent=True, monkeypatch=monkeypatch) == [THERE]
    assert await moves({HERE}, LOCAL, silent=True, monkeypatch=monkeypatch) == []
    caplog.clear()
    assert await moves({THERE}, THERE, silent=False, monkeypatch=monkeypatch) == [THERE]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    caplog.clear()
    # The application named this address, so the context waits for it, and says so once.
    assert await moves({THERE}, HERE, silent=False, monkeypatch=monkeypatch) == []
    assert len(caplog.records) == 1


@pytest.mark.parametrize("where", ["devices", "choose", "move"])
async def test_a_lack_of_descriptors_does_not_end_the_look_at_addresses(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It passes, and the host may have another address then."""
    scarce, went = [where], list[str]()

    def lacks(what: str) -> None:
        if what in scarce:
            raise OSError(errno.EMFILE, "Too many open files")

    def devices() -> list[tuple[str, str, int]]:
        lacks("devices")
        return [("eth0", THERE, 1)]

    def choose() -> str:
        lacks("choose")
        return THERE

    async def move(found: str) -> None:
        lacks("move")
        went.append(found)

    replace(monkeypatch, "network", devices=devices)
    own = OwnAddress("192.0.2.1", choose, move, lambda: False)
    await own.look()
    assert (own.address, went) == ("192.0.2.1", [])
    scarce.clear()
    await own.look()
    assert (own.address, went) == (THERE, [THERE])


async def test_a_store_at_all_addresses_follows_its_host(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """It connects to its clients from the next address; before, no source hears its answers."""
    now = ["192.0.2.1"]
    monkeypatch.setattr(store_module, "announced", lambda _: now[0])
    address = await net.store(listen="0.0.0.0:0")
    store = net.stores["store"]
    context = await net.context()
    place = f"{LOCAL}:{address.rpartition(':')[2]}"
    source = await context.source("orders", stores=[place], session_id=7, wait=False)
    now[0] = HERE
    await store._own.look()
    assert store.address.startswith(HERE)
    await (await source.send(b"one")).stable()
