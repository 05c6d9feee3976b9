"""What benchmarks are asked for on their command lines; what is wrong with it is one sentence and a status."""

import argparse
import errno
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import attrs

from stablecast.core.errors import StablecastError
from stablecast.text.exit_status import INTERRUPTED
from stablecast.text.sentences import sentence
from tests.bench.roles import BenchError
from tests.bench.scenario import Options

LEAST_MESSAGES: Final = 1000
"""Of fewer the scenarios that take a share of them have none left."""

LEAST_SIZE: Final = 8
"""Bytes of the instant that a payload carries where latency is measured."""

MOST_SIZE: Final = 8000
"""Bytes of a payload that go into one datagram of the default size, with all headers."""

SCANT: Final = 64 << 20
"""Bytes: where fewer are free a journal finds no room for its next segment."""

FAST_SOURCES: Final = 2000
"""Over sockets: ten thousand take two of the minutes that a look should."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong, and not how to ask for everything else."""

    def error(self, message: str) -> NoReturn:
        """One sentence."""
        self.exit(2, f"{self.prog}: {message}\n")


def number(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an argument: a whole number from `least` on, up to `most`."""

    def read(text: str) -> int:
        wanted = f"at least {least}" if most is None else f"{least} to {most}"
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number: give {wanted}") from None
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{value} is out of bounds: give {wanted}")
        return value

    return read


def folder(text: str) -> Path:
    """The type of an argument: a directory that is there and can be written to."""
    place = Path(text)
    if not place.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {place}: make it, or name another one")
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"nothing can be written into {place}: {error.strerror}") from None
    return place


def results(text: str) -> Path:
    """The type of an argument: a file in a directory that is there."""
    place = Path(text)
    if place.is_dir():
        raise argparse.ArgumentTypeError(f"{place} is a directory: name a file")
    folder(str(place.parent))
    return place


def harness(text: str) -> Path:
    """The type of an argument: a directory with a harness of peers."""
    place = Path(text)
    if not any((at / "run_all.py").is_file() for at in (place, place / "peers")):
        raise argparse.ArgumentTypeError(f"there is no run_all.py in {place}: name the folder of a harness of peers")
    return place


@contextmanager
def told(program: str) -> Iterator[None]:
    """What a person can mend ends the program with one sentence and a status that is not 0."""
    try:
        yield
    except (BenchError, StablecastError) as error:
        sys.exit(f"{program}: {error}")
    except OSError as error:
        sys.exit(f"{program}: {sentence(error)}")
    except ModuleNotFoundError as error:
        sys.exit(f"{program}: {error.name} is missing: make .venv EXTRAS=all has it")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


@contextmanager
def room(directory: Path) -> Iterator[None]:
    """What fails while the disk is full fails because of that: who writes may be a process that says something else.

    Raises BenchError.
    """
    try:
        yield
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and shutil.disk_usage(directory).free >= SCANT:
            raise
        last = str(error).strip().rpartition("\n")[2]
        raise BenchError(f"{directory} has no room left ({last}): make some, or name another place") from error


@attrs.frozen
class Asked:
    """A run of `make bench`: `scenarios` by name, in their order; `whole` if nobody chose."""

    scenarios: Sequence[str]
    whole: bool
    fast: bool
    options: Options
    output: Path
    to_machine: bool
    harness: Path | None
    python: str
    only: str

    def as_json(self) -> dict[str, object]:
        """What is to come, for whoever reads the results of a run that was stopped."""
        return {
            "scenarios": list(self.scenarios),
            "core": self.whole,
            "peers": None if self.harness is None else str(self.harness),
            "fast": self.fast,
            "trace": self.options.trace,
            "sources": self.options.sources,
            "directory": str(self.options.directory or tempfile.gettempdir()),
        }


def asked(arguments: Sequence[str] | None, known: Sequence[str], about: str) -> Asked:
    """The command line; `known` are all scenarios. Exits with a sentence if it asks for what there is not."""
    parser = Parser(prog="make bench", description=about)
    fewer = f"one round, fewer messages, {FAST_SOURCES:,} sources over sockets: less than three minutes for all"
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--messages", type=number(LEAST_MESSAGES), default=Options().messages, help="in each run")
    parser.add_argument("--size", type=number(LEAST_SIZE, MOST_SIZE), default=Options().size, help="bytes of a payload")
    parser.add_argument("--flight", type=number(1), default=Options().flight, help="ume_flight_size")
    parser.add_argument("--rounds", type=number(1), default=Options().rounds, help="turns of every system")
    parser.add_argument("--fast", action="store_true", help=fewer)
    parser.add_argument("--peers", type=harness, metavar="DIR", help="measure other systems too, by the harness in DIR")
    parser.add_argument("--peers-python", default=sys.executable, help="an interpreter that has their clients")
    parser.add_argument("--peers-only", default="", metavar="TEXT", help="only those of them whose name contains this")
    parser.add_argument("--trace", action="store_true", help="measure with traces as well")
    parser.add_argument("--directory", type=folder, help="on the disk to measure; else the temporary folder")
    parser.add_argument("--output", type=results, default="bench.json", help="the results for machines, by scenario")
    parser.add_argument("--json", action="store_true", help="print these rather than tables")
    given = parser.parse_args(arguments)
    if unknown := set(given.scenarios) - set(known):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}: choose of {', '.join(known)}")
    options = Options(given.messages, given.size, given.flight, given.rounds, given.directory, given.trace)
    return Asked(
        list(dict.fromkeys(given.scenarios)) or list(known),
        not given.scenarios,
        given.fast,
        attrs.evolve(options, messages=100_000, rounds=1, sources=FAST_SOURCES) if given.fast else options,
        given.output,
        given.json,
        given.peers,
        given.peers_python,
        given.peers_only,
    )
