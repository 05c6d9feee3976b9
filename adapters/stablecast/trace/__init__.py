"""Traces: every endpoint can record what it was told and what it answered, and anybody can replay it.

`Recorder` writes a trace while an endpoint runs (`Driven` feeds a machine and records); `verify_file` and
`verify_paths` judge traces by replaying them through the same core. `container` holds the bytes of a trace file,
`frames` its lines, `converter` the schema, `rules` what must hold whatever code made the trace, `judge` what one frame
alone tells.
"""

from stablecast.trace.driven import Driven
from stablecast.trace.errors import TraceError
from stablecast.trace.recording import Recorder, recorder
from stablecast.trace.reports import FileReport, Summary, Violation
from stablecast.trace.verify import verify_file, verify_paths

__all__ = [
    "Driven",
    "FileReport",
    "Recorder",
    "Summary",
    "TraceError",
    "Violation",
    "recorder",
    "verify_file",
    "verify_paths",
]
