"""Named deadlines of one machine.

A machine names its timers in an IntEnum, arms them here, reports `next()` from its `next_timeout` and works through
`pop_expired(now)` in its `handle_timeout`. Late and spurious calls find nothing due. The table holds at most one
deadline for each kind, so the enum is its bound.
"""

from enum import IntEnum

import attrs


@attrs.define
class TimerTable:
    """Deadlines by kind, in ns of the clock that the caller passes as `now`; a kind that is not armed is absent."""

    deadlines: dict[int, int] = attrs.field(factory=dict)

    def set(self, kind: IntEnum, deadline_ns: int) -> None:
        """Arm `kind` for `deadline_ns`, whatever its deadline was before."""
        self.deadlines[int(kind)] = deadline_ns

    def stop(self, kind: IntEnum) -> None:
        """Disarm `kind`; nothing happens if it is not armed."""
        self.deadlines.pop(kind, None)

    def armed(self, kind: IntEnum) -> bool:
        return kind in self.deadlines

    def deadline(self, kind: IntEnum) -> int | None:
        """Return the deadline of `kind` in ns, or None if it is not armed."""
        return self.deadlines.get(kind)

    def expired(self, now: int) -> list[int]:
        """Return the kinds due at `now` (deadline <= now), earliest first and ties by kind; they stay armed."""
        due = [(deadline_ns, kind) for kind, deadline_ns in self.deadlines.items() if deadline_ns <= now]
        due.sort()
        return [kind for _, kind in due]

    def pop_expired(self, now: int) -> list[int]:
        """Disarm the kinds due at `now` and return them in the order of `expired`."""
        kinds = self.expired(now)
        for kind in kinds:
            del self.deadlines[kind]
        return kinds

    def next(self) -> int | None:
        """Return the earliest deadline in ns, or None if nothing is armed."""
        return min(self.deadlines.values(), default=None)


def soonest(*deadlines: int | None) -> int | None:
    """Return the earliest deadline in nanoseconds; None stands for no deadline.

    >>> soonest(None, 7, 5)
    5
    """
    first = None
    for deadline in deadlines:  # Drivers ask after most inputs, so this builds no list.
        if deadline is not None and (first is None or deadline < first):
            first = deadline
    return first
