"""What a subscription asks of its driver, in order."""

import attrs

from stablecast.core.protocol.messages import Incarnation, SourceInfo
from stablecast.core.subscription.inputs import Place, Session
from stablecast.core.subscription.succession import Ranges


@attrs.frozen
class JoinStream:
    """Join a stream, unless it is joined; look at the items of these lives only, of all if none was ever named."""

    place: Place
    lives: tuple[Incarnation, ...] = ()


@attrs.frozen
class LeaveStream:
    """Leave a stream."""

    transport: str


@attrs.frozen
class BeginSession:
    """Make a session with the life that announced itself at a place, and answer with `Begun`."""

    info: SourceInfo
    place: Place


@attrs.frozen
class StartSession:
    """Start a session with the history of consumption, and let it succeed the `earlier` ones.

    `confirmed` are the messages of its life that sessions before it confirmed to the source.
    """

    session: Session
    history: dict[int, Ranges]
    earlier: tuple[Session, ...] = ()
    confirmed: Ranges = attrs.field(factory=list)


@attrs.frozen
class Inform:
    """Give a session the announcement of its life, and the place where that sends now."""

    session: Session
    info: SourceInfo
    transport: str


@attrs.frozen
class EndSession:
    """The stream of a session has ended: let it recover what is missing, and answer with `SessionEnded`."""

    session: Session


@attrs.frozen
class CloseSession:
    """Close an ended session, and answer with `Remember`."""

    session: Session


@attrs.frozen
class Look:
    """Look for the next life of the source that was at a place; whether `others` of the topic are still joined."""

    transport: str
    others: bool


@attrs.frozen
class Foreign:
    """A second source announced itself on a stream that has one."""


@attrs.frozen
class Retired:
    """All messages are recovered and consumed, and no source was found since `Retire`."""


StreamEffect = JoinStream | LeaveStream | Look | Foreign | Retired
SubscriptionEffect = StreamEffect | BeginSession | StartSession | Inform | EndSession | CloseSession
