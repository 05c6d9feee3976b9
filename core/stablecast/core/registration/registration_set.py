"""All of a client's registrations: the same rules of completion and of leaving for sources and receivers.

* Complete in the first interval only when *all* stores granted; from the second on when the rules of the groups are met
  (T1, P-217). A store whose address is not known yet has not granted.
* **Every group** (formal design, 7.2). Where one group is enough to go on, a source that was away may have got messages
  stable in a group that does not answer now; it would use their numbers again. So a client that may have lived before
  (`returning`) hears a quorum of every group before it is complete for the first time. One that is certainly new, and
  one that was complete before, need the rules only. The source sets `returning` under `Repair.EVERY_GROUP`, where its
  rules let one group do (`Quorums.any_group`): it has a session id, asks for a RegID, or a store knows it.
* **One term.** A store counts the lives that register with it, and stores that were away count fewer. Before a source
  is complete for the first time, every count that is needed is as high as the highest: stores that granted a lower one
  are asked again and told it (`agree`). So of two lives that completed the later one has the higher term (`history`;
  formal design, 7.3), which the source wants under `Repair.ONE_LIFE`. One that lost its quorum and hears of more lives
  has to agree once more before it goes on (`lineage`).
* Round robin asks one store at a time (`rotation`); then that one is everyone.
* Leaving is over when every store has forgotten the client, or never knew it (P-586).
"""

import attrs

from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import DeregistrationComplete
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import ANY_STORE, Deregistered, Keepalive, Refused, Registered, Role
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.registration.round_robin import Rotation
from stablecast.core.registration.store_registration import Registration, RegistrationState


@attrs.define
class Enrollment:
    """Registrations by store index, and when the first interval ends (ns). `term`: what their counts must reach."""

    quorums: Quorums
    registrations: dict[int, Registration] = attrs.field(factory=dict)
    first_interval_ends: int | None = None
    first_interval_over: bool = False
    returning: bool = False
    leaving: bool = False
    rotation: Rotation | None = None
    term: int = 0

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

    @property
    def settled(self) -> int:
        """Those of them whose count of lives is high enough."""
        known = self.registrations.items()
        return self.mask & sum(1 << index for index, registration in known if _count(registration) >= self.term)

    @property
    def enough(self) -> bool:
        """Whether the rules of the groups are met."""
        return self._allows(self.mask)

    @property
    def agreed(self) -> bool:
        """Whether they are by those alone whose count of lives is high enough."""
        return self._allows(self.settled)

    @property
    def everyone(self) -> bool:
        """Whether every store granted that is asked."""
        if self.rotation is not None:
            return self.enough
        return all(registration.counts for registration in self.registrations.values())

    @property
    def complete(self) -> bool:
        """Whether registration may be called complete for the first time."""
        settled = self.settled
        heard = not self.returning or self.quorums.every_group(settled)
        everyone = self.everyone and settled == self.mask
        return heard and self._allows(settled) and (everyone or self.first_interval_over)

    @property
    def replaced(self) -> bool:
        """Whether so many stores gave the RegID to another source since they granted that the others are not enough."""
        rest = sum(1 << index for index, registration in self.registrations.items() if not registration.replaced)
        return any(registration.replaced for registration in self.registrations.values()) and not self._allows(rest)

    @property
    def left(self) -> bool:
        """Whether the client has withdrawn and no store knows it any more."""
        return self.leaving and all(registration.left for registration in self.registrations.values())

    def open(self, ends: int) -> None:
        """The first interval runs until `ends`."""
        self.first_interval_ends = ends

    def granted(self, index: int) -> Registered | None:
        """What a store granted last."""
        registration = self.registrations.get(index)
        return None if registration is None else registration.granted

    def ask(self, now: int, out: list[Effect]) -> None:
        """Register with every store that was not asked yet and is to be, once it is known where it is."""
        if self.rotation is not None:
            self.rotation.review(self.registrations, now, out)
            return
        for registration in self.registrations.values():
            if registration.state is RegistrationState.IDLE and registration.address:
                registration.start(registration.request.reg_id, now, out)

    def on_answer(
        self, answer: Registered | Refused | Deregistered, now: int, out: list[Effect], near: int = 0
    ) -> Registration | None:
        """Take a store's answer; returns the registration if it began (anew).

        `near` is an extended number close to the newest, for the event of a deregistration.
        """
        registration = self.registrations.get(answer.store_index)
        if registration is None:
            return None
        if isinstance(answer, Registered):
            return registration if registration.on_answer(answer, now, out) else None
        if isinstance(answer, Refused):
            registration.on_refused(answer, now, out)
        elif registration.on_deregistered(answer, near, now, out):
            self._report_left(out)
        return None

    def agree(self, term: int, now: int, out: list[Effect]) -> None:
        """A store counts lives up to `term`: whoever counts fewer is asked again."""
        self.term = max(self.term, term)
        for _, registration in sorted(self.registrations.items()):
            registration.request = attrs.evolve(registration.request, term=self.term)
            if _count(registration) < self.term:
                registration.renew(now, out)

    def prove(self, term: int, now: int, out: list[Effect]) -> None:
        """The life goes on under this term: every store is told, and asked to show that it was."""
        for _, registration in sorted(self.registrations.items()):
            registration.request = attrs.evolve(registration.request, lives_term=term)
            registration.renew(now, out)

    def on_keepalive(self, message: Keepalive, now: int, out: list[Effect]) -> None:
        """A store is alive. If it asks whether we are, say so: a question answers no probe and renews no lease."""
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
        """A store's connection broke, or nobody listens at its address."""
        for registration in self.registrations.values():
            if registration.address != event.address:
                continue
            if isinstance(event, Gone):
                registration.on_gone(now, out)
            else:
                registration.renew(now, out)

    def withdraw(self, now: int, out: list[Effect]) -> None:
        """Deregister everywhere, for good (P-584); once it is over the application hears of it."""
        if self.leaving:
            return
        self.leaving = True
        self.first_interval_ends = None
        for _, registration in sorted(self.registrations.items()):
            registration.withdraw(now, out)
        self._report_left(out)

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        """Do what is due."""
        for registration in self.registrations.values():
            registration.handle_timeout(now, out)
        if self.first_interval_ends is not None and self.first_interval_ends <= now:
            self.first_interval_ends = None
            self.first_interval_over = True

    def next(self) -> int | None:
        """When `handle_timeout` is due."""
        due = self.first_interval_ends
        for registration in self.registrations.values():
            for deadline in registration.timers.deadlines.values():
                if due is None or deadline < due:
                    due = deadline
        return due

    def _allows(self, mask: int) -> bool:
        return not self.registrations or self.quorums.registered(mask)

    def _report_left(self, out: list[Effect]) -> None:
        if self.left:
            out.append(Notify(DeregistrationComplete()))

    def abstract(self) -> tuple[tuple[str, int, int], ...]:
        """The registrations in the order of the stores."""
        return tuple(registration.abstract() for _, registration in sorted(self.registrations.items()))


def _count(registration: Registration) -> int:
    """How many lives the store counts, as far as we know."""
    return 0 if registration.granted is None else registration.granted.term
