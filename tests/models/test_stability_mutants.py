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
from stablecast.lab.model import catalog, equal
from tests.models.test_mutants import Patch, before, changed

MODELS = catalog.folder()
KNOWN = catalog.load(MODELS)


def _stop_early(self: Any, *words: Any) -> None:
    """A part of a machine that does nothing."""


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
    "a later life ends nobody": ("graph_rivals", changed("succeeded", lambda *_: False, Lineage)),
    "the resume point is in use": ("graph_small", changed("resume_point", _at_newest, lineage)),
    "the resume point leaves a hole": ("graph_small", changed("resume_point", _above, lineage)),
    "answers to another life count": ("graph_small", changed("_on_message", _any_ack, SourceEndpoint)),
    "grants do not wait for the disk": ("graph_small", before("due", lambda self: self.waiting.clear(), SyncTickets)),
    "messages count before they are synced": ("graph_small", changed("_acknowledge", _acknowledge_held, Repository)),
    "what is synced is not told": ("graph_small", changed("_on_synced", _stop_early, Repository)),
    "a renewed registration tells nothing": ("graph_small", changed("acknowledge_all", _stop_early, Repository)),
    "duplicates are not told": ("graph_one", changed("_acknowledge_again", _stop_early, Repository)),
    "dead tails stay": ("graph_three", changed("cut", _stop_early, MessageWindow)),
    "lives are not told apart": ("graph_small", changed("begin", lambda self, life: False, SourceHistory)),
    "a life is not remembered": ("graph_small", changed("durable", lambda self, record: record.client, Registry)),
    "holes are not asked for": ("graph_small", changed("_ask", _stop_early, GapFilling)),
    "holes are not given up": ("graph_three", changed("give_up", _stop_early, GapFilling)),
    "copies are not released": ("graph_small", changed("_release", _stop_early, StabilityWindow)),
    "stores that come and go do not count": ("graph_all_active", changed("on_stores", _stop_early, StabilityWindow)),
    "half of a group is enough": (
        "graph_two",
        changed("_quorum", lambda self, group, mask: bool(mask & self.members[group]), Quorums),
    ),
    "one group is always enough": ("graph_all", changed("_between", lambda self, met, active: any(met), Quorums)),
    "groups that are away count": (
        "graph_all_active",
        changed("active", lambda self, registered: list(self._groups), Quorums),
    ),
    "one group is enough to return": (
        "graph_any",
        changed("wants_every_group", lambda config, quorums: False, source_parts),
    ),
    "each store has its own count of lives": ("graph_two", changed("agree", _stop_early, RegistrationSet)),
    "the term need not be known by a quorum": (
        "graph_two",
        changed("settled", property(lambda self: self.mask), RegistrationSet),
    ),
    "a life that comes back is cut where it began": (
        "graph_return",
        changed("divergence", lambda ours, theirs: _first_of_last(theirs, ours), source_history),
    ),
    "the first interval is not waited for": (
        "graph_three",
        changed("everyone", property(lambda self: True), RegistrationSet),
    ),
    "a store without memory votes": (
        "graph_wiped",
        changed("voters", property(lambda self: self.mask), RegistrationSet),
    ),
    "a quorum of answers opens the vote": (
        "graph_wiped",
        changed("voters", lambda self, answered, *_, **__: answered, Quorums),
    ),
    "numbers that are only known do not count": (
        "graph_wiped",
        changed("used", lambda answer, near: resume_rules.offer(answer, near)[1], resume_rules),
    ),
    "an announcement gives no vote back": ("graph_wiped", changed("_vouch", _stop_early, Registry)),
    "a store forgets that it has no memory": (
        "graph_wiped",
        changed("mark", lambda self, client, memory: client, Registry),
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
    (one,) = catalog.configurations(MODELS, (f"Stability/{graph}",))
    patch(monkeypatch)
    assert not equal.compare(one, KNOWN[one.name], twins=0).equal
