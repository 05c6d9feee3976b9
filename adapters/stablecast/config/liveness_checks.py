"""Receiver liveness needs five options of two endpoints, and they must fit (P-339, P-340)."""

from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig

FACTOR = 5
"""How many intervals of a receiver a source must let pass (P-340)."""


def liveness(source: SourceConfig, receiver: ReceiverConfig) -> tuple[str, ...]:
    """What stands in the way of liveness between this source and this receiver; nothing where neither asks for it."""
    timeout, interval = source.liveness_ns, receiver.liveness_ns
    if not timeout and not interval:
        return ()
    found = []
    if timeout != FACTOR * interval:
        found.append(f"ume_source_liveness_timeout must be {FACTOR} times ume_receiver_liveness_interval")
    if not source.confirmations or not receiver.confirm:
        found.append("receiver liveness needs confirmed delivery: set ume_confirmed_delivery_notification")
    if not receiver.user_reg_id:
        found.append("receiver liveness needs ume_user_receiver_registration_id")
    if not receiver.session_id:
        found.append("receiver liveness needs ume_session_id")
    return tuple(found)
