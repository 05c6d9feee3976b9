"""The time for which a store keeps a client: activity timeout and state lifetime.

    ACTIVE --silent--> INACTIVE --expire--> EXPIRED
    ACTIVE --gone----> INACTIVE --heard---> ACTIVE

Both spans count from the last sign of life (P-530..P-535, T7). After the activity timeout another client may get the
RegID; after both, state and messages go. A lifetime of 0 is "not set": then both happen at once. A lifetime of
`STATE_FOR_EVER` never ends. A client whose process is known to have ended is inactive at once, because it cannot use
its RegID any more. Its state stays for the full time.
"""

from enum import IntEnum

import attrs

from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.protocol.settings import STATE_FOR_EVER


class LifetimeState(IntEnum):
    """The rights that a client still has at a store."""

    ACTIVE = 0
    INACTIVE = 1
    EXPIRED = 2


class LifetimeEvent(IntEnum):
    HEARD = 0
    SILENT = 1
    GONE = 2
    EXPIRE = 3


class LifetimeChart(Chart):
    """The chart of a client's hold on its RegID and state at a store."""

    states = States.from_enum(
        LifetimeState, initial=LifetimeState.ACTIVE, final=LifetimeState.EXPIRED, use_enum_instance=True
    )

    heard = states.ACTIVE.to.itself(internal=True, on="note") | states.INACTIVE.to(states.ACTIVE, on="note")
    silent = states.ACTIVE.to(states.INACTIVE)
    gone = states.ACTIVE.to(states.INACTIVE)
    expire = states.INACTIVE.to(states.EXPIRED)


@attrs.define
class Lifetime:
    """One client's timers. Spans and instants in ns. `kept`: an election decides when its state goes."""

    activity_ns: int
    lifetime_ns: int
    heard_at: int
    state: LifetimeState = LifetimeState.ACTIVE
    kept: bool = False

    @property
    def active(self) -> bool:
        """True while the client holds the RegID."""
        return self.state is LifetimeState.ACTIVE

    def held_ns(self, now: int) -> int:
        """Return the time for which the RegID is held if the client stays silent."""
        return max(0, self.heard_at + self.activity_ns - now) if self.active else 0

    @property
    def ends_at(self) -> int | None:
        """The instant (ns) at which the state goes if the client stays silent; None: never by itself."""
        if self.kept or self.lifetime_ns >= STATE_FOR_EVER:
            return None
        return self.heard_at + max(self.activity_ns, self.lifetime_ns)

    def on_heard(self, now: int) -> None:
        """Record a sign of life of the client."""
        fire(LIFETIME, self, LifetimeEvent.HEARD, now)

    def on_gone(self, now: int) -> None:
        """Record that the client's process has ended."""
        fire(LIFETIME, self, LifetimeEvent.GONE, now)

    def check(self, now: int) -> bool:
        """Do what is due; return whether the client's state is to be deleted now."""
        silence = now - self.heard_at
        if self.active and silence >= self.activity_ns:
            fire(LIFETIME, self, LifetimeEvent.SILENT, now)
        ends_at = self.ends_at
        if not self.active and ends_at is not None and now >= ends_at:
            return fire(LIFETIME, self, LifetimeEvent.EXPIRE, now)
        return False

    def next_timeout(self) -> int | None:
        """Return when `check` is due (ns), or None."""
        if self.state is LifetimeState.EXPIRED:
            return None
        return self.heard_at + self.activity_ns if self.active else self.ends_at

    def note(self, now: int) -> None:
        """Start both spans anew."""
        self.heard_at = now


_S = LifetimeState
_E = LifetimeEvent
LIFETIME = lower(
    LifetimeChart,
    Lifetime,
    LifetimeState,
    LifetimeEvent,
    ignore={_S.INACTIVE: (_E.SILENT, _E.GONE), _S.EXPIRED: (_E.HEARD, _E.SILENT, _E.GONE, _E.EXPIRE)},
    reject={_S.ACTIVE: (_E.EXPIRE,)},
)
