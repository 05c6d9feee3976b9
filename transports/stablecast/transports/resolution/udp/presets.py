"""The documented strategies of resolution over UDP, by name, with their purpose (T-301 to T-310).

The lists of characteristics are missing in the documentation (T-311). So each strategy follows the text, and its cost
is measured: see the table in the chapter on resolution. Services (SRS) need no tuning: `tcp` switches UDP off.
"""

from collections.abc import Mapping

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp import settings


@attrs.frozen
class Preset:
    """A strategy.

    Attributes:
        config: Its values; None: no resolution over UDP.
        summary: Its purpose, in one line.
    """

    config: settings.ResolutionConfig | None
    summary: str


ENDING = 60 * SECOND
"""Documented length of a sustaining phase."""

_ADVERTISE = settings.AdvertiseOptions(attrs.evolve(settings.ADVERTISING, sustaining=ENDING))
_QUERY = settings.QueryOptions(attrs.evolve(settings.QUERYING, sustaining=ENDING), until_resolved=False)
_PATTERNS = settings.PatternOptions(settings.PATTERN_QUERYING)
_ENDLESS_QUERY = attrs.evolve(_QUERY, pace=settings.QUERYING)
_ENDLESS_PATTERNS = settings.PatternOptions()
_SILENT = settings.AdvertiseOptions(attrs.evolve(settings.ADVERTISING, shortest=0, sustain=0), at_creation=False)

DOCUMENTED = settings.ResolutionConfig(_ADVERTISE, _QUERY, _PATTERNS)
"""Both sides send for 65 s, then become quiescent (T-303)."""

PRESETS: Mapping[str, Preset] = {
    "safe": Preset(settings.SAFE, "the documented phases, but nobody falls quiet while something is missing"),
    "default": Preset(DOCUMENTED, "documented defaults: small networks in which all is made at the start"),
    "query-centric": Preset(
        settings.ResolutionConfig(_SILENT, _ENDLESS_QUERY, _ENDLESS_PATTERNS),
        "sources only answer, receivers ask for ever: many sources, few of them wanted",
    ),
    "known-threshold": Preset(
        settings.ResolutionConfig(_SILENT, attrs.evolve(_ENDLESS_QUERY, enough=1), _ENDLESS_PATTERNS),
        "the same, but receivers ask only until they know the number of sources a topic has",
    ),
    "advertise-centric": Preset(
        settings.ResolutionConfig(settings.AdvertiseOptions(), _QUERY, _PATTERNS),
        "sources speak for ever, receivers fall quiet: nearly every source is wanted",
    ),
    "tcp": Preset(None, "no resolution over UDP: services (SRS) only"),
}
"""Each strategy by its name; `safe` is the default of a context."""
