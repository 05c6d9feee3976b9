"""The chapter of models agrees with the recorded graphs."""

import os

from stablecast.lab.model import catalog
from tests.support import model_chapter as chapter
from tests.support.tree import ROOT

PAGE = ROOT / "spec" / "models.md"


def test_the_chapter_agrees_with_the_record() -> None:
    written, mark, shown = PAGE.read_text(encoding="utf-8").partition(chapter.MARK)
    rendered = "\n" + chapter.render(catalog.folder())
    if os.environ.get("STABLECAST_REWRITE"):
        PAGE.write_text(written + chapter.MARK + rendered, encoding="utf-8")
    else:
        assert mark
        assert shown == rendered
