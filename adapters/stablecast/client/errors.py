"""What can go wrong for an application, one class for each thing it may want to tell apart."""

from stablecast.core.errors import StablecastError


class NotRegistered(StablecastError):  # noqa: N818  # the field's own name for it (P-336)
    """The source is not registered with enough stores; what was to be sent was not. Wait and send again."""


class RegistrationFailed(StablecastError):  # noqa: N818  # a state of affairs, like NotRegistered
    """The stores did not answer in time; the message says which and why."""


class MessageTooLarge(StablecastError):  # noqa: N818
    """A message that no flight size or frame will ever have room for."""


class NotStable(StablecastError):  # noqa: N818
    """A message was reclaimed by force before it was stable (P-323)."""


class Closed(StablecastError):  # noqa: N818
    """The object was closed."""


class EndpointFailed(Closed):
    """A source or receiver ended because something that its protocol decided could not be done; the cause is chained.

    The message says what. Make a new source or receiver.
    """
