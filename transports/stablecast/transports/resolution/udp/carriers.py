"""The carriers of a context's datagrams: relays, or a multicast group.

A context sends through one relay at a time. It changes to the next active relay every 100 to 300 ms (T-218), so that no
record depends on one relay for long. It stays known at all relays with keepalives, because other contexts may send
through another relay. Relays answer keepalives, so a relay that is silent for the activity timeout becomes inactive
until it is heard again. While no relay is active, the context goes round all of them, twice as fast: one running
instance is enough (T-219).

A keepalive is due when the context sent nothing to a relay for the interval (T-215). It is also due when the context
heard nothing from the relay, because relays answer keepalives only. The documentation names 5 s and 500 ms as the
interval. A silence of 1000 ms shows an inactive relay only with the latter. Keepalives bring back the proof of the
relay's answers (`relay`): at once when it is new, and at least every `PROOF_INTERVAL`.
"""

import ipaddress

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import SECOND
from stablecast.transports.codec.places import split
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.resolution.udp.phases import on_grid
from stablecast.transports.resolution.udp.settings import RelayTimes

DEFAULT_GROUP = "224.9.10.11:12965"
"""The group in which contexts meet over multicast (T-022)."""

MAX_RELAYS = 16
"""Relays of one context."""

PROOF_INTERVAL = 1 * SECOND
"""Time after which a relay gets its proof again, although other datagrams were sent to it, unless keepalives are less
frequent. A relay forgets after 60 s by default, and other datagrams do not count."""


@attrs.define
class Relays:
    """The relays of one context, `ip:port` each; times in nanoseconds.

    Attributes:
        addresses: Each once.
        times: Intervals and timeouts.
        seeded: Randomness of the length of turns.
        last_heard: Last datagram of each active relay.
        last_sent: Last datagram to each relay.
        last_asked: Last keepalive to each relay.
        proofs: The proof of the context's address that each relay gave.
        turn_ends: End of the current relay's turn.
        alone: True if the lack of active relays was reported.
    """

    addresses: tuple[str, ...]
    times: RelayTimes = RelayTimes()
    seeded: Seeded = attrs.field(factory=lambda: Seeded(0))
    position: int = attrs.field(default=0, init=False)
    running: bool = attrs.field(default=False, init=False)
    last_heard: dict[str, int] = attrs.field(factory=dict, init=False)
    last_sent: dict[str, int] = attrs.field(factory=dict, init=False)
    last_asked: dict[str, int] = attrs.field(factory=dict, init=False)
    proofs: dict[str, bytes] = attrs.field(factory=dict, init=False)
    turn_ends: int = attrs.field(default=0, init=False)
    alone: bool = attrs.field(default=False, init=False)
    remarks: list[Remark] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if not 0 < len(self.addresses) <= MAX_RELAYS:
            raise MisuseError(f"a context needs 1 to {MAX_RELAYS} relays, not {len(self.addresses)}")

    def start(self, now: int) -> None:
        """Take part: keepalives begin at once."""
        self.running = True
        self._new_turn(now)

    def stop(self) -> None:
        """Fall silent, because the context has nothing to resolve."""
        self.running = self.alone = False
        self.last_heard.clear()
        self.last_sent.clear()
        self.last_asked.clear()
        self.proofs.clear()

    def accepts(self, sender: str) -> bool:
        """Return whether to accept datagrams of a sender: configured relays, unless all are permitted."""
        return sender in self.addresses or not self.times.only_ours

    def on_heard(self, sender: str, now: int) -> None:
        """Note a datagram of a relay, which is active now."""
        if not self.running or sender not in self.addresses:
            return
        self.alone = False
        self.last_heard[sender] = now
        # The current relay is inactive, so the context changes to the active one at once.
        if self.addresses[self.position] not in self.last_heard:
            self.position = self.addresses.index(sender)
            self._new_turn(now)

    def on_answer(self, sender: str, proof: bytes) -> None:
        """Note the proof of the answer to a keepalive; a new one is due at once."""
        if self.running and sender in self.addresses and self.proofs.get(sender) != proof:
            self.proofs[sender] = proof
            self.last_asked.pop(sender, None)

    def proof(self, relay: str) -> bytes | None:
        """Return the proof for the keepalives to a relay; None before its first answer."""
        return self.proofs.get(relay)

    def pick(self, now: int) -> str:
        """Return the relay for the next datagram. This may begin its turn."""
        if now >= self.turn_ends:
            order = self.addresses[self.position + 1 :] + self.addresses[: self.position + 1]
            chosen = next((address for address in order if address in self.last_heard), order[0])
            self.position = self.addresses.index(chosen)
            self._new_turn(now)
        return self.addresses[self.position]

    def sent(self, to: str, now: int) -> None:
        self.last_sent[to] = now

    def take_keepalives(self, now: int) -> list[str]:
        """Return the relays to which a keepalive is due."""
        if not self.running:
            return []
        due = [at for at in self.addresses if now >= self._keepalive(at)]
        self.last_asked.update(dict.fromkeys(due, now))
        return due

    def handle_timeout(self, now: int) -> None:
        """Mark relays that were silent for too long as inactive."""
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
        """Return when `take_keepalives` or `handle_timeout` is due, in nanoseconds."""
        if not self.running:
            return None
        due = [self._keepalive(address) for address in self.addresses]
        silent = (self._expires(heard) for heard in self.last_heard.values())
        return min(*due, *(instant for instant in silent if instant is not None), due[0])

    def take_remarks(self) -> list[Remark]:
        """Return the lines for the log since the last call."""
        remarks, self.remarks = self.remarks, []
        return remarks

    def complaint(self) -> str:
        """Return why no datagram may arrive; empty if no reason is known."""
        return "" if self.last_heard else f"no relay answers at {', '.join(self.addresses)}"

    def _keepalive(self, address: str) -> int:
        asked = self.last_asked.get(address)
        if asked is None:
            return 0
        heard = max(asked, self.last_heard.get(address, 0))
        usual = min(heard, self.last_sent.get(address, 0)) + self.times.keepalive
        return min(usual, asked + max(PROOF_INTERVAL, self.times.keepalive))

    def _new_turn(self, now: int) -> None:
        usual = self.times.change if self.last_heard else self.times.change // 2
        self.turn_ends = now + self.seeded.between(usual // 2, usual // 2 + usual)

    def _expires(self, heard: int) -> int | None:
        """Return when a relay with this last datagram becomes inactive, at the next check."""
        if not self.times.activity_timeout or not self.times.check:
            return None
        return on_grid(heard + self.times.activity_timeout, self.times.check)


@attrs.define
class MulticastGroup:
    """A multicast group (T-022). All members receive all datagrams, so keepalives are not needed.

    Attributes:
        address: The group, `ip:port`.
        heard: True if any datagram ever arrived from another context.
    """

    address: str = DEFAULT_GROUP
    running: bool = attrs.field(default=False, init=False)
    heard: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        host, port = split(self.address)
        if not ipaddress.IPv4Address(host).is_multicast or not port:
            raise MisuseError(f"'{self.address}' is not a multicast group: write one as {DEFAULT_GROUP}")

    def start(self, _: int) -> None:
        """Take part: datagrams may be sent."""
        self.running = True

    def stop(self) -> None:
        """Fall silent, because the context has nothing to resolve."""
        self.running = False

    def accepts(self, _: str) -> bool:
        """Return True: anybody may send to a group."""
        return True

    def on_heard(self, _: str, __: int) -> None:
        self.heard = True

    def on_answer(self, _: str, __: bytes) -> None:
        """Do nothing: nobody answers."""

    def proof(self, _: str) -> None:
        """Return None: a group asks for no proof."""

    def pick(self, _: int) -> str:
        return self.address

    def sent(self, to: str, now: int) -> None:
        """Do nothing: a group has no turns and no keepalives."""

    def take_keepalives(self, _: int) -> tuple[str, ...]:
        """Return none: a group needs no keepalives."""
        return ()

    def handle_timeout(self, now: int) -> None:
        """Do nothing: nothing is ever due."""

    def next(self) -> int | None:
        """Return None: nothing is ever due."""
        return None

    def take_remarks(self) -> list[Remark]:
        """Return none: a group has nothing to log."""
        return []

    def complaint(self) -> str:
        """Return the silence of the group, which may not be joined or not be forwarded."""
        return "" if self.heard else f"no other context was heard in the group {self.address}"


Carrier = Relays | MulticastGroup
