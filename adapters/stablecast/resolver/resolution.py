"""The methods that all kinds of topic resolution of a context have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, assert_never

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp import effects as fx
from stablecast.transports.resolution.udp import inputs
from stablecast.transports.resolution.udp.settings import PatternOptions, QueryOptions
from stablecast.transports.wire import lbmr_extended
from stablecast.transports.wire.lbmr import AnyPacket, PatternLanguage, Query

OnRecord = Callable[[str, SourceRecord], None]
"""Gets the topic and the record of a source."""


NamesInput = inputs.NameInput | inputs.Wake | inputs.Say | inputs.FollowRoutes
"""An input that only resolution over UDP has."""


def nothing(*_: Any) -> None:
    """Ignore an event that no listener was given for."""


CommonEffect = fx.Discovered | fx.Withdrawn | fx.Abandoned | fx.DomainEffect
"""What resolution over UDP and over services may find out alike."""


@attrs.frozen
class Listeners:
    """The callbacks of a resolver; they may call back and must not raise.

    Attributes:
        found: `found(topic, record)` for each source of a wanted topic, perhaps more than once.
        gone: `gone(topic, record)` when such a source withdrew its advertisement, or a service reports its end.
        no_source: `no_source(topic, queries)` when that many queries were not answered.
        name_found: `name_found(name, address)` when the store of a name is known, or moved.
        name_lost: `name_lost(name)` when the store of a name was silent for too long.
        remark: `remark(text, warning)` for a log line.
        abandoned: `abandoned(topic)` when a topic that only patterns want has had no source for too long.
        service: `service(address, up, reason)` when a service begins or ceases to inform this context.
        interest: `interest(query, on)` at a router's portal: what a service tells of the interest of its domain.
        overheard: `overheard(packet)` at a router's portal: what other contexts and routers of its domain say.
        domain: `domain(number)` when the number of this context's domain is known.
        route: `route(domain, address)` when the router at `address` reaches another domain; empty: none does any more.
    """

    found: OnRecord
    gone: OnRecord = nothing
    no_source: Callable[[str, int], None] = nothing
    name_found: Callable[[str, str], None] = nothing
    name_lost: Callable[[str], None] = nothing
    remark: Callable[[str, bool], None] = nothing
    abandoned: Callable[[str], None] = nothing
    service: Callable[[str, bool, str], None] = nothing
    interest: Callable[[Query, bool], None] = nothing
    overheard: Callable[[AnyPacket | lbmr_extended.Packet], None] = nothing
    domain: Callable[[int], None] = nothing
    route: Callable[[int, str], None] = nothing

    def tell(self, effect: CommonEffect) -> None:
        match effect:
            case fx.Discovered(topic, record):
                self.found(topic, record)
            case fx.Withdrawn(topic, record):
                self.gone(topic, record)
            case fx.Abandoned(topic):
                self.abandoned(topic)
            case fx.Remark(text, warning):
                self.remark(text, warning)
            case fx.DomainLearnt(domain):
                self.domain(domain)
            case fx.RouteLearnt(domain, address):
                self.route(domain, address)
            case fx.RouteLost(domain):
                self.route(domain, "")
            case _:
                assert_never(effect)


class Resolution(ABC):
    """Topic resolution of one context: `Resolver` over UDP, `SrsResolver` over services, `Combined` for several.

    Attributes:
        over_udp: Whether it finds stores by name and wakes quiet contexts. Services know no names, and are never quiet.
    """

    over_udp = False

    @abstractmethod
    def feed(self, event: inputs.ResolutionInput) -> None:
        """Process one input; do nothing once closed. Raises MisuseError."""

    @abstractmethod
    def feed_names(self, event: NamesInput) -> None:
        """Process one input that only resolution over UDP has. Raises MisuseError."""

    def add_name(self, name: str, address: str) -> None:
        """Answer queries for the store `name` with `address` (T-204), over UDP. Raises MisuseError."""
        self.feed_names(inputs.AddName(name, address))

    def ask_name(self, name: str) -> bool:
        """Find the store of a name (T-201); False if this kind cannot (T-010). Raises MisuseError."""
        self.feed_names(inputs.AskName(name))
        return self.over_udp

    def forget_name(self, name: str) -> None:
        """Stop finding the store of a name."""
        self.feed_names(inputs.ForgetName(name))

    def name_alive(self, name: str) -> None:
        """Note that the store of a name sends to this context, so that its name needs no queries (T-206)."""
        self.feed_names(inputs.NameAlive(name))

    def wake(self, flags: int, interval: float = 0, duration: float = 0) -> None:
        """Ask quiet contexts to advertise and query again (T26), every `interval` for `duration` seconds."""
        self.feed_names(inputs.Wake(flags, int(interval * SECOND), int(duration * SECOND)))

    @abstractmethod
    def why(self, topic: str) -> str:
        """Return the likely reason why the receiver of `topic` has no session."""

    @abstractmethod
    def move(self, interface: str) -> None:
        """Resolve from another address of this host. Raises PortError, InterfaceError."""

    @property
    def silent(self) -> bool:
        """Return whether nobody who answered before answers any more."""
        return False

    @abstractmethod
    async def close(self) -> None:
        """Stop resolution and close all sockets; nothing is reported afterwards."""

    def add_source(self, source: inputs.AddSource) -> None:
        """Advertise a source until `remove_source`; its advertising options concern UDP only.

        Raises:
            MisuseError: The source cannot be written on the wire, is known already, or is one too many.
        """
        self.feed(source)

    def remove_source(self, session_id: int, index: int) -> None:
        """Stop advertising a source; receivers learn its end from the transport or the service."""
        self.feed(inputs.RemoveSource(session_id, index))

    def add_receiver(self, topic: str, options: QueryOptions | None = None) -> None:
        """Find the sources of `topic` until `remove_receiver`; for a second receiver, report all of them again.

        Raises:
            MisuseError: The topic cannot be written on the wire, or is one too many.
        """
        self.feed(inputs.AddReceiver(topic, options))

    def remove_receiver(self, topic: str) -> None:
        """Stop finding the sources of `topic`; nothing is reported afterwards."""
        self.feed(inputs.RemoveReceiver(topic))

    def add_pattern(
        self, pattern: str, kind: int = PatternLanguage.PCRE, options: PatternOptions | None = None
    ) -> None:
        """Find the sources of all topics that match until `remove_pattern` (T-031); services know PCRE only.

        Raises:
            MisuseError: The pattern is malformed, cannot be written on the wire, or is one too many.
        """
        self.feed(inputs.AddPattern(pattern, kind, options))

    def remove_pattern(self, pattern: str) -> None:
        self.feed(inputs.RemovePattern(pattern))

    def resolved(self, topic: str) -> None:
        """Note that the receiver of `topic` has a live session: queries stop after the initial phase."""
        self.feed(inputs.Resolved(topic))

    def unresolved(self, topic: str) -> None:
        """Note that the receiver of `topic` has no live session any more: ask again, and report all sources again."""
        self.feed(inputs.Unresolved(topic))
