"""A look at a fleet: what the page, the screen and programs show of it."""

from typing import Any

import attrs

from stablecast.ops.fleet.copies import FleetSource, joined
from stablecast.ops.fleet.findings import FleetFinding, findings, worst
from stablecast.ops.fleet.survey import Survey
from stablecast.ops.monitor.health import Urgency


@attrs.frozen
class FleetLook:
    """A survey with its joined sources and its findings; `number` counts the looks."""

    surveyed: Survey
    sources: list[FleetSource]
    findings: list[FleetFinding]
    number: int = 0

    @classmethod
    def of(cls, surveyed: Survey, number: int = 0) -> "FleetLook":
        """Return a survey with what it says."""
        sources = joined(surveyed)
        return cls(surveyed, sources, findings(surveyed, sources), number)

    @property
    def level(self) -> Urgency:
        """Return the level of the most urgent finding."""
        return worst(self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the fleet for programs."""
        return {
            "level": self.level.name,
            "findings": [one.as_json() for one in self.findings],
            "silent": self.surveyed.silent,
            "stores": [
                {"name": one.name, "monitor": one.monitor, "level": one.record["level"]} for one in self.surveyed.stores
            ],
            "sources": [one.as_json() for one in self.sources],
        }
