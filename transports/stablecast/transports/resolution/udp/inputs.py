"""Inputs of the resolution machines. Addresses are `ip:port`, times nanoseconds."""

from collections.abc import Collection

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.codec.places import OTID_BYTES
from stablecast.transports.resolution.records import SourceRecord, check_topic, named
from stablecast.transports.resolution.udp.settings import MAX_SOURCES, AdvertiseOptions, PatternOptions, QueryOptions
from stablecast.transports.wire import lbmr, lbmr_extended

U8_END, U31_END, U32_END = 1 << 8, 1 << 31, 1 << 32


@attrs.frozen
class AddSource:
    """The context has a new source. Session ID and index (32 bits each) together name it.

    Attributes:
        address: The place to join its data, `ip:port` or a source string.
        options: Its advertisement options; None: those of the context's configuration.
        origin: The OTID of the source that this one repeats; empty: it is a source of this context.
        cost: As in `SourceRecord`, like `hops` and `domain`.
    """

    topic: str
    address: str
    session_id: int
    index: int
    request_address: str
    persistent: bool
    options: AdvertiseOptions | None = None
    origin: bytes = b""
    cost: int = 0
    hops: int = 0
    domain: int = 0

    @property
    def key(self) -> int:
        """The session ID and the index in one number."""
        return self.session_id << 32 | self.index

    def check(self, sources: Collection[int]) -> None:
        """Raise MisuseError if a context with these sources, by key, cannot have this one as well."""
        check_topic(self.topic)
        if not (0 <= self.session_id < U32_END and 0 <= self.index < U32_END):
            raise MisuseError(f"session ID {self.session_id} and index {self.index} must be 32-bit numbers")
        if not (0 <= self.cost < U31_END and 0 <= self.hops < U8_END and 0 <= self.domain < U32_END):
            raise MisuseError(
                f"cost {self.cost}, hops {self.hops} and domain {self.domain} do not fit an advertisement"
            )
        if len(self.origin) not in (0, OTID_BYTES):
            raise MisuseError(f"the OTID of a source has {OTID_BYTES} bytes, not {len(self.origin)}")
        if self.key in sources:
            raise MisuseError(f"session {self.session_id:#x} has a source with index {self.index} already")
        if len(sources) == MAX_SOURCES:
            raise MisuseError(f"a context has at most {MAX_SOURCES} sources: remove one or use another context")

    def record(self, instance: bytes) -> SourceRecord:
        """Return the record of this source in the context `instance`. Raises MisuseError for a malformed address."""
        record = SourceRecord(
            self.address,
            self.session_id,
            self.index,
            self.request_address,
            self.persistent,
            instance,
            self.origin,
            self.cost,
            self.hops,
            self.domain,
        )
        return named(record)


@attrs.frozen
class RemoveSource:
    """A source of the context is closed. An unknown source is ignored."""

    session_id: int
    index: int

    @property
    def key(self) -> int:
        """The session ID and the index in one number, as in `AddSource`."""
        return self.session_id << 32 | self.index


@attrs.frozen
class AddReceiver:
    """The context wants the sources of `topic`. If it wanted them before, it starts anew, and all are reported again.

    Attributes:
        options: Its query options; None: those of the context's configuration.
    """

    topic: str
    options: QueryOptions | None = None


@attrs.frozen
class RemoveReceiver:
    """The context no longer wants the sources of `topic` by its name. If a pattern matches, all are reported again."""

    topic: str


@attrs.frozen
class AddPattern:
    """The context wants the sources of all matching topics. If it wanted them before, all are reported again.

    Attributes:
        kind: The language of the pattern, which is searched and not anchored (C-13).
        options: Its query options; None: those of the context's configuration.
    """

    pattern: str
    kind: int = lbmr.PatternLanguage.PCRE
    options: PatternOptions | None = None


@attrs.frozen
class RemovePattern:
    """The context no longer wants sources of topics because of this pattern."""

    pattern: str


@attrs.frozen
class Resolved:
    """The receiver of `topic` has a live session."""

    topic: str


@attrs.frozen
class Unresolved:
    """The receiver of `topic` lost its last session: query again, and report known sources again."""

    topic: str


@attrs.frozen
class SourceLost:
    """The session of one source of `topic` has ended: the source no longer counts as known."""

    topic: str
    session_id: int
    index: int


@attrs.frozen
class AddName:
    """The context is a store with this name at `address`."""

    name: str
    address: str


@attrs.frozen
class AskName:
    """Find the store with this name."""

    name: str


@attrs.frozen
class ForgetName:
    """Stop the search for a store."""

    name: str


@attrs.frozen
class NameAlive:
    """The store of this name has sent something to this context directly (T-206)."""

    name: str


@attrs.frozen
class Wake:
    """Request all contexts to repeat their records, every `interval` for `duration` (T26).

    Attributes:
        flags: The kinds of records, by the flags of `lbmr.ResolutionRequest`.
    """

    flags: int
    interval: int
    duration: int


@attrs.frozen
class Say:
    """Send packets of the kinds that only routers send, each with the trailer of this context."""

    bodies: tuple[lbmr_extended.Body, ...]


@attrs.frozen
class FollowRoutes:
    """Hear routers from now on, even without sources and receivers: something is sent to another domain."""


@attrs.frozen
class RecordsReceived:
    """Records from the resolution domain, for the two sides of a context."""

    packet: lbmr.Packet


@attrs.frozen
class DatagramArrived:
    """The socket received `data` from `sender`."""

    data: bytes
    sender: str


NameInput = AddName | AskName | ForgetName | NameAlive
TopicInput = AddReceiver | RemoveReceiver | AddPattern | RemovePattern | Resolved | Unresolved | SourceLost
AdvertiserInput = AddSource | RemoveSource | RecordsReceived
QuerierInput = TopicInput | RecordsReceived
ResolutionInput = AddSource | RemoveSource | TopicInput
ContextInput = ResolutionInput | NameInput | Wake | Say | FollowRoutes | DatagramArrived
