"""Parts of the evidence bundle: the commands that make them, and what a machine needs to run them."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from tests.support.namespaces import reason_to_skip

JAR: Final = "TLA2TOOLS_JAR"
"""Variable with the path of the TLA+ checker."""


@attrs.frozen
class Part:
    """A part of the bundle.

    Attributes:
        name: The name of its file.
        claim: What it shows.
        short: The arguments of Python in the short form, which takes minutes in all; none: only in the full form.
        full: The arguments in the full form, which takes a night.
        lacks: Returns what this machine lacks for it, or nothing.
    """

    name: str
    claim: str
    short: Sequence[str]
    full: Sequence[str]
    lacks: Callable[[], str] = str


def _lacks_checker() -> str:
    if not os.environ.get(JAR) or not Path(os.environ[JAR]).is_file():
        return f"the TLA+ checker: download tla2tools.jar and set {JAR} to its path"
    return "" if shutil.which("java") else "a Java, on which the TLA+ checker runs"


def _lacks_solvers() -> str:
    missing = [name for name in ("z3", "cvc5") if importlib.util.find_spec(name) is None]
    return f"the extra prove ({', '.join(missing)})" if missing else ""


def _lacks_root() -> str:
    return reason_to_skip() or ""


def _lacks_nothing() -> str:
    return ""


def _stablecast(*arguments: str) -> tuple[str, ...]:
    return "-m", "stablecast.cli.main", *arguments


PARTS: Final = (
    Part(
        "models",
        "the models in tla/ have the properties that they promise, and lose them without each repair",
        _stablecast("model", "check", "Refill/graph_small", "Refill/doc_early", "Registration/graph_small"),
        _stablecast("model", "check"),
        _lacks_checker,
    ),
    Part(
        "graphs",
        "the core has the state graphs of the models, by the digests in tla/graphs.json",
        _stablecast("model", "equal", "Refill/graph_small", "Recovery/graph_small", "Registration/graph_small"),
        _stablecast("model", "equal"),
    ),
    Part(
        "proof",
        "two solvers prove stability and registration for any number of stores, lives and messages",
        _stablecast("model", "prove", "Registration"),
        _stablecast("model", "prove"),
        _lacks_solvers,
    ),
    Part(
        "tie",
        "the proofs speak of the graphs of the core",
        (),
        _stablecast("model", "tie"),
        _lacks_solvers,
    ),
    Part(
        "seeds",
        "no simulated world breaks a promise; the digests repeat each world",
        _stablecast("sim", "--seeds", "200", "--digests"),
        _stablecast("sim", "--seeds", "20000", "--digests"),
    ),
    Part(
        "whole",
        "no world of the shipped programs breaks a promise",
        _stablecast("sim", "--whole", "--seeds", "20"),
        _stablecast("sim", "--whole", "--seeds", "2000", "--wipe"),
    ),
    Part(
        "agreement",
        "simulated worlds and real processes end alike",
        ("-m", "tools.agreement", "--schedules", "6", "--at-once", "1"),
        ("-m", "tools.agreement"),
        _lacks_root,
    ),
    Part(
        "torture",
        "real processes keep the guarantees while they and their hosts fail",
        ("-m", "tools.torture", "--seed", "1", "--histories", "3"),
        ("-m", "tools.torture", "--seed", "1", "--histories", "300"),
        _lacks_root,
    ),
    Part(
        "bench",
        "what it costs, on this machine",
        ("-m", "tools.bench", "throughput", "latency", "--fast"),
        ("-m", "tools.bench"),
    ),
)


def command(part: Part, *, full: bool) -> list[str]:
    """Return the command of a part; it is empty if the form leaves the part out."""
    arguments = part.full if full else part.short
    return [sys.executable, *arguments] if arguments else []
