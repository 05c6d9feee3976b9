"""Read the models on disk: directories, configurations, and the recorded facts of their graphs.

    tla/Registration/Registration.tla   the model
                     MCRegistration.tla definitions for the checker: bounds on constants, fairness
                     graph_one.cfg      a configuration: constants, properties, and in comments its verdict and purpose
    tla/views.json                      the steps of the graphs that traces are compared with
    tla/graphs.json                     hashes of the files of each `graph_*` configuration, and its graph's digests

The first comments of a configuration state the expected verdict, `EXPECT ok` or `EXPECT violates NAME`, then its
purpose in one sentence. Names: `graph_*` are compared with the core state by state, `doc_*` show the documented rule,
`mut_*_bug` a broken one, `live_*` liveness. Any other configuration is only checked.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.model.canonical import ModelError, Value, compact, parse
from stablecast.lab.model.graph import Digests

RECORD = "graphs.json"

_COMMENT = re.compile(r"(\\\*|\(\*|\*\)|\n)")
_EXPECT = re.compile(r"\\\* EXPECT (ok|violates \w+)\n")
_SECTION = re.compile(
    r"^(CONSTANTS|CONSTRAINT|INVARIANTS|PROPERTIES|SPECIFICATION|CHECK_DEADLOCK|SYMMETRY)\b", re.MULTILINE
)
_CONSTANT = re.compile(r"^\s*(\w+)\s*=\s*(.+?)\s*$", re.MULTILINE)


@attrs.frozen
class Configuration:
    """Describe a configuration of a model. `expected` is the checker's verdict, `sources` the constants as written."""

    path: Path
    expected: str
    purpose: str
    sources: dict[str, str]
    invariants: tuple[str, ...]
    properties: tuple[str, ...]

    @property
    def name(self) -> str:
        """The full name, such as `Registration/graph_one`."""
        return f"{self.model}/{self.path.stem}"

    @property
    def model(self) -> str:
        return self.path.parent.name

    @property
    def module(self) -> Path:
        """The module that the checker runs."""
        return self.path.parent / f"MC{self.model}.tla"

    @property
    def has_graph(self) -> bool:
        """True if the configuration is compared with the core."""
        return self.path.stem.startswith("graph_")

    @property
    def constants(self) -> dict[str, Value]:
        return {name: parse(source) for name, source in self.sources.items()}

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of every file that the graph depends on, comments aside, by file name."""
        files = [*sorted(self.path.parent.glob("*.tla")), self.path]
        texts = {file.name: statements(file.read_text(encoding="utf-8")) for file in files}
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def statements(text: str) -> str:
    r"""Return a module or a configuration without comments and blank lines, on which no graph depends.

    >>> statements("VARIABLE x (* of (* a *) store *)\n\n\\* why (* not\nInit == x = 0 \\* first\n")
    'VARIABLE x\nInit == x = 0\n'
    """
    kept: list[str] = []
    depth, rest_of_line = 0, False
    for part in _COMMENT.split(text):
        if part == "\n":
            rest_of_line = False
        elif not rest_of_line and part in {"(*", "*)"}:
            depth = max(0, depth + (1 if part == "(*" else -1))
            continue
        elif not depth and part == "\\*":
            rest_of_line = True
        if not depth and not rest_of_line:
            kept.append(part)
    return "".join(f"{line.rstrip()}\n" for line in "".join(kept).splitlines() if line.strip())


@attrs.frozen
class RecordedGraph:
    hashes: dict[str, str]
    constants: dict[str, str]
    digests: Digests
    checker: str


def folder() -> Path:
    """Return the project's `tla/`, searched upwards from here and from the working directory.

    Raises:
        ModelError: there is none.
    """
    for start in (Path(__file__).resolve(), Path.cwd() / "."):
        for parent in start.parents:
            if (parent / "tla" / RECORD).is_file():
                return parent / "tla"
    raise ModelError("the models are part of the source tree only: run this inside a checkout, or give --models")


def configurations(models: Path, names: tuple[str, ...] = ()) -> list[Configuration]:
    """Return all configurations, or those of the named models or with the given names.

    Raises:
        ModelError: a name is unknown, or a configuration cannot be read.
    """
    found = [read(path) for path in sorted(models.glob("*/*.cfg"))]
    for name in names:
        if not any(name in (one.name, one.model) for one in found):
            raise ModelError(f"there is no model or configuration {name}; `stablecast model list` names them")
    return [one for one in found if not names or one.name in names or one.model in names]


def read(path: Path) -> Configuration:
    """Return one configuration. Raises ModelError if it states no verdict."""
    source = path.read_text(encoding="utf-8")
    expected = _EXPECT.match(source)
    if expected is None:
        raise ModelError(f"{path} must begin with its verdict: \\* EXPECT ok, or \\* EXPECT violates NAME")
    lines = source.splitlines()[1:]
    purpose = [line.removeprefix("\\* ") for line in lines if line.startswith("\\* ")]
    sections = _sections(source)
    return Configuration(
        path=path,
        expected=expected[1],
        purpose=" ".join(purpose),
        sources=dict(_CONSTANT.findall(sections.get("CONSTANTS", ""))),
        invariants=tuple(sections.get("INVARIANTS", "").split()),
        properties=tuple(sections.get("PROPERTIES", "").split()),
    )


def _sections(source: str) -> dict[str, str]:
    parts = _SECTION.split(re.sub(r"\\\*.*", "", source))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def load(models: Path) -> dict[str, RecordedGraph]:
    """Return the record by configuration. Raises ModelError if it cannot be read."""
    path = models / RECORD
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {name: _known(entry) for name, entry in kept.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a record of graphs: {error!r}") from error


def _known(entry: dict[str, Any]) -> RecordedGraph:
    digests = {**entry["digests"], "depths": tuple(entry["digests"]["depths"])}
    return RecordedGraph(entry["hashes"], entry["constants"], Digests(**digests), entry["checker"])


def save(models: Path, known: dict[str, RecordedGraph]) -> None:
    entries = {name: attrs.asdict(entry) for name, entry in sorted(known.items())}
    (models / RECORD).write_text(compact(entries), encoding="utf-8")
