"""The reasons why the profile `safe` differs from `5.3`, as the chapter of the options shows them."""

from collections.abc import Mapping

# fmt: off
REASONS: Mapping[tuple[str, str], str] = {
    ("source", "ume_flight_size_bytes"): "a flight of large messages would be reclaimed by force before it is stable",
    ("source", "ume_store_behavior"):
        "with rr, the loss of one store loses its messages; the guide calls rr deprecated",
    ("source", "ume_consensus_sequence_number_behavior"):
        "a majority of erased stores makes a source reuse numbers that an intact store holds (formal design, 7.1; T20)",
    ("source", "ume_confirmed_delivery_notification"):
        "confirmations cost traffic, so an application must ask for them",
    ("receiver", "ume_consensus_sequence_number_behavior"):
        "stores record acknowledged numbers, so the highest is right, and a lower number repeats messages",
    ("receiver", "retransmit_message_caching_proximity"):
        "messages that are held ahead must fit a bounded memory",
    ("receiver", "delivery_control_maximum_burst_loss"):
        "it declares messages lost that stores still have (T30)",
    ("receiver", "use_otr"):
        "the stores can fill a gap that the transport gave up",
    ("receiver", "otr_request_initial_delay"):
        "TCP fills no gap by itself, so a wait gains nothing",
    ("receiver", "ume_use_ack_batching"):
        "an immediate acknowledgement out of order also covers messages that were not consumed (T4)",
    ("store", "allow-refill"):
        "a store that was away or lost its disk never gets stable messages back, so their copies only become fewer",
    ("store", "delivery_control_maximum_burst_loss"):
        "it declares messages lost that the source still has (T30)",
    ("store", "repository-type"):
        "a store that keeps nothing makes nothing persistent",
    ("store", "receiver-new-registration-rollback"):
        "a new receiver should also get the messages that were stored before it registered",
    ("store", "source-state-lifetime"):
        "with 0, a source that is silent for the activity timeout loses its stable messages, and reuses their numbers",
    ("store", "receiver-state-lifetime"):
        "with 0, a receiver that is silent for the activity timeout gets acknowledged messages again; with "
        "receiver-paced persistence it loses the messages that it has not consumed",
    ("disk", "repository-disk-async-buffer-length"):
        "small writes need more calls and do not shorten the wait",
    ("disk", "repository-disk-max-read-async-cbs"):
        "recovery should be as fast as the disk",
    ("disk", "repository-disk-max-write-async-cbs"):
        "after a crash, parallel writes may leave later messages without earlier ones",
    ("disk", "repository-disk-message-checksum"):
        "a store should detect lost messages at its start",
    ("transport", "implicit_batching_minimum_length"):
        "the messages of one turn of the event loop should leave together",
    ("transport", "implicit_batching_interval"):
        "a single message would wait although none follows",
}
# fmt: on
"""The reasons why `safe` differs from `5.3`, by scope and option."""
