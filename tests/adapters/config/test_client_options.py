"""The table has all options of sources and receivers that the guide names."""

import pytest

from stablecast.config.client_options import RECEIVER_OPTIONS, SOURCE_OPTIONS
from stablecast.config.option_names import MAX_SESSION_ID

NAMED = """
ume_store ume_store_name ume_store_group ume_store_behavior ume_store_activity_timeout ume_session_id ume_flight_size
ume_flight_size_bytes ume_flight_size_behavior ume_retention_intragroup_stability_behavior
ume_retention_intergroup_stability_behavior ume_retention_unique_confirmations ume_message_stability_notification
ume_message_stability_timeout ume_message_stability_lifetime ume_confirmed_delivery_notification ume_activity_timeout
ume_state_lifetime ume_proxy_source ume_receiver_paced_persistence ume_repository_size_threshold
ume_repository_size_limit ume_repository_disk_file_size_limit ume_repository_ack_on_reception ume_write_delay
ume_explicit_ack_only ume_use_ack_batching ume_ack_batching_interval ume_consensus_sequence_number_behavior
ume_source_liveness_timeout ume_receiver_liveness_interval ume_user_receiver_registration_id
ume_sri_inter_sri_interval ume_sri_max_number_of_sri_per_update late_join use_late_join retransmit_request_maximum
retransmit_request_interval retransmit_request_outstanding_maximum retransmit_retention_size_threshold
retransmit_retention_size_limit ordered_delivery
"""
"""P-853, without the three callbacks, which are arguments here, and the request port, which every context has."""


def test_every_option_of_the_guide_is_in_the_table() -> None:
    """P-853, P-309, P-343, P-346, P-501, P-512, P-513, P-514."""
    table = {option.name for option in (*SOURCE_OPTIONS, *RECEIVER_OPTIONS)}
    assert set(NAMED.split()) <= table


@pytest.mark.rows("P-241")
def test_a_session_id_has_64_bits_and_one_value_less() -> None:
    assert MAX_SESSION_ID == (1 << 64) - 2
