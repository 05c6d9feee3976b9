"""The planted faults."""

from typing import Final

from tests.mutants.mutant import Mutant, Test, Worlds

MUTANTS: Final[tuple[Mutant, ...]] = ()
