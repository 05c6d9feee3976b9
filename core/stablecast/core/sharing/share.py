"""One share of a topic, as one member sees it.

    RELEASED --claim--> CLAIMING --granted--> HELD --revoke--> DRAINING --drained--> RECORDING --recorded--> CLOSING
    CLOSING --closed--> RELEASED

* The member claims a share by registering under its session id, at an address of its own. While another member holds
  the share, the stores refuse, and the member asks again.
* A share that goes to another member is *drained* first: the application gets no further message of it, and settles
  those that it has. Then the member waits until a quorum of the stores has *recorded* what was consumed. The next
  holder also needs a quorum, so it learns of that, and begins behind it. Without this order it would get messages again
  that were processed.
* Closing the share's address releases it: the stores probe the address when another member asks, and nobody is there.
* A member loses a share when its lease ends at too many stores. It drains the share as well, because the application
  still has messages of it, and claims it anew.
* Two members that claim at once may both be granted by some of the stores, and none by enough. Such a claim is
  *contested*. It is closed, and made again after a random while.
"""

from enum import IntEnum
from typing import Protocol

import attrs

from stablecast.core.machine.chart import Chart, States, lower


class ShareState(IntEnum):
    RELEASED = 0
    CLAIMING = 1
    HELD = 2
    DRAINING = 3
    RECORDING = 4
    CLOSING = 5


class ShareEvent(IntEnum):
    """The events of a share; `CLAIM` and `REVOKE` come from the division, the others from the driver."""

    CLAIM = 0
    REVOKE = 1
    GRANTED = 2
    LOST = 3
    CONTESTED = 4
    DRAINED = 5
    RECORDED = 6
    CLOSED = 7


class ShareChart(Chart):
    states = States.from_enum(ShareState, initial=ShareState.RELEASED, use_enum_instance=True)

    claim = states.RELEASED.to(states.CLAIMING, on="open")
    revoke = states.CLAIMING.to(states.CLOSING, on="close") | states.HELD.to(states.DRAINING, on="drain")
    granted = states.CLAIMING.to(states.HELD)
    lost = states.HELD.to(states.DRAINING, on="drain")
    contested = states.CLAIMING.to(states.CLOSING, on=["wait", "close"]) | states.HELD.to(
        states.DRAINING, on=["wait", "drain"]
    )
    drained = states.DRAINING.to(states.RECORDING, on="record")
    recorded = states.RECORDING.to(states.CLOSING, on="close")
    closed = states.CLOSING.to(states.RELEASED)


@attrs.frozen
class Open:
    """Register as the receiver of a share, at an address of its own."""

    share: int


@attrs.frozen
class Drain:
    """Give the application no further message of a share; feed `DRAINED` once it has settled those it has."""

    share: int


@attrs.frozen
class Record:
    """Feed `RECORDED` once a quorum of the stores has recorded what was consumed of a share."""

    share: int


@attrs.frozen
class Close:
    """Close the address of a share, and feed `CLOSED`."""

    share: int


class ShareOwner(Protocol):
    """The member that has the share."""

    def put_off(self, share: int) -> None:
        """Claim the share again only after a random while."""


@attrs.define
class Share:
    """A share of one member; its effects go to `out`."""

    number: int
    state: ShareState = ShareState.RELEASED

    def open(self, owner: ShareOwner, out: list[object]) -> None:
        """Ask the driver to register for this share, at an address of its own."""
        out.append(Open(self.number))

    def drain(self, owner: ShareOwner, out: list[object]) -> None:
        """Ask the driver to hand nothing more of this share to the application."""
        out.append(Drain(self.number))

    def record(self, owner: ShareOwner, out: list[object]) -> None:
        """Ask the driver to wait for a quorum of the stores."""
        out.append(Record(self.number))

    def close(self, owner: ShareOwner, out: list[object]) -> None:
        """Ask the driver to close the address, which releases the share."""
        out.append(Close(self.number))

    def wait(self, owner: ShareOwner, out: list[object]) -> None:
        """Leave time to another member that claims the share."""
        owner.put_off(self.number)


_S = ShareState
_E = ShareEvent
SHARE = lower(
    ShareChart,
    Share,
    ShareState,
    ShareEvent,
    ignore={
        _S.RELEASED: set(_E) - {_E.CLAIM},
        _S.CLAIMING: set(_E) - {_E.CLAIM, _E.REVOKE, _E.GRANTED, _E.CONTESTED},
        _S.HELD: (_E.GRANTED, _E.DRAINED, _E.RECORDED, _E.CLOSED),
        _S.DRAINING: set(_E) - {_E.CLAIM, _E.DRAINED},
        _S.RECORDING: set(_E) - {_E.CLAIM, _E.RECORDED},
        _S.CLOSING: set(_E) - {_E.CLAIM, _E.CLOSED},
    },
    reject=dict.fromkeys(set(_S) - {_S.RELEASED}, (_E.CLAIM,)),
)
