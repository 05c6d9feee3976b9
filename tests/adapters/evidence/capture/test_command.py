"""`stablecast capture decode`: what it says and how it ends."""

import json
from pathlib import Path

import pytest

from stablecast.evidence.capture import command
from stablecast.evidence.capture.command import MAX_PROBLEMS, run_decode
from tests.support import captures
from tests.support.captures import datagram, segment
from tests.support.program import outcome
from tests.support.traffic_capture import FRAMES, GROUP, RECEIVER, RESOLUTION, SOURCE, STREAM, all_kinds, data

OURS = all_kinds().packets
NONSENSE = datagram(SOURCE, GROUP, b"nonsense")
OTHER = datagram(SOURCE, ("10.0.0.7", 9), b"else")


def of(tmp_path: Path, *frames: bytes) -> Path:
    return captures.pcap(tmp_path / "a.pcap", frames)


@pytest.mark.rows("M-023")
def test_the_program_decodes_a_capture(tmp_path: Path) -> None:
    """The whole way, through the command line."""
    status, out, err = outcome("capture", "decode", str(of(tmp_path, *OURS)), "--roundtrip", "--json")
    assert (status, err) == (0, "")
    said = json.loads(out)
    assert (said["packets"], said["decoded"], said["malformed"], said["problems"]) == (FRAMES, FRAMES, 0, [])
    assert said["types"]["LBT-RM NAK"] == 1


@pytest.mark.rows("M-023")
def test_people_read_lines_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_decode(of(tmp_path, *OURS, OTHER), [], roundtrip=True, as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("     1 0.000000 10.0.0.1:35000 > 224.9.10.11:12965 LBMR NORMAL")
    assert lines[FRAMES].split() == ["2", "LBMC", "CONTROL"]
    assert lines[-1].startswith("14 packets: 13 decoded")


def test_each_packet_may_be_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_decode(of(tmp_path, *OURS, OTHER), [], roundtrip=True, as_json=False, records=True) == 0
    *records, counts = map(json.loads, capsys.readouterr().out.splitlines())
    assert [record["frame"] for record in records] == list(range(1, FRAMES + 1))
    assert counts["packets"] == FRAMES + 1


@pytest.mark.rows("M-023")
@pytest.mark.parametrize("frames", [[NONSENSE], [*OURS, NONSENSE], [OTHER], []])
def test_packets_that_are_not_decoded_are_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], frames: list[bytes]
) -> None:
    assert run_decode(of(tmp_path, *frames), [], roundtrip=False, as_json=True) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["malformed"] == frames.count(NONSENSE)
    assert ("nothing in" in said.err) == (NONSENSE not in frames)


def test_problems_name_their_frame_or_their_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = of(tmp_path, NONSENSE, segment(STREAM, RECEIVER, 1, data(0) + b"\0"))
    assert run_decode(path, [], roundtrip=False, as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == [
        "frame 1: version 6, kind 14 is not a packet",
        "end of TCP:10.0.0.1:14371: 1 bytes of a message that does not end",
    ]


def test_problems_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_decode(of(tmp_path, *[NONSENSE] * (MAX_PROBLEMS + 9)), [], roundtrip=False, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["problems"]) == MAX_PROBLEMS


def test_ports_may_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = of(tmp_path, datagram(SOURCE, ("10.0.0.7", 5000), b"\x10\0\0\0"))
    assert run_decode(path, [], roundtrip=True, as_json=True) == 1
    assert run_decode(path, ["lbmr=5000"], roundtrip=True, as_json=True) == 0
    assert run_decode(path, ["lbmr"], roundtrip=True, as_json=True) == 2
    assert "stablecast: 'lbmr' is not kind=port" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing, foreign = tmp_path / "missing.pcap", tmp_path / "notes.txt"
    foreign.write_text("these are notes")
    for path, words in (
        (missing, "cannot be read: No such file or directory; correct the path"),
        (tmp_path, "cannot be read: Is a directory; name a file"),
        (foreign, "is not a capture: it starts like neither pcap nor pcapng; name a pcap or pcapng file"),
    ):
        assert run_decode(path, [], roundtrip=True, as_json=True) == 2
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert words in said.err
        assert str(path) in said.err


def test_a_file_that_was_cut_is_decoded_as_far_as_it_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = of(tmp_path, *OURS)
    cut.write_bytes(cut.read_bytes()[:-3])
    assert run_decode(cut, [], roundtrip=True, as_json=True) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["packets"] == 12
    assert said.err == f"stablecast: {cut} ends in the middle of frame 13; if it was copied, copy it again\n"


def test_a_reader_that_goes_away_is_not_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(line: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(command, "say", gone)
    with pytest.raises(BrokenPipeError):
        run_decode(of(tmp_path, *OURS), [], roundtrip=True, as_json=True)


def test_names_of_any_bytes_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = of(tmp_path, datagram(SOURCE, RESOLUTION, b"\x10\1\0\0\xff\xfe\0"))
    assert run_decode(path, [], roundtrip=True, as_json=False) == 0
    assert "LBMR NORMAL [TQR]" in capsys.readouterr().out
