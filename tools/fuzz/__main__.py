"""`make fuzz`: hand mutated bytes to every decoder and every reader of files, and count what they should not raise.

Atheris mutates the samples, and keeps in a corpus what runs new code. A finding is a file that `--show` reads again.
Not a dependency: `pip install atheris` brings it, for Python 3.11 and later.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs

from tests.support.tree import PYTHON_PATH, ROOT
from tools.fuzz.targets import TARGETS, Target

WORKER: Final = "tools.fuzz.worker"
DONE: Final = re.compile(r"Done (\d+) runs? in (\d+) second")
KNOWN: Final = re.compile(r"(\d+) files found|corp: (\d+)/")
MEMORY_RATIO: Final = 8
"""Bytes of memory that a reader of files may take for each byte of a file, beside `MEMORY_BYTES`."""
MEMORY_BYTES: Final = 64 << 20
CUTS: Final = 4
"""Changes of a file, at most, before its memory is measured."""


@attrs.frozen
class Found:
    """The result for a target: inputs, seconds, and the files of what it should not raise."""

    name: str
    inputs: int
    seconds: int
    findings: tuple[Path, ...]
    said: str


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some of them changed, repeated, left out or made extreme."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, CUTS)):
        at = chance.randrange(len(changed) + 1)
        stop = min(len(changed), at + chance.choice((1, 2, 4, 8, 64, 512)))
        match chance.randrange(5):
            case 0:
                changed[at:stop] = chance.randbytes(stop - at)
            case 1:
                changed[at:at] = changed[at:stop] * chance.choice((1, 2, 50))
            case 2:
                del changed[at:stop]
            case 3:
                changed[at:stop] = chance.choice((b"\0", b"\xff", b"\x7f", b"9")) * (stop - at)
            case _:
                other = chance.randrange(len(changed) + 1)
                changed[at:stop] = changed[other : other + stop - at]
    return bytes(changed)


def memory(target: Target, samples: Sequence[bytes], inputs: int, seed: int) -> tuple[float, int]:
    """Return how much of its limit the worst input took, and its size, of so many mutated files."""
    chance, worst = random.Random(seed), (0.0, 0)
    tracemalloc.start()
    try:
        for _ in range(inputs):
            data = mutated(chance.choice(samples), chance)
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            target.accepts(data)
            took = tracemalloc.get_traced_memory()[1] - before
            worst = max(worst, (took / (MEMORY_RATIO * len(data) + MEMORY_BYTES), len(data)))
    finally:
        tracemalloc.stop()
    return worst


def fuzz(name: str, arguments: argparse.Namespace) -> Found:
    corpus, faults = (Path(arguments.corpus) / part / name.replace(" ", "-") for part in ("corpus", "findings"))
    for folder in corpus, faults:
        folder.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        for number, sample in enumerate(TARGETS[name].samples()):
            (corpus / f"sample-{number}").write_bytes(sample)
    for path in faults.iterdir():
        path.unlink()
    limits = [f"-runs={arguments.inputs}", f"-max_total_time={arguments.seconds}", f"-seed={arguments.seed}"]
    command = [sys.executable, "-m", WORKER, name, str(corpus), f"-artifact_prefix={faults}/", "-timeout=20", *limits]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    said = done.stdout + done.stderr
    counted = DONE.search(said)
    inputs, seconds = (int(counted[1]), int(counted[2])) if counted else (0, 0)
    findings = tuple(sorted(faults.iterdir()))
    if done.returncode and not findings:
        raise SystemExit(f"{name}: the fuzzer ended with {done.returncode}:\n{said[-2000:]}")
    return Found(name, inputs, seconds, findings, said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--inputs", type=int, default=200_000, help="for each target, at most (-1: no limit)")
    parser.add_argument("--seconds", type=int, default=60, help="for each target, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--corpus", default=tempfile.gettempdir() + "/stablecast-fuzz", help="the folder that is kept")
    parser.add_argument("--memory", type=int, default=0, help="measure the memory of so many mutated files instead")
    parser.add_argument("--show", type=Path, help="read this finding by the target")
    arguments = parser.parse_args()
    for name in arguments.targets:
        if name not in TARGETS:
            parser.error(f"there is no target {name!r}: targets are {', '.join(TARGETS)}")
    names = arguments.targets or list(TARGETS)
    if arguments.show is not None:
        if len(names) != 1 or not arguments.show.is_file():
            parser.error(
                f"--show reads one file by one target: there is no file {arguments.show}, or no target is named"
            )
        taken = TARGETS[names[0]].accepts(arguments.show.read_bytes())
        print("accepted" if taken else "refused")
        return 0
    if arguments.memory:
        return _measure([name for name in names if TARGETS[name].file], arguments)
    if find_spec("atheris") is None:
        raise SystemExit("atheris is missing: pip install atheris")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        failed = inputs = 0
        for one in pool.map(lambda name: fuzz(name, arguments), names):
            inputs += one.inputs
            failed += bool(one.findings)
            rate = f"{one.inputs // max(1, one.seconds):,} a second"
            print(f"{one.name}: {one.inputs:,} inputs, {rate}, {len(one.findings)} findings", flush=True)
            for path in one.findings:
                print(f"  {path}\n{_last_lines(one.said)}")
    print(f"{inputs:,} inputs, {failed} of {len(names)} targets raised what they should not")
    return 1 if failed else 0


def _measure(names: Sequence[str], arguments: argparse.Namespace) -> int:
    over = 0
    for name in names:
        samples = list(TARGETS[name].samples())
        share, size = memory(TARGETS[name], samples, arguments.memory, arguments.seed)
        over += share > 1
        print(
            f"{name}: {arguments.memory:,} files, the worst took {share:.1%} of its limit ({size:,} bytes)", flush=True
        )
    return 1 if over else 0


def _last_lines(said: str) -> str:
    at = said.find("Uncaught Python exception")
    return said[at : at + 1500] if at >= 0 else said[-800:]


if __name__ == "__main__":
    sys.exit(main())
