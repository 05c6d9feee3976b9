"""Three sets of defaults, and the reasons why safe differs from the documented one."""

import attrs
import pytest

from stablecast.config.options import SCOPES, OptionError
from stablecast.config.profiles import DIFFERENCES, Profile, profile
from stablecast.core.protocol.inputs import Tick
from stablecast.core.protocol.repairs import Repair
from tests.core.drivers import SOURCE, StoreDriver
from tests.core.samples import SECOND, register
from tests.support.option_values import show
from tests.support.profile_reasons import REASONS

ENDPOINTS = ("source", "receiver", "store")
SCOPE_NAMES = (*ENDPOINTS, "disk", "transport")


def values(name: str) -> dict[tuple[str, str], str]:
    """Every option of a profile as it is written."""
    found = profile(name)
    return {
        (scope, option.name): show(option, getattr(found, scope)) for scope in SCOPE_NAMES for option in SCOPES[scope]
    }


def test_the_safe_defaults_are_those_of_the_classes() -> None:
    assert profile("safe") == Profile()
    assert {getattr(profile("safe"), scope).repairs for scope in ENDPOINTS} == {Repair.ALL}


@pytest.mark.parametrize("name", ["5.3", "6.17"])
def test_documented_profiles_have_the_documented_rules(name: str) -> None:
    assert {getattr(profile(name), scope).repairs for scope in ENDPOINTS} == {Repair.NONE}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_one(name: str) -> None:
    safe, other = values("safe"), values(name)
    differing = {key for key in safe if safe[key] != other[key]}
    assert differing == {(scope, option) for scope, options in DIFFERENCES[name].items() for option in options}


def test_each_difference_from_the_guide_has_a_reason() -> None:
    assert set(REASONS) == {(scope, option) for scope, options in DIFFERENCES["5.3"].items() for option in options}


DOCUMENTED = {
    ("source", "ume_store_behavior"): ("rr", "qc"),
    ("source", "ume_store_activity_timeout"): ("3000", "10000"),
    ("source", "ume_registration_interval"): ("500", "3000"),
    ("receiver", "ume_registration_interval"): ("500", "3000"),
    ("source", "ume_consensus_sequence_number_behavior"): ("majority", "highest"),
    ("receiver", "ume_consensus_sequence_number_behavior"): ("majority", "majority"),
    ("source", "ume_sri_inter_sri_interval"): ("100", "500"),
    ("source", "ume_sri_max_number_of_sri_per_update"): ("10", "20"),
    ("source", "ume_confirmed_delivery_notification"): ("1", "0"),
    ("source", "ume_message_stability_notification"): ("1", "1"),
    ("source", "ume_message_stability_timeout"): ("20000", "5000"),
    ("source", "ume_message_stability_lifetime"): ("1200000", "1200000"),
    ("source", "ume_flight_size"): ("1000", "1000"),
    ("source", "ume_flight_size_bytes"): ("0", "0"),
    ("source", "ume_flight_size_behavior"): ("block", "block"),
    ("source", "retransmit_retention_size_threshold"): ("0", "0"),
    ("source", "retransmit_retention_size_limit"): ("25165824", "25165824"),
    ("source", "retransmit_retention_age_threshold"): ("0", "0"),
    ("source", "ume_retention_intragroup_stability_behavior"): ("quorum", "quorum"),
    ("source", "ume_retention_intergroup_stability_behavior"): ("any", "any"),
    ("source", "ume_write_delay"): ("unset", "unset"),
    ("source", "ume_store_check_interval"): ("500", "500"),
    ("receiver", "use_otr"): ("0", "2"),
    ("receiver", "otr_request_initial_delay"): ("10000", "2000"),
    ("receiver", "otr_request_message_timeout"): ("20000", "60000"),
    ("receiver", "retransmit_request_outstanding_maximum"): ("200", "10"),
    ("receiver", "retransmit_request_interval"): ("500", "500"),
    ("receiver", "retransmit_request_message_timeout"): ("10000", "10000"),
    ("receiver", "retransmit_request_maximum"): ("0", "0"),
    ("receiver", "retransmit_message_caching_proximity"): ("2147483647", "5000"),
    ("receiver", "delivery_control_maximum_burst_loss"): ("1024", "1024"),
    ("receiver", "ordered_delivery"): ("1", "1"),
    ("receiver", "ume_use_ack_batching"): ("0", "1"),
    ("receiver", "ume_ack_batching_interval"): ("100", "100"),
    ("receiver", "ume_explicit_ack_only"): ("0", "0"),
    ("receiver", "ume_allow_confirmed_delivery"): ("1", "1"),
    ("receiver", "ume_sri_request_interval"): ("1000", "1000"),
    ("receiver", "ume_sri_request_maximum"): ("60", "60"),
    ("store", "repository-type"): ("no-cache", "memory"),
    ("store", "repository-size-threshold"): ("25165824", "1024"),
    ("store", "repository-size-limit"): ("50331648", "50331648"),
    ("store", "repository-age-threshold"): ("0", "0"),
    ("store", "repository-disk-file-size-limit"): ("104857600", "104857600"),
    ("store", "repository-disk-write-delay"): ("0", "0"),
    ("store", "repository-allow-receiver-paced-persistence"): ("0", "0"),
    ("store", "repository-allow-ack-on-reception"): ("0", "0"),
    ("store", "source-flight-size-bytes-maximum"): ("4194304", "4194304"),
    ("store", "source-activity-timeout"): ("30000", "30000"),
    ("store", "source-state-lifetime"): ("0", "0"),
    ("store", "receiver-activity-timeout"): ("30000", "30000"),
    ("store", "receiver-state-lifetime"): ("0", "0"),
    ("store", "source-check-interval"): ("100", "750"),
    ("store", "keepalive-interval"): ("500", "3000"),
    ("store", "receiver-new-registration-rollback"): ("0", "2147483647"),
    ("store", "proxy-election-interval"): ("5000", "60000"),
    ("store", "allow-proxy-source"): ("0", "0"),
    ("store", "stability-ack-interval"): ("200", "200"),
    ("store", "stability-ack-minimum-number"): ("1", "1"),
    ("store", "retransmission-request-forwarding"): ("0", "0"),
    ("store", "retransmission-request-processing-rate"): ("262144", "262144"),
    ("disk", "repository-disk-async-buffer-length"): ("65664", "1024000"),
    ("disk", "repository-disk-max-read-async-cbs"): ("16", "10000"),
    ("disk", "repository-disk-max-write-async-cbs"): ("16", "1"),
    ("disk", "repository-disk-file-preallocate"): ("0", "0"),
    ("disk", "repository-disk-message-checksum"): ("0", "0"),
}
"""The values of the guide of release 5.3 and of the later documentation."""


@pytest.mark.rows(
    "P-315",
    "P-522",
    "P-814",
    "P-816",
    "P-819",
    "P-821",
    "P-822",
    "P-823",
    "P-827",
    "P-829",
    "P-831",
    "P-832",
    "P-833",
    "P-834",
    "P-838",
    "P-841",
    "P-842",
    "P-843",
    "P-844",
)
def test_documented_defaults() -> None:
    """C-01, C-25, U2."""
    old, new = values("5.3"), values("6.17")
    assert {key: (old[key], new[key]) for key in DOCUMENTED} == DOCUMENTED


def test_a_profile_is_filled_in_by_the_caller() -> None:
    source = attrs.evolve(profile("5.3").source, topic="orders", incarnation=7)
    assert (source.topic, source.consensus) == ("orders", profile("5.3").source.consensus)


def test_there_are_three() -> None:
    with pytest.raises(OptionError, match=r"there is no profile '5': choose one of safe, 5\.3, 6\.17"):
        profile("5")


@pytest.mark.rows("P-532")
@pytest.mark.parametrize(("name", "kept"), [("safe", True), ("5.3", False), ("6.17", False)])
def test_after_half_a_minute_a_silent_source_has_no_reg_id_and_only_safe_keeps_its_state(name: str, kept: bool) -> None:
    repository = profile(name).store.repository
    assert repository is not None
    spans = {"source_activity_ns": repository.source_activity_ns, "source_lifetime_ns": repository.source_lifetime_ns}
    store = StoreDriver(**spans)
    store.hear(register(**SOURCE))
    [record] = store.machine.clients.sources()
    store.feed(Tick(), 29 * SECOND)
    assert record.lifetime.active
    store.feed(Tick(), 30 * SECOND)
    assert not record.lifetime.active
    assert bool(store.machine.clients.sources()) is kept
