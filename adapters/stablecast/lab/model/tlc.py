"""Run the checker of the models, if it is installed, and read its state graph.

The checker is TLC, a Java program. This project does not contain it and does not need it: digests of its results are
committed.
"""

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import attrs

from stablecast.lab.model.canonical import ModelError, parse, text
from stablecast.lab.model.catalog import Configuration
from stablecast.lab.model.graph import Graph

HOW_TO_GET_IT = (
    "give --jar or TLA2TOOLS_JAR: the checker is tla2tools.jar of https://github.com/tlaplus/tlaplus/releases, and "
    "runs on Java 11 or newer"
)
HEAP = "-Xmx4g"
PROGRESS_MS = 2000
"""Milliseconds between two progress lines of the checker."""

Progress = Callable[[str], None]
"""Receives the checker's progress lines."""

_NODE = re.compile(r'^(-?\d+) \[label="((?:[^"\\]|\\.)*)"')
_EDGE = re.compile(r'^(-?\d+) -> (-?\d+) \[label="((?:[^"\\]|\\.)*)"')
_VIOLATED = re.compile(r"(?:Invariant|[Pp]roperty) (\w+) (?:is|was) violated")
_TEMPORAL = "Temporal properties were violated"
_CLEAN = "Model checking completed. No error has been found."
_VERSION = re.compile(r"^TLC2 Version .*$", re.MULTILINE)


@attrs.frozen
class CheckerVerdict:
    """Hold the checker's verdict on a configuration, `ok` or `violates` and the property, with its output."""

    outcome: str
    version: str
    output: str


def check(
    configuration: Configuration, jar: Path, *options: str, progress: Progress = lambda _: None
) -> CheckerVerdict:
    """Run the checker.

    Raises:
        ModelError: it reaches no verdict.
    """
    output = _run(configuration.module, configuration.path, jar, *options, progress=progress)
    found = _VERSION.search(output)
    return CheckerVerdict(_outcome(output, configuration), found[0] if found else "", output)


def _run(module: Path, config: Path, jar: Path, *options: str, progress: Progress) -> str:
    """Run the checker on a module and return its output. Raises ModelError if Java does not run."""
    with tempfile.TemporaryDirectory(prefix="stablecast-tlc-") as directory:
        command = ["java", HEAP, "-XX:+UseParallelGC", f"-Dtlc2.TLCGlobals.progressInterval={PROGRESS_MS}"]
        command += ["-cp", str(jar), "tlc2.TLC", "-noGenerateSpecTE"]
        command += ["-metadir", directory, "-config", str(config), *options, str(module)]
        printed: list[str] = []
        try:
            with subprocess.Popen(  # noqa: S603 - fixed arguments and paths of ours
                command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as java:
                assert java.stdout is not None
                for line in java.stdout:
                    printed.append(line)
                    if line.startswith("Progress("):
                        progress(line.partition(": ")[2].strip())
        except OSError as error:
            raise ModelError(f"Java does not run ({error}); the checker needs it") from error
    return "".join(printed)


def _outcome(output: str, configuration: Configuration) -> str:
    if _CLEAN in output:
        return "ok"
    violated = _VIOLATED.search(output)
    if violated is not None:
        return f"violates {violated[1]}"
    if _TEMPORAL in output:
        return "violates " + " ".join(configuration.properties)
    raise ModelError(f"the checker failed on {configuration.name}: {output.strip()[-2000:]}")


def graph(configuration: Configuration, jar: Path) -> tuple[Graph, str]:
    """Return the checker's state graph and its version.

    Raises:
        ModelError: the verdict is not the expected one, or the dump cannot be parsed.
    """
    with tempfile.TemporaryDirectory(prefix="stablecast-tlc-") as directory:
        dump = Path(directory) / "graph.dot"
        verdict = check(configuration, jar, "-workers", "1", "-dump", "dot,actionlabels", str(dump))
        if verdict.outcome != configuration.expected:
            raise ModelError(f"{configuration.name} {verdict.outcome}, expected {configuration.expected}")
        return read(dump), verdict.version


def read(dump: Path) -> Graph:
    """Return the graph of a dump. Raises ModelError if it has none."""
    reader = _Reader()
    with dump.open(encoding="utf-8") as lines:
        for line in lines:
            reader.line(line)
    if not reader.graph.states:
        raise ModelError(f"{dump} holds no state; it must be a dump in the format dot,actionlabels")
    return reader.finish()


@attrs.define
class _Reader:
    """Collect nodes and edges. A node's text may follow edges that lead to it."""

    graph: Graph = attrs.field(factory=Graph)
    nodes: dict[str, int] = attrs.field(factory=dict)
    edges: list[tuple[str, str, str]] = attrs.field(factory=list)
    values: dict[str, str] = attrs.field(factory=dict)

    def line(self, line: str) -> None:
        edge = _EDGE.match(line)
        if edge is not None:
            source, target, action = edge.groups()
            self.edges.append((source, _plain(action).replace(", ", ","), target))
            return
        node = _NODE.match(line)
        if node is not None:
            self.nodes[node[1]], _ = self.graph.add(self._state(_plain(node[2])))

    def finish(self) -> Graph:
        for source, action, target in self.edges:
            self.graph.edges[self.nodes[source]].append((action, self.nodes[target]))
        return self.graph

    def _state(self, source: str) -> str:
        r"""Return the canonical text of a record from a `/\ x = 1` for each variable."""
        parts = sorted(self._variable(part) for part in f"\n{source}".split("\n/\\ ")[1:])
        return '["fn",' + ",".join(parts) + "]"

    def _variable(self, source: str) -> str:
        known = self.values.get(source)
        if known is None:
            name, _, value = source.partition(" = ")
            known = self.values[source] = f'["{name}",{text(parse(value))}]'
        return known


def _plain(escaped: str) -> str:
    return escaped.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
