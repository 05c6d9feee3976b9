"""The source: its endpoint, and the machines that only the source is made of."""

from stablecast.core.source.endpoint import SOURCE, SourceChart, SourceEndpoint, SourceState, SourceStep

__all__ = ["SOURCE", "SourceChart", "SourceEndpoint", "SourceState", "SourceStep"]
