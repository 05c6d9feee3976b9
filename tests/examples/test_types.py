"""Type checkers find nothing in users' code. `python -m tests.examples.checked_types` checks each Python by both.

Each run also gets a file with one mistake, so that a checker that looks at nothing fails.
"""

from pathlib import Path

import pytest

from tests.examples.checked_types import VERSIONS, Checker, mypy, pyright, users_files

MISTAKE = """\
from stablecast.client import Message


def f(message: Message) -> int:
    return message.key
"""


@pytest.mark.parametrize(("checker", "version"), [(mypy, VERSIONS[-1]), (pyright, VERSIONS[0])])
def test_the_only_mistake_is_the_planted_one(checker: Checker, version: str, tmp_path: Path) -> None:
    files = users_files(tmp_path)
    assert len(files) >= 8
    wrong = tmp_path / "wrong.py"
    wrong.write_text(MISTAKE)
    found = checker([*files, wrong], version, tmp_path)
    assert "1 error" in found, found
    assert "wrong.py" in found
