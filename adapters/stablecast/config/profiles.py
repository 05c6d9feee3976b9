"""Three sets of defaults from one table.

`safe` has the defaults of the configuration classes: the documented values of release 5.3, except values that a model
or a known trap refutes. `5.3` has exactly the values of that release's guide, `6.17` those of the later documentation.
Both leave the repairs of `stablecast.core.protocol.repairs` off, so that the documented behaviour can be observed.
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
    """A configuration of each scope; the caller fills in the names and addresses of its endpoint."""

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
            "ume_flight_size_bytes": 0,
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
            "allow-refill": 0,
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
            "ume_flight_size_bytes": 0,
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
            "allow-refill": 0,
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
"""The values of each profile that differ from `safe`, by scope."""


def profile(name: str) -> Profile:
    """Return the profile of this name. Raises OptionError for an unknown name."""
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
