"""An archive whose folder is removed while it is written: nothing that is gone is acknowledged to the stores."""

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.left_out import NO_SPARK

pytest.importorskip("pyarrow", reason=NO_SPARK)

from stablecast.archive.archiver import ArchiveRun, opened
from stablecast.archive.manifest import ArchivedFile, ArchivedSource, ArchiveError


def written(folder: Path) -> None:
    (folder / "day").mkdir(parents=True)
    (folder / "day" / "1.parquet").write_bytes(b"")


def replaced(folder: Path) -> None:
    shutil.rmtree(folder)
    written(folder)


@pytest.mark.parametrize(
    ("change", "refused"),
    [(written, False), (lambda _: None, True), (replaced, True)],
    ids=["written", "file-gone", "folder-replaced"],
)
def test_only_files_that_are_there_are_acknowledged(
    change: Callable[[Path], None], refused: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "orders"
    acknowledged: list[tuple[str, int]] = []
    consumer: Any = SimpleNamespace(acknowledge=lambda name, stop: acknowledged.append((name, stop)))
    terms: Any = SimpleNamespace(folder=folder)
    context: Any = None

    def finish() -> list[ArchivedFile]:
        change(folder)
        return [ArchivedFile("day/1.parquet", "a", 0, 3, 3, 3, None, None)]

    writer: Any = SimpleNamespace(rows=3, finish=finish)
    with opened(folder, "orders") as manifest:
        manifest.sources["a"] = ArchivedSource("1", 0, 0)
        run = ArchiveRun(terms, context, manifest, consumer)
        with pytest.raises(ArchiveError, match="removed or replaced") if refused else nullcontext():
            run._save("a", writer, [], 3)
    assert acknowledged == ([] if refused else [("a", 3)])
