"""Experiments with the whole system: simulator, models, proofs, and the live demonstration."""
