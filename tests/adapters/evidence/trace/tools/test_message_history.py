"""The history of a message is in the order of cause and effect."""

from pathlib import Path

from stablecast.evidence.trace.tools.message_history import STEPS, why
from tests.adapters.evidence.trace.traced import FIRST_LIFE


def test_a_message_is_followed_from_the_source_to_the_stores_and_receivers(whole_world: Path) -> None:
    steps = [step for step in why([whole_world], 3) if step.life == FIRST_LIFE]
    kinds = [step.kind for step in steps]
    order = list(STEPS)
    assert kinds == sorted(kinds, key=order.index)
    assert kinds.count("sent") == kinds.count("stable") == 1
    assert kinds.count("held") == kinds.count("said") == kinds.count("acked") == 3
    assert {"delivered", "confirmed", "heard", "found"} <= set(kinds)
    acked = [step for step in steps if step.kind == "acked"]
    assert {f"the acknowledgement of store {one.peer} came" for one in acked} == {one.text for one in acked}


def test_a_message_that_nobody_sent_has_no_story(whole_world: Path) -> None:
    assert why([whole_world], 10**6) == []
