"""Advice on a configuration that works, logged to `stablecast`.

Old names and options without effect are logged as warnings. Relations between options are logged as information,
because every small installation breaks some of them (P-412, P-605).
"""

import logging
from collections.abc import Mapping

from stablecast.config.options import ConfigT, Value, apply, notices
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.config.transport_options import Transport, TransportConfig
from stablecast.core.protocol.setting_relations import relations
from stablecast.core.protocol.settings import SourceConfig

log = logging.getLogger("stablecast")


def advised(
    scope: str, config: ConfigT, options: Mapping[str, Value], given: Mapping[str, Value] | None = None
) -> ConfigT:
    """Return the configuration with these options. Log old names and options without effect.

    `given` are those that the application gave, if others come from files, whose notices are logged already.

    Raises OptionError, AddressError, StoreListError.
    """
    new = options if given is None else {name: value for name, value in options.items() if name in given}
    for notice in notices(scope, new):
        log.warning(notice)
    return apply(scope, config, options)


def advise_of_transport(transport: TransportConfig, settings: ResolutionSettings) -> None:
    """Warn if a source sends by multicast, although its topics are resolved by unicast (T-212)."""
    if transport.kind is Transport.LBTRM and settings.udp and settings.relays:
        advice = "in a network without multicast no receiver gets its data: choose TCP or LBT-RU (option transport)"
        log.warning("topics are resolved by unicast, and the source sends over LBT-RM: %s", advice)


def advise_of_topic(topic: str) -> None:
    """Warn if the topic of a source looks like a pattern: it is a topic of its own, and no source of several."""
    if topic.endswith((">", "*")):
        log.warning("the topic '%s' looks like a pattern: a source sends on this topic alone, by its very name", topic)


def advise_of_pattern(pattern: str) -> None:
    """Warn if a pattern is written as those of other systems, which as a PCRE matches no usual topic."""
    if pattern.endswith(".>"):
        advice = "a pattern is a PCRE, so this one matches only topics that have a '>': write"
        log.warning("the pattern '%s' looks like one of NATS; %s '^%s[.]'", pattern, advice, pattern[:-2])


def advise_of_relations(config: SourceConfig) -> None:
    """Log options that do not fit together well."""
    for finding in relations(config):
        if not finding.fatal:
            log.info(finding.text)
