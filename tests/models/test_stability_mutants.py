"""A fault in what a source or a store does about stability shows as another graph than that of the stability model."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol import history
from stablecast.core.protocol import resume_point as resume_rules
from stablecast.core.protocol.messages import Life
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.source import SourceEndpoint, lineage
from stablecast.core.source import parts as source_parts
from stablecast.core.source.lineage import Lineage
from stablecast.core.source.stability import StabilityWindow
from stablecast.core.store import source_history
from stablecast.core.store.gap_filling import GapFilling
from stablecast.core.store.message_window import MessageWindow
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository
from stablecast.core.store.source_history import SourceHistory
from stablecast.core.store.sync_tickets import SyncTickets
from tests.models.planted import Patch, before, changed, is_seen, nothing


def _at_newest(*words: Any) -> int:
    return max(0, resume_rules.resume_point(*words) - 1)


def _above(*words: Any) -> int:
    return resume_rules.resume_point(*words) + 1


def _acknowledge_held(self: Repository, now: int, out: list[Any]) -> None:
    self.window.on_synced(0, self.newest + 1)
    first = self._advance()
    self._acknowledge_again(first, self.acked, now, out)


def _any_ack(self: SourceEndpoint, message: Any, now: int) -> None:
    _ON_MESSAGE(self, attrs.evolve(message, incarnation=self.config.incarnation), now)


_ON_MESSAGE = SourceEndpoint._on_message


def _first_of_last(theirs: list[Life], ours: list[Life]) -> int | None:
    parting = history.divergence(ours, theirs)
    return None if parting is None else min(parting, theirs[-1][1])


MUTANTS: dict[str, tuple[str, Patch]] = {
    "a later life ends nobody": ("graph_rivals", changed(Lineage, "succeeded", lambda *_: False)),
    "the resume point is in use": ("graph_small", changed(lineage, "resume_point", _at_newest)),
    "the resume point leaves a hole": ("graph_small", changed(lineage, "resume_point", _above)),
    "answers to another life count": ("graph_small", changed(SourceEndpoint, "_on_message", _any_ack)),
    "grants do not wait for the disk": (
        "graph_small",
        before(SyncTickets, "due", lambda self, *_: self.waiting.clear()),
    ),
    "messages count before they are synced": ("graph_small", changed(Repository, "_acknowledge", _acknowledge_held)),
    "what is synced is not told": ("graph_small", changed(Repository, "_on_synced", nothing)),
    "a renewed registration tells nothing": ("graph_small", changed(Repository, "acknowledge_all", nothing)),
    "duplicates are not told": ("graph_one", changed(Repository, "_acknowledge_again", nothing)),
    "dead tails stay": ("graph_three", changed(MessageWindow, "cut", nothing)),
    "lives are not told apart": ("graph_small", changed(SourceHistory, "begin", lambda self, life: False)),
    "a life is not remembered": ("graph_small", changed(Registry, "durable", lambda self, record: record.client)),
    "holes are not asked for": ("graph_small", changed(GapFilling, "_ask", nothing)),
    "holes are not given up": ("graph_three", changed(GapFilling, "give_up", nothing)),
    "copies are not released": ("graph_small", changed(StabilityWindow, "_release", nothing)),
    "stores that come and go do not count": ("graph_all_active", changed(StabilityWindow, "on_stores", nothing)),
    "half of a group is enough": (
        "graph_two",
        changed(Quorums, "_quorum", lambda self, group, mask: bool(mask & self.members[group])),
    ),
    "one group is always enough": ("graph_all", changed(Quorums, "_between", lambda self, met, active: any(met))),
    "groups that are away count": (
        "graph_all_active",
        changed(Quorums, "active", lambda self, registered: list(self._groups)),
    ),
    "one group is enough to return": (
        "graph_any",
        changed(source_parts, "wants_every_group", lambda config, quorums: False),
    ),
    "each store has its own count of lives": ("graph_two", changed(RegistrationSet, "agree", nothing)),
    "the term need not be known by a quorum": (
        "graph_two",
        changed(RegistrationSet, "settled", property(lambda self: self.mask)),
    ),
    "a life that comes back is cut where it began": (
        "graph_return",
        changed(source_history, "divergence", lambda ours, theirs: _first_of_last(theirs, ours)),
    ),
    "the first interval is not waited for": (
        "graph_three",
        changed(RegistrationSet, "everyone", property(lambda self: True)),
    ),
    "a store without memory votes": (
        "graph_wiped",
        changed(RegistrationSet, "voters", property(lambda self: self.mask)),
    ),
    "a quorum of answers opens the vote": (
        "graph_wiped",
        changed(Quorums, "voters", lambda self, answered, *_, **__: answered),
    ),
    "numbers that are only known do not count": (
        "graph_wiped",
        changed(resume_rules, "used", lambda answer, near: resume_rules.offer(answer, near)[1]),
    ),
    "an announcement gives no vote back": ("graph_wiped", changed(Registry, "_vouch", nothing)),
    "a store forgets that it has no memory": (
        "graph_wiped",
        changed(Registry, "mark", lambda self, client, memory: client),
    ),
}
"""Each with the graph that shows it."""


LARGE = {
    "a life that comes back is cut where it began",
    "the first interval is not waited for",
    "holes are not given up",
    "dead tails stay",
}
"""Show on the largest graph only."""


@pytest.mark.rows("P-023", "P-302", "P-415", "P-515", "P-525", "P-839")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.thorough] * (n in LARGE)) for n in MUTANTS])
def test_a_fault_of_stability_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T1, T2, T5, T15, T16."""
    graph, patch = MUTANTS[name]
    assert is_seen(patch, monkeypatch, f"Stability/{graph}")
