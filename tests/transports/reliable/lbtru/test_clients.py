"""The clients of one LBT-RU session."""

import pytest

from stablecast.transports.reliable.lbtru import sources as module
from stablecast.transports.reliable.lbtru.sources import SessionClients


def test_a_client_is_there_until_it_was_silent_for_the_timeout() -> None:
    clients = SessionClients(10)
    assert clients.next() is None
    assert clients.add("a", 0)
    assert clients.add("b", 1)
    assert clients.hear("a", 5)
    assert (len(clients), clients.next()) == (2, 11)
    assert clients.expire(10) == []
    assert clients.expire(11) == ["b"]
    assert clients.expire(99) == ["a"]
    assert not clients.hear("a", 99)


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLIENTS", 1)
    clients = SessionClients(10)
    assert clients.add("a", 0)
    assert not clients.add("b", 0)
