"""Pieces: runs of frames that add up to the file."""

from pathlib import Path

from stablecast.evidence.spark.piece_judge import END, TracePiece, pieces_of, plan
from stablecast.evidence.trace import container
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import FrameVerdict
from tests.adapters.evidence.spark.test_piece_judge import verdicts
from tests.adapters.evidence.trace.traced import TracedWorld, play, read_frames, tapping


def test_pieces_follow_each_other_and_end_where_the_file_does(whole_world: Path) -> None:
    for path in find([whole_world]):
        size = path.stat().st_size
        for least in (1, 2000, size + 1):
            pieces = pieces_of(path, least)
            assert pieces[0].start == 0
            assert pieces[-1].stop == size
            assert [piece.stop for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]
            assert all(piece.stop - piece.start >= least for piece in pieces[:-1])
        assert len(pieces_of(path, 1)) == len(container.offsets(path)) - 1


def test_pieces_of_what_is_new(whole_world: Path) -> None:
    path = find([whole_world])[0]
    middle = container.offsets(path)[2]
    assert pieces_of(path, 1 << 20, middle) == [TracePiece(str(path), middle, path.stat().st_size)]
    assert pieces_of(path, 1, path.stat().st_size) == []


def test_a_file_with_something_wrong_is_one_piece(tmp_path: Path) -> None:
    missing = tmp_path / "missing.sct"
    assert plan([missing]) == [TracePiece(str(missing), 0, END)]


def test_a_frame_that_was_not_finished_is_a_piece(tmp_path: Path) -> None:
    play(TracedWorld(wrap=tapping(tmp_path, torn=True)))
    for path in find([tmp_path]):
        pieces, end = pieces_of(path, 1), container.offsets(path)[-1]
        if [*read_frames(path)][-1].foot.ends_known:
            assert pieces[-1].stop == end == path.stat().st_size
        else:
            assert pieces[-1] == TracePiece(str(path), end, END)
            assert pieces_of(path, 1, end, whole=True) == pieces[-1:]
        found = [one for piece in pieces for one in verdicts(piece) if isinstance(one, FrameVerdict)]
        assert not [one for one in found if one.found]
        assert [one.count for one in found] == [frame.count for frame in read_frames(path)]
