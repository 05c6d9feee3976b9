"""The errors that cross the public boundary of the core."""


class StablecastError(Exception):
    """Base of every error that stablecast raises on purpose."""


class MisuseError(StablecastError):
    """The local caller broke the contract of a machine; the machine is unchanged."""


class InvariantError(StablecastError):
    """A rule that always holds does not: a defect of stablecast, never the fault of a peer."""


class OversizeError(MisuseError):
    """A message does not fit the flight even when nothing is in it: it could never be sent (T14)."""


class ConfigError(StablecastError):
    """A configuration that cannot work, or that loses messages where none may be lost."""
