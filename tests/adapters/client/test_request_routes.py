"""Control messages that come to the request port reach the source, the receivers, or both."""

import pytest

from stablecast.client.request_inputs import addressee
from stablecast.core.protocol.messages import (
    Deregistered,
    Keepalive,
    LateJoinInfo,
    Message,
    Refusal,
    Refused,
    Role,
    SourceInfoRequest,
)
from tests.core import samples


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (samples.registered(role=Role.SOURCE), Role.SOURCE),
        (samples.registered(role=Role.RECEIVER), Role.RECEIVER),
        (Refused(Role.SOURCE, 0, 0, 0, 7, Refusal.NO_PATTERN), Role.SOURCE),
        (Refused(Role.RECEIVER, 0, 0, 0, 7, Refusal.NO_PATTERN), Role.RECEIVER),
        (Deregistered(Role.RECEIVER, 0, 0, 0, 7, 0), Role.RECEIVER),
        (samples.info(), Role.RECEIVER),
        (LateJoinInfo(7, 0, 0, 1), Role.RECEIVER),
        (SourceInfoRequest(7), Role.SOURCE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_answers_go_to_the_asker_announcements_to_receivers_and_all_else_to_sources(
    message: Message, expected: Role
) -> None:
    assert addressee(message) is expected


def test_a_keepalive_goes_to_source_and_receivers() -> None:
    assert addressee(Keepalive(Role.STORE, 7, 0, False)) is None
