"""`stablecast send` and `receive` over the reliable transports."""

import json
import time

import pytest

from tests.support.program import running


@pytest.mark.rows("P-953", "M-016")
@pytest.mark.parametrize("option", ["transport=lbtru", "transport=lbtrm"])
def test_a_sender_tells_where_it_is_to_be_joined(option: str) -> None:
    """Without a resolver, a relay or a store; who joins hears what is sent from then on."""
    with running("send", "orders", "--option", option) as sender:
        assert sender.process.stderr is not None
        place = sender.process.stderr.readline().removeprefix("receivers join at ").strip()
        assert place.startswith(("LBT-RU:127.0.0.1:", "LBTRM:127.0.0.1:"))
        with running("receive", "orders", "--source", place, "--count", "3", "--json") as receiver:
            sent = 0
            while receiver.process.poll() is None:
                sender.write(f"{sent}\n")
                sent += 1
                time.sleep(0.02)
            status, out, err = receiver.end()
    assert (status, err) == (0, "")
    numbers = [int(json.loads(line)["payload"]) for line in out.splitlines()]
    assert numbers == list(range(numbers[0], numbers[0] + 3))
