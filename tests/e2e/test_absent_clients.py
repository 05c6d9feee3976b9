"""Clients that are absent for longer than their activity timeout, with the default lifetimes, as processes."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons import daemon, until
from tests.support.program import running


def send(relay: str, store: str, count: int, *more: str) -> dict[str, Any]:
    """Run `stablecast send` to its end; return its result."""
    words = ("orders", "--resolver", relay, "--store", store, "--linger", "0", "--json", *more)
    with running("send", *words) as sender:
        sender.write("".join(f"message {number}\n" for number in range(count)))
        assert sender.process.stdin is not None
        sender.process.stdin.close()
        result: dict[str, Any] = sender.json_line()
        return result


@pytest.mark.parametrize("ids", [("--session-id", "1"), ()], ids=["with a session id", "without an id"])
def test_stable_messages_outlast_an_absent_source(relay: str, ids: tuple[str, ...], tmp_path: Path) -> None:
    """The store keeps the messages, and a source with a session id continues after them."""
    with daemon(tmp_path) as store:
        assert send(relay, store.store, 3, *ids)["stable"] == 3
        store.until_away()
        assert [one["messages"] for one in store.sources()] == [3]
        if ids:
            assert send(relay, store.store, 2, *ids)["first"] == 3
        assert "client-deleted" not in store.log.read_text()
    with daemon(tmp_path) as store:
        assert [one["messages"] for one in store.sources()] == [5 if ids else 3]


def test_a_returning_receiver_continues_where_it_stopped(relay: str, tmp_path: Path) -> None:
    with daemon(tmp_path) as store, ExitStack() as stack:
        words = ("orders", "--resolver", relay, "--store", store.store, "--session-id", "1", "--json")
        sender = stack.enter_context(running("send", *words))
        receive = ("receive", "orders", "--resolver", relay, "--session-id", "2", "--json", "--count", "2")
        for first in (0, 2):
            with running(*receive) as receiver:
                sender.write("a\nb\n")
                assert [receiver.json_line()["number"] for _ in range(2)] == [first, first + 1]
                until(lambda: bool(store.sources() and store.sources()[0]["receivers"]))
            until(lambda: [one["active"] for one in store.sources()[0]["receivers"]] in ([False], []))
            assert [one["acknowledged"] for one in store.sources()[0]["receivers"]] == [first + 1]


def test_forgetting_a_silent_source_is_reported(relay: str, tmp_path: Path) -> None:
    """The log names the topic, the RegID, the messages and the reason. The monitor and the metrics count it."""
    with daemon(tmp_path, ", source-state-lifetime = 600") as store:
        send(relay, store.store, 3)
        until(lambda: not store.sources() and "client-deleted" in store.log.read_text())
        [line] = [line for line in store.log.read_text().splitlines() if "client-deleted" in line]
        assert re.search(
            r"\[WARNING\] one: client-deleted: source \d+ of topic 'orders' is forgotten, "
            r"and 3 messages up to number 2 with it: it was silent for \d+ s, and its state lifetime is over$",
            line,
        )
        until(lambda: store.metric("stablecast_store_expired_sources_total") == 1)
        assert store.metric("stablecast_store_expired_messages_total") == 3
        assert "state-let-go" in store.codes()
