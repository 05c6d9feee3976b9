"""Every checksum of a directory."""

import json
from pathlib import Path

import pytest

from stablecast.ops.operations.scrub import scrub, sentences
from tests.adapters.ops.operations.store_directory import SOURCE, fill, kept


async def test_what_is_whole_is_clean(tmp_path: Path) -> None:
    report = scrub(await kept(tmp_path))
    assert json.loads(json.dumps(report)) == report
    assert (report["clean"], report["messages"], report["segments"]) == (True, 13, 1)
    [sentence] = sentences(report)
    assert "3 MESSAGES" in sentence


@pytest.mark.rows("P-830")
async def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    """None of them can be delivered."""
    directory = await kept(tmp_path)
    await fill(directory, SOURCE)  # so that all before has been synced
    [path] = directory.glob("*.seg")
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        octets = bytearray(whole)
        octets[place] ^= 1 << place % 8
        path.write_bytes(octets)
        report = scrub(directory)
        assert not report["clean"] or report["torn_bytes"], place
    (directory / "00000009.seg.foreign").touch()
    told = "\n".join(sentences(scrub(directory)))
    assert "set aside earlier: 00000009.seg.foreign" in told


async def test_what_is_damaged_is_told_with_its_place(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    [path] = directory.glob("*.seg")
    octets = bytearray(path.read_bytes())
    octets[octets.index(b"message 2")] ^= 1
    path.write_bytes(octets[:-1])
    told = sentences(scrub(directory))
    assert "unfinished" in told[1]
    path.write_bytes(bytes(len(octets)))
    (directory / "00000009.seg").write_bytes(b"")
    told = sentences(scrub(directory))
    assert told[1].startswith(f"damaged: {path.name}, bytes 0..")
    assert "another store" in told[-1]


def test_an_empty_journal_is_clean(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert scrub(tmp_path)["clean"]
    assert "(none)" in sentences(scrub(tmp_path))[0]


async def test_lost_messages_of_an_ended_store_are_named(tmp_path: Path) -> None:
    """Its summaries know which record held them, also where the end of the newest segment is damaged."""
    directory = await kept(tmp_path)
    [path] = directory.glob("*.seg")
    whole = path.read_bytes()
    named = []
    for number in (0, 8):
        path.write_bytes(whole.replace(b"message %d" % number, b"massage %d" % number, 1))
        report = scrub(directory)
        assert (report["clean"], report["torn_bytes"], len(report["damages"])) == (False, 0, 1)
        [lost] = report["lost"]
        named.append(lost)
        text = f"source {lost['source']}: messages {lost['first']}..{lost['last']} are damaged"
        assert text in sentences(report)
    path.write_bytes(whole)
    assert named == [
        {"source": 1001, "first": 0, "last": 5},
        {"source": 1001, "first": 8, "last": 11},
    ]
    assert scrub(directory)["lost"] == []
