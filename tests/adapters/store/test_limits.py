"""Limits keep newcomers out, and never those who are in."""

from contextlib import AsyncExitStack
from pathlib import Path
from unittest.mock import Mock

import pytest

from stablecast.client import Context
from stablecast.config.plan import StoreLimits
from stablecast.core.protocol.events import RegistrationComplete, RegistrationError
from stablecast.core.protocol.messages import Register, Role
from stablecast.store import limits as admitting
from tests.adapters.store.test_store import serving, until
from tests.support.machine import replace
from tests.support.network import Events


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (StoreLimits(sources=1), "there is 1 source already, those that are away included: evict those"),
        (StoreLimits(clients=1), "there is 1 client already, those that are away included: evict those"),
        (StoreLimits(disk_bytes=300), "bytes, and 300 are allowed"),
    ],
)
async def test_a_newcomer_is_refused_and_who_is_in_may_return(limits: StoreLimits, why: str, tmp_path: Path) -> None:
    said: list[str] = []
    log = lambda *words: said.append(words[3])  # noqa: E731
    async with serving(tmp_path, limits=limits, log=log) as store:
        async with Context(session_id=1) as context:
            await context.source("first", stores=[store.address])
        async with Context(session_id=2) as context:
            events = Events()
            await context.source("second", stores=[store.address], on_event=events, wait=False)
            await until(lambda: events.of(RegistrationError))
            assert not events.of(RegistrationComplete)
        async with Context(session_id=1) as context:
            await context.source("first", stores=[store.address])
        assert store.oddities["over-limit"] >= 1
        assert any(text.startswith("127.0.0.1:") and why in text for text in said)


@pytest.mark.parametrize(("limits", "what"), [(StoreLimits(sources=4), "sources"), (StoreLimits(clients=4), "clients")])
async def test_one_host_leaves_places_to_the_others(limits: StoreLimits, what: str, tmp_path: Path) -> None:
    """State may last for ever, so a stranger who registers without end must not keep all others out."""
    said: list[str] = []
    log = lambda *words: said.append(words[3])  # noqa: E731
    async with serving(tmp_path, limits=limits, log=log) as store, AsyncExitStack() as stack:
        for number in range(3):
            crowd = await stack.enter_async_context(Context(session_id=1 + number))
            await crowd.source(f"crowd-{number}", stores=[store.address])
        crowd = await stack.enter_async_context(Context(session_id=9))
        events = Events()
        await crowd.source("crowd", stores=[store.address], on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
        assert any(f"its host has 3 of 4 {what} already" in text for text in said)
        other = await stack.enter_async_context(Context(interface="127.0.0.2", session_id=10))
        await other.source("other", stores=[store.address])


class Crowd:
    """A store of which only the clients are there, and what a newcomer of a host is told."""

    def __init__(self, limits: StoreLimits, patch: pytest.MonkeyPatch, descriptors: int = 100) -> None:
        self.now = 0.0
        self._limits, self._hosts = limits, admitting.HostCounts()
        self._there: list[tuple[str, Role]] = []
        replace(patch, "clock", monotonic=lambda: self.now)
        patch.setattr(admitting, "descriptors_for_streams", lambda: descriptors)

    def have(self, host: str, role: Role, count: int) -> None:
        self._there += [(host, role)] * count

    def refused(self, host: str, role: Role) -> str:
        """Why a newcomer gets no place; empty if it gets one."""
        request = Register(role, 0, 0, 0, 1, 0, "orders", 1, f"{host}:1", "", 0, 0)
        store = Mock()
        store.knows.return_value = False
        clients = [Mock(role=one, reply_to=f"{host}:{port}") for port, (host, one) in enumerate(self._there)]
        store.status.clients = {port: Mock(client=one) for port, one in enumerate(clients)}
        store.status.repositories = [one for one in self._there if one[1] is Role.SOURCE]
        over = admitting.refusal(request, store, self._limits, 0, False, self._hosts)
        return "" if over is None else over.text


def test_newcomers_of_one_host_count_before_its_clients_are_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one host would take the places of all others within a second."""
    crowd = Crowd(StoreLimits(clients=8), monkeypatch)
    crowd.have("192.0.2.1", Role.RECEIVER, 5)
    crowd.have("192.0.2.2", Role.RECEIVER, 1)
    assert crowd.refused("192.0.2.1", Role.RECEIVER) == ""
    crowd.have("192.0.2.1", Role.RECEIVER, 1)
    assert crowd.refused("192.0.2.1", Role.RECEIVER).startswith("its host has 6 of 8 clients")
    assert crowd.refused("192.0.2.2", Role.RECEIVER) == ""


def test_a_newcomer_that_got_no_place_counts_no_more_when_clients_are_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = Crowd(StoreLimits(clients=8), monkeypatch)
    crowd.have("192.0.2.1", Role.RECEIVER, 5)
    crowd.have("192.0.2.2", Role.RECEIVER, 1)
    assert crowd.refused("192.0.2.1", Role.RECEIVER) == ""  # The machine refuses it: it has no place.
    assert crowd.refused("192.0.2.1", Role.RECEIVER)
    crowd.now += admitting.COUNT_SECONDS
    assert crowd.refused("192.0.2.1", Role.RECEIVER) == ""


def test_a_newcomer_that_is_refused_as_a_source_counts_as_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks again twice a second, so its host would soon seem to have all places."""
    crowd = Crowd(StoreLimits(clients=8, sources=4), monkeypatch)
    crowd.have("192.0.2.1", Role.SOURCE, 3)
    crowd.have("192.0.2.1", Role.RECEIVER, 2)
    crowd.have("192.0.2.2", Role.RECEIVER, 1)
    assert crowd.refused("192.0.2.1", Role.SOURCE).startswith("its host has 3 of 4 sources")
    assert crowd.refused("192.0.2.1", Role.RECEIVER) == ""


def test_newcomers_count_for_all_places_once_clients_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients are counted because most places of clients are taken; then those of sources are taken, too."""
    crowd = Crowd(StoreLimits(clients=16, sources=4), monkeypatch)
    crowd.have("192.0.2.1", Role.SOURCE, 2)
    crowd.have("192.0.2.2", Role.RECEIVER, 10)
    assert crowd.refused("192.0.2.1", Role.SOURCE) == ""
    crowd.have("192.0.2.1", Role.SOURCE, 1)
    assert crowd.refused("192.0.2.1", Role.SOURCE).startswith("its host has 3 of 4 sources")


def test_a_host_has_its_share_of_the_streams_that_there_are_descriptors_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are used and those that are free."""
    crowd = Crowd(StoreLimits(clients=1000, sources=100), monkeypatch, descriptors=4)
    crowd.have("192.0.2.1", Role.SOURCE, 5)
    crowd.have("192.0.2.2", Role.SOURCE, 3)
    assert crowd.refused("192.0.2.1", Role.SOURCE) == ""
    crowd = Crowd(StoreLimits(clients=1000, sources=100), monkeypatch, descriptors=3)
    crowd.have("192.0.2.1", Role.SOURCE, 9)
    assert crowd.refused("192.0.2.1", Role.SOURCE).startswith("its host has 9 of 12 sources")


async def test_a_receiver_is_no_source(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=StoreLimits(sources=1)) as store, Context(session_id=1) as context:
        source = await context.source("first", stores=[store.address])
        await source.send(b"one")
        async with Context(session_id=2) as other:
            assert (await anext(other.receiver("first", source=source.config.transport))).payload == b"one"


async def test_a_store_that_is_drained_takes_nobody_new(tmp_path: Path) -> None:
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        await context.source("first", stores=[store.address])
        store.draining = True
        events = Events()
        await context.source("second", stores=[store.address], on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
        store.draining = False
        await until(lambda: events.of(RegistrationComplete))


async def test_a_source_for_whose_stream_no_descriptor_is_left_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that shares a session needs none."""
    said: list[str] = []
    log = lambda *words: said.append(words[3])  # noqa: E731
    monkeypatch.setattr(admitting, "descriptors_for_streams", lambda: 0)
    async with serving(tmp_path, log=log) as store, Context(session_id=1) as context:
        events = Events()
        await context.source("first", stores=[store.address], on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
        assert any("raise the hard limit of open files" in text for text in said)
        await context.source("second", stores=[store.address], options={"transport": "lbtru"})
