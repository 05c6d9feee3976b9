"""The hot loops of the core take no more instructions than they did: the one figure that no busy machine changes."""

import pytest

from tests.bench import instructions


@pytest.mark.timeout(180)
@pytest.mark.skipif(not instructions.available(), reason=instructions.MISSING)
def test_a_message_takes_no_more_instructions_than_it_did() -> None:
    known = instructions.recorded()
    if known is None:
        pytest.skip(f"no counts are on record for {instructions.PYTHON}")
    found = instructions.counts()
    assert {role: count for role, count in found.items() if count > known[role] * (1 + instructions.TOLERANCE)} == {}
