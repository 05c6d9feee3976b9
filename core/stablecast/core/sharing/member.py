"""A member of a group: it knows the others, and claims and releases shares.

Members announce themselves to each other. These announcements decide only who *should* hold a share. Who *may*, the
stores decide: a share is a durable receiver, and its registration has one holder. So a lost or late announcement delays
a share, and never gives it to two members.

* A member that is heard of for the first time gets an announcement at once. A member that is silent for `silence_ns`,
  leaves, or whose process has ended counts no more.
* After each change `division.owners` names the shares of this member. It claims those, and revokes the others.
* A new member only listens for `settle_ns`. Then it claims its own shares, and not all.
* Members must agree about the number of shares. With another number the same message would be processed in both
  divisions, so the member reports each one that has another number, once.

Driver contract: `stablecast.core` package docs.
"""

from collections.abc import Iterable

import attrs

from stablecast.core.machine.chart import fire
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import soonest
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.sharing.division import owners
from stablecast.core.sharing.share import SHARE, Close, Drain, Open, Record, Share, ShareEvent, ShareState

MAX_MEMBERS = 256
"""Other members that a member counts; further ones are not heard."""

MIN_WAIT_NS = 500 * MILLISECOND
"""Shortest wait after a contested claim, in ns."""

MAX_WAIT_NS = 2 * SECOND
"""Longest wait after a contested claim, in ns."""


@attrs.frozen
class MemberConfig:
    """A member. Spans in ns.

    Attributes:
        member: Its id, 64 random bits.
        shares: The number of shares of the topic.
        announce_ns: Time between two announcements.
        silence_ns: Silence after which another member counts no more.
        settle_ns: Time in which a new member only listens, so that it does not claim what others have.
    """

    member: int
    shares: int
    announce_ns: int = 500 * MILLISECOND
    silence_ns: int = 3 * SECOND
    settle_ns: int = 1 * SECOND


@attrs.frozen
class Heard:
    """Another member announced itself, with its number of shares."""

    member: int
    shares: int


@attrs.frozen
class Left:
    """Another member left, or its process has ended."""

    member: int


@attrs.frozen
class Progress:
    """Something happened to a share of this member."""

    share: int
    event: ShareEvent


@attrs.frozen
class MemberStart:
    """The driver is ready to perform effects."""


@attrs.frozen
class MemberLeave:
    """The application closes: release all shares."""


@attrs.frozen
class Announce:
    """Announce this member to the others; `leaving`: for the last time."""

    leaving: bool = False


@attrs.frozen
class Disagreement:
    """Another member divides the topic into another number of shares."""

    member: int
    shares: int


MemberInput = MemberStart | Heard | Left | Progress | MemberLeave
MemberEffect = Announce | Open | Drain | Record | Close | Disagreement


@attrs.define
class GroupMember:
    """The shares of one member, and the other members by the time (ns) when they were heard."""

    config: MemberConfig
    seeded: Seeded
    shares: list[Share] = attrs.field(init=False)
    others: dict[int, int] = attrs.field(factory=dict)
    strangers: set[int] = attrs.field(factory=set)
    waits: dict[int, int] = attrs.field(factory=dict)
    wanted: frozenset[int] = frozenset()
    announce_at: int | None = None
    settled_at: int | None = None
    begun: bool = False
    now: int = 0
    leaving: bool = False
    outbox: list[object] = attrs.field(factory=list, eq=False)

    def __attrs_post_init__(self) -> None:
        """Begin without a share."""
        self.shares = [Share(number) for number in range(self.config.shares)]

    # The machine contract.

    def receive(self, event: MemberInput, now: int) -> None:
        """Feed one input; effects of all shares that it changes follow."""
        self.now = now
        match event:
            case MemberStart():
                self.settled_at = now + self.config.settle_ns
                self._announce(now)
            case Heard() if not self.leaving:
                self._on_heard(event, now)
            case Left():
                self.others.pop(event.member, None)
            case Progress():
                fire(SHARE, self.shares[event.share], event.event, self, self.outbox)
            case MemberLeave():
                self.leaving, self.announce_at, self.settled_at = True, None, None
                self.outbox.append(Announce(leaving=True))
        self._review(now)

    def handle_timeout(self, now: int) -> None:
        """Do what is due; spurious and late calls are harmless."""
        self.now = now
        silent = self.config.silence_ns
        self.others = {member: heard for member, heard in self.others.items() if now < heard + silent}
        self.waits = {share: until for share, until in self.waits.items() if now < until}
        if self.announce_at is not None and now >= self.announce_at:
            self._announce(now)
        self._review(now)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        heard = min(self.others.values(), default=None)
        silent = None if heard is None else heard + self.config.silence_ns
        return soonest(self.announce_at, self.settled_at, silent, min(self.waits.values(), default=None))

    def take_effects(self) -> list[MemberEffect]:
        """Return the effects to perform, in order, and empty the outbox."""
        effects: list[MemberEffect] = self.outbox  # type: ignore[assignment] # this machine has no other effects
        self.outbox = []
        return effects

    # The read API.

    @property
    def held(self) -> tuple[int, ...]:
        """The shares whose messages the application gets."""
        return self.in_state(ShareState.HELD)

    @property
    def members(self) -> int:
        """The number of members known, this one included."""
        return 1 + len(self.others)

    def in_state(self, *states: ShareState) -> tuple[int, ...]:
        """Return the shares in any of these states."""
        return tuple(share.number for share in self.shares if share.state in states)

    # Rules.

    def put_off(self, share: int) -> None:
        """Claim the share again only after a random while, so that one of two members comes first."""
        self.waits[share] = self.now + self.seeded.between(MIN_WAIT_NS, MAX_WAIT_NS)

    def _on_heard(self, event: Heard, now: int) -> None:
        if event.member == self.config.member:
            return
        if event.shares != self.config.shares:
            if event.member not in self.strangers and len(self.strangers) < MAX_MEMBERS:
                self.strangers.add(event.member)
                self.outbox.append(Disagreement(event.member, event.shares))
            return
        known = event.member in self.others
        if not known and len(self.others) >= MAX_MEMBERS:
            return
        self.others[event.member] = now
        if not known:
            self._announce(now)  # The newcomer need not wait to learn of this member.

    def _announce(self, now: int) -> None:
        self.announce_at = now + self.config.announce_ns
        self.outbox.append(Announce())

    def _review(self, now: int) -> None:
        """Claim and revoke shares by the division among the members that are known now."""
        if self.settled_at is not None and now >= self.settled_at:
            self.settled_at, self.begun = None, True
        me = self.config.member
        self.wanted = frozenset() if self.leaving else _of(me, owners((me, *self.others), self.config.shares))
        for share in self.shares:
            if share.number not in self.wanted:
                fire(SHARE, share, ShareEvent.REVOKE, self, self.outbox)
            elif share.state is ShareState.RELEASED and share.number not in self.waits and self.begun:
                fire(SHARE, share, ShareEvent.CLAIM, self, self.outbox)


def _of(member: int, division: Iterable[int]) -> frozenset[int]:
    return frozenset(share for share, owner in enumerate(division) if owner == member)
