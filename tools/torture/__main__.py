"""`make torture`: play histories of real processes with faults, and judge the guarantees meanwhile.

    python -m tools.torture                              play the short form, about a minute
    python -m tools.torture --histories 200 --seed 1000  play seeds 1000 to 1199
    python -m tools.torture --seed 7                     play one history
    python -m tools.torture --kind backlog --histories 5
    python -m tools.torture --plan FILE --keep DIR       play a kept plan, and keep all files in DIR

It needs root for network namespaces, mounts and loop devices. The exit status is 0 without violations, 1 with
violations, and 2 if histories cannot run here.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from tests.support.tree import PYTHON_PATH, ROOT
from tools.torture.history import arguments
from tools.torture.kinds import KINDS, draw
from tools.torture.plan import Plan
from tools.torture.plants import PLANTS

TOOLS = {
    "ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "mount": "mount", "mkfs.ext4": "e2fsprogs",
    "e2fsck": "e2fsprogs",
}  # fmt: skip
"""Programs, each with the package that contains it."""
LOOP = Path("/dev/loop-control")
HISTORY_SECONDS = 400.0
"""A history that takes longer hangs."""
SHORT = ("crashes", "partitions", "dialling", "directories", "backlog", "twins", "rates", "daemon")
"""Kinds of the short form: former faults, and the most common faults."""
AT_ONCE = 3
"""Number of histories that run at the same time."""

MOST_SEEDS = 9
"""Number of histories that may look for a plant."""


@attrs.frozen
class Outcome:
    """The result of one history: violations, and counts of messages by what happened to them."""

    plan: Plan
    violations: tuple[str, ...]
    counts: Counter[str]
    seconds: float


def obstacle() -> str:
    """Return why histories cannot run here and the remedy, or an empty string if they can."""
    packages = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if packages:
        return f"torture needs programs that are missing: run 'sudo apt-get install -y {' '.join(packages)}'."
    if os.geteuid() != 0:
        return "torture needs root for network namespaces, mounts and loop devices: run 'sudo make torture'."
    if not LOOP.exists():
        return f"torture needs loop devices, but {LOOP} is missing: run 'modprobe loop', or give them to the container."
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "ip", "link", "add", "b0", "type", "bridge"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return (
            "torture needs network namespaces with bridges, but this kernel or container refuses them "
            f"({done.stderr.strip()}): run it on a machine or in a privileged container that permits them."
        )
    return ""


def play(plan: Plan, place: Path, plant: str = "") -> Outcome:
    """Play a plan in an empty directory; return its outcome."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "plan.json").write_text(plan.text(), encoding="utf-8")
    with (place / "history.log").open("wb") as log:
        try:
            status = subprocess.run(
                arguments(place, plant), check=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=ROOT, env={**os.environ, "PYTHONPATH": PYTHON_PATH}, timeout=HISTORY_SECONDS,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status = -1
    try:
        verdict = json.loads((place / "verdict.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        last = (place / "history.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        text = f"tool: the history ended with status {status} without a verdict: {' '.join(last)}"
        return Outcome(plan, (text,), Counter(), 0.0)
    counts = Counter({name: verdict[name] for name in ("sent", "stable", "delivered", "confirmed")})
    return Outcome(plan, tuple(verdict["violations"]), counts, verdict["seconds"])


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make torture ARGS=...", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, help="play this seed, and with --histories the seeds after it")
    parser.add_argument("--histories", type=int, help="play this number of seeds")
    parser.add_argument("--kind", choices=sorted(KINDS), help="play plans of this kind only")
    parser.add_argument("--plan", type=Path, help="play this plan instead")
    parser.add_argument("--keep", type=Path, help="keep all files of the histories in this directory")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="run this many histories at a time (%(default)s)")
    parser.add_argument("--plant", choices=sorted(PLANTS), default="", help="revert one rule in every program")
    parser.add_argument("--plants", action="store_true", help="revert each rule in turn; histories must find each")
    parser.add_argument("--show", action="store_true", help="print the plans without playing them")
    return parser.parse_args(words)


def short_plans() -> list[Plan]:
    return [draw(1, kind) for kind in SHORT]


def plans(chosen: argparse.Namespace) -> list[Plan]:
    if chosen.plan:
        return [Plan.read(chosen.plan.read_text(encoding="utf-8"))]
    if chosen.seed is None and chosen.histories is None and not chosen.kind:
        return short_plans()
    first = 1 if chosen.seed is None else chosen.seed
    count = chosen.histories or 1
    return [draw(seed, chosen.kind or "") for seed in range(first, first + count)]


def summary(outcomes: list[Outcome], seconds: float) -> str:
    counts = sum((outcome.counts for outcome in outcomes), Counter[str]())
    bad = [outcome for outcome in outcomes if outcome.violations]
    rules = Counter(text.partition(":")[0] for outcome in bad for text in outcome.violations)
    found = ", ".join(f"{count} {rule}" for rule, count in sorted(rules.items())) or "no violation"
    return (
        f"torture: {len(outcomes)} histories in {seconds:.0f} s, {counts['sent']} sent, {counts['stable']} stable, "
        f"{counts['delivered']} delivered, {counts['confirmed']} confirmations: {found}"
    )


def search(plant: str, base: Path, at_once: int) -> str:
    """Play plans until one finds a plant; return a sentence about it, or an empty string if none does."""
    kind = PLANTS[plant][1]
    for first in range(1, 1 + MOST_SEEDS, at_once):
        todo = [draw(seed, kind) for seed in range(first, first + at_once)]
        with ThreadPoolExecutor(at_once) as pool:
            for outcome in pool.map(lambda plan: play(plan, base / f"{plant}-{plan.seed}", plant), todo):
                if outcome.violations:
                    return f"{plant}: found by seed {outcome.plan.seed} of {kind}: {outcome.violations[0]}"
    return ""


def plants(base: Path, at_once: int) -> int:
    """Look for every plant; return the exit status."""
    survivors = []
    for plant in PLANTS:
        found = search(plant, base, at_once)
        print(found or f"{plant}: survived {MOST_SEEDS} histories", flush=True)
        if not found:
            survivors.append(plant)
    print(f"torture: {len(PLANTS) - len(survivors)} of {len(PLANTS)} plants found")
    return int(bool(survivors))


def main(words: list[str]) -> int:
    chosen = options(words)
    todo = plans(chosen)
    if chosen.show:
        for plan in todo:
            print(plan.text())
        return 0
    if reason := obstacle():
        print(reason, file=sys.stderr)
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch, ThreadPoolExecutor(chosen.at_once) as pool:
        base = chosen.keep or Path(scratch)
        if chosen.plants:
            return plants(base, chosen.at_once)

        def one(plan: Plan) -> Outcome:
            place = base / f"{plan.kind}-{plan.seed}"
            shutil.rmtree(place, ignore_errors=True)
            outcome = play(plan, place, chosen.plant)
            result = "; ".join(outcome.violations) or "ok"
            print(f"seed {plan.seed} {plan.kind} ({outcome.seconds:.0f} s): {result}", flush=True)
            if not chosen.keep:
                shutil.rmtree(place, ignore_errors=True)
            return outcome

        outcomes = list(pool.map(one, todo))
    print(summary(outcomes, time.monotonic() - began))
    return int(any(outcome.violations for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
