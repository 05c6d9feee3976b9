"""A release: its files, its words, and what a newcomer's terminal accepts. `make release` installs and uses it."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.support.tree import ROOT
from tools.release.distributions import PROJECT, build, series
from tools.release.environments import ReleaseError
from tools.release.terminals import Terminals

CHANGES: Final = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_changelog_signs_off_the_release() -> None:
    releases = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", CHANGES, re.MULTILINE)
    assert releases[0][0] == PROJECT["version"]
    assert releases == sorted(releases, reverse=True)
    assert CHANGES.index("## [Unreleased]") < CHANGES.index(f"## [{PROJECT['version']}]")


def test_the_oldest_python_is_the_one_that_is_required() -> None:
    assert PROJECT["requires-python"] == f">={series()[0]}"
    versions = re.search(r"^VERSIONS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions is not None
    assert versions[1].split() == [series()[0], series()[-1]]


def test_the_wheel_has_the_types_the_licence_and_the_program(tmp_path: Path) -> None:
    members = build(tmp_path, sources=False).members()
    assert {name.partition("/")[0] for name in members} == {"stablecast", f"stablecast-{PROJECT['version']}.dist-info"}
    packages = {name.rpartition("/")[0] for name in members if name.endswith("/__init__.py")}
    typed = {name.rpartition("/")[0] for name in members if name.endswith("/py.typed")}
    assert all(any(package == one or package.startswith(f"{one}/") for one in typed) for package in packages)
    assert any(name.endswith("licenses/LICENSE") for name in members)
    assert any(name.endswith("entry_points.txt") for name in members)


def test_a_terminal_finds_other_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo order 17 is stable\norder 3 is stable\n```\n", encoding="utf-8")
    terminals = Terminals(tmp_path, {"PATH": "/usr/bin:/bin"})
    try:
        assert list(terminals.follow(page)) == ["echo order 17 is stable"]
        page.write_text("```console\n$ echo nothing; exit 0\norder 3 is stable\n```\n", encoding="utf-8")
        with pytest.raises(ReleaseError, match="no line like"):
            list(terminals.follow(page))
    finally:
        terminals.close()
