"""The house rules that a machine can read: whole packages, no stray names, links that lead somewhere."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.tree import LAYERS, ROOT, name, package_folders, python_files, text_files

VENDOR = re.compile(
    r"\b(?:29\s?west|informatica|ultra\s?messaging|latency\s?busters|umestored(?!-cache|-state)|umercv|umesrc|tibco|solace|lbm_\w+)\b",
    re.IGNORECASE,
)
"""Product names. Terms of the protocol (lbmrd, SRS, LBT-RM, LBMC, ume_flight_size) and documented values are not."""
MACHINE = re.compile(r"(?<![\w.:])/(?:home|root|Users|work|workspace|builds|mnt)/\w")
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")

MAY_NAME_VENDORS = (
    "README.md",
    "handbook/howto/from-ultra-messaging.md",
    "spec/",
    "tests/test_tidy.py",
    "adapters/stablecast/config/plan_assembly.py",  # the documented name of an application, which files rely on
    "tests/adapters/cli/test_check.py",
)
"""The files that name what is implemented, and this list itself."""

SUSPECT = re.compile(r"timeout\((?!\))|timeout=\d|wait_for\(|communicate\(\d|until\(")
LIMITS = {"asyncio.timeout": 0, "mark.timeout": 0, "settimeout": 0, "asyncio.wait_for": 1, "communicate": 1, "until": 1}
"""Calls that give up after a time, and the place of that time among their arguments."""


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def lines_with(pattern: re.Pattern[str], path: Path) -> list[str]:
    """`file:line: found` for each line of the file in which the pattern occurs."""
    lines = _read(path).splitlines()
    hits = ((number, pattern.search(line)) for number, line in enumerate(lines, 1))
    return [f"{name(path)}:{number}: {hit[0]}" for number, hit in hits if hit]


@pytest.mark.parametrize("layer", LAYERS)
def test_portions_have_no_init(layer: str) -> None:
    """One such file would hide the other two portions at run time, and mypy would not say so."""
    assert not (ROOT / layer / "stablecast" / "__init__.py").exists()


def test_packages_are_whole() -> None:
    needed = ("__init__.py", "py.typed")
    packages = [p for layer in LAYERS for p in package_folders(layer)]
    missing = [name(p / file) for p in packages for file in needed if not (p / file).is_file()]
    assert packages
    assert not missing, "\n".join(missing)


def test_subpackages_are_packages() -> None:
    """A folder of modules without `__init__.py` works until something is named like it elsewhere."""
    folders = {path.parent for path in python_files(*LAYERS)}
    missing = sorted(name(f / "__init__.py") for f in folders if not (f / "__init__.py").is_file())
    assert not missing, "\n".join(missing)


def test_no_vendor_names() -> None:
    files = [p for p in text_files() if not name(p).startswith(MAY_NAME_VENDORS)]
    named = [hit for path in files for hit in lines_with(VENDOR, path)]
    assert not named, "\n".join(named)


def test_no_paths_of_a_machine() -> None:
    paths = [hit for path in text_files() for hit in lines_with(MACHINE, path)]
    assert not paths, "\n".join(paths)


@pytest.mark.parametrize("text", ["Ultra Messaging 6.17", "the umestored daemon", "29West", "lbm_src_send()"])
def test_vendor_names_are_seen(text: str) -> None:
    assert VENDOR.search(text)


@pytest.mark.parametrize("text", ["lbmrd", "LBT-RM", "ume_flight_size", "LBMC", "lbmr", "UmeSessionId"])
def test_terms_of_the_protocol_are_not_vendor_names(text: str) -> None:
    assert not VENDOR.search(text)


def test_links_in_documents_lead_somewhere() -> None:
    documents = [p for p in text_files() if p.suffix == ".md"]
    links = [(p, link) for p in documents for link in LINK.findall(_read(p))]
    broken = [f"{name(p)}: {link}" for p, link in links if not (p.parent / link).exists()]
    assert not broken, "\n".join(broken)


def test_every_chapter_is_in_the_contents() -> None:
    contents = set(LINK.findall(_read(ROOT / "spec" / "README.md")))
    chapters = {p.relative_to(ROOT / "spec").as_posix() for p in (ROOT / "spec").rglob("*.md")} - {"README.md"}
    assert not chapters - contents, "\n".join(sorted(chapters - contents))


def limits_in_seconds(source: str) -> list[int]:
    """Return the lines of a test on which it gives up waiting after a number of seconds of its own."""
    found = []
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        called = ast.unparse(call.func)
        places = [place for name, place in LIMITS.items() if called.endswith(name)]
        within = [one for place in places for one in call.args[place : place + 1]]
        if places or called == "subprocess.run":
            within += [one.value for one in call.keywords if one.arg in ("timeout", "seconds")]
        numbers = [one for one in within if isinstance(one, ast.Constant)]
        found += [one.lineno for one in numbers if isinstance(one.value, int | float) and one.value >= 1]
    return found


def test_a_hang_is_one_number() -> None:
    """The limit of pytest ends a test that hangs; a shorter one fails on slow machines. Worlds have their own clock."""
    tests = [path for path in python_files("tests") if "/world/" not in name(path)]
    texts = {name(path): _read(path) for path in tests}
    found = [
        f"{file}:{line}" for file, text in texts.items() if SUSPECT.search(text) for line in limits_in_seconds(text)
    ]
    assert not found, "\n".join(found)
    sample = "asyncio.timeout(5)\nasyncio.wait_for(x, 0.01)\nasyncio.wait_for(x, 30)\nsubprocess.run(c, timeout=60)"
    assert limits_in_seconds(f"{sample}\nuntil(f, 20)\nuntil(f)") == [1, 3, 4, 5]
