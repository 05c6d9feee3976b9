"""The guide's example programs and its four runs: everything that they print, against the guide's transcripts."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.examples.programs import Example, example
from tests.support.program import Program, lbmrd, store

INTERRUPTED = 130
SAVES_SOURCE = 'saving RegID info to "UME-example-src-RegID" - PLACE1:ID1'
ASKS = "UME Store 0: PLACE1 [TCP][ID1] Requesting RegID: "
SAVES_RECEIVER = 'saving RegID info to "UME-example-rcv-RegID" - PLACE1:ID1:ID2'
REMOVES_SOURCE = 'removing saved RegID file "UME-example-src-RegID"'
REMOVES_RECEIVER = 'removing saved RegID file "UME-example-rcv-RegID"'

Start = Callable[..., AbstractContextManager[Example]]


def received(first: int, last: int) -> list[str]:
    """The receiver's lines for messages `first` to `last`, counted from 1 as the payload does."""
    return [
        f"Received 15 bytes on topic UME Example (sequence number {number - 1}) 'UME Message {number:02}'"
        for number in range(first, last + 1)
    ]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Program, str, str]]:
    """A store and a relay: the store's process, its address, the relay's."""
    lifetimes = ("--option", "source-state-lifetime=3600000", "--option", "receiver-state-lifetime=3600000")
    with lbmrd() as (_, relay), store(tmp_path / "store", *lifetimes) as (process, address):
        yield process, address, relay


@pytest.fixture
def source(cluster: tuple[Program, str, str], tmp_path: Path) -> Start:
    _, address, relay = cluster

    def start(interval: float = 0.02) -> AbstractContextManager[Example]:
        return example("source.py", tmp_path, "--store", address, "--resolver", relay, "--interval", str(interval))

    return start


@pytest.fixture
def receiver(cluster: tuple[Program, str, str], tmp_path: Path) -> Start:
    return lambda: example("receiver.py", tmp_path, "--resolver", cluster[2])


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("UME-*"))


def test_running_the_examples(source: Start, receiver: Start, tmp_path: Path) -> None:
    with receiver() as receiving, source() as sending:
        assert receiving.end() == 0
        assert sending.end() == 0
        names: dict[str, str] = {}
        assert sending.transcript(names) == [SAVES_SOURCE, REMOVES_SOURCE]
        assert receiving.transcript(names) == [f"{ASKS}0", SAVES_RECEIVER, *received(1, 20), REMOVES_RECEIVER]
        assert not receiving.error() + sending.error()
    assert not files(tmp_path)


def test_a_single_receiver_fails_and_recovers(source: Start, receiver: Start, tmp_path: Path) -> None:
    """It goes on right behind the last message it printed; what it missed comes from the store."""
    with source(0.1) as sending:
        with receiver() as receiving:
            receiving.until("'UME Message 03'")
            assert receiving.interrupt() == INTERRUPTED
            assert not receiving.error()
        done = len([line for line in receiving.lines if line.startswith("Received")])
        assert files(tmp_path) == ["UME-example-rcv-RegID", "UME-example-src-RegID"]
        with receiver() as again:
            assert again.end() == 0
        assert sending.end() == 0
    names: dict[str, str] = {}
    assert sending.transcript(names) == [SAVES_SOURCE, REMOVES_SOURCE]
    assert receiving.transcript(names) == [f"{ASKS}0", SAVES_RECEIVER, *received(1, done)]
    reads = 'read in saved RegID info from "UME-example-rcv-RegID" - PLACE1 RegIDs source ID1, receiver ID2'
    assert again.transcript(names) == [reads, f"{ASKS}ID2", *received(done + 1, 20), REMOVES_RECEIVER]


def test_a_receiver_that_crashes_may_get_a_message_twice(source: Start, receiver: Start) -> None:
    """Nothing is missing."""
    with source(0.1) as sending:
        with receiver() as receiving:
            receiving.until("'UME Message 03'")
            receiving.kill()
        with receiver() as again:
            assert again.end() == 0
        assert sending.end() == 0
    first = re.search(r"'UME Message (\d\d)'", next(line for line in again.lines if line.startswith("Received")))
    assert first is not None
    assert int(first[1]) <= 4
    assert again.lines[2:] == [*received(int(first[1]), 20), REMOVES_RECEIVER]


@pytest.mark.parametrize("end", [Example.interrupt, Example.kill], ids=["interrupted", "killed"])
def test_a_single_source_fails_and_recovers(source: Start, receiver: Start, end: Callable[[Example], object]) -> None:
    """It asks the store where it stopped; the receiver registers again by itself.

    What reached the receiver and was not stable yet when the source was killed is sent again, as another message.
    """
    with receiver() as receiving:
        with source(0.1) as sending:
            receiving.until("'UME Message 04'")
            end(sending)
            assert "Traceback" not in sending.error()
        with source() as again:
            assert again.end() == 0
        assert receiving.end() == 0
    names: dict[str, str] = {}
    assert sending.transcript(names) == [SAVES_SOURCE]
    resumed = int(again.lines[1].rsplit(" ", 1)[1])
    assert 4 <= resumed <= 6 if end is Example.kill else 5 <= resumed <= 6
    reads = 'read in saved RegID info from "UME-example-src-RegID" - PLACE1:ID1'
    assert again.transcript(names) == [reads, f"will start with message number {resumed}", REMOVES_SOURCE]
    heard = receiving.transcript(names)
    cut = heard.index(f"{ASKS}ID2")
    assert heard[:2] == [f"{ASKS}0", SAVES_RECEIVER]
    assert heard[cut : cut + 2] == [f"{ASKS}ID2", SAVES_RECEIVER]
    done = cut - 2
    assert heard[2:cut] == received(1, done)
    assert heard[cut + 2 :] == [*received(min(resumed, done + 1), 20), REMOVES_RECEIVER]


@pytest.mark.parametrize("killed", [False, True], ids=["interrupted", "killed"])
def test_a_single_store_fails(
    cluster: tuple[Program, str, str], source: Start, receiver: Start, tmp_path: Path, killed: bool
) -> None:
    with receiver() as receiving, source(0.05) as sending:
        receiving.until("'UME Message 03'")
        if killed:
            cluster[0].process.kill()
        else:
            cluster[0].interrupt()
        assert sending.end() == 1
        receiving.interrupt()
        names: dict[str, str] = {}
        printed = sending.transcript(names)
        assert printed[:3] == [
            SAVES_SOURCE,
            "Store unresponsive: store 0 [PLACE1] unresponsive",
            "Store unresponsive: store 0 [PLACE1] unresponsive - no registration response.",
        ]
        assert re.fullmatch(r"line \d+: not currently registered with enough stores", printed[3])
        assert len(printed) == 4
        assert receiving.transcript(names)[:5] == [f"{ASKS}0", SAVES_RECEIVER, *received(1, 3)]
    assert files(tmp_path) == ["UME-example-rcv-RegID", "UME-example-src-RegID"]
