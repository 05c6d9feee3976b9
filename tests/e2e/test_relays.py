"""Relays and resolution services that are killed, with real processes."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.network import unused_port
from tests.support.program import lbmrd, running, store


@pytest.mark.rows("T-219")
def test_a_relay_is_killed_while_a_second_one_runs(tmp_path: Path) -> None:
    """Contexts with both relays still resolve their topics."""
    with ExitStack() as stack:
        relays = [stack.enter_context(lbmrd()) for _ in range(2)]
        _, address = stack.enter_context(store(tmp_path / "store"))
        where = [word for _, at in relays for word in ("--resolver", at)]
        receiver = stack.enter_context(
            running("receive", "orders", *where, "--session-id", "7", "--count", "2", "--json")
        )
        relays[0][0].process.kill()
        relays[0][0].process.wait()
        sender = stack.enter_context(running("send", "orders", *where, "--store", address, "--session-id", "7"))
        sender.write("0\n1\n")
        assert [receiver.json_line()["payload"] for _ in range(2)] == ["0", "1"]


@pytest.mark.rows("T-407", "T-409", "T-411")
def test_a_service_is_killed_and_started_again(tmp_path: Path) -> None:
    """The service keeps no state, so contexts send all records again. They use its host name (T-411)."""
    port = unused_port()
    service = ("srs", "--interface", "127.0.0.1", "--port", str(port), "--json")
    where = ("--resolver-service", f"localhost:{port}", "--session-id", "7")
    with store(tmp_path / "store") as (_, address), ExitStack() as stack:
        with running(*service) as first:
            first.json_line()
            receiver = stack.enter_context(running("receive", "orders", *where, "--count", "2", "--json"))
            first.process.kill()
            first.process.wait()
        stack.enter_context(running(*service)).json_line()
        sender = stack.enter_context(running("send", "orders", *where, "--store", address))
        sender.write("0\n1\n")
        assert [receiver.json_line()["payload"] for _ in range(2)] == ["0", "1"]
