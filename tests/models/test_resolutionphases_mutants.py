"""Faults of the phases of resolution over UDP show as another graph than that of their model."""

from typing import Any

import pytest

from stablecast.core.machine.chart import fire
from stablecast.lab.model import catalog, equal
from stablecast.transports.resolution.udp.advertiser import Advertiser
from stablecast.transports.resolution.udp.cache import SourceCache
from stablecast.transports.resolution.udp.phases import PHASES, PhaseEvent, TopicTurns
from stablecast.transports.resolution.udp.querier import Querier
from stablecast.transports.resolution.udp.schedule import TurnSchedule
from tests.models.test_mutants import Patch, after, changed

MODELS = catalog.folder()
KNOWN = catalog.load(MODELS)

_asked = TurnSchedule.asked
_draw_near = TopicTurns.draw_near


def _nothing(self: Any, *words: Any, **named: Any) -> None:
    """Do nothing, in place of a step."""


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
    "intervals do not double": ("graph_safe", changed("_advance", _advance_evenly, TopicTurns)),
    "the planned turn at the end of a phase does not come": ("graph_safe", changed("taken", _over_early, TopicTurns)),
    "phases do not end": ("graph_small", changed("taken", _never_over, TopicTurns)),
    "the initial phase is too short": ("graph_safe", after("start_initial", _shorten, TopicTurns)),
    "there is no initial phase": ("graph_small", changed("has_initial", lambda self, *words: False, TopicTurns)),
    "there is no sustaining phase": ("graph_small", changed("has_sustaining", lambda self, *words: False, TopicTurns)),
    "the pace stays that of the initial phase": ("graph_safe", changed("go_on", _nothing, TopicTurns)),
    "a turn that is asked for comes when it was planned": ("graph_safe", changed("draw_near", _nothing, TopicTurns)),
    "an answer is a turn of the initial phase": (
        "graph_safe",
        changed("draw_near", lambda self, now, answered: _draw_near(self, now, False), TopicTurns),
    ),
    "an answer is no turn": (
        "graph_safe",
        changed("asked", lambda self, key, now, *, answered: _asked(self, key, now, answered=False), TurnSchedule),
    ),
    "who is quiet is not woken": ("graph_small", changed("asked", _nothing, TurnSchedule)),
    "queries are not answered": ("graph_small", changed("_answer", _nothing, Advertiser)),
    "a source is not advertised when it is made": ("graph_small", changed("_say_singles", _nothing, Advertiser)),
    "who has a session asks on": ("graph_small", changed("_rest", _nothing, Querier)),
    "who knows enough asks on": ("graph_enough", changed("enough", _nothing, TurnSchedule)),
    "a lost session is not asked for": ("graph_small", changed("_on_unresolved", _nothing, Querier)),
    "a lost source is not asked for": ("graph_small", changed("_lose", _nothing, Querier)),
    "a final word is not heard": ("graph_documented", changed("_on_ended", _nothing, Querier)),
    "what was heard before is not reported": ("graph_small", changed("_report_known", _nothing, Querier)),
    "lost sources are remembered": ("graph_small", changed("forget", _nothing, SourceCache)),
    "the sources of a lost session are remembered": ("graph_small", changed("forget_topic", _nothing, SourceCache)),
}
"""Each fault, and a graph that shows it."""


@pytest.mark.rows("T-024", "T-102", "T-103", "T-106", "T-110", "T-113", "T-307")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_of_phases_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T26."""
    graph, patch = MUTANTS[name]
    (one,) = catalog.configurations(MODELS, (f"ResolutionPhases/{graph}",))
    patch(monkeypatch)
    assert not equal.compare(one, KNOWN[one.name], twins=0).equal
