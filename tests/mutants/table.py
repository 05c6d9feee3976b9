"""The table of all planted faults."""

from typing import Final

from tests.mutants.archives import ARCHIVES
from tests.mutants.boundaries import BOUNDARIES
from tests.mutants.journal import JOURNAL
from tests.mutants.known_stores import KNOWN_STORES
from tests.mutants.mutant import Mutant
from tests.mutants.programs import PROGRAMS
from tests.mutants.range_readers import RANGE_READERS
from tests.mutants.receivers import RECEIVERS
from tests.mutants.refills import REFILLS
from tests.mutants.reg_ids import REG_IDS
from tests.mutants.resolution import RESOLUTION
from tests.mutants.rows import ROWS
from tests.mutants.shared import SHARED
from tests.mutants.sharing import SHARING
from tests.mutants.sources import SOURCES
from tests.mutants.stores import STORES
from tests.mutants.terms import TERMS
from tests.mutants.votes import VOTES

MUTANTS: Final[tuple[Mutant, ...]] = (
    *SHARED,
    *SOURCES,
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
    *JOURNAL,
    *BOUNDARIES,
    *KNOWN_STORES,
    *PROGRAMS,
    *ROWS,
)
