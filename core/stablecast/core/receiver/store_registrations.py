"""A receiver's registrations with the stores of its source, and the meaning of their answers.

* It registers with the stores that the SRI names. An SRI with a higher version may add stores. A store whose own
  version rose has the source's registration anew, so the receiver registers there again; the others are left alone
  (T21, P-224). A store that uses another RegID for the source than before is a new store.
* The groups are those of the SRI, and completion is by quorum like the source's (C-30). Where the entries contradict
  the sizes, all stores count as one group.
* **Votes.** A store that may have forgotten the receiver, or that offers its numbers above messages that it lacks, says
  so, and has no vote where the receiver begins (formal design, 7.11). While no store knows the receiver, registration
  waits for a quorum of others, or for all stores of a group; the application is told. It waits no longer than a message
  is requested. What all stores then lack below their offers is nowhere, or out of reach, and lost.
* **Low number.** Stores that know the receiver answer where its acknowledgements end. These are contiguous prefixes, so
  the highest is right (formal design, 7.7). The settings offer the documented choices beside it (P-418): `majority` is
  agreed on in each group, and the newest of the groups counts. When no store knows the receiver, the lowest offer is
  where the history starts. A receiver that the pace depends on starts above everything that any store released (P-572;
  formal design, 7.8), or where a store began to keep messages for it, if it was registered and never acknowledged. A
  store without a cache knows the receiver, but offers nothing (P-101).
* A non-blocking receiver that a store takes for a blocking one gets an event. `store_registration` detects stores that
  do not know RPP at all (P-574).
* **Giving up.** A missing message may be at any store, and one that is stable in one group of several may be held there
  alone. So it is given up only while a quorum of every group can be asked (formal design, 7.2).
"""

from collections.abc import Iterable

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol.effects import AskRegId, Effect, Notify
from stablecast.core.protocol.events import Oddity, RegistrationChange, RegistrationFlag, RegistrationSuccess
from stablecast.core.protocol.messages import (
    Address,
    Deregistered,
    Pace,
    Refused,
    Registered,
    Role,
    SourceInfo,
    StoreEntry,
)
from stablecast.core.protocol.quorum import Consensus, GroupRules, Quorums
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.resume_point import offer, receiver_low
from stablecast.core.protocol.settings import ReceiverConfig, register_request
from stablecast.core.registration.ballot import Ballot
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.store_registration import Registration, RegistrationState

_FLAGS = {
    Pace.SOURCE: RegistrationFlag.NONE,
    Pace.RECEIVERS: RegistrationFlag.RPP,
    Pace.NON_BLOCKING: RegistrationFlag.RPP | RegistrationFlag.NON_BLOCKING,
}


_NO_VOTE = "the store lacks messages, or may have forgotten this receiver, and cannot tell where it begins"


@attrs.define
class StoreRegistrations:
    """A receiver's registrations; by store its group, and its version when it was asked last.

    `patience`: until then (ns) registration waits for votes; None: it does not. `again_at` (ns): when stores without a
    vote are asked again, because they may be whole by then.
    """

    config: ReceiverConfig
    enrollment: RegistrationSet = attrs.field(
        factory=lambda: RegistrationSet(Quorums(GroupRules(), ()), all_named=False)
    )
    ballot: Ballot = attrs.field(factory=lambda: Ballot(_NO_VOTE))
    patience: int | None = None
    again_at: int = 0
    impatient: bool = False
    groups: dict[int, int] = attrs.field(factory=dict)
    versions: dict[int, int] = attrs.field(factory=dict)

    def begin(self, info: SourceInfo, now: int, out: list[Effect]) -> None:
        """Process the first SRI: ask every store that it names."""
        self.enrollment.open(now + self.config.times.interval_ns)
        self.on_info(info, now, out)

    def on_info(self, info: SourceInfo, now: int, out: list[Effect]) -> None:
        """Register with new stores, and again with stores that moved or whose version rose (T21).

        A leaving receiver only asks the stores that moved to forget it at their new address.
        """
        if self.enrollment.leaving:
            for entry in info.stores:
                registration = self.enrollment.registrations.get(entry.index)
                if registration is not None and registration.address != entry.address:
                    registration.move(entry.address, now, out)
            return
        self._regroup(info, out)
        changed = []
        for entry in info.stores:
            registration = self.enrollment.registrations.get(entry.index)
            if registration is not None and registration.address == entry.address:
                registration.know(entry.generation)
            # Under another RegID of the source a known store counts as a new one.
            if registration is None or registration.request.source_reg_id != entry.source_reg_id:
                self._add(entry, now, out)
            elif registration.address != entry.address:
                registration.move(entry.address, now, out)
                changed.append(f"store {entry.index} [{entry.address}]")
            elif self.versions[entry.index] < entry.version:
                # The source registered there anew. The other stores are not asked (T21).
                registration.renew(now, out)
                changed.append(f"store {entry.index} [{entry.address}]")
            self.versions[entry.index] = entry.version
        if changed:
            out.append(Notify(RegistrationChange(f"registering again with {', '.join(changed)}")))

    def move(self, reply_to: Address, now: int, out: list[Effect]) -> ReceiverConfig:
        """Register again from another address, and return the configuration with it."""
        self.config = attrs.evolve(self.config, reply_to=reply_to)
        for registration in self.enrollment.registrations.values():
            registration.relocate(reply_to, "", now, out)
        return self.config

    def on_reg_id(self, store_index: int, reg_id: int, now: int, out: list[Effect]) -> None:
        """Register under the RegID that the application chose; ignored unless the store was asked about."""
        registration = self.enrollment.registrations.get(store_index)
        if registration is not None and registration.state is RegistrationState.IDLE:
            registration.start(reg_id, now, out)

    def on_answer(
        self, answer: Registered | Refused | Deregistered, near: int, now: int, out: list[Effect]
    ) -> Registration | None:
        """Process a store's answer; return the registration if it began (anew). Numbers are extended near `near`."""
        before = self.enrollment.granted(answer.store_index)
        registration = self.enrollment.on_answer(answer, now, out, near)
        if registration is None or not isinstance(answer, Registered):
            return None
        if self.patience is not None and before is not None and (before.old, before.low) == (answer.old, answer.low):
            return registration  # It was asked again about its vote, and the application knows the rest.
        if (self.config.pace, answer.pace) == (Pace.NON_BLOCKING, Pace.RECEIVERS):
            text = f"store {answer.store_index} [{registration.address}] takes us for a blocking receiver"
            out.append(Notify(Oddity("made-blocking", text)))
        low, _ = offer(answer, near)
        source_reg_id = registration.request.source_reg_id
        event = RegistrationSuccess(
            answer.store_index, registration.address, answer.reg_id, source_reg_id, low, self._flags(answer)
        )
        out.append(Notify(event))
        return registration

    @property
    def may_give_up(self) -> bool:
        """True if enough stores that may have a missing message can be asked."""
        return self.enrollment.quorums.may_give_up(self.enrollment.mask, self.config.repairs)

    @property
    def known(self) -> bool:
        """True if a counting store knows the receiver. Its acknowledgement is true, whatever other stores lack."""
        return any(_granted(registration).old for registration in self.enrollment.counting)

    def review(self, now: int, out: list[Effect]) -> bool:
        """Return whether registration is complete; if only votes are missing, wait for them, and report it once."""
        enrollment = self.enrollment
        enrollment.everyone_votes = Repair.VOTE not in self.config.repairs or self.impatient or self.known
        if enrollment.complete:
            self.patience = None
            return True
        if self.patience is None and enrollment.first_interval_over and enrollment.enough:
            self.patience = now + self.config.give_up_ns
            self.again_at = now + self.config.times.interval_ns
        self.ballot.review(enrollment, out)
        return False

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        """Do what is due, and end the wait for votes."""
        self.enrollment.handle_timeout(now, out)
        if self.patience is None:
            return
        if now >= self.patience:
            self.patience, self.impatient = None, True
        elif now >= self.again_at:
            self.again_at = now + self.config.times.interval_ns
            voters = self.enrollment.voters
            for registration in self.enrollment.counting:
                if not voters >> registration.request.store_index & 1:
                    registration.renew(now, out)

    def next(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        due = self.enrollment.next()
        if self.patience is None:
            return due
        return min(self.patience, self.again_at, self.patience if due is None else due)

    def targets(self, source: Target) -> list[Target]:
        """Return the peers to request messages from: `source` if there are no stores, or none that keeps messages."""
        counting = self.enrollment.counting
        keeping = [registration for registration in counting if not _granted(registration).no_cache]
        if not self.enrollment or (counting and not keeping):
            return [source]
        return [
            Target(registration.address, registration.request.source_reg_id)
            for registration in keeping
            if registration.state is RegistrationState.REGISTERED
        ]

    def lacking(self, high: int) -> int | None:
        """Return the first number that any store should have, if all of them lack what is below their offers."""
        answers = self._offers()
        ends = [serial.extend(answer.known, high) for answer in answers if not answer.old and answer.known is not None]
        judged = self.config.pace is Pace.SOURCE and Repair.VOTE in self.config.repairs
        return min(ends) if judged and ends and len(ends) == len(answers) else None

    def low(self, high: int) -> int:
        """Return where the receiver may begin, by the counting stores' answers; `high` is the newest number."""
        offers = self._offers()
        known = [answer for answer in offers if answer.old]
        if not offers:
            # Stores without a cache have no history to offer (P-101).
            return high + 1
        if not known and self.config.pace is not Pace.SOURCE:
            # Below the highest offer some store has freed messages (P-572, formal 7.8), but not those that another one
            # keeps for this receiver since it was registered there.
            granted = [_granted(registration) for registration in self.enrollment.counting]
            kept = [serial.extend(answer.known, high) for answer in granted if answer.known is not None]
            return min(kept, default=max(offer(answer, high)[0] for answer in offers))
        parts = [offers]
        if known and self.config.consensus is Consensus.MAJORITY:
            groups = sorted({self.groups[answer.store_index] for answer in known})
            parts = [[answer for answer in known if self.groups[answer.store_index] == group] for group in groups]
        return max(receiver_low(part, self.config.consensus, high) for part in parts)

    def used(self, high: int) -> int:
        """Return the highest acknowledged number that a store says the source used; `high` without one."""
        known = [answer.known for answer in self._offers() if answer.old and answer.known is not None]
        return max([serial.extend(one, high) for one in known], default=high)

    def _offers(self) -> list[Registered]:
        """Return the answers that decide: of stores that know the receiver, else of those that have a vote."""
        voters = self.enrollment.voters
        answers = [_granted(registration) for registration in self.enrollment.counting]
        keeping = [answer for answer in answers if not answer.no_cache]
        voting = [answer for answer in keeping if voters >> answer.store_index & 1]
        return [answer for answer in answers if answer.old] or voting or keeping

    def _flags(self, answer: Registered) -> RegistrationFlag:
        flags = _FLAGS[answer.pace]
        if answer.old:
            flags |= RegistrationFlag.OLD
        if answer.no_cache:
            flags |= RegistrationFlag.NO_CACHE
        if self.config.session_id:
            flags |= RegistrationFlag.SESSION
        return flags

    def _regroup(self, info: SourceInfo, out: list[Effect]) -> None:
        # Stores that an SRI no longer names keep their group: they may still hold messages.
        sizes = info.group_sizes
        self.groups.update((entry.index, entry.group) for entry in info.stores)
        if not _fit(self.groups.values(), sizes):
            text = f"stores in groups {sorted(set(self.groups.values()))} of {len(sizes)}; all count as one group"
            out.append(Notify(Oddity("wrong-group", text)))
            self.groups = dict.fromkeys(self.groups, 0)
            sizes = (max(sum(sizes), len(self.groups)),)
        members = [0] * len(sizes)
        for index, group in self.groups.items():
            members[group] |= 1 << index
        self.enrollment.quorums = Quorums(GroupRules(sizes), tuple(members))

    def _add(self, entry: StoreEntry, now: int, out: list[Effect]) -> None:
        request = register_request(
            Role.RECEIVER, entry.index, self.config, reg_id=0, source_reg_id=entry.source_reg_id, transport=""
        )
        leased = Repair.LEASE in self.config.repairs
        registration = Registration(request, entry.address, self.config.times, leased=leased)
        registration.know(entry.generation)
        self.enrollment.registrations[entry.index] = registration
        if self.config.session_id:
            registration.start(0, now, out)
        else:
            # Without a session id the application chooses the RegID (P-249).
            out.append(AskRegId(entry.index, entry.address, entry.source_reg_id))


def _fit(groups: Iterable[int], sizes: tuple[int, ...]) -> bool:
    return all(0 <= group < len(sizes) and sizes[group] > 0 for group in groups)


def _granted(registration: Registration) -> Registered:
    """Return the grant of a registration that counts."""
    assert registration.granted is not None
    return registration.granted
