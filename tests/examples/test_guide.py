"""The guide's example programs in its four runs. All printed lines are compared with the guide's transcripts."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.examples.programs import Example, example
from tests.support.program import Program, lbmrd, store

UNHURRIED_SECONDS = 0.5
"""Interval of a source that must outlast the start of another program on a busy machine."""

INTERRUPTED = 130
SAVES_SOURCE = 'saving RegID info to "UME-example-src-RegID" - PLACE1:ID1'
ASKS = "UME Store 0: PLACE1 [TCP][ID1] Requesting RegID: "
SAVES_RECEIVER = 'saving RegID info to "UME-example-rcv-RegID" - PLACE1:ID1:ID2'
REMOVES_SOURCE = 'removing saved RegID file "UME-example-src-RegID"'
REMOVES_RECEIVER = 'removing saved RegID file "UME-example-rcv-RegID"'

Start = Callable[..., AbstractContextManager[Example]]


def received(first: int, last: int) -> list[str]:
    """Return the receiver's lines for messages `first` to `last`, counted from 1 as in the payload."""
    return [
        f"Received 15 bytes on topic UME Example (sequence number {number - 1}) 'UME Message {number:02}'"
        for number in range(first, last + 1)
    ]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Program, str, str]]:
    """Run a store and a relay; yield the store's process, its address, and the relay's address."""
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


@pytest.mark.rows("P-238", "P-239", "P-240", "P-603", "P-608", "P-610", "P-611", "P-616", "M-027")
def test_running_the_examples(source: Start, receiver: Start, tmp_path: Path) -> None:
    with receiver() as receiving, source() as sending:
        assert receiving.end() == 0
        assert sending.end() == 0
        names: dict[str, str] = {}
        assert sending.transcript(names) == [SAVES_SOURCE, REMOVES_SOURCE]
        assert receiving.transcript(names) == [f"{ASKS}0", SAVES_RECEIVER, *received(1, 20), REMOVES_RECEIVER]
        assert not receiving.error() + sending.error()
    assert not files(tmp_path)


@pytest.mark.rows("P-008", "P-600", "P-609")
def test_a_single_receiver_fails_and_recovers(source: Start, receiver: Start, tmp_path: Path) -> None:
    """The receiver continues directly after the last printed message. It recovers the missed ones from the store."""
    with source(UNHURRIED_SECONDS) as sending:
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


@pytest.mark.rows("P-007", "P-601")
@pytest.mark.parametrize("end", [Example.interrupt, Example.kill], ids=["interrupted", "killed"])
def test_a_single_source_fails_and_recovers(source: Start, receiver: Start, end: Callable[[Example], object]) -> None:
    """The new source learns from the store where to continue. The receiver registers again by itself.

    Messages that reached the receiver and were not stable when the source was killed are sent again, as new messages.
    """
    with receiver() as receiving:
        with source(UNHURRIED_SECONDS) as sending:
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
    printed = receiving.transcript(names)
    second = printed.index(f"{ASKS}ID2")
    assert printed[:2] == [f"{ASKS}0", SAVES_RECEIVER]
    assert printed[second : second + 2] == [f"{ASKS}ID2", SAVES_RECEIVER]
    done = second - 2
    assert printed[2:second] == received(1, done)
    assert printed[second + 2 :] == [*received(min(resumed, done + 1), 20), REMOVES_RECEIVER]


@pytest.mark.rows("P-602")
@pytest.mark.parametrize("killed", [False, True], ids=["interrupted", "killed"])
def test_a_single_store_fails(
    cluster: tuple[Program, str, str], source: Start, receiver: Start, tmp_path: Path, killed: bool
) -> None:
    with receiver() as receiving, source(UNHURRIED_SECONDS) as sending:
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
