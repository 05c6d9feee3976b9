"""One client of a service: its connection, and the records that it announced.

    ANNOUNCING --complete--> CURRENT --lost--> DOWN --forgotten--> GONE
    CURRENT, DOWN --hello--> ANNOUNCING

* A client is one life of one context (T-418). It sends a hello on each connection and announces all records (T-408).
* Each record is marked with the connection that announced it. The records of a broken connection are *potentially
  down*, not gone (T-413). A record that is announced again on the next connection is up (T-414).
* At the end of the full exchange, records that this connection did not announce are gone: they are older (formal
  design, 7.10).
* A record that stays down for its lifetime is deleted. Sources and interest have one lifetime each; 0 means forever
  (T-415, T-416).
"""

from collections.abc import Callable
from enum import IntEnum

import attrs

from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.transports.resolution.srs.directory import Interest


class ClientState(IntEnum):
    ANNOUNCING = 0
    CURRENT = 1
    DOWN = 2
    GONE = 3


class ClientEvent(IntEnum):
    HELLO = 0
    COMPLETE = 1
    LOST = 2
    FORGOTTEN = 3


class ClientChart(Chart):
    states = States.from_enum(
        ClientState, initial=ClientState.ANNOUNCING, final=ClientState.GONE, use_enum_instance=True
    )

    hello = (
        states.ANNOUNCING.to.itself(internal=True, on=["note_loss", "adopt"])
        | states.CURRENT.to(states.ANNOUNCING, on=["note_loss", "adopt"])
        | states.DOWN.to(states.ANNOUNCING, on="adopt")
    )
    complete = states.ANNOUNCING.to(states.CURRENT)
    lost = states.ANNOUNCING.to(states.DOWN, on="note_loss") | states.CURRENT.to(states.DOWN, on="note_loss")
    forgotten = states.DOWN.to(states.GONE)


@attrs.frozen
class Dropped:
    """Records that a client no longer has."""

    sources: tuple[bytes, ...] = ()
    interests: tuple[Interest, ...] = ()


@attrs.define
class ServiceClient:
    """One client.

    Attributes:
        instance: The 8 bytes that name the life of its context.
        number: The number that the service assigned to it.
        source_ns: Lifetime of its sources while they are potentially down; 0: forever.
        interest_ns: The same for its interest.
        connection: Its current connection, or its last one.
        counter: The context's number of that connection; 0: the context does not number connections.
        sources: The connection that announced each source, by OTID.
        interests: The connection that announced each interest.
        lost_at: Loss of each broken connection that marks a record (ns).
        peer: The other end of its current connection, or of its last one.
        router: True if it is the context of a router's portal.
    """

    instance: bytes
    number: int
    source_ns: int
    interest_ns: int
    connection: int
    counter: int
    state: ClientState = ClientState.ANNOUNCING
    sources: dict[bytes, int] = attrs.field(factory=dict)
    interests: dict[Interest, int] = attrs.field(factory=dict)
    lost_at: dict[int, int] = attrs.field(factory=dict)
    peer: str = ""
    router: bool = False

    @property
    def up(self) -> bool:
        return self.state in (ClientState.ANNOUNCING, ClientState.CURRENT)

    def is_late(self, counter: int) -> bool:
        """Return whether a hello with this number is older than the last one."""
        return 0 < counter <= self.counter

    def is_down(self, otid: bytes) -> bool:
        """Return whether one of its sources is potentially down."""
        return not self.up or self.sources[otid] != self.connection

    def hello(self, connection: int, counter: int, now: int) -> None:
        """Note that the client is on a new connection."""
        fire(CLIENT, self, ClientEvent.HELLO, now, connection, counter)

    def complete(self, now: int) -> Dropped:
        """Note the end of the full exchange, and drop the records that this connection did not announce."""
        if not fire(CLIENT, self, ClientEvent.COMPLETE, now):
            return Dropped()
        self.lost_at.clear()
        return self._drop(lambda mark: mark != self.connection, lambda mark: mark != self.connection)

    def lost(self, now: int) -> None:
        """Note that its connection is broken."""
        fire(CLIENT, self, ClientEvent.LOST, now)

    def lapse(self, now: int) -> Dropped:
        """Drop records that were potentially down for their lifetime. A disconnected client without records is gone."""
        dropped = self._drop(
            lambda mark: self._due(mark, self.source_ns, now), lambda mark: self._due(mark, self.interest_ns, now)
        )
        if self.state is ClientState.DOWN and not self.sources and not self.interests:
            fire(CLIENT, self, ClientEvent.FORGOTTEN, now)
        return dropped

    def next_lapse(self) -> int | None:
        """Return when `lapse` is due, in nanoseconds."""
        spans = [(self.source_ns, set(self.sources.values())), (self.interest_ns, set(self.interests.values()))]
        return min(
            (at + span for span, marks in spans for mark, at in self.lost_at.items() if span and mark in marks),
            default=None,
        )

    def note_loss(self, now: int, *_: int) -> None:
        """Mark the records of this connection as potentially down; older ones keep the time of their loss."""
        marks = {*self.sources.values(), *self.interests.values()}
        self.lost_at[self.connection] = now
        self.lost_at = {mark: at for mark, at in self.lost_at.items() if mark in marks}

    def adopt(self, _: int, connection: int, counter: int) -> None:
        """Mark records that are announced from now on with this connection."""
        self.connection, self.counter = connection, counter

    def _due(self, mark: int, span: int, now: int) -> bool:
        lost_at = self.lost_at.get(mark)
        return span > 0 and lost_at is not None and now >= lost_at + span

    def _drop(self, source: Callable[[int], bool], interest: Callable[[int], bool]) -> Dropped:
        sources = tuple(otid for otid, mark in self.sources.items() if source(mark))
        interests = tuple(wanted for wanted, mark in self.interests.items() if interest(mark))
        for otid in sources:
            del self.sources[otid]
        for wanted in interests:
            del self.interests[wanted]
        return Dropped(sources, interests)


_S = ClientState
_E = ClientEvent
CLIENT = lower(
    ClientChart,
    ServiceClient,
    ClientState,
    ClientEvent,
    ignore={_S.CURRENT: (_E.COMPLETE,)},
    reject={
        _S.ANNOUNCING: (_E.FORGOTTEN,),
        _S.CURRENT: (_E.FORGOTTEN,),
        _S.DOWN: (_E.COMPLETE, _E.LOST),
        _S.GONE: tuple(_E),
    },
)
