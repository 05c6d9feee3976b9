"""The guide to tests that use worlds: each of its bugs is found, and the mended application is the example."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from tests.support.tree import PYTHON_PATH, ROOT

GUIDE = (ROOT / "spec/testing.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples/booking"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
DRAFT, TEST, ENTER_ONCE, SELL_ON, ENTER_SYNCED = BLOCKS[:5]


def functions(source: str) -> dict[str, str]:
    return {
        node.name: str(ast.get_source_segment(source, node))
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def mended(program: str, *blocks: str) -> str:
    """The program with the imports of the example, and with the functions of the blocks."""
    example = (EXAMPLE / "booking.py").read_text(encoding="utf-8")
    parts = functions(program)
    for block in blocks:
        parts |= functions(block)
    return example[: example.index("async def sell")] + "\n\n\n".join(parts.values()) + "\n"


@attrs.frozen
class Stage:
    """A program of the guide, the faults of its test, and lines that pytest prints."""

    program: str
    faults: str
    printed: tuple[str, ...]
    status: int = 1


STAGES = {
    "sells twice": Stage(
        DRAFT, 'crash("app")', ("  crash of ", "AssertionError: assert ['order 0', '...order 5', ...]")
    ),
    "stops without stores": Stage(
        mended(DRAFT, ENTER_ONCE),
        'crash("app") | crash("store")',
        ("  crash of store", "NotRegistered: not currently registered with enough stores"),
    ),
    "loses with the power": Stage(
        mended(DRAFT, SELL_ON, ENTER_ONCE),
        'crash("app") | crash("store") | crash("app", power=True)',
        ("  crash (power) of office", "AssertionError"),
    ),
    "survives": Stage(
        mended(DRAFT, SELL_ON, ENTER_SYNCED),
        'crash("app") | crash("store") | crash("app", power=True)',
        ("::test_orders_are_booked_once: 15 worlds, ", "nothing found"),
        status=0,
    ),
}


def run_tests(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run pytest in a directory, as the reader of the guide does."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "stablecast.testing.plugin", "-p", "no:cacheprovider"]
    environment = {"PYTHONPATH": f"{PYTHON_PATH}:{directory}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", ".", *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_the_guide_holds(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "booking.py").write_text(stage.program, encoding="utf-8")
    test = re.sub("^FAULTS = .*$", f"FAULTS = {stage.faults}", TEST, flags=re.MULTILINE)
    (tmp_path / "test_booking.py").write_text(test, encoding="utf-8")
    done = run_tests(tmp_path, *(() if stage.status else ("--stablecast-seeds", "15")))
    assert done.returncode == stage.status, done.stdout + done.stderr
    for line in stage.printed:
        assert line in done.stdout, done.stdout


def test_the_example_passes() -> None:
    done = run_tests(EXAMPLE, "--stablecast-seeds", "10")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_guide_ends_with_the_example() -> None:
    example = (EXAMPLE / "booking.py").read_text(encoding="utf-8")
    assert functions(mended(DRAFT, SELL_ON, ENTER_SYNCED)) == functions(example)
    assert functions(TEST) == functions((EXAMPLE / "test_booking.py").read_text(encoding="utf-8"))


def test_the_application_has_thirty_lines() -> None:
    assert len([line for line in DRAFT.splitlines() if line]) <= 30
