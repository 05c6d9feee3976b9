"""`stablecast send` and `receive` over the reliable transports."""

import json
import threading
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


MESSAGES = 2_000
AT_ONCE, PAUSE = 10, 0.01
"""1,000 messages a second."""


@pytest.mark.rows("P-920", "P-953")
@pytest.mark.parametrize("kind", ["lbtru", "lbtrm"])
def test_a_receiver_that_drops_a_tenth_of_what_arrives_loses_nothing_and_its_counters_tell(kind: str) -> None:
    """Processes, at 1,000 messages a second; repairs are counted at both ends."""
    hasty = f"transport_{kind}_ignore_interval=20"
    lossy = f"transport_{kind}_loss_rate=10"
    with running("send", "orders", "-o", f"transport={kind}", "-o", hasty, "--statistics", "--json") as sender:
        assert sender.process.stderr is not None
        place = sender.process.stderr.readline().removeprefix("receivers join at ").strip()
        with running(
            "receive", "orders", "--source", place, "-o", lossy, "--count", str(MESSAGES), "--json", "--statistics"
        ) as receiver:
            heard: list[str] = []
            listening = threading.Thread(target=lambda: heard.extend(receiver.process.stdout or ()))
            listening.start()
            sent = 0
            while receiver.process.poll() is None:
                sender.write("".join(f"{number}\n" for number in range(sent, sent + AT_ONCE)))
                sent += AT_ONCE
                time.sleep(PAUSE)
            listening.join()
        assert sender.process.stdin is not None
        sender.process.stdin.close()
        told = sender.json_line()["statistics"][f"source {place}"]
    *messages, last = map(json.loads, heard)
    numbers = [message["number"] for message in messages]
    assert numbers == list(range(numbers[0], numbers[0] + MESSAGES))
    found = last["statistics"][f"receiver {place}"]
    assert found["dgrams_dropped_test"] > 0
    assert found["lost"] - found["out_of_order"] > 0
    assert found["nak_tx_min"] >= 1
    assert found["unrecovered_tmo"] == found["unrecovered_txw"] == 0
    assert found["naks_sent"] > 0
    # No upper bound: the receiver requests repairs until it has left, after it has printed its counters.
    assert told["naks_rcved"] > 0
    assert told["rxs_sent"] + told["naks_ignored"] + told["naks_rx_delay_ignored"] >= told["naks_rcved"]
