"""What the user should know of a configuration that works: logged, for nothing is wrong.

The logger is `stablecast`. Old names and options without effect are warnings; relations between options, which every
small installation has some of, are information (P-412, P-605).
"""

import logging
from collections.abc import Mapping

from stablecast.config import transport_options
from stablecast.config.options import Value, notices
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.config.transport_options import Transport, TransportConfig
from stablecast.core.protocol.setting_relations import relations
from stablecast.core.protocol.settings import SourceConfig

log = logging.getLogger("stablecast")


def advise_of_options(scope: str, options: Mapping[str, Value]) -> None:
    """Tell of old names and options without effect."""
    for notice in notices(scope, options):
        log.warning(notice)


def transport_of(options: Mapping[str, Value], defaults: TransportConfig) -> tuple[TransportConfig, dict[str, Value]]:
    """The transports' configuration with its options, and those that are not its; of those without effect it tells.

    Raises OptionError, AddressError.
    """
    for notice in transport_options.notices(options):
        log.warning(notice)
    return transport_options.split(options, defaults)


def advise_of_transport(transport: TransportConfig, settings: ResolutionSettings) -> None:
    """Tell of a source whose data needs the multicast that its resolution does without (T-212)."""
    if transport.kind is Transport.LBTRM and settings.udp and settings.relays:
        advice = "where there is no multicast nobody hears it: choose TCP or LBT-RU (option transport)"
        log.warning("topics are resolved by unicast, and the source sends over LBT-RM: %s", advice)


def advise_of_relations(config: SourceConfig) -> None:
    """Tell of what does not fit together well."""
    for finding in relations(config):
        if not finding.fatal:
            log.info(finding.text)
