"""The first two stages of the guide's programs, the receiver of several sources, and the samples of its chapter 7."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.programs import example
from tests.support.program import lbmrd, store

Cluster = tuple[str, str]
LIFETIMES = ("--option", "source-state-lifetime=3600000", "--option", "receiver-state-lifetime=3600000")

SOURCE_LINES = (
    r'saving RegID info to "UME-example-src-RegID" - 127\.0\.0\.1:\d+:\d+',
    r"UME store 0: 127\.0\.0\.1:\d+ registration success\. RegID \d+\. Flags 0",
    r"UME registration complete\. SQN 0\. Flags 0",
    r"SQN 0 \(msgno 1\)",
    r"SQN \[2,\w+\] \(msgno 3\)",
    r"UME store 0: 127\.0\.0\.1:\d+ message stable\. SQN 0\.\.\w+ \(msgno 1.*\)\. Flags \w+ .*STORE",
    r"UME delivery confirmation\. SQN 0\.\.\w+, Receiver RegID 1100 \(msgno 1.*\)\. Flags \w+ UNIQUEACKS .*EXACK",
    r"UME message reclaimed \(ex\) - sequence number 0 \(cd 1\)\. Flags 0x0",
)
RECEIVER_LINES = (
    r"Will use seqnum info with low offset -1\.",
    r"New low sequence number would be negative\. Leaving low SQN unchanged\.",
    r"SQNs Low 0 \(will set to 0\), Low rxreqmax -?\d+, High -?\d+",
    r"\[UME Example\]\[TCP:127\.0\.0\.1:\d+\] store 0: .* UME registration successful\. SrcRegID \d+ RcvRegID 1100",
    r"\[UME Example\]\[TCP:127\.0\.0\.1:\d+\] UME registration complete\. SQN 0",
    r"acknowledged up to 1",
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Run a store and a relay; yield the arguments of a source, and the relay's address."""
    with lbmrd() as (_, relay), store(tmp_path / "store", *LIFETIMES) as (_, address):
        yield address, relay


def numbers(lines: list[str]) -> list[int]:
    return [int(found[1]) for line in lines if (found := re.search(r"'UME Message (\d\d)'", line))]


@pytest.mark.rows("P-604", "P-605")
def test_stage_one_with_a_store_sets_late_join(cluster: Cluster, tmp_path: Path) -> None:
    """The source prints the guide's message, and the receiver gets all messages and names no store."""
    with example("guide/stage_1_receiver.py", tmp_path, "--resolver", cluster[1]) as receiving:
        words = ("--store", cluster[0], "--resolver", cluster[1], "--interval", "0.02")
        with example("guide/stage_1_source.py", tmp_path, *words) as sending:
            assert sending.end() == 0
            assert receiving.end() == 0
    assert 'INFO: Source "UME Example" Late Join not set, but UME store specified. Setting Late Join.' in sending.lines
    assert numbers(receiving.lines) == list(range(1, 21))
    assert "event RegistrationComplete" in receiving.lines


@pytest.mark.rows("P-606", "P-607")
def test_stage_two_continues_under_fixed_ids(cluster: Cluster, tmp_path: Path) -> None:
    """Kill each and bring it back; a second source with the RegID is refused meanwhile."""
    source = ("--store", cluster[0], "--resolver", cluster[1])
    with example("guide/stage_2_receiver.py", tmp_path, "--resolver", cluster[1]) as receiving:
        with example("guide/stage_2_source.py", tmp_path, *source, "--interval", "1") as sending:
            receiving.until("'UME Message 03'")
            with example("guide/stage_2_source.py", tmp_path, *source, "--within", "1") as second:
                assert second.end() == 1
            assert any("another context holds it" in line for line in second.lines)
            receiving.kill()
            sending.kill()
        with example("guide/stage_2_source.py", tmp_path, *source, "--interval", "0.1") as again:
            again.until("begins with message")
            resumed = int(again.lines[0].rsplit(" ", 1)[1])
            assert resumed >= 3
            with example("guide/stage_2_receiver.py", tmp_path, "--resolver", cluster[1]) as returned:
                assert returned.end() == 0
            assert again.end() == 0
    first, found = numbers(receiving.lines), numbers(returned.lines)
    assert found[0] <= first[-1] + 1
    assert set(first) | set(found) == set(range(1, 21))
    assert found == list(range(found[0], 21))


@pytest.mark.rows("P-618")
def test_a_receiver_keeps_the_ids_of_several_sources(cluster: Cluster, tmp_path: Path) -> None:
    """Two sources of one topic. A second run asks each of them for the RegID that belongs to it."""
    script = ("guide/several_sources.py", tmp_path, "--resolver", cluster[1])
    source = ("--store", cluster[0], "--resolver", cluster[1], "--interval", "1")
    with (
        example("guide/stage_1_source.py", tmp_path, *source),
        example("guide/stage_2_source.py", tmp_path, *source),
        example(*script) as receiving,
    ):
        for _ in range(2):
            receiving.until("UME Message 03")
        receiving.interrupt()
        lines = (tmp_path / "UME-example-rcv-RegIDs").read_text().splitlines()
        own = dict(line.rsplit(":", 1) for line in lines)
        assert len(own) == 2
        with example(*script) as returned:
            for _ in own:
                returned.until("requesting RegID")
    asked = [line for line in returned.lines if "requesting RegID" in line]
    assert sorted(asked) == sorted(
        f"source {place.rsplit(':', 1)[1]} at {cluster[0]}: requesting RegID {reg_id}" for place, reg_id in own.items()
    )


@pytest.mark.rows("P-326", "P-425", "P-619")
def test_the_samples_of_a_source_and_a_receiver(cluster: Cluster, tmp_path: Path) -> None:
    """The printed lines of the guide's samples, with the application's number of each message."""
    arguments = ("--resolver", cluster[1])
    with (
        example("guide/receiver_samples.py", tmp_path, *arguments, "--count", "4", "--offset", "-1") as receiving,
        example("guide/source_samples.py", tmp_path, "--store", cluster[0], *arguments) as sending,
    ):
        assert receiving.end() == 0
        sending.until("(cd 2)")
    printed, heard = "\n".join(sending.lines), "\n".join(receiving.lines)
    for pattern in SOURCE_LINES:
        assert re.search(pattern, printed), f"{pattern}\n{printed}"
    for pattern in RECEIVER_LINES:
        assert re.search(pattern, heard), f"{pattern}\n{heard}"


@pytest.mark.rows("P-424", "P-425", "P-606")
def test_the_samples_of_recovery(cluster: Cluster, tmp_path: Path) -> None:
    """A receiver returns with an offset of its own, and the source with its saved RegID."""
    arguments = ("--resolver", cluster[1])
    source = ("guide/source_samples.py", tmp_path, "--store", cluster[0], *arguments, "--receivers", "1")
    with example(*source) as sending:
        with example("guide/receiver_samples.py", tmp_path, *arguments, "--count", "4") as receiving:
            assert receiving.end() == 0
        with example("guide/receiver_samples.py", tmp_path, *arguments, "--count", "2", "--offset", "-1") as returned:
            assert returned.end() == 0
        sending.interrupt()
    found = re.search(r"SQNs Low (\d+) \(will set to (\d+)\)", "\n".join(returned.lines))
    assert found is not None
    assert int(found[2]) == int(found[1]) - 1
    assert f"sequence number {found[2]}" in "\n".join(returned.lines)
    with example(*source) as again:
        again.until("registration success")
        again.interrupt()
    assert re.search(r'read in saved RegID info from "UME-example-src-RegID"', "\n".join(again.lines))
    assert re.search(r"registration success\. RegID \d+\. Flags \w+ OLD\[SQN ", "\n".join(again.lines))
