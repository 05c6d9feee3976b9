"""What builds install, and what is shipped: locked, with hashes, under licences that are allowed."""

import importlib.metadata
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.tree import ROOT
from tools.release import supply
from tools.release.distributions import PROJECT
from tools.release.environments import ReleaseError
from tools.release.supply import BUILD, RUNTIME, licences, pins

ACTION = re.compile(r"uses: (\S+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$")


def required(names: Iterable[str]) -> set[str]:
    """Return these libraries with all that they need here, as their installed releases say."""
    found: set[str] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in found or not (one.marker is None or one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += map(Requirement, importlib.metadata.requires(name) or ())
    return found


def test_all_that_an_installation_needs_is_locked() -> None:
    """`make locked` writes the file. A new dependency needs it, and so does one of a dependency."""
    assert required(PROJECT["dependencies"]) <= {*pins(RUNTIME)}


@pytest.mark.parametrize(
    ("file", "declared"),
    [
        (RUNTIME, PROJECT["dependencies"]),
        (BUILD, [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["release"]]),
    ],
    ids=["runtime", "build"],
)
def test_what_is_locked_is_what_the_project_declares(file: Path, declared: list[str]) -> None:
    locked = pins(file)
    for one in map(Requirement, declared):
        assert one.specifier.contains(locked[canonicalize_name(one.name)]), one.name


@pytest.mark.parametrize("file", [RUNTIME, BUILD], ids=["runtime", "build"])
def test_each_locked_version_has_hashes(file: Path) -> None:
    parts = re.split(r"\n(?=\S)", file.read_text(encoding="utf-8").strip())
    assert len(parts) == len(pins(file))
    assert all("--hash=sha256:" in part for part in parts)


def test_licences_of_what_is_shipped_are_allowed() -> None:
    assert len(list(licences())) >= len(PROJECT["dependencies"])


def test_another_licence_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = supply.licence
    monkeypatch.setattr(supply, "licence", lambda name: "GPL-3.0-only" if name == "attrs" else stated(name))
    with pytest.raises(ReleaseError, match=r"not allowed: attrs;"):
        list(licences())


def test_workflows_name_actions_by_digest() -> None:
    files = sorted((ROOT / ".github" / "workflows").iterdir())
    used = [line.strip() for file in files for line in file.read_text().splitlines() if "uses:" in line]
    assert len(used) > 10
    assert [line for line in used if not ACTION.search(line)] == []


def test_what_is_released_is_attested() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    job = jobs["announce"]
    assert job["permissions"] == {"contents": "write", "id-token": "write", "attestations": "write"}
    (subjects,) = (step["with"]["subject-path"] for step in job["steps"] if "attest" in step.get("uses", ""))
    released = next(step["run"] for step in job["steps"] if "gh release" in step.get("run", ""))
    assert all(subject in released for subject in subjects.split())
