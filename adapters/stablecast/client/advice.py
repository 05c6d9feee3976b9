"""What the user should know of a configuration that works: logged, for nothing is wrong.

The logger is `stablecast`. Old names and options without effect are warnings; relations between options, which every
small installation has some of, are information (P-412, P-605).
"""

import logging
from collections.abc import Mapping

from stablecast.config.options import Value, notices
from stablecast.core.relations import relations
from stablecast.core.settings import SourceConfig

log = logging.getLogger("stablecast")


def advise_of_options(scope: str, options: Mapping[str, Value]) -> None:
    """Tell of old names and options without effect."""
    for notice in notices(scope, options):
        log.warning(notice)


def advise_of_relations(config: SourceConfig) -> None:
    """Tell of what does not fit together well."""
    for finding in relations(config):
        if not finding.fatal:
            log.info(finding.text)
