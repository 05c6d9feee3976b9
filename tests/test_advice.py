"""The chapter of advice, which states each row that no program can show, names options that exist."""

import re

from stablecast.config.options import SCOPES
from tests.support.tree import ROOT

TEXT = (ROOT / "spec" / "advice.md").read_text(encoding="utf-8")


def test_options_of_the_chapter_exist() -> None:
    known = {option.name for scope in SCOPES.values() for option in scope}
    named = {name for name in re.findall(r"`([a-z]+[-_][\w-]+)`", TEXT) if not name.startswith("test_")}
    assert named <= known
