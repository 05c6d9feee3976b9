"""What a subscription learns from its driver. Sessions are the driver's: the machine only compares them."""

from typing import Any

import attrs

from stablecast.core.protocol.messages import Incarnation, SourceInfo
from stablecast.core.subscription.succession import Ranges

Session = Any
"""What the driver calls a session with one life of a source."""


@attrs.frozen
class Place:
    """A stream, at its address.

    Attributes:
        session_id: The life that is expected there; None: any.
        request: Where the source takes requests; empty: its announcement says that.
        shared: Whether several sources of one topic may send there.
        static: Whether it was given by hand, so that it is joined again whenever it ends.
        stored: Whether it stands for a source that only stores know.
    """

    transport: str
    session_id: int | None = None
    request: str = ""
    shared: bool = False
    static: bool = False
    stored: bool = False


@attrs.frozen
class Report:
    """What the application consumed by now in a session with `life` and those before, by life as [first, stop).

    `info` is the newest announcement that the session accepted. It `answers` for its messages until a later one does.
    `confirmed` are the messages of `life` that it confirmed to the source.
    """

    session: Session
    life: Incarnation
    info: SourceInfo | None
    history: dict[int, Ranges]
    answers: bool = True
    confirmed: Ranges = attrs.field(factory=list)


@attrs.frozen
class Found:
    """A source was found; its life if that is known."""

    place: Place
    life: Incarnation | None = None


@attrs.frozen
class Withdrawn:
    """The resolver reported that a life ended."""

    transport: str
    life: Incarnation


@attrs.frozen
class Announced:
    """A life announced itself on a stream, or stores told of it."""

    info: SourceInfo
    place: Place


@attrs.frozen
class StreamEnded:
    """A joined stream has ended for good, or could not be joined (`failed`)."""

    transport: str
    failed: bool = False


@attrs.frozen
class Begun:
    """The session of a life was made, None if that failed; `reports` are those of all sessions before it."""

    life: Incarnation
    session: Session | None
    reports: tuple[Report, ...] = ()


@attrs.frozen
class SessionEnded:
    """A session that had to end has done so; in `vain` if it never began to deliver."""

    session: Session
    vain: bool


@attrs.frozen
class Settled:
    """These ended sessions are recovered, and the application consumed their messages or others answer for them."""

    sessions: tuple[Session, ...]


@attrs.frozen
class Remember:
    """A session is closed, or its application consumed more after that."""

    report: Report


@attrs.frozen
class Retire:
    """The topic has no source: end once all messages are recovered and consumed, unless a source is found before."""


@attrs.frozen
class Leave:
    """The application closes the receiver."""


StreamInput = Found | Withdrawn | Announced | StreamEnded
SubscriptionInput = StreamInput | Begun | SessionEnded | Settled | Remember | Retire | Leave
