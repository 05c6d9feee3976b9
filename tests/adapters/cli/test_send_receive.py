"""`stablecast send` and `stablecast receive` against a store: messages through, mistakes told."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from stablecast.cli import receive
from stablecast.cli.client_options import Participant
from stablecast.text.console import note
from tests.support.program import lbmrd, outcome, running, store


def test_lines_become_stable_messages_and_lines_again(tmp_path: Path) -> None:
    with lbmrd() as (_, resolver), store(tmp_path) as (_, address):
        where = ["--resolver", resolver, "--session-id", "7"]
        with (
            running("receive", "orders", *where, "--count", "4", "--json") as receiver,
            running("send", "orders", *where, "--store", address, "--json") as sender,
        ):
            sender.write("one\ntwo\n")
            first = receiver.json_line()
            assert isinstance(first.pop("recovered"), bool)  # Live or from the store: whichever was quicker.
            assert first == {"number": 0, "payload": "one"}
            assert receiver.json_line()["payload"] == "two"
            out, err = sender.process.communicate("three\n\u00fc")
            assert (sender.process.returncode, err) == (0, "")
            assert [receiver.json_line()["payload"] for _ in range(2)] == ["three", "\u00fc"]
            assert receiver.end() == (0, "", "")
        summary = json.loads(out)
        assert summary.pop("seconds") > 0
        assert summary == {"topic": "orders", "sent": 4, "first": 0, "last": 3, "stable": 4}


def test_words_are_messages(tmp_path: Path) -> None:
    with store(tmp_path) as (_, address):
        status, out, err = outcome("send", "orders", "apples", "two pears", "--store", address, "--session-id", "7")
        assert (status, out) == (0, ""), err
        assert "2 messages sent, 2 stable" in err
        assert outcome("read", "orders", "--store", address)[:2] == (0, "apples\ntwo pears\n")
        status, _, err = outcome("send", "orders", "apples", "--file", tmp_path / "lines", "--store", address)
        assert status == 2
        assert "the messages are given twice: leave out the messages, or --file" in err


def test_a_pattern_receives_several_topics(tmp_path: Path) -> None:
    """M-005: each line has its topic."""
    with lbmrd() as (_, resolver), store(tmp_path) as (_, address):
        where = ["--resolver", resolver, "--session-id", "7"]
        receive = ["receive", "--pattern", "^orders[.]", *where, "--count"]
        for number, form in enumerate(([], ["--json"])):
            with (
                running(*receive, "2", *form) as receiver,
                running("send", "orders.a", *where, "--store", address) as first,
                running("send", "orders.b", *where, "--store", address) as second,
            ):
                first.write("one\n")
                lines = [receiver.line()]
                second.write("two\n")
                lines.append(receiver.line())
                assert receiver.end() == (0, "", "")
            if form:
                found = [json.loads(line) for line in lines]
                assert [(one["topic"], one["number"], one["payload"]) for one in found] == [
                    ("orders.a", number, "one"),
                    ("orders.b", number, "two"),
                ]
            else:
                assert lines == ["orders.a\tone", "orders.b\ttwo"]
        for wrong in (
            ["receive"],
            ["receive", "a", "--pattern", "b"],
            ["receive", "--pattern", "b", "--source", "x:1"],
        ):
            status, _, err = outcome(*wrong, "--resolver", resolver)
            assert status == 2
            assert "give a topic, or a pattern" in err


def test_an_interrupted_sender_ends_though_its_input_does_not(tmp_path: Path) -> None:
    with lbmrd() as (_, resolver), store(tmp_path) as (_, address):
        where = ["--resolver", resolver, "--session-id", "7"]
        with running("receive", "t", *where) as receiver, running("send", "t", *where, "--store", address) as sender:
            sender.write("one\n")
            assert receiver.line() == "one"
            sender.interrupt()
            assert sender.process.wait() == 130


def test_nobody_reads_what_is_received(tmp_path: Path) -> None:
    with lbmrd() as (_, resolver), store(tmp_path) as (_, address):
        where = ["--resolver", resolver, "--session-id", "7"]
        with running("receive", "t", *where) as receiver, running("send", "t", *where, "--store", address) as sender:
            sender.write("one\n")
            assert receiver.line() == "one"
            assert receiver.process.stdout is not None
            receiver.process.stdout.close()
            sender.write("two\n")
            assert receiver.process.wait() == 1
            assert receiver.process.stderr is not None
            assert receiver.process.stderr.read() == ""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (None, "no source of 'orders' found yet: start one that uses the same resolver, or correct --resolver\n"),
        ("127.0.0.1:1", "no message from a source at 127.0.0.1:1 yet: start the source, or correct --source\n"),
    ],
)
def test_a_silent_receiver_prints_a_hint(
    source: str | None, told: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A relay over UDP cannot say that it is not there."""

    def hint(text: str) -> None:
        note(text)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(receive, "HINT_SECONDS", 0.0)
    monkeypatch.setattr(receive, "note", hint)
    participant = Participant(["127.0.0.1:1"], [], "safe", "", "127.0.0.1", 0, [], "safe", None)
    assert receive.run(receive.ReceiveJob("orders", participant, source, 0, False)) == 0
    assert capfd.readouterr().err == told


def test_a_store_that_does_not_answer_is_told_within_the_timeout() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        status, out, err = outcome("send", "orders", "--store", address, "--timeout", "0.5")
    assert (status, out) == (1, "")
    *events, last = err.splitlines()
    assert last.startswith("stablecast: source 'orders' is not registered with enough stores after 0.5 s: ")
    assert all(address in event for event in events)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["send", "t", "--resolver", "nowhere:1"], "'nowhere:1' has no address ("),
        (["send", "t", "--strategy", "loud"], "there is no resolution strategy 'loud': choose one of safe, default"),
        (
            ["send", "t", "-o", "resolver_datagram_max_size=1"],
            "option resolver_datagram_max_size must lie between 500 and 65535, not 1",
        ),
        (["receive", "t", "--resolver-service", "nowhere"], "'nowhere' is not the address of a service"),
        (
            ["receive", "t", "--source", "127.0.0.1:1", "-o", "retransmit_request_intervall=1"],
            "retransmit_request_interval'?",
        ),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], told: str) -> None:
    status, out, err = outcome(*arguments)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("stablecast: ")
    assert told in err


def test_messages_to_nobody_are_an_error(tmp_path: Path) -> None:
    """Without a store nobody keeps them, and no receiver joined."""
    status, out, err = outcome("send", "orders", "--linger", "0", typed="one\n")
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("nobody received 'orders': no receiver joined, no store keeps it. Start")
    assert outcome("send", "orders", "--linger", "0", typed="")[0] == 0
