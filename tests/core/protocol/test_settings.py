"""Settings: the request that a configuration amounts to."""

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import ReceiverConfig, register_request


def test_a_request_says_what_the_configuration_says() -> None:
    config = ReceiverConfig("t", 7, "me:1", session_id=9, activity_timeout_ns=2 * SECOND, state_lifetime_ns=3 * SECOND)
    request = register_request(Role.RECEIVER, 2, config, reg_id=5, source_reg_id=6, transport="")
    assert (request.role, request.store_index, request.reg_id, request.source_reg_id) == (Role.RECEIVER, 2, 5, 6)
    assert (request.topic, request.incarnation, request.reply_to, request.session_id) == ("t", 7, "me:1", 9)
    assert (request.activity_timeout_ms, request.state_lifetime_ms) == (2000, 3000)
