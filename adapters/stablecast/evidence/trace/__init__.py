"""Traces: an endpoint records its inputs and effects, and any process can replay them.

`Recorder` writes a trace while an endpoint runs. `verify_file` and `verify_paths` replay traces through the same core
and judge them. `container` holds the bytes of a trace file, `frames` its lines, `converter` the schema.
`endpoint_rules` judges one trace, `cross_rules` several, `frame_judge` one frame.
"""

from stablecast.evidence.trace.activation import recorder
from stablecast.evidence.trace.errors import TraceError

__all__ = ["TraceError", "recorder"]
