"""The files of one trace, and the files that a path stands for."""

import errno
from pathlib import Path

import pytest

from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import find, part_of, part_path, traces_of
from tests.support.machine import replace


@pytest.mark.parametrize(
    ("name", "first", "part"),
    [
        ("store-x-1-0.sct", "store-x-1-0.sct", 0),
        ("store-x-1-0.12.sct", "store-x-1-0.sct", 12),
        ("store-127.0.0.1_80-1-0.sct", "store-127.0.0.1_80-1-0.sct", 0),
        ("a.0.sct", "a.0.sct", 0),
        ("a.01.sct", "a.01.sct", 0),
        ("a.5", "a.5", 0),
        (".5.sct", ".sct", 5),
        ("5.sct", "5.sct", 0),
    ],
)
def test_the_part_is_told_by_the_name(name: str, first: str, part: int) -> None:
    assert part_of(Path("d", name)) == (str(Path("d", first)), part)
    if part:
        assert part_path(Path("d", first), part) == Path("d", name)


def test_the_first_part_has_the_plain_name() -> None:
    assert part_path(Path("a.sct"), 0) == Path("a.sct")


def test_parts_are_put_together_in_order_and_traces_stay_in_theirs() -> None:
    names = ["b.10.sct", "a.sct", "b.9.sct", "c.sct", "b.sct", "a.sct"]
    assert [[path.name for path in parts] for parts in traces_of(map(Path, names))] == [
        ["b.sct", "b.9.sct", "b.10.sct"],
        ["a.sct"],
        ["c.sct"],
    ]


def test_files_directories_and_patterns(tmp_path: Path) -> None:
    for name in ("b.sct", "a.sct", "notes.txt"):
        (tmp_path / name).write_text("")
    odd = tmp_path / "what?.sct"
    odd.write_text("")
    every = [tmp_path / name for name in ("a.sct", "b.sct", "what?.sct")]
    assert find([tmp_path]) == find([tmp_path / "*.sct"]) == every
    assert find([odd, tmp_path / "gone.sct"]) == [odd, tmp_path / "gone.sct"], "who reads it says that it is missing"
    assert find([tmp_path / "[ab].sct"]) == every[:2]
    with pytest.raises(TraceError, match=r"there are no traces .* that match"):
        find([tmp_path / "c*.sct"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match=r"there are no traces \(\*\.sct\) in the directory"):
        find([tmp_path / "empty"])


def test_the_traces_of_a_process_are_found_in_the_order_in_which_it_began_them(tmp_path: Path) -> None:
    names = ["relay.sct", "source-a-7-9.sct", "source-a-7-9.2.sct", "source-a-7-9.10.sct", "source-a-7-10.sct"]
    for name in (*names, "store-a-7-8.sct"):
        (tmp_path / name).touch()
    assert [path.name for path in find([tmp_path])] == [*names, "store-a-7-8.sct"]
    assert [path.name for path in find([tmp_path / "source-*"])] == names[1:]


def test_an_unreadable_directory_is_not_called_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern skips what it may not read; the test may run as root, who may read everything."""
    (tmp_path / "a.sct").touch()

    def refuse(_: Path) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    replace(monkeypatch, "files", names=refuse)
    for path in (tmp_path, tmp_path / "b*.sct"):
        with pytest.raises(TraceError) as raised:
            find([path])
        assert str(raised.value) == f"{path} cannot be read: Permission denied; give this user access to it"
