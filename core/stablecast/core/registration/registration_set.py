"""All of a client's registrations: one set of rules of completion and of leaving for sources and receivers.

* In the first interval registration is complete only when *all* stores granted, from the second on when the rules of
  the groups are met (T1, P-217). A store without a known address has not granted.
* **Every group** (formal design, 7.2). Where one group suffices, a source that was away may have made messages stable
  in a group that does not answer now, and would use their numbers again. So a client that may have lived before
  (`returning`) needs a quorum of every group before it is complete for the first time. A certainly new client, and one
  that was complete before, need the rules only. The source sets `returning` under `Repair.EVERY_GROUP` where one group
  may suffice (`Quorums.any_group`) and it has a session id, asks for a RegID, or a store knows it.
* **One term.** A store counts the lives that register with it, and stores that were away count fewer. Before a source
  is complete for the first time, every count that is needed must equal the highest: stores that granted a lower one are
  asked again with it (`agree`). So of two lives that completed the later one has the higher term (`history`; formal
  design, 7.3). The source needs that under `Repair.ONE_LIFE`. A source that lost its quorum and learns of more lives
  must agree once more before it goes on (`lineage`).
* **No memory, no vote** (formal design, 7.11). A store that lost its memory may have held stable messages. Its grant
  counts for the messages of this life, but not towards the first completion, nor where a life that lost its quorum must
  learn of later ones. It votes when nobody in its group knows better (`Quorums.voters`). Without `Repair.VOTE`, and in
  round robin, where one store decides alone, every store votes (`everyone_votes`).
* **An older copy has no memory.** If another store, or this client itself, knows a later generation of a store than its
  grant shows, the store counts as one that lost its memory, and is asked again with that generation (`generations`).
* Round robin asks one store at a time (`rotation`); then that store is everyone.
* Leaving is over when every store has forgotten the client, or never knew it (P-586).

Round robin: one store at a time, in the order of the list (P-502..P-504). Deprecated.

The source registers with the first store only. If that store stays away, for an interval without an answer or until the
lease ends, the source drops it and tries the next, round and round. The store whose turn it is decides alone what is
stable. A message that only an earlier store has is lost (P-505). A store whose turn has come fills itself by late join
from what the source retains (P-503).
"""

import attrs

from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import DeregistrationComplete
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import (
    ANY_STORE,
    Address,
    Deregistered,
    Keepalive,
    Refused,
    Registered,
    Role,
    StoreMemory,
)
from stablecast.core.protocol.quorum import GroupRules, Intragroup, Quorums
from stablecast.core.registration.store_registration import Registration, RegistrationState

ONE_STORE = GroupRules((1,), Intragroup.ALL_ACTIVE)
"""One store is enough, and the one that is registered must have it."""


@attrs.define
class Rotation:
    """`turn` is the index of the store whose turn it is."""

    turn: int = 0

    @staticmethod
    def quorums(stores: int) -> Quorums:
        """Return the rules over this many stores."""
        return Quorums.of(ONE_STORE, [0] * stores)

    def review(self, registrations: dict[int, Registration], now: int, out: list[Effect]) -> None:
        """Pass the turn on if its store stays away, and ask the store whose turn it is."""
        order = [index for index, registration in sorted(registrations.items()) if registration.address]
        current = registrations[self.turn]
        if order and (current.failing or not current.address):
            following = next((index for index in order if index > self.turn), order[0])
            if following != self.turn:
                current.park(now, out)
                self.turn = following
        chosen = registrations[self.turn]
        if chosen.address and chosen.state is RegistrationState.IDLE:
            chosen.start(chosen.request.reg_id, now, out)


@attrs.define
class RegistrationSet:
    """Registrations by store index, and when the first interval ends (ns). `term`: the count that stores must reach.

    `all_named`: the client knows all stores of each group. A receiver knows those that granted its source.
    """

    quorums: Quorums
    registrations: dict[int, Registration] = attrs.field(factory=dict)
    first_interval_ends: int | None = None
    first_interval_over: bool = False
    returning: bool = False
    leaving: bool = False
    rotation: Rotation | None = None
    term: int = 0
    everyone_votes: bool = True
    all_named: bool = True

    def __bool__(self) -> bool:
        return bool(self.registrations)

    @property
    def counting(self) -> list[Registration]:
        """The registrations that count towards a quorum, in the order of the stores."""
        return [registration for _, registration in sorted(self.registrations.items()) if registration.counts]

    @property
    def mask(self) -> int:
        """The stores that count towards a quorum."""
        return sum(1 << index for index, registration in self.registrations.items() if registration.counts)

    def addresses(self, index: int | None = None) -> list[Address]:
        """Return the known addresses of all stores, or of the one with this index."""
        registrations = self.registrations
        found = registrations.values() if index is None else [registrations[index]] if index in registrations else []
        return [one.address for one in found if one.address]

    def leased(self, now: int) -> bool:
        """Return whether the rules of the groups are met by stores whose lease of this client goes on at `now` (ns)."""
        return self._allows(sum(1 << index for index, one in self.registrations.items() if one.has_reg_id(now)))

    @property
    def informed(self) -> int:
        """The counting stores whose count of lives is high enough."""
        known = self.registrations.items()
        return self.mask & sum(1 << index for index, registration in known if _count(registration) >= self.term)

    @property
    def voters(self) -> int:
        """The counting stores that have a vote about older lives."""
        mask = self.mask
        forgetful = mask & ~self._remembering(StoreMemory.KEPT)
        if self.everyone_votes or not forgetful:
            return mask
        listed = sum(1 << index for index in self.registrations)
        new = self._remembering(StoreMemory.NEW)
        return self.quorums.voters(mask, forgetful, new, listed, all_named=self.all_named)

    @property
    def founding(self) -> bool:
        """True if no counting store has a memory, so that nobody knows of an older life."""
        return not self.mask & self._remembering(StoreMemory.KEPT)

    @property
    def settled(self) -> int:
        """The stores whose count of lives is high enough, and which have a vote or a group that needs none of them."""
        informed = self.informed
        return self.quorums.seconded(informed & self.voters, informed)

    @property
    def enough(self) -> bool:
        """True if the rules of the groups are met."""
        return self._allows(self.mask)

    @property
    def agreed(self) -> bool:
        """True if the rules of the groups are met by stores whose count of lives is high enough."""
        return self._allows(self.settled)

    @property
    def everyone(self) -> bool:
        """True if every store that is asked granted."""
        if self.rotation is not None:
            return self.enough
        return all(registration.counts for registration in self.registrations.values())

    @property
    def steady(self) -> bool:
        """True if no registration that counts is being renewed."""
        return all(registration.state is RegistrationState.REGISTERED for registration in self.counting)

    @property
    def whole(self) -> bool:
        """True if every store of the source is registered, so that nobody else may have a message."""
        known = max(len(self.registrations), sum(self.quorums.rules.sizes))
        return self.steady and len(self.counting) >= known

    @property
    def complete(self) -> bool:
        """True if registration is complete for the first time."""
        # A group that does not answer may hold stable messages. Their numbers must not be used again (formal 7.2).
        settled = self.settled
        answered = not self.returning or self.quorums.every_group(settled)
        # In the first interval a store that counts too few lives delays completion, as one without a grant does (T1).
        everyone = self.everyone and self.informed == self.mask
        return answered and self._allows(settled) and (everyone or self.first_interval_over)

    @property
    def replaced(self) -> bool:
        """True if stores gave the RegID to another source after their grant, and the others are not enough."""
        # One store may have granted the RegID to another source while the rest are still a quorum.
        rest = sum(1 << index for index, registration in self.registrations.items() if not registration.replaced)
        return any(registration.replaced for registration in self.registrations.values()) and not self._allows(rest)

    @property
    def left(self) -> bool:
        """True if the client withdrew and no store knows it any more."""
        return self.leaving and all(registration.left for registration in self.registrations.values())

    def open(self, ends: int) -> None:
        """Begin the first interval, which ends at `ends` (ns)."""
        self.first_interval_ends = ends

    def granted(self, index: int) -> Registered | None:
        """Return a store's newest grant, or None."""
        registration = self.registrations.get(index)
        return None if registration is None else registration.granted

    def ask(self, now: int, out: list[Effect]) -> None:
        """Register with every store that was not asked yet, once its address is known."""
        if self.rotation is not None:
            self.rotation.review(self.registrations, now, out)
            return
        for registration in self.registrations.values():
            if registration.state is RegistrationState.IDLE and registration.address:
                registration.start(registration.request.reg_id, now, out)

    def on_answer(
        self, answer: Registered | Refused | Deregistered, now: int, out: list[Effect], near: int = 0
    ) -> Registration | None:
        """Process a store's answer; return the registration if the answer began it (anew).

        `near` is an extended number close to the newest, for the event of a deregistration.
        """
        registration = self.registrations.get(answer.store_index)
        if registration is None:
            return None
        if isinstance(answer, Registered):
            if not registration.on_answer(answer, now, out):
                return None
            self._learn_generations(answer, now, out)
            return registration
        if isinstance(answer, Refused):
            registration.on_refused(answer, now, out)
        elif registration.on_deregistered(answer, near, now, out):
            self._report_left(out)
        return None

    def agree(self, term: int, now: int, out: list[Effect]) -> None:
        """Ask the stores again that count fewer lives than `term`."""
        self.term = max(self.term, term)
        for _, registration in sorted(self.registrations.items()):
            # A quorum must know the term before this life sends, or two lives may send under one term (formal 7.3).
            registration.request = attrs.evolve(registration.request, term=self.term)
            if _count(registration) < self.term:
                registration.renew(now, out)

    def prove(self, term: int, now: int, out: list[Effect]) -> None:
        """Ask every store to prove that it knows this life under `term`."""
        for _, registration in sorted(self.registrations.items()):
            # A store's acknowledgements count again only after its grant shows this term (formal 7.6).
            registration.request = attrs.evolve(registration.request, lives_term=term)
            registration.renew(now, out)

    def recount(self, now: int, out: list[Effect]) -> None:
        """Ask the stores again that had no memory at their newest grant: this life has announced itself to them."""
        for _, registration in sorted(self.registrations.items()):
            if registration.granted is not None and _memory(registration) is not StoreMemory.KEPT:
                # Until the store answers, its old grant must not pass for that of a group in which all are new.
                registration.granted = attrs.evolve(registration.granted, memory=StoreMemory.LOST)
                registration.renew(now, out)

    def on_keepalive(self, message: Keepalive, now: int, out: list[Effect]) -> None:
        """Process a store's keepalive, and answer it if it asks. A question answers no probe and renews no lease."""
        for registration in self.registrations.values():
            request = registration.request
            if (
                message.role is not Role.STORE
                or message.reg_id != request.reg_id
                or message.store_index not in (ANY_STORE, request.store_index)
                or not registration.involved
            ):
                continue
            if message.respond:
                registration.on_traffic(now)
                out.append(Send(registration.address, registration.keepalive(respond=False)))
            else:
                registration.on_keepalive(now)

    def on_broken(self, event: Reset | Gone, now: int, out: list[Effect]) -> None:
        """Process a broken connection to an address, or its refusal."""
        for registration in self.registrations.values():
            if registration.address != event.address:
                continue
            if isinstance(event, Gone):
                registration.on_gone(now, out)
            else:
                registration.renew(now, out)

    def withdraw(self, now: int, out: list[Effect]) -> None:
        """Deregister everywhere, for good (P-584); an event reports the end."""
        if self.leaving:
            return
        self.leaving = True
        self.first_interval_ends = None
        for _, registration in sorted(self.registrations.items()):
            registration.withdraw(now, out)
        self._report_left(out)

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        for registration in self.registrations.values():
            registration.handle_timeout(now, out)
        if self.first_interval_ends is not None and self.first_interval_ends <= now:
            self.first_interval_ends = None
            self.first_interval_over = True

    def next(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        # This runs for every acknowledgement that a driver feeds, so it builds no lists.
        due = self.first_interval_ends
        for registration in self.registrations.values():
            for deadline in registration.timers.deadlines.values():
                if due is None or deadline < due:
                    due = deadline
        return due

    def _learn_generations(self, answer: Registered, now: int, out: list[Effect]) -> None:
        """Learn the newest generation of each store from a grant; ask a store that is an older copy again."""
        granting = self.registrations[answer.store_index]
        own = (answer.store_index, granting.address, answer.store_generation)
        for index, address, generation in (*answer.peers, own):
            registration = self.registrations.get(index)
            # Another store may have had this index, or this address.
            if registration is not None and registration.address == address:
                registration.know(generation)
        for registration in (granting, *(one for one in self.registrations.values() if one is not granting)):
            registration.report_copy(now, out)

    def _remembering(self, memory: StoreMemory) -> int:
        known = self.registrations.items()
        return sum(1 << index for index, registration in known if _memory(registration) is memory)

    def _allows(self, mask: int) -> bool:
        return not self.registrations or self.quorums.registered(mask)

    def _report_left(self, out: list[Effect]) -> None:
        if self.left:
            out.append(Notify(DeregistrationComplete()))


def _count(registration: Registration) -> int:
    """Return the lives that the store counted at its newest grant."""
    return 0 if registration.granted is None else registration.granted.term


def _memory(registration: Registration) -> StoreMemory:
    """Return what the store knew of older lives at its newest grant."""
    if registration.granted is None:
        return StoreMemory.KEPT
    return StoreMemory.LOST if registration.outdated else registration.granted.memory
