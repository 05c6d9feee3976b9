"""The memory of a receiver in one run of a program: it outlives the `Receiver` objects that read for it.

A pattern leaves a topic without a source, and receives it again when a source returns. A member of a group releases a
share and claims it again. An application closes a receiver and makes another one with the same session id. All of them
go on where the first object was, because the application is the same run.

The messages that the application of a receiver consumed are kept by the life of the source that sent them.

Each new session starts with them, so that the application gets each message once. Several sessions report on the same
life, and each knows a part only. A session with another source or other stores does not learn what the application
consumes of earlier lives after it began. Therefore the reports are united: a later report removes nothing.
"""

from collections.abc import Container, Mapping

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.receiver.hot_failover import HotFailover
from stablecast.core.receiver.lives import MAX_LIVES
from stablecast.core.subscription.source_identity import SourceIdentity
from stablecast.core.subscription.succession import Ranges

MAX_MEMORIES = 65_536
"""Receivers whose messages of this run are remembered. Beyond that, the one that was made or closed longest ago is
forgotten."""


@attrs.define
class Consumption:
    """The consumed, or confirmed, numbers of each life; the life that was reported longest ago comes first."""

    lives: dict[int, RangeSet] = attrs.field(factory=dict)

    def add(self, reported: Mapping[int, Ranges]) -> None:
        """Add a session's report. Beyond `MAX_LIVES` lives, forget those that were reported longest ago."""
        for life, ranges in reported.items():
            known = self.lives.pop(life, None) or RangeSet()
            self.lives[life] = known
            known.update(ranges)
        while len(self.lives) > MAX_LIVES:
            del self.lives[next(iter(self.lives))]

    def history(self, lives: Container[int] | None = None) -> dict[int, Ranges]:
        """Return the consumed numbers as [first, stop) of these lives, None for all."""
        return {life: list(ranges) for life, ranges in self.lives.items() if lives is None or life in lives}


@attrs.define(eq=False)
class ReceiverMemory:
    """The messages that one receiver has read in this run.

    Attributes:
        consumption: The messages that the application consumed.
        confirmed: The messages of these that were confirmed to the sources.
        identity: The sources that sent them.
        hot: The hot numbers that the application was handed.
        begun: The lives that sessions began with; a later life of the same source goes on where the receiver is.
    """

    consumption: Consumption = attrs.field(factory=Consumption)
    confirmed: Consumption = attrs.field(factory=Consumption)
    identity: SourceIdentity = attrs.field(factory=SourceIdentity)
    hot: HotFailover = attrs.field(factory=HotFailover)
    begun: tuple[int, ...] = ()


@attrs.define(eq=False)
class Memories:
    """The memories of several receivers, which stores distinguish by topic and session id."""

    known: dict[tuple[str, int], ReceiverMemory] = attrs.field(factory=dict)

    def of(self, config: ReceiverConfig) -> ReceiverMemory:
        """Return the memory of the receiver with this configuration, an empty one if it is not known."""
        memory = self.known.pop(who(config), None) or ReceiverMemory()
        self.known[who(config)] = memory
        if len(self.known) > MAX_MEMORIES:
            del self.known[next(iter(self.known))]
        return memory

    def keep(self, config: ReceiverConfig, memory: ReceiverMemory) -> None:
        """Forget this memory last, because its receiver is closed now. One that was forgotten stays so."""
        if self.known.get(who(config)) is memory:
            self.of(config)

    def forget(self, config: ReceiverConfig) -> None:
        """Forget a receiver, because the stores shall forget it."""
        self.known.pop(who(config), None)


def who(config: ReceiverConfig) -> tuple[str, int]:
    """Return what distinguishes a receiver from all others of one context: its topic and its session id."""
    return config.topic, config.session_id


def returns(config: ReceiverConfig) -> bool:
    """Return whether a receiver that is made again is the same one.

    It needs a session id. One that acknowledges explicitly gets what it did not acknowledge again.
    """
    return config.session_id != 0 and config.ack_mode is not AckMode.EXPLICIT
