"""Inputs of the resolution machines. Addresses are `ip:port`, times nanoseconds."""

from collections.abc import Collection

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.records import SourceRecord, check_topic
from stablecast.transports.resolution.udp.settings import MAX_SOURCES, AdvertiseOptions, PatternOptions, QueryOptions
from stablecast.transports.wire import lbmr

U32_END = 1 << 32


@attrs.frozen
class AddSource:
    """The context has a new source. Session ID and index (32 bits each) together name it.

    Attributes:
        address: Where its data is joined, `ip:port` or a source string.
        options: How it is advertised; None: as the context's configuration says.
    """

    topic: str
    address: str
    session_id: int
    index: int
    request_address: str
    persistent: bool
    options: AdvertiseOptions | None = None

    @property
    def key(self) -> int:
        """The session ID and the index in one number."""
        return self.session_id << 32 | self.index

    def check(self, sources: Collection[int]) -> None:
        """Raise MisuseError if a context with these sources, by key, cannot have this one as well."""
        check_topic(self.topic)
        if not (0 <= self.session_id < U32_END and 0 <= self.index < U32_END):
            raise MisuseError(f"session ID {self.session_id} and index {self.index} must be 32-bit numbers")
        if self.key in sources:
            raise MisuseError(f"session {self.session_id:#x} has a source with index {self.index} already")
        if len(sources) == MAX_SOURCES:
            raise MisuseError(f"a context has at most {MAX_SOURCES} sources: remove one or use another context")

    def record(self, instance: bytes) -> SourceRecord:
        """Return the record of this source in the context `instance`."""
        return SourceRecord(self.address, self.session_id, self.index, self.request_address, self.persistent, instance)


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
    """The context wants the sources of `topic`. If it wanted them before, it starts anew and is told of all again.

    Attributes:
        options: How it is asked for; None: as the context's configuration says.
    """

    topic: str
    options: QueryOptions | None = None


@attrs.frozen
class RemoveReceiver:
    """The sources of `topic` are not wanted any more."""

    topic: str


@attrs.frozen
class AddPattern:
    """The context wants the sources of all topics that match. If it wanted them before, it is told of all again.

    Attributes:
        kind: The language of the pattern; searched, not anchored (C-13).
        options: How it is asked for; None: as the context's configuration says.
    """

    pattern: str
    kind: int = lbmr.PatternType.PCRE
    options: PatternOptions | None = None


@attrs.frozen
class RemovePattern:
    """The sources of topics that match are not wanted any more on that ground."""

    pattern: str


@attrs.frozen
class Resolved:
    """The receiver of `topic` has a live session."""

    topic: str


@attrs.frozen
class Unresolved:
    """The receiver of `topic` lost its last session: ask again, and report again what was reported before."""

    topic: str


@attrs.frozen
class SourceLost:
    """The session of one source of `topic` is over: it does not count as known any more."""

    topic: str
    session_id: int
    index: int


@attrs.frozen
class AddName:
    """The context is a store that is found by this name at `address`."""

    name: str
    address: str


@attrs.frozen
class RemoveName:
    """It has this name no more."""

    name: str


@attrs.frozen
class AskName:
    """Find the store of this name."""

    name: str


@attrs.frozen
class ForgetName:
    """Never mind that store."""

    name: str


@attrs.frozen
class NameAlive:
    """The store of this name said something to us directly (T-206)."""

    name: str


@attrs.frozen
class Wake:
    """Ask all contexts to speak again of what went quiet, every `interval` for `duration` (T26).

    Attributes:
        flags: Of what, by the flags of `lbmr.ResolutionRequest`.
    """

    flags: int
    interval: int
    duration: int


@attrs.frozen
class RecordsReceived:
    """Records from the resolution domain, for the two halves of a context."""

    packet: lbmr.Packet


@attrs.frozen
class DatagramArrived:
    """The socket received `data` from `sender`."""

    data: bytes
    sender: str


NameInput = AddName | RemoveName | AskName | ForgetName | NameAlive
TopicInput = AddReceiver | RemoveReceiver | AddPattern | RemovePattern | Resolved | Unresolved | SourceLost
AdvertiserInput = AddSource | RemoveSource | RecordsReceived
QuerierInput = TopicInput | RecordsReceived
ResolutionInput = AddSource | RemoveSource | TopicInput
ContextInput = ResolutionInput | NameInput | Wake | DatagramArrived
