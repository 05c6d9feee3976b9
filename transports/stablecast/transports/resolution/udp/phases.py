"""The phases of one topic: quick at first, then slow, then quiescent (T-024).

    QUIESCENT --begin--> INITIAL --ended--> SUSTAINING --ended--> QUIESCENT --asked--> SUSTAINING

Intervals of the initial phase double from `shortest` to `longest`. Turns are planned ahead from the start of the phase,
so that late calls do not add up. They lie on a grid of ticks, so that topics with turns in one tick share a datagram.
The end of a phase is checked at each turn: the turn that is already planned still comes (6.14 as observed; it overrides
T-103). A turn that a limit delays moves all later turns, because limits stretch phases (T-104). Each phase may be
switched off or endless (T-101, T-115, T-117).
"""

from enum import IntEnum

import attrs

from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.transports.resolution.udp.settings import PhasePace


class Phase(IntEnum):
    QUIESCENT = 0
    INITIAL = 1
    SUSTAINING = 2


class PhaseEvent(IntEnum):
    BEGIN = 0
    ASKED = 1
    ENDED = 2
    ENOUGH = 3


class PhaseChart(Chart):
    """The life cycle of one topic's turns."""

    states = States.from_enum(Phase, initial=Phase.QUIESCENT, use_enum_instance=True)

    begin = states.QUIESCENT.to(states.INITIAL, cond="has_initial", on="start_initial") | states.QUIESCENT.to(
        states.SUSTAINING, cond="has_sustaining", on="start_sustaining"
    )
    asked = (
        states.QUIESCENT.to(states.SUSTAINING, cond="has_sustaining", on="start_sustaining")
        | states.SUSTAINING.to.itself(internal=True, on="start_sustaining")
        | states.INITIAL.to.itself(internal=True, on="draw_near")
    )
    ended = (
        states.INITIAL.to(states.SUSTAINING, cond="has_sustaining", on="go_on")
        | states.INITIAL.to(states.QUIESCENT, on="fall_silent")
        | states.SUSTAINING.to(states.QUIESCENT, on="fall_silent")
    )
    enough = states.INITIAL.to(states.QUIESCENT, on="fall_silent") | states.SUSTAINING.to(
        states.QUIESCENT, on="fall_silent"
    )


NEVER = -1
"""No instant."""


def on_grid(instant: int, tick: int) -> int:
    """Return the first multiple of `tick` at or after `instant`, both in nanoseconds.

    >>> on_grid(21, 10), on_grid(30, 10)
    (30, 30)
    """
    return -(-instant // tick) * tick


@attrs.define
class TopicTurns:
    """The turns of one topic; times in nanoseconds.

    Attributes:
        octets: Bytes of its record.
        due: Its next turn, or NEVER.
        planned: Its next turn before the move to the grid; the average pace follows this one.
        gap: From the turn before to `planned`; 0: there was none.
        interval: From `planned` to the turn after it.
        ends: End of the phase; 0: never.
        seen: Time at which its turn was first found due, while it waits for its limit; else NEVER.
    """

    pace: PhasePace
    octets: int
    state: Phase = Phase.QUIESCENT
    due: int = NEVER
    planned: int = 0
    gap: int = 0
    interval: int = 0
    ends: int = 0
    seen: int = NEVER

    def begin(self, now: int) -> None:
        """Begin with a new topic, in its first phase."""
        fire(PHASES, self, PhaseEvent.BEGIN, now, False)

    def asked(self, now: int, answered: bool) -> None:
        """Note a query for the topic; `answered`: it was answered already."""
        fire(PHASES, self, PhaseEvent.ASKED, now, answered)

    def enough(self) -> None:
        fire(PHASES, self, PhaseEvent.ENOUGH)

    def taken(self, now: int) -> None:
        """Note that its turn was used, and plan the next turn after `now`. Missed turns are not made up for."""
        held_back = now - self.seen
        self.seen = NEVER
        self.planned += held_back
        if self.ends:
            self.ends += held_back
        while self.due <= now:
            if self.ends and self.planned >= self.ends:
                fire(PHASES, self, PhaseEvent.ENDED)
                if self.state is Phase.QUIESCENT:
                    return
            self._advance(now)

    def _advance(self, now: int) -> None:
        initial = self.state is Phase.INITIAL
        self.gap = self.interval
        self.planned += self.interval
        longest = max(self.pace.longest, self.pace.shortest, self.pace.tick)
        if initial and self.interval < longest:
            self.interval = min(2 * self.interval, longest)
        elif now - self.planned > self.interval:
            self.planned += (now - self.planned) // self.interval * self.interval
        self.due = on_grid(self.planned, self.pace.tick if initial else self.pace.sustain_tick)

    # Guards and actions of the chart.

    def has_initial(self, *_: int) -> bool:
        return self.pace.shortest > 0 and self.pace.longest > 0

    def has_sustaining(self, *_: int) -> bool:
        return self.pace.sustain > 0

    def start_initial(self, now: int, _: bool) -> None:
        """Plan the first turn at the next tick."""
        self.planned = self.due = on_grid(now, self.pace.tick)
        self.gap, self.interval = 0, max(self.pace.shortest, self.pace.tick)
        self.ends = self.planned + self.pace.initial if self.pace.initial else 0

    def start_sustaining(self, now: int, answered: bool) -> None:
        """Begin a whole sustaining phase (T-110). An answer counts as its first turn (6.14 as observed)."""
        self.interval = self.gap = max(self.pace.sustain, self.pace.sustain_tick)
        self.planned = now if answered else on_grid(now, self.pace.tick)
        self.ends = self.planned + self.pace.sustaining if self.pace.sustaining else 0
        self.due = self.planned
        if answered:
            self.planned += self.interval
            self.due = on_grid(self.planned, self.pace.sustain_tick)

    def draw_near(self, now: int, answered: bool) -> None:
        """Plan a turn at the next tick, and continue with the nearest interval (T-106). An answer moves nothing."""
        if answered:
            return
        if self.gap and self.planned - now > self.gap // 2:
            self.interval = self.gap
        self.planned = self.due = on_grid(now, self.pace.tick)

    def go_on(self) -> None:
        """Continue at the pace of the sustaining phase."""
        self.interval = max(self.pace.sustain, self.pace.sustain_tick)
        self.ends = self.planned + self.pace.sustaining if self.pace.sustaining else 0

    def fall_silent(self) -> None:
        """Cancel all turns of the topic."""
        self.due = self.seen = NEVER


_P = Phase
_E = PhaseEvent
PHASES = lower(
    PhaseChart,
    TopicTurns,
    Phase,
    PhaseEvent,
    ignore={_P.QUIESCENT: (_E.ENOUGH,)},
    reject={_P.QUIESCENT: (_E.ENDED,), _P.INITIAL: (_E.BEGIN,), _P.SUSTAINING: (_E.BEGIN,)},
)
