"""A service, a store, a source and a receiver as processes that know nothing of each other but the service."""

import json
from pathlib import Path

from tests.support.program import running, store


def test_a_source_and_a_receiver_meet_over_a_service(tmp_path: Path) -> None:
    """P-028, T-405: and no datagram is sent. A source that comes back is found again."""
    with (
        running("srs", "--interface", "127.0.0.1", "--port", "0", "--json") as service,
        store(tmp_path / "store") as (_, address),
    ):
        where = ["--resolver-service", service.said()["address"], "--session-id", "7"]
        with running("receive", "orders", *where, "--count", "4", "--json") as receiver:
            for life in range(2):
                with running("send", "orders", *where, "--store", address, "--json") as sender:
                    sender.write(f"{2 * life}\n{2 * life + 1}\n")
                    heard = [receiver.said() for _ in range(2)]
                    out, err = sender.process.communicate()
                assert [(one["number"], one["payload"]) for one in heard] == [
                    (number, str(number)) for number in (2 * life, 2 * life + 1)
                ]
                assert (sender.process.returncode, err, json.loads(out)["stable"]) == (0, "", 2)
            assert receiver.end() == (0, "", "")
        service.interrupt()
        assert service.said()["stopped"] is True
