"""`python -m tests.adapters.evidence.watch`: how soon a watch names each planted fault, in the time of the records."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from tests.adapters.evidence.trace.cross_faults import CROSS_FAULTS, put_world_together, take_world_apart
from tests.adapters.evidence.trace.fault_injection import Lie, tell
from tests.adapters.evidence.trace.planted_faults import LIES
from tests.adapters.evidence.trace.test_trace_judge import CORRUPTIONS
from tests.adapters.evidence.trace.traced import (
    Frames,
    TracedWorld,
    first_trace,
    play,
    put_together,
    take_apart,
    tapping,
)
from tests.adapters.evidence.watch.played_captures import captures, named_faults
from tests.adapters.evidence.watch.played_traces import played

LIMIT_NS: Final = 5 * SECOND
"""The delay within which a fault is named."""


@attrs.frozen
class NamedFault:
    """A planted fault and the delay (ns) until a watch named it; None: it did not. `alarms` are all violations."""

    name: str
    delay_ns: int | None
    alarms: int


def lies(lies: list[Lie], directory: Path) -> Iterator[NamedFault]:
    """Plant each lie in a world of the simulator."""
    for number, lie in enumerate(LIES):
        if lie in lies:
            told, _ = tell(lie, directory / f"lie{number}", number)
            assert told.path is not None
            yield _named(lie.name, directory / f"lie{number}", (told.path.name, told.record, lie.judged))


def cross_faults(directory: Path) -> Iterator[NamedFault]:
    """Plant each fault that one trace alone may hide."""
    play(TracedWorld(wrap=tapping(directory / "whole", kill=False)))
    for fault in CROSS_FAULTS:
        world = take_world_apart(directory / "whole")
        role, record, rule = fault(world)
        into = directory / fault.__name__
        put_world_together(into, world)
        number = [*world].index(role)
        yield _named(fault.__name__, into, (f"{role}-1-{number}.sct", record, rule))


def corruptions(directory: Path) -> Iterator[NamedFault]:
    """Change the traces of a source, a store and a receiver."""
    play(TracedWorld(wrap=tapping(directory / "world")))
    for role, some in CORRUPTIONS.items():
        for name, corrupt in some.items():
            yield _corrupted(directory, role, name, corrupt)


def _corrupted(directory: Path, role: str, name: str, corrupt: Callable[[Frames], tuple[int, str]]) -> NamedFault:
    original = first_trace(directory / "world", role)
    frames = take_apart(original)
    record, rule = corrupt(frames)
    into = directory / name
    into.mkdir()
    put_together(into / original.name, frames)
    return _named(name, into, (original.name, record, rule))


def _named(name: str, traces: Path, wanted: tuple[str, int, str]) -> NamedFault:
    outcome = played(traces, traces.with_name(f"{traces.name}-played"))
    violations = [alarm for _, alarm in outcome.named if alarm.kind == "violation"]
    return NamedFault(name, outcome.delay(*wanted), len(violations))


def main() -> int:
    """Print a line for each fault; return 1 if one is not named in time."""
    late = 0
    with tempfile.TemporaryDirectory() as name:
        faults = [
            *lies(LIES, Path(name)),
            *cross_faults(Path(name)),
            *corruptions(Path(name)),
        ]
        of_captures = [fault for capture, path in captures(Path(name)) for fault in named_faults(capture, path)]
    for fault in faults:
        text = "not named" if fault.delay_ns is None else f"{fault.delay_ns / SECOND:.2f} s"
        late += fault.delay_ns is None or fault.delay_ns > LIMIT_NS
        print(f"{fault.name}: {text}, {fault.alarms} violations")
    for one in of_captures:
        text = "not named" if one.delay_ns is None else f"{one.delay_ns / SECOND:.2f} s"
        late += one.delay_ns is None or one.delay_ns > LIMIT_NS
        print(f"{one.capture}: {one.rule} of {one.whose}: {text}")
    delays = [one.delay_ns or 0 for one in faults] + [one.delay_ns or 0 for one in of_captures]
    worst = max(delays) / SECOND
    print(f"{len(faults)} faults of traces, {len(of_captures)} of captures")
    print(f"{late} not named within {LIMIT_NS // SECOND} s, the slowest after {worst:.2f} s")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
