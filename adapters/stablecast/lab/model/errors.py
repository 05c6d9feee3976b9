"""Define the errors of models and their checker."""

from stablecast.core.errors import StablecastError


class ModelError(StablecastError):
    """Report that a model, a configuration, the record of graphs or a checker's output cannot be used."""


class ForgetfulError(ModelError):
    """Report two worlds with equal abstract states and different behaviour: the abstraction drops a fact."""
