"""Bounds of models and configurations, and the faults that show that each bound hides none.

Each constraint that somebody wrote by hand has a fault that is found in spite of it: one of `tools/mutants`, which
`make mutants` plants, or a configuration `mut_*` of a model that TLC must find violated. A constraint is a clause of
"Bounds that could hide an error" at the head of a model, which its world in Python has as well, or an operator that a
configuration names as its CONSTRAINT. A new one without a fault fails here.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from stablecast.lab.model import catalog
from tools.mutants.table import MUTANTS

MODELS = catalog.folder()
CONFIGURATIONS = catalog.configurations(MODELS)

MARK: Final = "Bounds that could hide an error:"
NAMED = re.compile(r"^\s*(?:ACTION_)?CONSTRAINTS?\s+([\w ]+)$", re.MULTILINE)
JOINTS = re.compile(r"[\s,;.]|\band\b")
"""Text that may stand between two clauses."""

BOUNDS: Final[dict[str, dict[str, str]]] = {
    "ProxyElection": {
        "a store draws each of its Values once": "a-store-takes-its-own-token-for-another",
        "stores do not restart": "a-store-without-memory-grants-at-once",
        "who was thought silent does not speak up again without registering": ("a-proxy-keeps-its-source-alive"),
        "Every store has state of the source": "a-store-without-state-counts-for-the-quorum",
    },
    "Recovery": {
        "two stores": "majority-of-the-answers-not-of-the-group",
        "a registration is one step and is not lost": "a-request-is-not-repeated",
        "nothing is sent while the receiver recovers": "the-newest-message-is-never-missing",
        "what finds no room among the Room messages under way is lost": "the-request-queue-is-unbounded",
    },
    "Registration": {
        "clients do not come back under another life": "lives-are-not-counted",
        "a queue holds Room messages": "the-generation-of-an-answer-is-ignored",
        "the store is asked nothing while Writes of its writes are unsynced": "a-sync-counts-for-the-next-write-too",
    },
    "Refill": {
        "a registration and its announcement are one step": "granted-before-it-is-synced",
        "disks are replaced one by one": "acknowledgements-of-a-wiped-store-still-count",
    },
    "ResolutionPhases": {
        "one source": "a-topic-ends-with-its-first-source",
        "one receiver": "answers-do-not-count-as-turns",
        "one topic": "a-doubtful-topic-makes-all-topics-doubtful",
        "no limits, so that no turn is held back": "a-limit-is-exceeded-by-one-record",
    },
    "ReceiverVotes": {
        "a registration is one step": "a-request-is-not-repeated",
        "a request and its answer are one step": "each-retry-restarts-the-give-up-time",
        "a refill is one step": "a-refill-without-success-never-ends",
        "disks are synced after every step": "granted-before-it-is-synced",
        "a store that returns meets the source at once": "an-announcement-gives-no-vote-back",
        "nothing is sent while the receiver is there": "the-newest-message-is-never-missing",
    },
    "Router": {
        "what one step says on a link arrives at once": "a-source-that-was-told-early-is-forgotten",
        "nothing happens while more than Room of these are under way": "a-new-entry-begins-new-proxies",
        "no sign of life is asked for": "a-digest-is-not-compared",
        "routers do not end": "the-old-connection-is-kept-beside-the-new",
        "none is forgotten": "what-cannot-be-reached-is-kept-for-ever",
        "a queue takes everything": "the-end-of-what-waited-stays-unknown",
        "a proxy opens at once": "a-proxy-that-failed-is-left-closed",
        "sources say nothing but data": "what-a-source-announced-early-is-forgotten",
    },
    "Rpp": {
        "one store": "one-store-of-three-is-a-quorum",
        "a sync makes everything durable": "a-sync-counts-for-the-next-write-too",
        "a crash loses all that is not": "a-segment-is-deleted-one-record-before-the-sync",
        "the store crashes once": "a-restart-resumes-an-overtaken-life",
        "not while a registration is under way": "granted-before-it-is-synced",
        "a receiver acknowledges when the store can hear it": "a-returning-store-gets-no-acknowledgement",
    },
    "SrsLifetime": {
        "a context leaves a connection when the service has done with the one before": (
            "a-taken-over-session-keeps-its-old-client"
        ),
        "the service reads nothing while Room messages wait for a context": "the-removal-of-a-source-is-not-sent",
        "no patterns": "a-pattern-gets-no-new-source",
        "one service": "one-service-changes-a-source-for-all",
    },
    "Subscription": {
        "the stores hold one message of the first life": "lives-without-a-common-past-are-compared",
        "a registration is one step": "a-request-is-not-repeated",
        "one message at a time is not stored": "a-receiver-forgets-what-waits-when-a-life-returns",
        "a stream has no gap": "gaps-do-not-wait-for-the-transport",
        "all lives are of one source": "sources-that-turn-out-to-be-one-stay-two",
        "a request asks for one message": "a-request-counts-as-one-message",
    },
    "WorkSharing": {
        "one share": "all-shares-have-one-session-id",
        "two members": "a-member-gets-more-than-its-part",
        "no claim is contested": "a-contested-claim-is-made-again-at-once",
    },
    "Stability": {
        "a store takes no data while a grant waits for its disk": "granted-before-it-is-synced",
        "the connections that a crash breaks are noticed at once": "acknowledgements-of-a-wiped-store-still-count",
    },
}
"""For each model the clauses at its head, in their order, and a fault beyond each that is found all the same."""

CONSTRAINTS: Final[dict[str, str]] = {}
"""Operators that configurations name, as MODEL.OPERATOR: a `mut_*` that is violated under the same one."""


def said(model: str) -> str:
    """Return the bounds in the head of a model, in one line."""
    text = (MODELS / model / f"{model}.tla").read_text(encoding="utf-8")
    head = re.sub(r"\(\*|\*\)", "", text.partition("EXTENDS")[0])
    return " ".join(head.partition(MARK)[2].split())


def unlisted(text: str, clauses: dict[str, str]) -> str:
    """Return the text without the clauses and their joints, and with the clauses that it lacks."""
    left = ""
    for clause in clauses:
        before, found, text = text.partition(clause)
        left += before if found else f"{before} [{clause}]"
    return JOINTS.sub("", left + text)


def named(path: Path) -> set[str]:
    return {name for names in NAMED.findall(path.read_text(encoding="utf-8")) for name in names.split()}


def test_every_model_is_listed() -> None:
    assert set(BOUNDS) == {one.model for one in CONFIGURATIONS}


@pytest.mark.parametrize("model", BOUNDS)
def test_every_bound_of_a_model_has_a_fault_that_it_does_not_hide(model: str) -> None:
    assert unlisted(said(model), BOUNDS[model]) == ""
    assert set(BOUNDS[model].values()) <= {mutant.name for mutant in MUTANTS}


def test_a_bound_without_a_fault_is_seen() -> None:
    clauses = BOUNDS["ResolutionPhases"]
    assert unlisted(said("ResolutionPhases") + " no tunnels.", clauses) == "notunnels"
    assert unlisted("one source", {"one source": "", "one topic": ""}) == "[onetopic]"


def test_every_constraint_of_a_configuration_has_a_fault_that_it_does_not_hide() -> None:
    """The fault is found under that very constraint, and breaks the model of what the constraint is for."""
    used = {f"{one.model}.{name}" for one in CONFIGURATIONS for name in named(one.path)}
    assert used == set(CONSTRAINTS)
    by_name = {one.name: one for one in CONFIGURATIONS}
    for constraint, name in CONSTRAINTS.items():
        assert constraint.partition(".")[2] in named(by_name[name].path), constraint
        assert by_name[name].expected.startswith("violates "), constraint


def test_constraints_of_a_configuration_are_seen(tmp_path: Path) -> None:
    config = tmp_path / "some.cfg"
    config.write_text("INVARIANTS A B\nCONSTRAINT Apart\nACTION_CONSTRAINTS Few Fewer\nCONSTANTS\n    N = 1\n")
    assert named(config) == {"Apart", "Few", "Fewer"}


def test_no_graph_has_a_constraint() -> None:
    """A graph is compared as a whole."""
    assert [one.name for one in CONFIGURATIONS if one.has_graph and named(one.path)] == []
