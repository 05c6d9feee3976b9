"""Clients that are absent for longer than their activity timeout, with the default lifetimes, as processes."""

import re
from pathlib import Path
from typing import Any

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
