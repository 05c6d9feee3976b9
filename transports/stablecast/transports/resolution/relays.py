"""Which of the configured relays a context uses.

A context sends its records through one relay, the current one, but keeps itself known at all of them with keepalives,
because other contexts may send through another (T-218). A relay answers keepalives, so silence means something: if
nothing came from the current relay for the activity timeout, its turn is over. While the current relay has not been
heard of, the first one that answers takes over.
"""

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.units import SECOND

KEEPALIVE_INTERVAL = 5 * SECOND
"""Between keepalives to each relay (T-215); a relay that was restarted knows us again after at most this (T-017)."""

ACTIVITY_TIMEOUT = 11 * SECOND
"""Silence after which a relay counts as inactive: two keepalives unanswered."""

MAX_RELAYS = 16
"""Relays of one context."""


@attrs.define
class Relays:
    """The relays of one context, `ip:port` each; times in nanoseconds."""

    addresses: tuple[str, ...]
    keepalive_interval: int = KEEPALIVE_INTERVAL
    activity_timeout: int = ACTIVITY_TIMEOUT
    position: int = attrs.field(default=0, init=False)
    last_heard: dict[str, int] = attrs.field(factory=dict, init=False)
    keepalive_due: int | None = attrs.field(default=None, init=False)
    turn_ends: int | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        if not 0 < len(self.addresses) <= MAX_RELAYS:
            raise MisuseError(f"a context needs 1 to {MAX_RELAYS} relays, not {len(self.addresses)}")

    @property
    def current(self) -> str:
        """The relay to send records to."""
        return self.addresses[self.position]

    @property
    def running(self) -> bool:
        """Whether the context keeps itself known."""
        return self.keepalive_due is not None

    def start(self, now: int) -> None:
        """The context has something to resolve: keepalives begin at once."""
        self.keepalive_due = now
        self.turn_ends = now + self.activity_timeout

    def stop(self) -> None:
        """The context has nothing to resolve any more and falls silent."""
        self.keepalive_due = self.turn_ends = None
        self.last_heard.clear()

    def on_heard(self, address: str, now: int) -> None:
        """The relay at `address`, one of ours, sent something."""
        self.last_heard[address] = now
        if address != self.current and not self._active(self.current, now):
            self.position = self.addresses.index(address)
        if address == self.current and self.running:
            self.turn_ends = now + self.activity_timeout

    def take_keepalives(self, now: int) -> tuple[str, ...]:
        """The relays to send a keepalive to at `now`."""
        if self.keepalive_due is None or now < self.keepalive_due:
            return ()
        self.keepalive_due = now + self.keepalive_interval
        return self.addresses

    def handle_timeout(self, now: int) -> None:
        """Passes the turn on if the current relay has been silent for too long: to the next active one, or the next."""
        if self.turn_ends is None or now < self.turn_ends:
            return
        order = self.addresses[self.position + 1 :] + self.addresses[: self.position + 1]
        chosen = next((address for address in order if self._active(address, now)), order[0])
        self.position = self.addresses.index(chosen)
        self.turn_ends = self.last_heard[chosen] if self._active(chosen, now) else now
        self.turn_ends += self.activity_timeout

    def next(self) -> int | None:
        """When `take_keepalives` or `handle_timeout` is due, in nanoseconds."""
        if self.keepalive_due is None or self.turn_ends is None:
            return None
        return min(self.keepalive_due, self.turn_ends)

    def _active(self, address: str, now: int) -> bool:
        heard = self.last_heard.get(address)
        return heard is not None and now < heard + self.activity_timeout
