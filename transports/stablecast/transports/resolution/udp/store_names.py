"""Names of stores: the address of the store with a name (T-201).

A store announces its address at its start, and answers queries for its name (T-204). A context that looks for a store
sends a query at once, then ever more rarely, until it gets an answer (T-205, T-206). If the store is silent for the
activity timeout, the name is lost and queried again. Two stores with one name are reported at either end, each once; so
is a store that moved (T-207).

Routers ask for names on behalf of other domains, and tell where in another one a store is: `domain:ip:port`.

A store that answers from another address may have moved, or be a second one of the name. So the context follows it, and
queries once more: only a second store lets the first one answer again. That one is used when the other is lost.
"""

from typing import assert_never

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.timers import soonest
from stablecast.transports.codec.domains import local
from stablecast.transports.codec.places import split
from stablecast.transports.resolution.records import check_topic
from stablecast.transports.resolution.udp.effects import NameEffect, NameFound, NameLost, Remark, Tell
from stablecast.transports.resolution.udp.inputs import AddName, AskName, ForgetName, NameAlive, NameInput
from stablecast.transports.resolution.udp.phases import Phase
from stablecast.transports.resolution.udp.schedule import Limiter, TurnSchedule
from stablecast.transports.resolution.udp.settings import NameOptions, RateLimit
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.fields import name_of, octets_of

MAX_NAMES = 1_024
"""Names that one context has, and names that it queries."""

MAX_NAME_BYTES = 230
"""Length of a store's name, whose packet has one byte for its own length."""

MAX_RIVALS = 16
"""Contexts that a name remembers as its former or further ones; the oldest is forgotten."""

UNLIMITED = RateLimit(records=0, bits=0)
_INFO = lbmr.ContextInfo


@attrs.define
class NameSearch:
    """A name that is looked for.

    Attributes:
        instance: The context that answered; empty before.
        heard_at: Last sign of life of the store (ns).
        former: The contexts that had the name before this one; True: their answers were reported.
    """

    address: str = ""
    instance: bytes = b""
    heard_at: int = 0
    former: dict[bytes, bool] = attrs.field(factory=dict)


@attrs.define
class StoreNames:
    """The names that one context has and looks for.

    Attributes:
        instance: The 8 bytes that name the context.
        own: The address of each name of ours.
        rivals: The contexts that were reported for a name of ours.
    """

    instance: bytes
    options: NameOptions = NameOptions()
    own: dict[str, str] = attrs.field(factory=dict, init=False)
    rivals: dict[tuple[str, bytes], None] = attrs.field(factory=dict, init=False)
    asked: dict[str, NameSearch] = attrs.field(factory=dict, init=False)
    rounds: TurnSchedule[str] = attrs.field(init=False)
    outbox: list[NameEffect] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        limiter = Limiter(UNLIMITED)
        self.rounds = TurnSchedule(limiter, limiter)

    def __bool__(self) -> bool:
        return bool(self.own or self.asked)

    def receive(self, event: NameInput, now: int) -> None:
        """Feed one input.

        Raises:
            MisuseError: If a name cannot be sent on the wire, its address is malformed, or there are too many names.
        """
        match event:
            case AddName(name, address):
                self._check(name, self.own)
                split(address)
                self.own[name] = address
                self._answer(name)
            case AskName(name):
                self._check(name, self.asked)
                self.asked[name] = NameSearch()
                self.rounds.begin(name, self.options.pace, 0, now)
            case ForgetName(name):
                self.asked.pop(name, None)
                self.rounds.stop(name)
            case NameAlive(name):
                if name in self.asked:
                    self.asked[name].heard_at = now
            case _:
                assert_never(event)

    def heard(self, info: lbmr.ContextInfo, now: int) -> None:
        """Handle a query for a name, or an answer."""
        name = info.name
        if name is None:
            return
        if info.flags & _INFO.QUERY:
            if name in self.own:
                self._answer(name)
        elif info.flags & _INFO.ADDRESS:
            self._on_address(name, f"{info.address}:{info.port}", info.instance, now)

    def heard_of(self, record: lbmr_extended.RemoteRecord, own: int, now: int) -> None:
        """Handle what a router says of a name in any domain, or asks on behalf of another one; `own` is that here."""
        name, address, instance = "", "", b""
        for option in record.options:
            match option:
                case lbmr_extended.RemoteName():
                    name = name_of(option.name)
                case lbmr_extended.RemoteAddress():
                    address = local(f"{option.domain}:{option.address}:{option.port}", own)
                case lbmr_extended.RemoteInstance():
                    instance = option.instance
        if record.flags & lbmr_extended.RemoteRecord.QUERY:
            if name in self.own:
                self.outbox.append(Tell(self._remote_answer(name, own)))
        elif name and address:
            self._on_address(name, address, instance, now)

    def _on_address(self, name: str, address: str, instance: bytes, now: int) -> None:
        if name in self.own:
            self._on_rival(name, address, instance)
        asked = self.asked.get(name)
        if asked is not None:
            self._on_told(name, asked, address, instance, now)

    def handle_timeout(self, now: int) -> None:
        """Query the names whose turn it is, and give up names of silent stores."""
        for name, asked in self.asked.items():
            if asked.instance and now >= asked.heard_at + self.options.activity_timeout:
                self._replace(asked, b"")
                self.outbox.append(NameLost(name))
                self.rounds.begin(name, self.options.pace, 0, now)
        for name in self.rounds.take_turns(now):
            self.outbox.append(Tell(_INFO(flags=_INFO.QUERY, name=name)))

    def next_timeout(self) -> int | None:
        timeout = self.options.activity_timeout
        due = [asked.heard_at + timeout for asked in self.asked.values() if asked.instance]
        return soonest(self.rounds.next(), *due)

    def wake(self, now: int, *, queries: bool, names: bool) -> None:
        """Answer for own names, or query quiescent names again, by request of another context (T26)."""
        if names:
            for name in self.own:
                self._answer(name)
        if queries:
            for name, asked in self.asked.items():
                if not asked.instance and self.rounds.phase(name) is Phase.QUIESCENT:
                    self.rounds.begin(name, self.options.pace, 0, now)

    def take_effects(self) -> list[NameEffect]:
        effects, self.outbox = self.outbox, []
        return effects

    def _on_told(self, name: str, asked: NameSearch, address: str, instance: bytes, now: int) -> None:
        if asked.instance and instance in asked.former:
            if asked.address != address and not asked.former[instance]:
                asked.former[instance] = True
                where = f"at {asked.address} and at {address}"
                self._remark(f"several stores are called '{name}', {where}: the last one found is used", warning=True)
            return
        if asked.address and asked.address != address:
            self._remark(f"store '{name}' moved from {asked.address} to {address}", warning=False)
            if asked.instance:
                self.outbox.append(Tell(_INFO(flags=_INFO.QUERY, name=name)))
        news = not asked.instance or asked.address != address
        if instance != asked.instance:
            self._replace(asked, instance)
        asked.address, asked.heard_at = address, now
        self.rounds.enough(name)
        if news:
            self.outbox.append(NameFound(name, address))

    def _on_rival(self, name: str, address: str, instance: bytes) -> None:
        """Report another store with a name of ours, once (P-206)."""
        # This store before its restart is no other one.
        if instance == self.instance or address == self.own[name] or (name, instance) in self.rivals:
            return
        if len(self.rivals) == MAX_RIVALS:
            del self.rivals[next(iter(self.rivals))]
        self.rivals[name, instance] = None
        self._remark(f"another store at {address} is called '{name}' as well", warning=True)

    @staticmethod
    def _replace(asked: NameSearch, instance: bytes) -> None:
        """Let another context have the name, or none."""
        if asked.instance:
            if len(asked.former) == MAX_RIVALS:
                del asked.former[next(iter(asked.former))]
            asked.former.setdefault(asked.instance, False)
        asked.former.pop(instance, None)
        asked.instance = instance

    def _answer(self, name: str) -> None:
        host, port = split(self.own[name])
        flags = _INFO.ADDRESS | _INFO.INSTANCE
        self.outbox.append(Tell(_INFO(flags=flags, port=port, address=host, instance=self.instance, name=name)))

    def _remote_answer(self, name: str, domain: int) -> lbmr_extended.RemoteContexts:
        """Return the answer to a router that asks for a name of ours on behalf of another domain."""
        host, port = split(self.own[name])
        return lbmr_extended.RemoteContexts.of(
            lbmr_extended.RemoteRecord(
                0,
                (
                    lbmr_extended.RemoteAddress(flags=0, domain=domain, address=host, port=port),
                    lbmr_extended.RemoteInstance(flags=0, instance=self.instance),
                    lbmr_extended.RemoteOrigin(flags=0, domain=domain),
                    lbmr_extended.RemoteName(flags=0, name=octets_of(name) + b"\0"),
                ),
            )
        )

    def _remark(self, text: str, *, warning: bool) -> None:
        self.outbox.append(Remark(text, warning))

    def _check(self, name: str, among: dict[str, str] | dict[str, NameSearch]) -> None:
        check_topic(name)
        if len(name.encode()) > MAX_NAME_BYTES:
            raise MisuseError(f"the name of a store has at most {MAX_NAME_BYTES} bytes, not as many as {name!r}")
        if name not in among and len(among) == MAX_NAMES:
            raise MisuseError(f"a context has and asks for at most {MAX_NAMES} names of stores")
