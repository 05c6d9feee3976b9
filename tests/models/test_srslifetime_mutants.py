"""Faults of a resolution service and its contexts show as another graph than that of their model."""

from typing import Any

import pytest

from stablecast.core.machine.chart import fire
from stablecast.core.machine.units import SECOND
from stablecast.lab.model import catalog, equal
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.srs.client import CLIENT, ClientEvent, Dropped, ServiceClient
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.directory import AnnouncedSource, Directory
from stablecast.transports.resolution.srs.known_sources import KnownSources
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.resolution.srs.service_link import ServiceLink
from stablecast.transports.resolution.srs.session import ServiceSession
from tests.models.test_mutants import Patch, after, changed

MODELS = catalog.folder()
KNOWN = catalog.load(MODELS)

_due = ServiceClient._due
_put = Directory.put


def _nothing(self: Any, *words: Any) -> None:
    """Do nothing, in place of a step."""


def _complete(self: ServiceClient, now: int) -> Dropped:
    fire(CLIENT, self, ClientEvent.COMPLETE, now)
    return Dropped()


def _note_all(self: ServiceClient, now: int, *_: int) -> None:
    """Count every potentially-down record from now."""
    self.lost_at = dict.fromkeys((*self.sources.values(), *self.interests.values()), now)


def _one_lifetime(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServiceClient, "_due", lambda self, mark, span, now: _due(self, mark, self.interest_ns, now))
    patch.setattr(ServiceClient, "next_lapse", _next_of_interest)


def _next_of_interest(self: ServiceClient) -> int | None:
    return min((at + self.interest_ns for at in self.lost_at.values()), default=None)


def _tell_everybody(self: ResolutionService, source: AnnouncedSource, octets: bytes) -> None:
    for session in list(self.sessions.values()):
        if session.client is not None and session.client.instance != source.owner:
            self._to(session).say(octets)


def _end(self: ResolutionService, otid: bytes, now: int) -> None:
    """A source that is there ends, whether its context is connected or not."""
    if otid in self.directory.sources:
        del self.clients[self.directory.sources[otid].owner].sources[otid]
        self._remove(otid)


def _arm_once(self: KeyedDeadlines[Any], item: Any, due: int) -> None:
    if item not in self.deadlines:
        _arm(self, item, due)


_arm = KeyedDeadlines.arm


def _believe(self: ServiceLink) -> None:
    self.settled = self.epoch


def _put_in_silence(self: Directory, source: AnnouncedSource) -> bool:
    _put(self, source)
    return False


def _put_aloud(self: Directory, source: AnnouncedSource) -> bool:
    _put(self, source)
    return True


MUTANTS: dict[str, tuple[str, Patch]] = {
    "what is potentially down is deleted at once": (
        "graph_small",
        changed("_due", lambda self, mark, span, now: mark in self.lost_at, ServiceClient),
    ),
    "the lifetime of interest counts for sources": ("graph_small", _one_lifetime),
    "for ever is no time at all": (
        "graph_both",
        changed("_due", lambda self, mark, span, now: _due(self, mark, span or 1, now), ServiceClient),
    ),
    "what an exchange did not name stays": ("graph_small", changed("complete", _complete, ServiceClient)),
    "each broken connection starts the lifetime anew": ("graph_small", changed("note_loss", _note_all, ServiceClient)),
    "records keep the mark of the connection before": ("graph_small", changed("adopt", _nothing, ServiceClient)),
    "late hellos are welcome": ("graph_late", changed("is_late", lambda self, counter: False, ServiceClient)),
    "every second hello is late": ("graph_small", changed("is_late", lambda self, counter: True, ServiceClient)),
    "nobody is told of an end": (
        "graph_small",
        changed("_remove", lambda self, otid: self.directory.remove(otid), ResolutionService),
    ),
    "lifetimes are not planned": ("graph_small", changed("_plan", _nothing, ResolutionService)),
    "what is due later is due as planned first": ("graph_silence", changed("arm", _arm_once, KeyedDeadlines)),
    "silence is not noticed": ("graph_silence", changed("_check_silence", _nothing, ResolutionService)),
    "who wants is told of changes only": ("graph_interest", changed("meant", lambda self, *words: [], Directory)),
    "everybody is told": ("graph_interest", changed("_tell", _tell_everybody, ResolutionService)),
    "withdrawn interest stays": ("graph_interest", changed("unwant", _nothing, Directory)),
    "new sources are not told": ("graph_small", changed("put", _put_in_silence, Directory)),
    "what is announced again is told again": ("graph_small", changed("put", _put_aloud, Directory)),
    "a connection may be silent for a second more": (
        "graph_silence",
        after("on_setup", lambda self: setattr(self, "lifetime", self.lifetime + SECOND), ServiceSession),
    ),
    "a restarted service is believed": ("graph_restart", after("note_service", _believe, ServiceLink)),
    "a restarted service is never believed": ("graph_restart", changed("settle", _nothing, ServiceLink)),
    "withdrawals are not waited for": (
        "graph_interest",
        changed("withdraw", lambda self, interest, record: self.tell((record,)), ServiceLink),
    ),
    "answered withdrawals are waited for": ("graph_interest", changed("_answered", _nothing, ServiceLink)),
    "a context does not notice silence": ("graph_silence", changed("give_up", _nothing, ServiceLink)),
    "a lost transport is not told": ("graph_loss", changed("_on_unresolved", _nothing, SrsContext)),
    "a lost transport is not looked at": ("graph_loss", changed("_check_left", _nothing, ResolutionService)),
    "a lost transport ends any source": ("graph_loss", changed("_check_left", _end, ResolutionService)),
    "nothing is announced again": ("graph_small", changed("_everything", lambda self: [], SrsContext)),
    "what a service does not name stays known": (
        "graph_small",
        changed("sweep", lambda self, *words: [], KnownSources),
    ),
    "what has ended stays known": ("graph_small", changed("release", _nothing, KnownSources)),
}
"""Each fault, and a graph that shows it."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_of_a_service_or_a_context_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-402 to T-418, T27; formal design, 7.10."""
    graph, patch = MUTANTS[name]
    (one,) = catalog.configurations(MODELS, (f"SrsLifetime/{graph}",))
    patch(monkeypatch)
    assert not equal.compare(one, KNOWN[one.name], twins=0).equal
