"""Receiver liveness needs five options that fit together."""

import attrs
import pytest

from stablecast.config.checks import liveness
from stablecast.config.options import Value, apply
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig

SOURCE_OPTIONS: dict[str, Value] = {"ume_source_liveness_timeout": 5000, "ume_confirmed_delivery_notification": 1}
RECEIVER_OPTIONS: dict[str, Value] = {
    "ume_receiver_liveness_interval": 1000,
    "ume_user_receiver_registration_id": 7,
    "ume_session_id": 9,
}
SOURCE = apply("source", SourceConfig("topic", 0, "", ""), SOURCE_OPTIONS)
RECEIVER = apply("receiver", ReceiverConfig("topic", 0, ""), RECEIVER_OPTIONS)


@pytest.mark.rows("P-339")
def test_five_options_that_fit_are_enough() -> None:
    assert liveness(SOURCE, RECEIVER) == ()


def test_defaults_need_no_liveness() -> None:
    assert liveness(SourceConfig("topic", 0, "", ""), ReceiverConfig("topic", 0, "")) == ()


@pytest.mark.rows("P-340")
def test_the_guides_own_sample_breaks_the_rule() -> None:
    """C-04: 4000 is four times 1000."""
    sample = apply("source", SOURCE, {"ume_source_liveness_timeout": 4000})
    assert liveness(sample, RECEIVER) == ("ume_source_liveness_timeout must be 5 times ume_receiver_liveness_interval",)


@pytest.mark.rows("P-339")
@pytest.mark.parametrize(
    ("source", "receiver", "missing"),
    [
        (attrs.evolve(SOURCE, confirmations=False), RECEIVER, "ume_confirmed_delivery_notification"),
        (SOURCE, attrs.evolve(RECEIVER, confirm=False), "ume_confirmed_delivery_notification"),
        (SOURCE, attrs.evolve(RECEIVER, user_reg_id=0), "ume_user_receiver_registration_id"),
        (SOURCE, attrs.evolve(RECEIVER, session_id=0), "ume_session_id"),
        (attrs.evolve(SOURCE, liveness_ns=0), RECEIVER, "ume_source_liveness_timeout"),
        (SOURCE, attrs.evolve(RECEIVER, liveness_ns=0), "ume_receiver_liveness_interval"),
    ],
)
def test_each_of_the_five_is_missed(source: SourceConfig, receiver: ReceiverConfig, missing: str) -> None:
    (sentence,) = liveness(source, receiver)
    assert missing in sentence
