"""A store, a source and a receiver as processes that find each other by a resolution service only."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from stablecast.resolver import Listeners
from stablecast.resolver.srs_resolver import SrsResolver
from stablecast.transports.resolution.records import SourceRecord
from tests.support.program import running, store

LATE = "receiver of 'orders' is unresolved for "
"""Prefix of the warning about a source that takes longer than ten seconds to start, as on a busy machine."""


@pytest.mark.rows("P-028", "T-304", "T-405")
def test_a_receiver_finds_both_lives_of_a_source_by_a_service(tmp_path: Path) -> None:
    """No datagram is sent."""
    with (
        running("srs", "--interface", "127.0.0.1", "--port", "0", "--json") as service,
        store(tmp_path / "store") as (_, address),
    ):
        where = ["--resolver-service", service.json_line()["address"], "--session-id", "7"]
        with running("receive", "orders", *where, "--count", "4", "--json") as receiver:
            for life in range(2):
                with running("send", "orders", *where, "--store", address, "--json") as sender:
                    sender.write(f"{2 * life}\n{2 * life + 1}\n")
                    received = [receiver.json_line() for _ in range(2)]
                    out, err = sender.process.communicate()
                assert [(message["number"], message["payload"]) for message in received] == [
                    (number, str(number)) for number in (2 * life, 2 * life + 1)
                ]
                assert (sender.process.returncode, err, json.loads(out)["stable"]) == (0, "", 2)
            status, out, err = receiver.end()
            assert (status, out) == (0, "")
            assert [line for line in err.splitlines() if not line.startswith(LATE)] == []
        service.interrupt()
        assert service.json_line()["stopped"] is True


LIFETIME_SECONDS = 2
APPLICATION = ("send", "orders", "--linger", "60")
CONFIG = f"""[srs]
interface = "127.0.0.1"
port = 0
source-state-lifetime = {LIFETIME_SECONDS}
"""


@pytest.mark.rows("T-413", "T-415", "T-418")
async def test_sources_of_a_killed_application_are_gone_after_their_lifetime_and_not_before(tmp_path: Path) -> None:
    """The restarted application is a new context. The service keeps the old source meanwhile.

    The witness asks for the topic and does not join, so that no receiver reports a lost transport (T27).
    """
    config = tmp_path / "srs.toml"
    config.write_text(CONFIG, encoding="utf-8")
    found: asyncio.Queue[SourceRecord] = asyncio.Queue()
    gone: asyncio.Queue[tuple[float, SourceRecord]] = asyncio.Queue()
    with running("srs", config, "--json") as service:
        where = service.json_line()["address"]
        witness = await SrsResolver.start(
            "127.0.0.1",
            [where],
            Listeners(
                lambda _, record: found.put_nowait(record),
                lambda _, record: gone.put_nowait((time.monotonic(), record)),
            ),
        )
        witness.add_receiver("orders")
        with running(*APPLICATION, "--resolver-service", where) as application:
            first = await found.get()
            killed = time.monotonic()
            application.process.kill()
        with running(*APPLICATION, "--resolver-service", where) as again:
            second = await found.get()
            assert second.instance != first.instance
            at, record = await gone.get()
            assert record == first
            assert at >= killed + LIFETIME_SECONDS
            again.interrupt()
            again.process.wait()
            assert (await gone.get())[1] == second
        await witness.close()
