"""The evidence bundle: a part that fails is told from one that is missing, and neither is left out."""

import json
from pathlib import Path

from tools.evidence.bundle import Finding, Verdict, page, shown
from tools.evidence.parts import PARTS, Part, command

GOOD = Part("good", "one is one", ("-c", "print(1)"), ("-c", "print(1)"))
BAD = Part("bad", "one is two", ("-c", "print(1); raise SystemExit(3)"), ())
FAR = Part("far", "nothing", ("-c", "print(1)"), ("-c", "print(1)"), lambda: "a telescope")
LONG = Part("long", "much", (), ("-c", "print(1)"))


def test_each_part_ends_with_its_verdict(tmp_path: Path) -> None:
    found = {part.name: shown(part, tmp_path, full=False) for part in (GOOD, BAD, FAR, LONG)}
    assert [one.verdict for one in found.values()] == [Verdict.SHOWN, Verdict.FAILED, Verdict.MISSING, Verdict.MISSING]
    assert (tmp_path / "good.txt").read_text() == "1\n"
    assert found["bad"].reason == "exit status 3"
    assert found["far"].reason == "a telescope"
    assert "--full" in found["long"].reason
    text = page(list(found.values()), full=False)
    assert "1 shown, 1 failed, 2 missing" in text
    assert all(f"| {name} |" in text for name in found)
    assert json.dumps(found["good"].sha256)


def test_the_full_form_has_every_part() -> None:
    assert all(command(part, full=True) for part in PARTS)
    assert {"models", "graphs", "seeds", "agreement", "torture", "bench"} <= {part.name for part in PARTS}
    assert isinstance(page([Finding("a", "b", Verdict.SHOWN)], full=True), str)
