"""Whom a control message is for."""

import pytest

from stablecast.client.request_routes import audience
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

SOURCE, RECEIVER = (True, False), (False, True)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (samples.registered(role=Role.SOURCE), SOURCE),
        (samples.registered(role=Role.RECEIVER), RECEIVER),
        (Refused(Role.SOURCE, 0, 0, 0, 7, Refusal.NO_PATTERN), SOURCE),
        (Refused(Role.RECEIVER, 0, 0, 0, 7, Refusal.NO_PATTERN), RECEIVER),
        (Deregistered(Role.RECEIVER, 0, 0, 0, 7, 0), RECEIVER),
        (samples.info(), RECEIVER),
        (LateJoinInfo(7, 0, 0, 1), RECEIVER),
        (SourceInfoRequest(7), SOURCE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_answers_are_for_who_asked_announcements_for_receivers_all_else_for_sources(
    message: Message, expected: tuple[bool, bool]
) -> None:
    assert audience(message) == expected


def test_a_keepalive_is_for_whoever_has_the_reg_id() -> None:
    assert audience(Keepalive(Role.STORE, 7, 0, False)) == (True, True)
