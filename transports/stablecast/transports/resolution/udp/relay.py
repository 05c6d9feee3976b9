"""The relay (lbmrd): it forwards every resolution datagram to all other known contexts.

It stores clients, and no topics (T-017, T-216). Keepalives are answered and not forwarded. Other datagrams are
forwarded unchanged (T-214), even of unknown kinds, unless the rules for the domains of sender and client rewrite them
(`address_translation`). The valid records of a malformed datagram are forwarded. Other traffic is counted and dropped.

Anybody can write any sender into a datagram. So the answer to a keepalive has a proof, which only the holder of the
address gets, and a context is a client once a keepalive brings it back. It stays one until the proof did not come for
the time to live (T-213). Before that the relay sends it one answer for each keepalive, which is no longer than that,
and stores nothing. Contexts of other makers bring no proof: an operator may accept them without.
"""

from collections import Counter
from hashlib import blake2b

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.codec.places import split
from stablecast.transports.resolution.records import proof_of
from stablecast.transports.resolution.udp.address_translation import AddressRule, Translation, rewritten
from stablecast.transports.resolution.udp.effects import RelayEffect, Remark, SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import DatagramArrived
from stablecast.transports.resolution.udp.phases import on_grid
from stablecast.transports.wire import lbmr
from stablecast.transports.wire.errors import WireError

CLIENT_TTL = 60 * SECOND
"""Silence after which a client is forgotten."""

CHECK_INTERVAL = 60 * SECOND
"""Interval of the checks for silent clients."""

MAX_CLIENTS = 16_384
"""Clients of one relay; datagrams of further ones are counted and dropped."""

MAX_CLIENTS_OF_HOST = MAX_CLIENTS // 4
"""Clients at one IP address, so that one host cannot take all places."""

VARIABLE, UNPROVEN = "STABLECAST_RELAY_CLIENTS", "unproven"
"""The environment of a relay that serves contexts of other makers, which prove no address."""

SECRET_BYTES = 16
"""Bytes of the secret from which a relay makes its proofs."""

PATIENCE = 5 * SECOND
"""Time after which an address that keeps sending keepalives, and brings back no proof, is logged."""

MAX_UNPROVEN = 1_024
"""Addresses without a proof that are remembered for that; the oldest is forgotten first."""

MAX_STRANGE = 16
"""Datagrams a second that are forwarded for senders that are no clients: contexts that have just started."""

PROOF_BYTES = 8
"""Bytes of a proof: it takes the place of the relay's context instance, which nobody uses."""

BARE_ANSWER = lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL))
"""The answer to a keepalive that is shorter than an answer with a proof."""

ALIVE = (lbmr.PacketKind.RECEIVER_ALIVE, lbmr.PacketKind.SOURCE_ALIVE)


@attrs.frozen
class RelayConfig:
    """Settings of a relay; times in nanoseconds. Unless `proven`, the sender of any valid datagram is a client."""

    client_ttl: int = CLIENT_TTL
    check: int = CHECK_INTERVAL
    max_clients: int = MAX_CLIENTS
    max_clients_of_host: int = MAX_CLIENTS_OF_HOST
    proven: bool = True
    translation: Translation = Translation()


@attrs.define
class RelayCounters:
    """Counters of a relay, in datagrams; `expired` counts clients, `copies` the sent datagrams.

    `unproven` counts keepalives without a proof, and `excluded` how often an address sent nothing else for a while.
    `strange` counts datagrams of others than clients that were not forwarded.
    """

    received: int = 0
    forwarded: int = 0
    copies: int = 0
    rewritten: int = 0
    keepalives: int = 0
    unproven: int = 0
    excluded: int = 0
    strange: int = 0
    foreign: int = 0
    malformed: int = 0
    refused: int = 0
    expired: int = 0


@attrs.define
class RelayMachine:
    """One relay.

    Attributes:
        secret: Random bytes from which proofs are made. Another start of the relay has others.
        last_heard: Last sign of life of each client (ns), longest silent first.
        of_host: The number of clients at each IP address.
        unproven: The first keepalive of each address that has brought back no proof (ns), oldest first.
        domains: The clients of each domain, by its name.
        domain: The domain of each client.
        strange: Datagrams of others than clients since `strange_since` (ns), which is a second ago at most.
    """

    secret: bytes
    config: RelayConfig = RelayConfig()
    last_heard: dict[str, int] = attrs.field(factory=dict, init=False)
    domains: dict[str, dict[str, None]] = attrs.field(factory=dict, init=False)
    domain: dict[str, str] = attrs.field(factory=dict, init=False)
    of_host: Counter[str] = attrs.field(factory=Counter, init=False)
    unproven: dict[str, int] = attrs.field(factory=dict, init=False)
    strange: int = attrs.field(default=0, init=False)
    strange_since: int = attrs.field(default=0, init=False)
    counted: RelayCounters = attrs.field(factory=RelayCounters, init=False)
    outbox: list[RelayEffect] = attrs.field(factory=list, init=False)

    def receive(self, event: DatagramArrived, now: int) -> None:
        """Feed one datagram, and forward or answer it."""
        self.handle_timeout(now)
        self.counted.received += 1
        try:
            reading = lbmr.decode_partly(event.data)
        except WireError as error:
            if not lbmr.is_foreign(event.data):
                self._on_malformed("a datagram", event.sender, str(error))
                return
            packet: lbmr.AnyPacket | None = None
        else:
            packet = reading.packet
            if reading.fault:
                self._on_malformed("a part of a datagram", event.sender, str(reading.fault))
                event = DatagramArrived(lbmr.encode(packet), event.sender)
        if isinstance(packet, lbmr.Packet) and packet.kind in ALIVE:
            self._on_alive(event, packet, now)
        elif not self.config.proven and not self._admit(event.sender, now):
            self._refuse(event.sender)
        elif self.config.proven and event.sender not in self.last_heard and not self._admit_strange(now):
            why = f"{MAX_STRANGE} a second are forwarded for senders that are no clients"
            self._count_and_log("strange", f"a datagram from {event.sender} is dropped: {why}")
        elif proof_of(packet) is None:  # To forward an answer could make a loop.
            self.counted.foreign += packet is None
            self._forward(event, packet)

    def handle_timeout(self, now: int) -> None:
        """Forget clients that were silent for their time to live."""
        while (due := self.next_timeout()) is not None and due <= now:
            client = next(iter(self.last_heard))
            del self.last_heard[client]
            del self.domains[self.domain.pop(client)][client]
            self._leave_host(split(client)[0])
            self.counted.expired += 1
            self.outbox.append(Remark(f"client {client} is forgotten: it was silent"))

    def next_timeout(self) -> int | None:
        heard = next(iter(self.last_heard.values()), None)
        return None if heard is None else on_grid(heard + self.config.client_ttl, self.config.check)

    def take_effects(self) -> list[RelayEffect]:
        effects, self.outbox = self.outbox, []
        return effects

    def counters(self) -> dict[str, int]:
        """Return the counters and the current number of clients, by name."""
        return {"clients": len(self.last_heard), **attrs.asdict(self.counted)}

    def clients(self) -> tuple[str, ...]:
        """Return the clients, longest silent first."""
        return tuple(self.last_heard)

    def _on_alive(self, event: DatagramArrived, packet: lbmr.Packet, now: int) -> None:
        self.counted.keepalives += 1
        proof = blake2b(event.sender.encode(), key=self.secret, digest_size=PROOF_BYTES).digest()
        proven = any(isinstance(option, lbmr.SourceId) and option.source_id == proof for option in packet.options)
        if proven:
            self.unproven.pop(event.sender, None)
        else:
            self.counted.unproven += 1
            if self.config.proven:
                self._watch_unproven(event.sender, now)
        if (proven or not self.config.proven) and not self._admit(event.sender, now):
            self._refuse(event.sender)
            return
        answer = lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (), lbmr.standard_options(proof)))
        if not proven and len(answer) > len(event.data):
            answer = BARE_ANSWER
        self.outbox.append(SendDatagram(event.sender, answer))

    def _admit_strange(self, now: int) -> bool:
        """Return whether a datagram of a sender that is no client may be forwarded: each is copied to all clients."""
        if now - self.strange_since >= SECOND:
            self.strange, self.strange_since = 0, now
        self.strange += 1
        return self.strange <= MAX_STRANGE

    def _watch_unproven(self, sender: str, now: int) -> None:
        """Log an address whose keepalives never bring back a proof, because its context gets nothing."""
        if now >= self.unproven.setdefault(sender, now) + PATIENCE:
            self.unproven[sender] = now
            remedy = f"if its context is of a release before 0.3, start this relay with {VARIABLE}={UNPROVEN}"
            self._count_and_log("excluded", f"{sender} does not prove its address and gets nothing; {remedy}")
        if len(self.unproven) > MAX_UNPROVEN:
            del self.unproven[next(iter(self.unproven))]

    def _refuse(self, sender: str) -> None:
        self._count_and_log("refused", f"client {sender} is refused: there are {len(self.last_heard)}")

    def _admit(self, sender: str, now: int) -> bool:
        if self.last_heard.pop(sender, None) is None:
            host = split(sender)[0]
            if len(self.last_heard) == self.config.max_clients or self.of_host[host] == self.config.max_clients_of_host:
                return False
            self.of_host[host] += 1
            domain = self.domain[sender] = self.config.translation.domain_of(sender)
            self.domains.setdefault(domain, {})[sender] = None
            self.outbox.append(Remark(f"client {sender} is known"))
        self.last_heard[sender] = now  # at the end, so that the dictionary stays in the order of silence
        return True

    def _leave_host(self, host: str) -> None:
        self.of_host[host] -= 1
        if not self.of_host[host]:
            del self.of_host[host]

    def _forward(self, event: DatagramArrived, packet: lbmr.AnyPacket | None) -> None:
        self.counted.forwarded += 1
        source = self.domain.get(event.sender) or self.config.translation.domain_of(event.sender)
        for destination, clients in self.domains.items():
            rules = self.config.translation.rules(source, destination)
            data = self._translated(event.data, packet, rules)
            others = tuple(client for client in clients if client != event.sender)
            if others:
                self.counted.copies += len(others)
                self.outbox.append(SendCopies(others, data))

    def _translated(self, data: bytes, packet: lbmr.AnyPacket | None, rules: tuple[AddressRule, ...]) -> bytes:
        if not rules or not isinstance(packet, lbmr.Packet):
            return data
        changed = rewritten(packet, rules)
        if changed is packet:
            return data
        self.counted.rewritten += 1
        return lbmr.encode(changed)

    def _on_malformed(self, what: str, sender: str, reason: str) -> None:
        self._count_and_log("malformed", f"{what} from {sender} is dropped: {reason}")

    def _count_and_log(self, counter: str, text: str) -> None:
        """Count a fault, and log the 1st, the 10th, the 100th ... of its kind, so that nobody can fill the log."""
        count = getattr(self.counted, counter) + 1
        setattr(self.counted, counter, count)
        if count in _TOLD:
            self.outbox.append(Remark(f"{text} ({count} so far)", warning=True))


_TOLD = frozenset(10**power for power in range(19))
