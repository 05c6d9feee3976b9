"""Compare the core's graph with a model's.

Without the checker, the core's graph is compared with recorded digests, which hold for the very files they were made
from. If it differs and the model's graph is kept beside its configuration, the first difference is reported. With the
checker the model's graph is generated again.
"""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import attrs

from stablecast.lab.model import tlc
from stablecast.lab.model.canonical import ForgetfulError, ModelError
from stablecast.lab.model.catalog import Configuration, RecordedGraph, load, save
from stablecast.lab.model.explorer import Exploration, explore
from stablecast.lab.model.graph import Graph

T = TypeVar("T")

WORD: Final = re.compile("(?<=[a-z])(?=[A-Z])")
"""Where a word begins in the name of a model."""
TWINS = 1
"""Further worlds of every state whose steps are compared with those of the first one."""
SMALL_NODES = 5_000
"""Largest number of states of a graph for which all further worlds are compared, in a few seconds."""
MAX_KEPT_BYTES = 1_000_000
"""Largest compressed size of a graph that is kept beside its configuration, in bytes."""


@attrs.frozen
class Comparison:
    """Hold the size of a configuration's core graph, and its first difference from the model's."""

    name: str
    nodes: int
    edges: int
    equal: bool
    difference: dict[str, Any] | str | None = None


def world_module(model: str) -> ModuleType:
    """Return the module whose world drives the core for a model. Raises ModuleNotFoundError if there is none."""
    return import_module(f"stablecast.lab.model.worlds.{WORD.sub('_', model).lower()}")


def core_graph(configuration: Configuration, twins: int = 0, model: Graph | None = None) -> Exploration:
    """Return the core's graph under a configuration's constants; with a model, up to the first difference.

    Raises:
        ModelError: the model has no world, its graph is too large, or its abstraction is refused.
    """
    try:
        world = world_module(configuration.model)
    except ModuleNotFoundError as error:
        raise ModelError(f"no world drives the core for {configuration.model}") from error
    made = getattr(world, f"{configuration.model}World").create(_shared(configuration.constants))
    return explore(made, twins=twins, model=model)


def compare(
    configuration: Configuration, known: RecordedGraph | None, jar: Path | None = None, twins: int | None = None
) -> Comparison:
    """Compare the core with the checker, or else with the record.

    An abstraction that drops a fact counts as a difference. `twins` is the number of further worlds of every state to
    compare; None: as many as the size of the graph allows.

    Raises:
        ModelError: the model has no world, its graph is too large, or the checker fails.
    """
    if twins is None:
        twins = SMALL_NODES if known is not None and known.digests.nodes <= SMALL_NODES else TWINS
    try:
        if jar is None:
            return _with_record(configuration, known, twins)
        theirs, _ = tlc.graph(configuration, jar)
        return _comparison(configuration, core_graph(configuration, twins, theirs), None)
    except ForgetfulError as error:
        return Comparison(configuration.name, 0, 0, False, str(error))


def _with_record(configuration: Configuration, known: RecordedGraph | None, twins: int) -> Comparison:
    """Compare with the record. The digests decide, and a kept graph shows the first difference."""
    path = kept_path(configuration)
    current = known is not None and known.hashes == configuration.hashes()
    core = core_graph(configuration, twins, Graph.read(path) if current and path.exists() else None)
    reason: str | None = None
    if known is None:
        reason = "nothing is on record; run it once with the checker and --record"
    elif not current:
        reason = "the model or its configuration changed since its graph was recorded; record it again"
    elif known.digests != core.graph.digests():
        reason = "the digests differ"
    return _comparison(configuration, core, reason)


def _comparison(configuration: Configuration, core: Exploration, reason: str | None) -> Comparison:
    digests = core.graph.digests()
    told = reason if core.difference is None else attrs.asdict(core.difference)
    return Comparison(configuration.name, digests.nodes, digests.edges, told is None, told)


def compare_all(configurations: list[Configuration], models: Path, jar: Path | None, jobs: int) -> Iterator[Comparison]:
    """Compare several configurations at a time; yield results in order of completion."""
    known = load(models)
    work = [(one, known.get(one.name), jar) for one in configurations]
    if jobs <= 1 or len(work) <= 1:
        yield from (compare(*parts) for parts in work)
        return
    with ProcessPoolExecutor(min(jobs, len(work)), mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(compare, *parts) for parts in work]):
            yield done.result()


def record(configuration: Configuration, models: Path, jar: Path) -> Comparison:
    """Record a graph if checker and core agree on it.

    Raises:
        ModelError: as `core_graph` and the checker.
    """
    theirs, version = tlc.graph(configuration, jar)
    core = core_graph(configuration, TWINS, theirs)
    result = _comparison(configuration, core, None)
    if result.equal:
        entry = RecordedGraph(configuration.hashes(), _shared(configuration.sources), core.graph.digests(), version)
        save(models, {**load(models), configuration.name: entry})
        path = kept_path(configuration)
        theirs.write(path)
        if path.stat().st_size > MAX_KEPT_BYTES:
            path.unlink()
    return result


def kept_path(configuration: Configuration) -> Path:
    return configuration.path.with_suffix(".graph.gz")


def _shared(constants: Mapping[str, T]) -> dict[str, T]:
    """Return the constants of model and core. Only the model has `Mutant`."""
    return {name: value for name, value in constants.items() if name != "Mutant"}
