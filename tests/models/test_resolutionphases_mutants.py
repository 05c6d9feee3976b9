"""Faults of the phases of resolution over UDP show as another graph than that of their model."""

import pytest

from stablecast.core.machine.chart import fire
from stablecast.transports.resolution.udp.advertiser import Advertiser
from stablecast.transports.resolution.udp.cache import SourceCache
from stablecast.transports.resolution.udp.phases import PHASES, PhaseEvent, TopicTurns
from stablecast.transports.resolution.udp.querier import Querier
from stablecast.transports.resolution.udp.schedule import TurnSchedule
from tests.models.planted import Patch, after, changed, is_seen, nothing

_asked = TurnSchedule.asked
_draw_near = TopicTurns.draw_near


def _advance_evenly(self: TopicTurns, now: int) -> None:
    """Intervals do not grow."""
    self.gap = self.interval
    self.planned += self.interval
    self.due = self.planned


def _over_early(self: TopicTurns, now: int) -> None:
    """The turn that is planned when a phase ends does not come."""
    self.seen = -1
    while self.due <= now:
        self._advance(now)
        if self.ends and self.planned >= self.ends:
            fire(PHASES, self, PhaseEvent.ENDED)
            return


def _never_over(self: TopicTurns, now: int) -> None:
    self.seen = -1
    self._advance(now)


def _shorten(self: TopicTurns) -> None:
    self.ends -= 1


MUTANTS: dict[str, tuple[str, Patch]] = {
    "intervals do not double": ("graph_safe", changed(TopicTurns, "_advance", _advance_evenly)),
    "the planned turn at the end of a phase does not come": ("graph_safe", changed(TopicTurns, "taken", _over_early)),
    "phases do not end": ("graph_small", changed(TopicTurns, "taken", _never_over)),
    "the initial phase is too short": ("graph_safe", after(TopicTurns, "start_initial", _shorten)),
    "there is no initial phase": ("graph_small", changed(TopicTurns, "has_initial", lambda self, *words: False)),
    "there is no sustaining phase": ("graph_small", changed(TopicTurns, "has_sustaining", lambda self, *words: False)),
    "the pace stays that of the initial phase": ("graph_safe", changed(TopicTurns, "go_on", nothing)),
    "a turn that is asked for comes when it was planned": ("graph_safe", changed(TopicTurns, "draw_near", nothing)),
    "an answer is a turn of the initial phase": (
        "graph_safe",
        changed(TopicTurns, "draw_near", lambda self, now, answered: _draw_near(self, now, False)),
    ),
    "an answer is no turn": (
        "graph_safe",
        changed(TurnSchedule, "asked", lambda self, key, now, *, answered: _asked(self, key, now, answered=False)),
    ),
    "who is quiet is not woken": ("graph_small", changed(TurnSchedule, "asked", nothing)),
    "queries are not answered": ("graph_small", changed(Advertiser, "_answer", nothing)),
    "a source is not advertised when it is made": ("graph_small", changed(Advertiser, "_say_singles", nothing)),
    "who has a session asks on": ("graph_small", changed(Querier, "_rest", nothing)),
    "who knows enough asks on": ("graph_enough", changed(TurnSchedule, "enough", nothing)),
    "a lost session is not asked for": ("graph_small", changed(Querier, "_on_unresolved", nothing)),
    "a lost source is not asked for": ("graph_small", changed(Querier, "_lose", nothing)),
    "a final word is not heard": ("graph_documented", changed(Querier, "_on_ended", nothing)),
    "what was heard before is not reported": ("graph_small", changed(Querier, "_report_known", nothing)),
    "lost sources are remembered": ("graph_small", changed(SourceCache, "forget", nothing)),
    "the sources of a lost session are remembered": ("graph_small", changed(SourceCache, "forget_topic", nothing)),
}
"""Each fault, and a graph that shows it."""


@pytest.mark.rows("T-024", "T-102", "T-103", "T-106", "T-110", "T-113", "T-307")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_of_phases_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T26."""
    graph, patch = MUTANTS[name]
    assert is_seen(patch, monkeypatch, f"ResolutionPhases/{graph}")
