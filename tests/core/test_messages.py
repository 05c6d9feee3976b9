"""Messages: what a person reads of a refusal."""

from stablecast.core.messages import Refusal


def test_every_refusal_has_a_text() -> None:
    texts = {reason.text for reason in Refusal}
    assert len(texts) == len(Refusal)
    assert Refusal.HELD_BY_SOURCE.text == "registration ID in use by a different source"
