"""The planted faults, all of them."""

from typing import Final

from tests.mutants.mutant import Mutant
from tests.mutants.receivers import RECEIVERS
from tests.mutants.resolution import RESOLUTION
from tests.mutants.shared import SHARED
from tests.mutants.sources import SOURCES
from tests.mutants.stores import STORES

MUTANTS: Final[tuple[Mutant, ...]] = (*SHARED, *SOURCES, *RECEIVERS, *STORES, *RESOLUTION)
