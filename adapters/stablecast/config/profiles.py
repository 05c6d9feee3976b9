"""Three sets of defaults from one table.

`safe` are the defaults of the configuration classes: the documented values of release 5.3, except where a model or a
trap refutes them. `5.3` is the guide of that release to the letter, `6.17` the later documentation; both without the
repairs of `stablecast.core.protocol.repairs`, so that what is documented can be watched and compared.
"""

from collections.abc import Mapping

import attrs

from stablecast.config.disk_options import DiskConfig
from stablecast.config.option_names import SAFE
from stablecast.config.options import OptionError, Value, apply
from stablecast.config.transport_options import TransportConfig
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig


@attrs.frozen
class Profile:
    """A configuration of each scope; what names an endpoint is empty and for the caller to fill in."""

    source: SourceConfig = SourceConfig("", 0, "", "")
    receiver: ReceiverConfig = ReceiverConfig("", 0, "")
    store: StoreConfig = StoreConfig("", 0)
    disk: DiskConfig = DiskConfig()
    transport: TransportConfig = TransportConfig()


_BATCHING: Mapping[str, Value] = {"implicit_batching_minimum_length": 2048, "implicit_batching_interval": 200}

DIFFERENCES: Mapping[str, Mapping[str, Mapping[str, Value]]] = {
    SAFE: {"source": {}, "receiver": {}, "store": {}, "disk": {}, "transport": {}},
    "5.3": {
        "source": {
            "ume_store_behavior": "rr",
            "ume_consensus_sequence_number_behavior": "majority",
            "ume_confirmed_delivery_notification": 1,
        },
        "receiver": {
            "ume_consensus_sequence_number_behavior": "majority",
            "retransmit_message_caching_proximity": 2_147_483_647,
            "delivery_control_maximum_burst_loss": 1024,
            "use_otr": 0,
            "otr_request_initial_delay": 10_000,
            "ume_use_ack_batching": 0,
        },
        "store": {
            "delivery_control_maximum_burst_loss": 1024,
            "repository-type": "no-cache",
            "receiver-new-registration-rollback": 0,
            "source-state-lifetime": 0,
            "receiver-state-lifetime": 0,
        },
        "disk": {
            "repository-disk-async-buffer-length": 65_664,
            "repository-disk-max-read-async-cbs": 16,
            "repository-disk-max-write-async-cbs": 16,
            "repository-disk-message-checksum": 0,
        },
        "transport": _BATCHING,
    },
    "6.17": {
        "source": {
            "ume_registration_interval": 3000,
            "ume_store_activity_timeout": 10_000,
            "ume_sri_inter_sri_interval": 500,
            "ume_sri_max_number_of_sri_per_update": 20,
            "ume_message_stability_timeout": 5000,
        },
        "receiver": {
            "ume_registration_interval": 3000,
            "ume_store_activity_timeout": 10_000,
            "ume_consensus_sequence_number_behavior": "majority",
            "retransmit_request_outstanding_maximum": 10,
            "delivery_control_maximum_burst_loss": 1024,
            "otr_request_initial_delay": 2000,
            "otr_request_message_timeout": 60_000,
        },
        "store": {
            "source-check-interval": 750,
            "keepalive-interval": 3000,
            "proxy-election-interval": 60_000,
            "retransmit_request_outstanding_maximum": 10,
            "delivery_control_maximum_burst_loss": 1024,
            "repository-type": "memory",
            "repository-size-threshold": 1024,
            "source-state-lifetime": 0,
            "receiver-state-lifetime": 0,
        },
        "disk": {
            "repository-disk-max-read-async-cbs": 10_000,
            "repository-disk-message-checksum": 0,
        },
        "transport": _BATCHING,
    },
}
"""What each profile has otherwise than `safe`, by scope."""

REASONS: Mapping[tuple[str, str], str] = {
    ("source", "ume_store_behavior"): "what one store has is gone with that store; the guide calls rr deprecated",
    ("source", "ume_consensus_sequence_number_behavior"): (
        "a majority of wiped stores makes a source reuse numbers that an intact store holds (formal design, 7.1; T20)"
    ),
    ("source", "ume_confirmed_delivery_notification"): "nobody pays for confirmations that nobody asked for",
    ("receiver", "ume_consensus_sequence_number_behavior"): (
        "stores keep what a receiver acknowledged: the highest is the truth, lower ones repeat messages"
    ),
    ("receiver", "retransmit_message_caching_proximity"): "messages held ahead need bounded memory",
    ("receiver", "delivery_control_maximum_burst_loss"): "it declares lost what stores still have (T30)",
    ("receiver", "use_otr"): "a gap that the transport gives up can be had from the stores",
    ("receiver", "otr_request_initial_delay"): "TCP fills no gap by itself: waiting wins nothing",
    (
        "receiver",
        "ume_use_ack_batching",
    ): "at once and out of order, an acknowledgement covers what was not consumed (T4)",
    ("store", "delivery_control_maximum_burst_loss"): "it declares lost what the source still has (T30)",
    ("store", "repository-type"): "a store that keeps nothing makes nothing persistent",
    ("store", "receiver-new-registration-rollback"): "what was stored before a receiver first came is for it as well",
    ("store", "source-state-lifetime"): (
        "0 erases what is stable once its source was silent for the activity timeout, and its numbers are used again"
    ),
    ("store", "receiver-state-lifetime"): (
        "0 forgets what a receiver acknowledged once it was silent for the activity timeout: all comes again, and at "
        "the receivers' pace what it has not consumed is lost"
    ),
    ("disk", "repository-disk-async-buffer-length"): "small writes cost more calls and no less waiting",
    ("disk", "repository-disk-max-read-async-cbs"): "recovery from the disk is as fast as the disk",
    ("disk", "repository-disk-max-write-async-cbs"): "writes that overtake each other cannot be trusted after a crash",
    ("disk", "repository-disk-message-checksum"): "a store should know at its start what it has lost",
    ("transport", "implicit_batching_minimum_length"): "what is sent in one turn of the event loop leaves together",
    ("transport", "implicit_batching_interval"): "a message that none follows waits in vain",
}
"""Why `safe` is not `5.3`, by scope and option."""


def profile(name: str) -> Profile:
    """The profile of this name. Raises OptionError when there is none."""
    differences = DIFFERENCES.get(name)
    if differences is None:
        raise OptionError(f"there is no profile '{name}': choose one of {', '.join(DIFFERENCES)}")
    repairs = Repair.ALL if name == SAFE else Repair.NONE
    safe = Profile()
    return Profile(
        attrs.evolve(apply("source", safe.source, differences["source"]), repairs=repairs),
        attrs.evolve(apply("receiver", safe.receiver, differences["receiver"]), repairs=repairs),
        attrs.evolve(apply("store", safe.store, differences["store"]), repairs=repairs),
        apply("disk", safe.disk, differences["disk"]),
        apply("transport", safe.transport, differences["transport"]),
    )
