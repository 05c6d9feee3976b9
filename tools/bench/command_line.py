"""The command line of `make bench`. What a person can mend is one sentence and an exit status."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.text.exit_status import INTERRUPTED
from stablecast.text.sentences import sentence
from tools.bench.roles import BenchError
from tools.bench.scenario import Options

FAST_SOURCES: Final = 2000
"""Number of sources over sockets with `--fast`, because ten thousand take two minutes."""


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
    """Parse the command line; `known` are the names of all scenarios. Exits if it is wrong."""
    parser = argparse.ArgumentParser(prog="make bench", description=about)
    fast = f"run one round with fewer messages and {FAST_SOURCES:,} sources over sockets: all in three minutes"
    default = Options()
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--messages", type=int, default=default.messages, help="messages in each run")
    parser.add_argument("--size", type=int, default=default.size, help="bytes of a payload")
    parser.add_argument("--flight", type=int, default=default.flight, help="ume_flight_size of the source")
    parser.add_argument("--rounds", type=int, default=default.rounds, help="runs of every system")
    parser.add_argument("--fast", action="store_true", help=fast)
    parser.add_argument("--peers", type=Path, metavar="DIR", help="measure other systems too, with the harness in DIR")
    parser.add_argument("--peers-python", default=sys.executable, help="an interpreter that has the peers' clients")
    parser.add_argument("--peers-only", default="", metavar="TEXT", help="measure only peers whose name contains TEXT")
    parser.add_argument("--trace", action="store_true", help="measure with traces as well")
    parser.add_argument("--directory", type=Path, help="a directory on the disk to measure; default: temporary files")
    parser.add_argument(
        "--output", type=Path, default=Path("bench.json"), help="write the results as JSON to this file"
    )
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
