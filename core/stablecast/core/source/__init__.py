"""The room of the source: its endpoint, and the machines that only it is made of."""

from stablecast.core.source.endpoint import SOURCE, SourceChart, SourceEndpoint, SourceState, SourceStep

__all__ = ["SOURCE", "SourceChart", "SourceEndpoint", "SourceState", "SourceStep"]
