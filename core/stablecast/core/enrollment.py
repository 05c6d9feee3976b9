"""All of a client's registrations: the same rule of completion for sources and receivers.

Complete in the first interval only when *all* stores granted; from the second on when the group's rule is met (T1,
P-217).
"""

import attrs

from stablecast.core.effects import Effect, Send
from stablecast.core.inputs import Gone, Reset
from stablecast.core.messages import ANY_STORE, Keepalive, Refused, Registered, Role
from stablecast.core.quorum import Group
from stablecast.core.registration import Registration


@attrs.define
class Enrollment:
    """Registrations by store index, and when the first interval ends (ns)."""

    group: Group
    registrations: dict[int, Registration] = attrs.field(factory=dict)
    first_interval_ends: int | None = None
    first_interval_over: bool = False

    def __bool__(self) -> bool:
        return bool(self.registrations)

    @property
    def counting(self) -> list[Registration]:
        """The registrations that count towards a quorum, in the order of the stores."""
        return [registration for _, registration in sorted(self.registrations.items()) if registration.counts]

    @property
    def enough(self) -> bool:
        """Whether the group's rule is met."""
        mask = sum(1 << index for index, registration in self.registrations.items() if registration.counts)
        return not self.registrations or self.group.registered(mask)

    @property
    def everyone(self) -> bool:
        """Whether every store granted."""
        return all(registration.counts for registration in self.registrations.values())

    @property
    def complete(self) -> bool:
        """Whether registration may be called complete."""
        return self.enough and (self.everyone or self.first_interval_over)

    def open(self, ends: int) -> None:
        """The first interval runs until `ends`."""
        self.first_interval_ends = ends

    def on_answer(self, answer: Registered | Refused, now: int, out: list[Effect]) -> Registration | None:
        """Take a store's answer; returns the registration if it began (anew)."""
        registration = self.registrations.get(answer.store_index)
        if registration is None:
            return None
        if isinstance(answer, Refused):
            registration.on_refused(answer, now, out)
            return None
        return registration if registration.on_answer(answer, now, out) else None

    def on_keepalive(self, message: Keepalive, now: int, out: list[Effect]) -> None:
        """A store is alive. If it asks whether we are, say so: a question answers no probe and renews no lease."""
        for registration in self.registrations.values():
            request = registration.request
            if (
                message.role is not Role.STORE
                or message.reg_id != request.reg_id
                or message.store_index not in (ANY_STORE, request.store_index)
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

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        """Do what is due."""
        for registration in self.registrations.values():
            registration.handle_timeout(now, out)
        if self.first_interval_ends is not None and self.first_interval_ends <= now:
            self.first_interval_ends = None
            self.first_interval_over = True

    def next(self) -> int | None:
        """When `handle_timeout` is due."""
        due = [self.first_interval_ends, *(r.timers.next() for r in self.registrations.values())]
        return min((deadline for deadline in due if deadline is not None), default=None)

    def abstract(self) -> tuple[tuple[str, int, int], ...]:
        """The registrations in the order of the stores."""
        return tuple(registration.abstract() for _, registration in sorted(self.registrations.items()))
