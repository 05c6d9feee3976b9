"""The facts that belong to an event but not to the machine that reports it: names, session ids, objects of the program.

A machine knows numbers and addresses. The client knows the rest: the name of a store (P-652, P-655), the session id
under which it registered (P-666), and the object that the application attached to a message (P-333).
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import attrs

from stablecast.core.protocol import events
from stablecast.core.protocol.settings import StoreSpec
from stablecast.core.registration.status import RegistrationStatus

MAX_LATE_TAGS = 10_000
"""Objects of released messages that are kept for late confirmations. Beyond that, the oldest are dropped."""


@attrs.frozen
class EventDetails:
    """More facts about an event.

    Attributes:
        store: The address `ip:port` of the store that the event names, empty if it names none.
        store_name: The name of that store, empty if the client does not know it by name.
        session_id: The session id under which this source or receiver registered, 0: none.
        source: The place of the source: `TCP:ip:port`, or a source string.
        tags: The objects that were attached to the messages of the event, in order of their numbers (P-333).
    """

    store: str = ""
    store_name: str = ""
    session_id: int = 0
    source: str = ""
    tags: tuple[object, ...] = ()


def store_of(
    event: events.Event, stores: Sequence[StoreSpec], registrations: Mapping[int, RegistrationStatus]
) -> tuple[str, str]:
    """Return address and name of the store that an event of a source names, each empty if unknown."""
    if isinstance(event, events.StoreMoved):
        return event.address, event.name
    index = getattr(event, "store_index", None)
    if index is None or not 0 <= index < len(stores):
        return "", ""
    known = registrations.get(index)
    return getattr(event, "store", "") or (known.address if known is not None else ""), stores[index].name


@attrs.define
class MessageTags:
    """The objects that were attached to messages, by number.

    Attributes:
        keeps_late: Objects of released messages are kept, because confirmations may follow (P-329).
    """

    keeps_late: bool = False
    _firsts: list[int] = attrs.field(factory=list)
    _lasts: list[int] = attrs.field(factory=list)
    _tags: list[object] = attrs.field(factory=list)

    def __len__(self) -> int:
        return len(self._tags)

    def add(self, first: int, last: int, tag: object) -> None:
        """Attach an object to the message with these numbers, before its events can come."""
        self._firsts.append(first)
        self._lasts.append(last)
        self._tags.append(tag)

    def of(self, first: int, last: int) -> tuple[object, ...]:
        """Return the objects of messages that have a number in `first`..`last`."""
        begin = bisect_left(self._lasts, first)
        end = bisect_left(self._firsts, last + 1)
        return tuple(self._tags[begin:end])

    def release(self, below: int) -> None:
        """Drop the objects of messages that end below a number; the newest of them stay if confirmations may follow."""
        gone = bisect_left(self._lasts, below)
        if self.keeps_late:
            gone = min(gone, max(0, len(self._tags) - MAX_LATE_TAGS))
        if gone:
            del self._firsts[:gone], self._lasts[:gone], self._tags[:gone]
