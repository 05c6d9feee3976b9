"""The errors that cross the public boundary of the core."""


class StablecastError(Exception):
    """Base of every error that stablecast raises on purpose."""


class MisuseError(StablecastError):
    """The local caller broke the contract of a machine. The machine is unchanged."""


class InvariantError(StablecastError):
    """A rule that always holds was broken: a defect of stablecast, never the fault of a peer."""


class OversizeError(MisuseError):
    """A message does not fit an empty flight, so it could never be sent (T14)."""


class ConfigError(StablecastError):
    """A configuration cannot work, or loses messages that may not be lost."""
