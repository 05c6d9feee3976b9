"""What can be wrong with a model, its configurations or the checker."""

from stablecast.core.errors import StablecastError


class ModelError(StablecastError):
    """A model, a configuration of it, the record of graphs or a checker's output cannot be used."""


class ForgetfulError(ModelError):
    """Two worlds look the same and behave differently: the abstraction forgets something that matters."""
