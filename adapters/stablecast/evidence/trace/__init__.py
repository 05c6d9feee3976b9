"""Traces: an endpoint records its inputs and effects, and any process can replay them.

`Recorder` writes a trace while an endpoint runs. `verify_file` and `verify_paths` replay traces through the same core
and judge them. `container` holds the bytes of a trace file, `frames` its lines, `converter` the schema.
`endpoint_rules` judges one trace, `cross_rules` several, `frame_judge` one frame.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from stablecast.evidence.trace.activation import recorder
from stablecast.evidence.trace.errors import TraceError

if TYPE_CHECKING:
    from stablecast.evidence.trace.reports import FileReport, TraceViolation, VerificationSummary
    from stablecast.evidence.trace.trace_judge import verify_file, verify_paths
    from stablecast.evidence.trace.trace_recorder import Recorder

__all__ = [
    "FileReport",
    "Recorder",
    "TraceError",
    "TraceViolation",
    "VerificationSummary",
    "recorder",
    "verify_file",
    "verify_paths",
]

_LATER = {
    "FileReport": "reports",
    "Recorder": "trace_recorder",
    "VerificationSummary": "reports",
    "TraceViolation": "reports",
    "verify_file": "trace_judge",
    "verify_paths": "trace_judge",
}
"""Modules that are loaded on first use: a store that starts records nothing and judges nothing."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
