"""The hot loops of the core need no more instructions than recorded. A busy machine does not change these counts."""

import pytest

from tools.bench import instructions


@pytest.mark.skipif(not instructions.available(), reason=instructions.MISSING)
def test_a_message_needs_no_more_instructions_than_recorded() -> None:
    known = instructions.recorded()
    if known is None:
        pytest.skip(f"there are no recorded counts for {instructions.PYTHON}")
    found = instructions.counts()
    assert {role: count for role, count in found.items() if count > known[role] * (1 + instructions.TOLERANCE)} == {}
