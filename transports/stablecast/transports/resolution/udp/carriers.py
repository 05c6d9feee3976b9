"""The carriers of a context's datagrams: relays, or a multicast group.

A context sends through one relay at a time. It changes to the next active relay every 100 to 300 ms (T-218), so that no
record depends on one relay for long. It stays known at all relays with keepalives, because other contexts may send
through another relay. Relays answer keepalives, so a relay that is silent for the activity timeout becomes inactive
until it is heard again. While no relay is active, the context goes round all of them, twice as fast: one running
instance is enough (T-219).

A keepalive is due when the context sent nothing to a relay for the interval (T-215), or when it heard nothing from it,
because relays answer keepalives only. The documentation names 5 s and 500 ms as the interval. A silence of 1000 ms
shows an inactive relay only with the latter.
"""

import ipaddress

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.seeded import Seeded
from stablecast.transports.codec.places import split
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.resolution.udp.phases import on_grid
from stablecast.transports.resolution.udp.settings import RelayTimes

DEFAULT_GROUP = "224.9.10.11:12965"
"""The group in which contexts meet over multicast (T-022)."""

MAX_RELAYS = 16
"""Relays of one context."""


@attrs.define
class Relays:
    """The relays of one context, `ip:port` each; times in nanoseconds.

    Attributes:
        addresses: Each once.
        times: Intervals and timeouts.
        seeded: Chance: how long each turn is.
        last_heard: When each active relay was last heard.
        last_sent: When anything was last sent to each.
        last_asked: When the last keepalive was sent to each.
        turn_ends: When the next one is used.
        alone: Whether it was told that none is active.
    """

    addresses: tuple[str, ...]
    times: RelayTimes = RelayTimes()
    seeded: Seeded = attrs.field(factory=lambda: Seeded(0))
    position: int = attrs.field(default=0, init=False)
    running: bool = attrs.field(default=False, init=False)
    last_heard: dict[str, int] = attrs.field(factory=dict, init=False)
    last_sent: dict[str, int] = attrs.field(factory=dict, init=False)
    last_asked: dict[str, int] = attrs.field(factory=dict, init=False)
    turn_ends: int = attrs.field(default=0, init=False)
    alone: bool = attrs.field(default=False, init=False)
    remarks: list[Remark] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if not 0 < len(self.addresses) <= MAX_RELAYS:
            raise MisuseError(f"a context needs 1 to {MAX_RELAYS} relays, not {len(self.addresses)}")

    def start(self, now: int) -> None:
        """The context has something to resolve: keepalives begin at once."""
        self.running = True
        self._new_turn(now)

    def stop(self) -> None:
        """The context has nothing to resolve any more and falls silent."""
        self.running = self.alone = False
        self.last_heard.clear()
        self.last_sent.clear()
        self.last_asked.clear()

    def accepts(self, sender: str) -> bool:
        """Others than ours are strangers, unless anybody is let in."""
        return sender in self.addresses or not self.times.only_ours

    def on_heard(self, sender: str, now: int) -> None:
        """A relay sent something: it is active."""
        if not self.running or sender not in self.addresses:
            return
        self.alone = False
        self.last_heard[sender] = now
        if self.addresses[self.position] not in self.last_heard:
            self.position = self.addresses.index(sender)
            self._new_turn(now)

    def pick(self, now: int) -> str:
        """The relay to send the next datagram to; its turn may just have come."""
        if now >= self.turn_ends:
            order = self.addresses[self.position + 1 :] + self.addresses[: self.position + 1]
            chosen = next((address for address in order if address in self.last_heard), order[0])
            self.position = self.addresses.index(chosen)
            self._new_turn(now)
        return self.addresses[self.position]

    def sent(self, to: str, now: int) -> None:
        """A datagram was sent to a relay."""
        self.last_sent[to] = now

    def take_keepalives(self, now: int) -> list[str]:
        """The relays to send a keepalive to, once it is due."""
        if not self.running:
            return []
        due = [at for at in self.addresses if now >= self._keepalive(at)]
        self.last_asked.update(dict.fromkeys(due, now))
        return due

    def handle_timeout(self, now: int) -> None:
        """Those that were silent for too long are inactive."""
        for address, heard in list(self.last_heard.items()):
            expires = self._expires(heard)
            if expires is not None and now >= expires:
                del self.last_heard[address]
                self.remarks.append(Remark(f"unicast resolver {address} went inactive", warning=True))
                self.turn_ends = min(self.turn_ends, now)
                if not self.last_heard and not self.alone:
                    self.alone = True
                    text = "no active resolver instances, sending via inactive instance"
                    self.remarks.append(Remark(text, warning=True))

    def next(self) -> int | None:
        """When `take_keepalives` or `handle_timeout` is due, in nanoseconds."""
        if not self.running:
            return None
        due = [self._keepalive(address) for address in self.addresses]
        silent = (self._expires(heard) for heard in self.last_heard.values())
        return min(*due, *(instant for instant in silent if instant is not None), due[0])

    def take_remarks(self) -> list[Remark]:
        """Lines for the log."""
        remarks, self.remarks = self.remarks, []
        return remarks

    def complaint(self) -> str:
        """Without an active relay nothing is heard."""
        return "" if self.last_heard else f"no relay answers at {', '.join(self.addresses)}"

    def _keepalive(self, address: str) -> int:
        """When a relay wants the next keepalive."""
        asked = self.last_asked.get(address)
        if asked is None:
            return 0
        heard = max(asked, self.last_heard.get(address, 0))
        return min(heard, self.last_sent.get(address, 0)) + self.times.keepalive

    def _new_turn(self, now: int) -> None:
        usual = self.times.change if self.last_heard else self.times.change // 2
        self.turn_ends = now + self.seeded.between(usual // 2, usual // 2 + usual)

    def _expires(self, heard: int) -> int | None:
        """When a relay that was last heard then is inactive: that is looked at from time to time."""
        if not self.times.activity_timeout or not self.times.check:
            return None
        return on_grid(heard + self.times.activity_timeout, self.times.check)


@attrs.define
class MulticastGroup:
    """A multicast group (T-022): everybody hears everything, nobody needs to be kept alive.

    Attributes:
        address: Where to send, `ip:port`.
        heard: Whether anything was ever heard there.
    """

    address: str = DEFAULT_GROUP
    running: bool = attrs.field(default=False, init=False)
    heard: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        host, port = split(self.address)
        if not ipaddress.IPv4Address(host).is_multicast or not port:
            raise MisuseError(f"'{self.address}' is not a multicast group: write one as {DEFAULT_GROUP}")

    def start(self, _: int) -> None:
        """The context has something to resolve."""
        self.running = True

    def stop(self) -> None:
        """It has nothing to resolve any more."""
        self.running = False

    def accepts(self, _: str) -> bool:
        """Anybody may send to a group."""
        return True

    def on_heard(self, _: str, __: int) -> None:
        """A datagram of another context came."""
        self.heard = True

    def pick(self, _: int) -> str:
        """The group."""
        return self.address

    def sent(self, to: str, now: int) -> None:
        """Groups do not care."""

    def take_keepalives(self, _: int) -> tuple[str, ...]:
        """None."""
        return ()

    def handle_timeout(self, now: int) -> None:
        """Nothing is ever due."""

    def next(self) -> int | None:
        """Never."""
        return None

    def take_remarks(self) -> list[Remark]:
        """None."""
        return []

    def complaint(self) -> str:
        """A group of which nothing was ever heard may not be joined, or not be forwarded."""
        return "" if self.heard else f"no other context was heard in the group {self.address}"


Carrier = Relays | MulticastGroup
