"""The table has all options of stores that the guide names."""

import pytest

from stablecast.config.disk_options import DISK_OPTIONS, MIN_BUFFER
from stablecast.config.store_options import MIN_DISK_LIMIT, STORE_OPTIONS, TOPIC_OPTIONS

STORE = ["allow-proxy-source", "retransmission-request-processing-rate", "source-check-interval", "keepalive-interval",
         "proxy-election-interval"]  # fmt: skip
TOPIC = ["retransmission-request-forwarding", "repository-type", "repository-size-threshold", "repository-size-limit",
         "repository-age-threshold", "repository-disk-max-write-async-cbs",
         "repository-disk-max-read-async-cbs", "repository-disk-file-size-limit", "repository-disk-file-preallocate",
         "repository-disk-async-buffer-length", "repository-disk-message-checksum", "source-activity-timeout",
         "source-state-lifetime", "receiver-activity-timeout", "receiver-state-lifetime",
         "receiver-new-registration-rollback", "stability-ack-interval", "stability-ack-minimum-number",
         "repository-allow-receiver-paced-persistence", "repository-allow-ack-on-reception",
         "repository-disk-write-delay", "source-flight-size-bytes-maximum"]  # fmt: skip


def test_every_option_of_the_guide_is_in_the_table() -> None:
    """Without the directories and the name, which a store is told otherwise."""
    assert set(STORE) <= {option.name for option in STORE_OPTIONS}
    assert set(TOPIC) <= {option.name for option in (*TOPIC_OPTIONS, *DISK_OPTIONS)}


@pytest.mark.rows("P-827", "P-829")
def test_the_smallest_file_has_room_for_three_of_the_smallest_buffers() -> None:
    assert MIN_DISK_LIMIT == 3 * MIN_BUFFER
