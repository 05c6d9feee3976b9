"""The short form of `make torture`: one history of each of its kinds."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.torture.__main__ import AT_ONCE, Outcome, obstacle, play, short_plans
from tools.torture.plan import Plan

OBSTACLE = obstacle()
pytestmark = [pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE), pytest.mark.timeout(0)]
"""The timeout is long because a failing history waits for a minute, and a busy machine needs another to start it."""

PLANS = short_plans()


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Future[Outcome]]]:
    with tempfile.TemporaryDirectory(prefix="torture-") as place, ThreadPoolExecutor(AT_ONCE) as pool:
        yield {plan.kind: pool.submit(play, plan, Path(place) / plan.kind) for plan in PLANS}


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.kind)
def test_a_history_has_no_violation(plan: Plan, outcomes: dict[str, Future[Outcome]]) -> None:
    outcome = outcomes[plan.kind].result()
    assert outcome.violations == (), f"make torture ARGS='--seed {plan.seed} --kind {plan.kind}' plays it again"
    assert outcome.counts["stable"] > 0
    assert outcome.counts["delivered"] >= 2 * outcome.counts["stable"]
