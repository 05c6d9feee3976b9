"""Messages: what a person reads of a refusal, the order of tokens, and wishes that count."""

import pytest

from stablecast.core.protocol.messages import ElectionToken, Refusal
from tests.core.samples import register


def test_every_refusal_has_a_text() -> None:
    texts = {reason.text for reason in Refusal}
    assert len(texts) == len(Refusal)
    assert Refusal.HELD_BY_SOURCE.text == "registration ID in use by a different source"


@pytest.mark.rows("P-555")
def test_tokens_are_ordered_by_value_and_then_by_store() -> None:
    """C-14: whatever life they stand in for."""
    tokens = [ElectionToken(1, 0, 7), ElectionToken(0, 2, 8), ElectionToken(0, 1, 9)]
    assert [token.life for token in sorted(tokens, key=lambda token: token.rank)] == [9, 8, 7]


@pytest.mark.rows("P-551")
@pytest.mark.parametrize(
    ("wants_proxy", "reg_id", "session_id", "counts"),
    [(True, 0, 0, False), (True, 50, 0, True), (True, 0, 3, True), (False, 50, 3, False)],
)
def test_a_wish_for_a_proxy_needs_a_reg_id_or_a_session_id(
    wants_proxy: bool, reg_id: int, session_id: int, counts: bool
) -> None:
    """U3."""
    assert register(wants_proxy=wants_proxy, reg_id=reg_id, session_id=session_id).wishes_proxy is counts
