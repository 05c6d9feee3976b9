"""Inputs of the resolution machines. Addresses are `ip:port`."""

import attrs

from stablecast.transports.wire import lbmr


@attrs.frozen
class AddSource:
    """The context has a new source. Session ID and index (32 bits each) together name it."""

    topic: str
    address: str
    session_id: int
    index: int
    request_address: str
    persistent: bool


@attrs.frozen
class RemoveSource:
    """A source is gone; unknown ones are ignored."""

    session_id: int
    index: int


@attrs.frozen
class AddReceiver:
    """The context wants the sources of `topic`. If it wanted them before, it starts anew and is told of all again."""

    topic: str


@attrs.frozen
class RemoveReceiver:
    """The sources of `topic` are not wanted any more."""

    topic: str


@attrs.frozen
class Resolved:
    """The receiver of `topic` has a live session."""

    topic: str


@attrs.frozen
class Unresolved:
    """The receiver of `topic` lost its last session: ask again, and report again what was reported before."""

    topic: str


@attrs.frozen
class Heard:
    """Records from the resolution domain, for the two halves of a context."""

    packet: lbmr.Packet


@attrs.frozen
class DatagramArrived:
    """The socket received `data` from `sender`."""

    data: bytes
    sender: str


AdvertiserInput = AddSource | RemoveSource | Heard
QuerierInput = AddReceiver | RemoveReceiver | Resolved | Unresolved | Heard
ContextInput = AddSource | RemoveSource | AddReceiver | RemoveReceiver | Resolved | Unresolved | DatagramArrived
