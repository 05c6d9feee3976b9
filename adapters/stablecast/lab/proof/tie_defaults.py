"""What ties have in common unless their graphs differ from others."""

from typing import Any

from stablecast.lab.proof.evaluation import Evaluator, Structure


class TieDefaults:
    """A tie whose graph begins where the system does, and keeps to the assumptions of the proof."""

    evaluator: Evaluator

    def start(self) -> Structure:
        return self.evaluator.initial()

    def covers(self, action: str, state: Any) -> bool:
        """Return whether an edge is within the assumptions of the proof."""
        return True

    def settled(self, structure: Structure) -> Structure:
        """Return a structure as it is: no part of it is relative to something else."""
        return structure
