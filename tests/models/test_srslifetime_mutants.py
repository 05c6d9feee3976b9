"""Faults of a resolution service and its contexts show as another graph than that of their model."""

from typing import Any

import pytest

from stablecast.core.machine.chart import fire
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.srs.client import CLIENT, ClientEvent, Dropped, ServiceClient
from stablecast.transports.resolution.srs.context import SrsContext
from stablecast.transports.resolution.srs.directory import AnnouncedSource, Directory
from stablecast.transports.resolution.srs.known_sources import KnownSources
from stablecast.transports.resolution.srs.service import ResolutionService
from stablecast.transports.resolution.srs.service_link import ServiceLink
from stablecast.transports.resolution.srs.session import ServiceSession
from tests.models.planted import Patch, after, changed, is_seen, nothing

_due = ServiceClient._due
_put = Directory.put


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
        changed(ServiceClient, "_due", lambda self, mark, span, now: mark in self.lost_at),
    ),
    "the lifetime of interest counts for sources": ("graph_small", _one_lifetime),
    "for ever is no time at all": (
        "graph_both",
        changed(ServiceClient, "_due", lambda self, mark, span, now: _due(self, mark, span or 1, now)),
    ),
    "what an exchange did not name stays": ("graph_small", changed(ServiceClient, "complete", _complete)),
    "each broken connection starts the lifetime anew": ("graph_small", changed(ServiceClient, "note_loss", _note_all)),
    "records keep the mark of the connection before": ("graph_small", changed(ServiceClient, "adopt", nothing)),
    "late hellos are welcome": ("graph_late", changed(ServiceClient, "is_late", lambda self, counter: False)),
    "every second hello is late": ("graph_small", changed(ServiceClient, "is_late", lambda self, counter: True)),
    "nobody is told of an end": (
        "graph_small",
        changed(ResolutionService, "_remove", lambda self, otid: self.directory.remove(otid)),
    ),
    "lifetimes are not planned": ("graph_small", changed(ResolutionService, "_plan", nothing)),
    "what is due later is due as planned first": ("graph_silence", changed(KeyedDeadlines, "arm", _arm_once)),
    "silence is not noticed": ("graph_silence", changed(ResolutionService, "_check_silence", nothing)),
    "who wants is told of changes only": ("graph_interest", changed(Directory, "meant", lambda self, *words: [])),
    "everybody is told": ("graph_interest", changed(ResolutionService, "_tell", _tell_everybody)),
    "withdrawn interest stays": ("graph_interest", changed(Directory, "unwant", nothing)),
    "new sources are not told": ("graph_small", changed(Directory, "put", _put_in_silence)),
    "what is announced again is told again": ("graph_small", changed(Directory, "put", _put_aloud)),
    "a connection may be silent for a second more": (
        "graph_silence",
        after(ServiceSession, "on_setup", lambda self: setattr(self, "lifetime", self.lifetime + SECOND)),
    ),
    "a restarted service is believed": ("graph_restart", after(ServiceLink, "note_service", _believe)),
    "a restarted service is never believed": ("graph_restart", changed(ServiceLink, "settle", nothing)),
    "withdrawals are not waited for": (
        "graph_interest",
        changed(ServiceLink, "withdraw", lambda self, interest, record: self.tell((record,))),
    ),
    "answered withdrawals are waited for": ("graph_interest", changed(ServiceLink, "_answered", nothing)),
    "a context does not notice silence": ("graph_silence", changed(ServiceLink, "give_up", nothing)),
    "a lost transport is not told": ("graph_loss", changed(SrsContext, "_on_unresolved", nothing)),
    "a lost transport is not looked at": ("graph_loss", changed(ResolutionService, "_check_left", nothing)),
    "a lost transport ends any source": ("graph_loss", changed(ResolutionService, "_check_left", _end)),
    "nothing is announced again": ("graph_small", changed(SrsContext, "_everything", lambda self: [])),
    "what a service does not name stays known": (
        "graph_small",
        changed(KnownSources, "sweep", lambda self, *words: []),
    ),
    "what has ended stays known": ("graph_small", changed(KnownSources, "release", nothing)),
}
"""Each fault, and a graph that shows it."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_of_a_service_or_a_context_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-402 to T-418, T27; formal design, 7.10."""
    graph, patch = MUTANTS[name]
    assert is_seen(patch, monkeypatch, f"SrsLifetime/{graph}")
