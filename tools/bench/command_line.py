"""The command lines of benchmarks. An error is one sentence and an exit status."""

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
from tools.bench.roles import BenchError
from tools.bench.scenario import Options

LEAST_MESSAGES: Final = 1000
"""Smallest number of messages. Some scenarios use a share of them, which would be empty."""

LEAST_SIZE: Final = 8
"""Smallest payload: the bytes of the send time in a payload of the latency scenario."""

MOST_SIZE: Final = 8000
"""Largest payload that fits into one datagram of the default size, with all headers (bytes)."""

SCANT: Final = 64 << 20
"""Free bytes below which a journal may find no room for its next segment."""

FAST_SOURCES: Final = 2000
"""Number of sources over sockets with `--fast`, because ten thousand take two minutes."""


class Parser(argparse.ArgumentParser):
    """A parser that reports an error without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print one sentence and exit with status 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the argument type of a whole number from `least` to `most`."""

    def read(text: str) -> int:
        wanted = f"at least {least}" if most is None else f"{least} to {most}"
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number: give {wanted}") from None
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{value} is out of bounds: give {wanted}")
        return value

    return read


def folder(text: str) -> Path:
    """Return an argument as a directory that exists and is writable."""
    place = Path(text)
    if not place.is_dir():
        raise argparse.ArgumentTypeError(f"the directory {place} does not exist: make it, or name another one")
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{place} is not writable: {error.strerror}") from None
    return place


def results(text: str) -> Path:
    """Return an argument as a file in a directory that exists."""
    place = Path(text)
    if place.is_dir():
        raise argparse.ArgumentTypeError(f"{place} is a directory: name a file")
    folder(str(place.parent))
    return place


def harness(text: str) -> Path:
    """Return an argument as a directory with a harness of peers."""
    place = Path(text)
    if not any((at / "run_all.py").is_file() for at in (place, place / "peers")):
        raise argparse.ArgumentTypeError(f"{place} has no run_all.py: name the folder of a harness of peers")
    return place


@contextmanager
def short_errors(program: str) -> Iterator[None]:
    """End the program with one sentence and an error status, instead of a traceback, if a person can fix the cause."""
    try:
        yield
    except (BenchError, StablecastError) as error:
        sys.exit(f"{program}: {error}")
    except OSError as error:
        sys.exit(f"{program}: {sentence(error)}")
    except ModuleNotFoundError as error:
        sys.exit(f"{program}: {error.name} is missing: run 'make .venv EXTRAS=all'")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


@contextmanager
def disk_space_errors(directory: Path) -> Iterator[None]:
    """Report any error as a full disk if the disk is nearly full.

    The writer may be another process that only reports that it died.

    Raises:
        BenchError: If the body fails while the disk has hardly any room.
    """
    try:
        yield
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and shutil.disk_usage(directory).free >= SCANT:
            raise
        last = str(error).strip().rpartition("\n")[2]
        raise BenchError(f"{directory} has no room left ({last}): free some, or name another directory") from error


@attrs.frozen
class Request:
    """The request of one run of `make bench`. `whole` is True if the command line names no scenario."""

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
        """Return the request for machines, so that the results of a stopped run show what is missing."""
        return {
            "scenarios": list(self.scenarios),
            "core": self.whole,
            "peers": None if self.harness is None else str(self.harness),
            "fast": self.fast,
            "trace": self.options.trace,
            "sources": self.options.sources,
            "directory": str(self.options.directory or tempfile.gettempdir()),
        }


def parse(arguments: Sequence[str] | None, known: Sequence[str], about: str) -> Request:
    """Parse the command line; `known` are the names of all scenarios. Exits with one sentence if it is wrong."""
    parser = Parser(prog="make bench", description=about)
    fast = f"run one round with fewer messages and {FAST_SOURCES:,} sources over sockets: all in three minutes"
    default = Options()
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"default: all of {', '.join(known)}")
    parser.add_argument(
        "--messages", type=number(LEAST_MESSAGES), default=default.messages, help="messages in each run"
    )
    parser.add_argument("--size", type=number(LEAST_SIZE, MOST_SIZE), default=default.size, help="bytes of a payload")
    parser.add_argument("--flight", type=number(1), default=default.flight, help="ume_flight_size of the source")
    parser.add_argument("--rounds", type=number(1), default=default.rounds, help="runs of every system")
    parser.add_argument("--fast", action="store_true", help=fast)
    parser.add_argument(
        "--peers", type=harness, metavar="DIR", help="measure other systems too, with the harness in DIR"
    )
    parser.add_argument("--peers-python", default=sys.executable, help="an interpreter that has the peers' clients")
    parser.add_argument("--peers-only", default="", metavar="TEXT", help="measure only peers whose name contains TEXT")
    parser.add_argument("--trace", action="store_true", help="measure with traces as well")
    parser.add_argument("--directory", type=folder, help="a directory on the disk to measure; default: temporary files")
    parser.add_argument("--output", type=results, default="bench.json", help="write the results as JSON to this file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.parse_args(arguments)
    if unknown := set(given.scenarios) - set(known):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    options = Options(given.messages, given.size, given.flight, given.rounds, given.directory, given.trace)
    return Request(
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
