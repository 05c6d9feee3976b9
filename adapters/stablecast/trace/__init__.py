"""Traces: every endpoint can record what it was told and what it answered, and anybody can replay it.

`Recorder` writes a trace while an endpoint runs (`Driven` feeds a machine and records); `verify_file` and
`verify_paths` judge traces by replaying them through the same core. `container` holds the bytes of a trace file,
`frames` its lines, `converter` the schema, `rules` what must hold whatever code made the trace, `judge` what one frame
alone tells.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from stablecast.trace.driven import Driven
from stablecast.trace.errors import TraceError
from stablecast.trace.starting import recorder

if TYPE_CHECKING:
    from stablecast.trace.recording import Recorder
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

_LATER = {
    "FileReport": "reports",
    "Recorder": "recording",
    "Summary": "reports",
    "Violation": "reports",
    "verify_file": "verify",
    "verify_paths": "verify",
}
"""What is loaded when somebody asks for it: a store that starts records nothing, and judges nothing."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
