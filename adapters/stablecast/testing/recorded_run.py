"""The run of an application as its traces show it: the messages that it got, and its crashes.

Traces are those of the application's own host: one of each of its receivers, for each of its lives. Payloads are not in
traces. Times are those of the host's clock.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frames import frames_from
from stablecast.evidence.trace.trace_recorder import FLUSH_NS

UNRECORDED_NS: Final = 2 * FLUSH_NS
"""Longest time in ns before a kill that is missing in traces: the newest piece, and the one that was being written."""


class RecordedRunError(StablecastError):
    """Traces show no run that can be played again."""


@attrs.frozen
class RecordedMessage:
    """A message that the application got.

    Attributes:
        at: When it was sent, in ns since the run began, as far as the receiver can know it.
        source: Which source sent it: 0 for the first one that was seen.
        topic: Its topic.
        number: Its number.
        size: Its bytes, fragments apart. It is an average over the run of messages with which it arrived.
    """

    at: int
    source: int
    topic: str
    number: int
    size: int


@attrs.frozen
class RecordedCrash:
    """A crash of the application: it happened between `first` and `last`, and the next life began at `again`, in ns."""

    first: int
    last: int
    again: int


@attrs.frozen
class RecordedRun:
    """A run of an application.

    Attributes:
        messages: What it got, in the order of the times.
        crashes: Its crashes, but for one without a restart.
        stores: The largest number of stores of a source.
        orderly: How often it ended properly and began again.
    """

    messages: tuple[RecordedMessage, ...]
    crashes: tuple[RecordedCrash, ...]
    stores: int
    orderly: int


@attrs.define
class _Life:
    """One life of an application: all traces of its contexts that overlap in time."""

    begin: int
    end: int
    closed: bool


@attrs.define
class _Arrival:
    time: int
    recovered: bool
    size: int


_Source = tuple[str, str, int]
"""A source: its topic, one of its stores, and its RegID there."""


@attrs.define
class _ReceiverTrace:
    """A trace of one receiver's session, as far as it is read.

    Attributes:
        arrivals: The messages that were delivered, by number.
    """

    topic: str = ""
    context: int = 0
    incarnation: int = 0
    begin: int = -1
    end: int = 0
    closed: bool = False
    stores: int = 0
    source: _Source = ("", "", 0)
    arrivals: dict[int, _Arrival] = attrs.field(factory=dict)
    runs: dict[int, _Arrival] = attrs.field(factory=dict)

    def add(self, record: dict[str, Any]) -> None:
        time, event = record["t"], record["in"]
        self.begin = time if self.begin < 0 else self.begin
        self.end = time
        if event["_"] == "Data":
            size = event["payload_bytes"] // max(1, event["count"])
            self.runs[event["token"]] = _Arrival(time, event["recovered"], size)
        elif event["_"] == "Arrived" and event["message"]["_"] == "SourceInfo":
            stores = event["message"]["stores"]
            self.stores = max(self.stores, len(stores))
            if stores:
                self.source = (self.topic, stores[0]["address"], stores[0]["source_reg_id"])
        for effect in record["out"]:
            if effect["_"] == "Deliver" and effect["token"] in self.runs:
                arrival = self.runs[effect["token"]]
                for number in range(effect["first"], effect["first"] + effect["count"]):
                    self.arrivals.setdefault(number, arrival)


def read_run(paths: Iterable[Path]) -> RecordedRun:
    """Return the run that the traces of an application show.

    Raises:
        TraceError: A trace cannot be read.
        RecordedRunError: No receiver got a message.
    """
    traces = [trace for parts in traces_of(find(paths)) if (trace := _receiver_trace(parts)) is not None]
    if not any(trace.arrivals for trace in traces):
        raise RecordedRunError(
            "no trace is that of a receiver that got messages: name the directory to which the application recorded"
        )
    lives = _lives(traces)
    began = lives[0].begin
    crashes = tuple(
        RecordedCrash(life.end - began, min(life.end + UNRECORDED_NS, after.begin) - began, after.begin - began)
        for life, after in pairwise(lives)
        if not life.closed
    )
    orderly = len(lives) - 1 - len(crashes)
    messages = sorted(_messages(traces, began), key=lambda one: (one.at, one.source, one.number))
    return RecordedRun(tuple(messages), crashes, max(trace.stores for trace in traces), orderly)


def _receiver_trace(parts: list[Path]) -> _ReceiverTrace | None:
    trace = _ReceiverTrace()
    for path in parts:
        for frame, _ in frames_from(path):
            if frame.head.role.name != "RECEIVER":
                return None
            if not trace.topic:
                config = frame.head.snapshot["config"]
                trace.topic, trace.context = config["topic"], config["context"]
                trace.incarnation = config["incarnation"]
                trace.source = (trace.topic, "", trace.incarnation)
            for record in frame.records:
                trace.add(record)
            trace.closed = frame.foot.closed
    return trace if trace.begin >= 0 else None


def _lives(traces: list[_ReceiverTrace]) -> list[_Life]:
    """Return the lives of the application in the order of time. A context belongs to one life."""
    contexts: dict[int, _Life] = {}
    for trace in traces:
        life = contexts.setdefault(trace.context, _Life(trace.begin, trace.end, closed=True))
        life.begin, life.end = min(life.begin, trace.begin), max(life.end, trace.end)
        life.closed = life.closed and trace.closed
    lives: list[_Life] = []
    for life in sorted(contexts.values(), key=lambda one: one.begin):
        if lives and life.begin <= lives[-1].end:
            lives[-1].end = max(lives[-1].end, life.end)
            lives[-1].closed = lives[-1].closed and life.closed
        else:
            lives.append(life)
    return lives


def _messages(traces: list[_ReceiverTrace], began: int) -> Iterator[RecordedMessage]:
    """Yield the messages of all sources, each once."""
    sources: dict[_Source, dict[int, _Arrival]] = {}
    for trace in sorted(traces, key=lambda one: one.begin):
        seen = sources.setdefault(trace.source, {})
        for number, arrival in trace.arrivals.items():
            seen.setdefault(number, arrival)
    for index, (source, arrivals) in enumerate(sources.items()):
        for number, at in _sent(arrivals):
            yield RecordedMessage(max(0, at - began), index, source[0], number, arrivals[number].size)


def _sent(arrivals: dict[int, _Arrival]) -> Iterator[tuple[int, int]]:
    """Yield numbers with the time of their sending.

    A recovered message arrived long after it was sent. Its time lies between those of its neighbours that were not
    recovered, in even steps.
    """
    numbers = sorted(arrivals)
    live = [number for number in numbers if not arrivals[number].recovered]
    position = 0
    for number in numbers:
        while position < len(live) and live[position] < number:
            position += 1
        if position < len(live) and live[position] == number:
            yield number, arrivals[number].time
            continue
        before = live[position - 1] if position else None
        after = live[position] if position < len(live) else None
        if before is None or after is None:
            near = before if before is not None else after
            yield number, arrivals[number if near is None else near].time
        else:
            since, until = arrivals[before].time, arrivals[after].time
            yield number, since + (until - since) * (number - before) // (after - before)
