"""Findings with advice from captured traffic, as a support engineer writes them.

The rules of `judge` ask whether an endpoint keeps the protocol. A network can keep every rule and still serve its
applications badly. The doctor measures that: losses and their recovery, refused and lost repairs, unwanted topics,
sources that end too early, queries without an answer. A finding is a measured value beyond a threshold, which is an
option. It names the packets behind it and what to change.

`session_history` and `resolution_history` follow the packets, `session_findings` and `resolution_findings` compare them
with `thresholds`, and `findings` has the result. `examination` joins them.
"""

from stablecast.evidence.capture.doctor.examination import Examination
from stablecast.evidence.capture.doctor.findings import CaptureAdvice
from stablecast.evidence.capture.doctor.thresholds import Thresholds, parse_thresholds

__all__ = ["CaptureAdvice", "Examination", "Thresholds", "parse_thresholds"]
