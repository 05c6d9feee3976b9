"""The evidence bundle: a folder with the output of each part, the hashes of what was run, and a page that names all.

A part that this machine cannot run is listed with the reason. It is never left out.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import attrs

from tests.support.tree import ROOT, name
from tools.evidence.parts import Part, command
from tools.release.distributions import PROJECT, build, sha256

OUTPUT: Final = ROOT / "build" / "evidence"


class Verdict(StrEnum):
    """Name how a part ended."""

    SHOWN = "shown"
    FAILED = "failed"
    MISSING = "missing"


@attrs.frozen
class Finding:
    """Hold how a part ended: its verdict, the reason if something is missing, its command, file, hash and seconds."""

    part: str
    claim: str
    verdict: Verdict
    reason: str = ""
    command: str = ""
    file: str = ""
    sha256: str = ""
    seconds: float = 0.0


def shown(part: Part, folder: Path, *, full: bool) -> Finding:
    """Run a part, or find out why it cannot run here; return what was found."""
    words = command(part, full=full)
    line = " ".join(["python", *words[1:]])
    lack = part.lacks() if words else "the short form leaves it out: use --full"
    if lack:
        return Finding(part.name, part.claim, Verdict.MISSING, lack, line if words else "")
    path = folder / f"{part.name}.txt"
    begin = time.monotonic()
    with path.open("w", encoding="utf-8") as output:
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
        done = subprocess.run(
            words,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=False,
        )
    seconds = round(time.monotonic() - begin, 1)
    verdict = Verdict.FAILED if done.returncode else Verdict.SHOWN
    reason = f"exit status {done.returncode}" if done.returncode else ""
    return Finding(part.name, part.claim, verdict, reason, line, path.name, sha256(path), seconds)


def hashes(folder: Path) -> Finding:
    """Write the hashes of what was run: the commit, the recorded graphs, and the distributions."""
    made = build(folder)
    commit, changed = _git("rev-parse", "HEAD").strip(), _git("status", "--porcelain")
    recorded = sorted((ROOT / "tla").glob("*.json"))
    lines = [f"{sha256(path)}  {name(path)}" for path in recorded]
    lines += [f"{sha256(path)}  {path.name}" for path in made.files]
    lines += [f"commit {commit or 'unknown: this is no checkout'}"]
    lines += [f"changed {one}" for one in changed.splitlines()]
    lines += [f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"]
    path = folder / "hashes.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    claim = "the commit, the recorded graphs and the distributions; equal sources give equal distributions"
    reason = "the checkout has changes that no commit has" if changed else ""
    return Finding("hashes", claim, Verdict.FAILED if reason else Verdict.SHOWN, reason, "", path.name, sha256(path))


def _git(*arguments: str) -> str:
    """Return what git prints, or nothing outside of a checkout."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def collect(parts: Iterable[Part], folder: Path = OUTPUT, *, full: bool) -> list[Finding]:
    folder.mkdir(parents=True, exist_ok=True)
    findings = [hashes(folder)]
    for part in parts:
        print(f"{part.name} ...", flush=True)
        findings.append(shown(part, folder, full=full))
        print(f"  {findings[-1].verdict} {findings[-1].reason}".rstrip(), flush=True)
    manifest = [attrs.asdict(one) for one in findings]
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(page(findings, full=full), encoding="utf-8")
    return findings


def page(findings: Sequence[Finding], *, full: bool) -> str:
    form = "full" if full else "short"
    rows = "\n".join(
        f"| {one.part} | {one.verdict} | {one.claim} | {one.reason or one.file} | `{one.command}` | {one.seconds:g} s |"
        for one in findings
    )
    counts = ", ".join(f"{sum(one.verdict is verdict for one in findings)} {verdict}" for verdict in Verdict)
    return f"""# Evidence for stablecast {PROJECT["version"]}

This is the {form} form: {counts}. `hashes.txt` has the commit. To rebuild the bundle, check out that commit and run
`make evidence{" ARGS=--full" if full else ""}`. Agreement and torture make network namespaces, which needs root.
Models need the TLA+ checker: `TLA2TOOLS_JAR=/path/to/tla2tools.jar make evidence`.

Verdicts, graphs, proofs and the digests of seeds repeat exactly. Times and benchmarks do not.

| part | verdict | it shows | output, or what is missing | command | took |
|---|---|---|---|---|---|
{rows}
"""
