"""Go on with what release 0.1.0 left: a journal, traces and a capture of one run, kept as it wrote them.

A source of `orders` with session 7 sent 30 messages in its first life and 15 in the second. A receiver with session 9
consumed the first 30. A source of `bills` sent 12.
"""

import shutil
from pathlib import Path

import pytest

from stablecast.ops.operations import downgrade
from stablecast.ops.operations.target import OperationError
from tests.support.program import lbmrd, outcome, running, store
from tests.support.tree import ROOT

LEFT = ROOT / "tests/fixtures/release_0_1_0"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A copy of the journal, which a store may write to."""
    return Path(shutil.copytree(LEFT / "journal", tmp_path / "journal"))


def test_a_store_goes_on_with_the_journal(journal: Path) -> None:
    """The receiver continues behind what it consumed, and the source behind its second life."""
    with lbmrd() as (_, resolver), store(journal) as (_, address):
        where = ["--resolver", resolver]
        sender = running("send", "orders", *where, "--store", address, "--session-id", "7")
        receiver = running("receive", "orders", *where, "--session-id", "9", "--count", "16", "--json")
        with sender as source, receiver as reader:
            source.write("order 46\n")
            found = [reader.json_line() for _ in range(16)]
            assert [one["number"] for one in found] == list(range(30, 46))
            assert [one["payload"] for one in found] == [f"order {number + 1}" for number in range(30, 46)]
            assert reader.end()[0] == 0
        status, printed, _ = outcome("read", "bills", "--store", address)
        assert (status, printed.split("\n")[:-1]) == (0, [f"bill {number}" for number in range(1, 13)])


def test_the_way_back_is_told(journal: Path) -> None:
    untouched = downgrade.releases(journal)
    assert downgrade.reads(untouched, "0.1.0")
    assert downgrade.sentences(untouched) == [f"{journal} has 1 segment of format 3: release 0.1.0 or newer reads it"]
    with store(journal):
        pass
    assert outcome("store", "downgrade-check", str(journal))[:2] == (
        0,
        f"{journal} has 1 segment of format 4: release 0.2.0 or newer reads it\n",
    )
    status, _, complaint = outcome("store", "downgrade-check", str(journal), "--to", "0.1.0")
    assert (status, complaint.count("\n")) == (1, 1)
    assert "release 0.1.0 does not read" in complaint


def test_a_directory_without_segments_is_read_by_every_release(tmp_path: Path) -> None:
    report = downgrade.releases(tmp_path)
    assert downgrade.reads(report, "0.0.1")
    assert downgrade.sentences(report) == [f"{tmp_path} has no segment: every release reads it"]
    with pytest.raises(OperationError, match="'latest' names no release"):
        downgrade.reads(report, "latest")


def test_its_traces_are_refused_and_not_called_wrong() -> None:
    """This core is another one. Its replay of an older trace would look like violations."""
    status, printed, complaint = outcome("verify", str(LEFT / "traces"))
    assert status == 2, printed
    assert "VIOLATED" not in printed + complaint
    assert "verify it with the release that wrote it" in printed + complaint


def test_its_packets_are_decoded() -> None:
    status, printed, _ = outcome("capture", "decode", str(LEFT / "wire.pcapng"))
    assert status == 0, printed
    assert "0 different, 0 unknown, 0 incomplete, 0 damaged, 0 malformed" in printed.splitlines()[-1]
