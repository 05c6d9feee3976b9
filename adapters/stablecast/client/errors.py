"""Exceptions of the client, one class for each case that an application may want to handle."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.events import RegistrationError, StoreUnresponsive

MAX_TROUBLES = 16
"""Stores that the text of RegistrationFailed names."""


MUTE = "unresponsive - no registration response"
"""Words for a store that has not answered yet."""


class NotRegistered(StablecastError):  # noqa: N818  # the field's own name for it (P-336)
    """Too few stores have registered the source, now or within the timeout of the call; the message was not sent.

    Send again, or wait for `registered()`.
    """


class NoRoom(StablecastError, TimeoutError):  # noqa: N818
    """The flight stayed full for the timeout of the call; the message was not sent. Send it again, or wait longer."""


class RegistrationFailed(StablecastError):  # noqa: N818  # a state of affairs, like NotRegistered
    """Too few stores registered the source in time, or a callback of the receiver failed. The text names the cause."""


class MessageTooLarge(StablecastError):  # noqa: N818
    """The message is larger than the flight size or the transport will ever allow. Split it, or raise the limit."""


class NotStable(StablecastError):  # noqa: N818
    """The source reclaimed the message by force before it was stable (P-323), or every store lost it (P-441)."""


class NotStableYet(StablecastError, TimeoutError):  # noqa: N818
    """The message was sent, and is not known to be stable after the timeout of the call. It may still become stable.

    Wait again. Or send it again with its `id`: the same source then sends nothing, and receivers may drop copies.
    """


class NotProcessed(StablecastError):  # noqa: N818
    """The application could not process a message in all of its attempts, and there are no dead letters for it.

    The message stays unacknowledged, so the next run of the receiver gets it again.
    """


class PayloadError(StablecastError):
    """A payload is no object of the type that is read here. The text says what is wrong with it."""


class Closed(StablecastError):  # noqa: N818
    """The context, source or receiver was closed. Make a new one."""


class EndpointFailed(Closed):
    """A source or receiver ended, because it could not do what its protocol decided.

    The text names the act, and the cause is chained. Make a new source or receiver.
    """


class RegistrationTroubles:
    """The newest reason from each store why it does not register a source. A bounded number of stores is kept."""

    def __init__(self) -> None:
        self._newest: dict[int, StoreUnresponsive | RegistrationError] = {}

    def add(self, event: StoreUnresponsive | RegistrationError) -> None:
        """Replace what is known of the event's store."""
        self._newest.pop(event.store_index, None)
        self._newest[event.store_index] = event
        if len(self._newest) > MAX_TROUBLES:
            del self._newest[next(iter(self._newest))]

    def clear(self) -> None:
        """Forget all, because the source is registered."""
        self._newest.clear()

    def explain(
        self,
        topic: str,
        within: float | None,
        own: str,
        connected: Callable[[str], bool],
        cause: Callable[[str], str] = lambda _: "",
        unanswered: Mapping[int, str] = MappingProxyType({}),
    ) -> str:
        """Return the text for a source that waited `within` seconds. Refusals carry a remedy; other stores get one.

        `own` is the address at which the stores answer the context. `connected` returns whether a store has accepted
        the context's connection. The protocol has no answer for a store that waits because it may have lost its
        journal, so such a store is only known by its silence on an open connection. `unanswered` has the addresses of
        stores that have not answered yet, also those that are not reported for that.
        """
        told = {
            index: StoreUnresponsive(
                index, store, ": ".join(filter(None, (f"store {index} [{store}] {MUTE}", cause(store))))
            )
            for index, store in unanswered.items()
        }
        newest = [event for _, event in sorted({**told, **self._newest}.items())]
        silent = [event for event in newest if isinstance(event, StoreUnresponsive)]
        mute = [event.text.rstrip(".") for event in silent if connected(event.store)]
        away = [event.text.rstrip(".") for event in silent if not connected(event.store)]
        refusals = [event.text for event in newest if isinstance(event, RegistrationError)]
        if mute:
            why = f"{'; '.join(mute)}, although the connection is open. The store's log names the cause"
            remedy = "a store that finds no journal waits before it grants registrations; start a new store with --new"
            refusals.append(f"{why}: {remedy}. Or the store cannot connect to {own}: name an interface that it reaches")
        if any(cause(event.store) for event in silent):  # No other remedy helps.
            known = [event.text.rstrip(".") for event in silent if cause(event.store)]
            return f"source '{topic}' is not registered with enough stores after {within:g} s: {'; '.join(known)}"
        if away or not refusals:
            remedy = f"start the stores, correct their addresses, or name an interface: they answer to {own}"
            refusals.append(f"{'; '.join(away) or 'no store answered'}; {remedy}")
        return f"source '{topic}' is not registered with enough stores after {within:g} s: {' '.join(refusals)}"
