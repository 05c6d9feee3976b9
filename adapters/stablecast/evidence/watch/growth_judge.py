"""The work of a task of a watch on Spark: judge the new records of a trace, by the state after the batch before.

The state of a trace is small, as in the state file of a local watch: how far it is judged. A worker also keeps the
machines of the traces that it judged last. A worker that has another trace, or a batch that is repeated, reads the
present frame again from its snapshot.
"""

import json
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.streaming.state import GroupState

from stablecast.evidence.trace.cross_ground import Told
from stablecast.evidence.watch.alarms import WatchAlarm
from stablecast.evidence.watch.followed_trace import FollowedTrace, begun, parts_of
from stablecast.evidence.watch.joint_judgement import TraceStanding
from stablecast.evidence.watch.watch_state import followed_trace, trace_state
from stablecast.runtime import garbage_collection
from stablecast.text.spark_table import sql_schema

COLUMNS: Final = {"trace": pa.string(), "time": pa.int64(), "outcome": pa.binary()}
"""Name and type of each column of the results; the row of the time itself has no outcome."""

SCHEMA: Final = sql_schema(COLUMNS)

STATE: Final = "state string"
"""The state of a trace: JSON."""

MAX_MACHINES: Final = 32
"""Traces whose machines a worker keeps; each may be as large as the endpoint's memory."""

_machines: "OrderedDict[str, FollowedTrace]" = OrderedDict()


@attrs.frozen
class GrowthOutcome:
    """New facts and sentences of a trace, and its standing; `gone` if its files were deleted."""

    standing: TraceStanding
    told: list[Told]
    alarms: list[WatchAlarm]
    records: int
    gone: bool


def judge_growth(whole: bool) -> Callable[[Any, Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """Return the function for `applyInPandasWithState`; `whole` as in `TraceWatch`."""

    def judged(key: Any, rows: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        frames = list(rows)
        now_ns = max(int(one["time"].max()) for one in frames)
        initial = any(bool(one["initial"].any()) for one in frames)
        outcome = None
        if key[0]:
            garbage_collection.keep_worker()
            outcome = _outcome(key[0], state, now_ns, whole=whole or not initial)
            if outcome is None:
                return
        packed = None if outcome is None else pickle.dumps(outcome)
        yield pd.DataFrame({"trace": [key[0]], "time": [now_ns], "outcome": [packed]})

    return judged


def _outcome(name: str, state: GroupState, now_ns: int, *, whole: bool) -> GrowthOutcome | None:
    """Judge what is new of a trace and set its state; None if there is nothing to judge."""
    parts = parts_of(name)
    before = json.loads(state.get[0]) if state.exists else None
    size = parts[-1].stat().st_size if parts else -1
    if before is not None and "ended" in before:
        if not parts:
            state.remove()
        if not parts or before["ended"] == size:
            return None
        before, whole = None, True
    if before is None:
        if not parts:
            return None
        trace = begun(name, parts, whole=whole)
    else:
        trace = _restored(name, before)
    judged = trace.records
    trace.read(now_ns)
    outcome = GrowthOutcome(trace.standing, trace.judge.told, trace.alarms, trace.records - judged, not parts)
    trace.judge.told, trace.alarms = [], []
    if trace.ended:
        _machines.pop(name, None)
        if parts:
            state.update((json.dumps({"ended": size}),))
        elif state.exists:
            state.remove()
    else:
        _keep(trace)
        state.update((json.dumps(_state(trace)),))
    return outcome


def _state(trace: FollowedTrace) -> dict[str, Any]:
    return {**trace_state(trace), "read_ns": trace.read_ns}


def _restored(name: str, state: dict[str, Any]) -> FollowedTrace:
    """Return the trace with its machine, if this worker has it, else from its snapshot."""
    trace = _machines.get(name)
    if trace is not None and _state(trace) == state:
        return trace
    return followed_trace(state, state["read_ns"])


def _keep(trace: FollowedTrace) -> None:
    name = trace.judge.trace
    _machines[name] = trace
    _machines.move_to_end(name)
    if len(_machines) > MAX_MACHINES:
        _machines.popitem(last=False)
