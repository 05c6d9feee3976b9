"""The table of all planted faults."""

from typing import Final

from tools.mutants.archives import ARCHIVES
from tools.mutants.boundaries import BOUNDARIES
from tools.mutants.domains import DOMAINS
from tools.mutants.identities import IDENTITIES
from tools.mutants.journal import JOURNAL
from tools.mutants.known_stores import KNOWN_STORES
from tools.mutants.links import LINKS
from tools.mutants.mutant import Mutant
from tools.mutants.origins import ORIGINS
from tools.mutants.programs import PROGRAMS
from tools.mutants.range_readers import RANGE_READERS
from tools.mutants.receivers import RECEIVERS
from tools.mutants.refills import REFILLS
from tools.mutants.reg_ids import REG_IDS
from tools.mutants.resolution import RESOLUTION
from tools.mutants.routers import ROUTERS
from tools.mutants.routing import ROUTING
from tools.mutants.rows import ROWS
from tools.mutants.shared import SHARED
from tools.mutants.sharing import SHARING
from tools.mutants.sources import SOURCES
from tools.mutants.spark import SPARK
from tools.mutants.stores import STORES
from tools.mutants.subscription import SUBSCRIPTION
from tools.mutants.terms import TERMS
from tools.mutants.votes import VOTES

MUTANTS: Final[tuple[Mutant, ...]] = (
    *SHARED,
    *SOURCES,
    *SPARK,
    *TERMS,
    *VOTES,
    *RANGE_READERS,
    *ARCHIVES,
    *RECEIVERS,
    *REG_IDS,
    *STORES,
    *REFILLS,
    *RESOLUTION,
    *SHARING,
    *SUBSCRIPTION,
    *IDENTITIES,
    *JOURNAL,
    *BOUNDARIES,
    *KNOWN_STORES,
    *PROGRAMS,
    *ORIGINS,
    *DOMAINS,
    *LINKS,
    *ROUTERS,
    *ROUTING,
    *ROWS,
)
