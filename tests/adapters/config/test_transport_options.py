"""The options of the transports."""

import attrs
import pytest

from stablecast.config.option import Option
from stablecast.config.option_kinds import OptionError, Value
from stablecast.config.transport_options import TRANSPORT_OPTIONS, Transport, TransportConfig, split
from stablecast.core.machine.units import MILLISECOND
from tests.support.option_values import show

OURS = {
    "transport_lbtrm_loss_rate": "0",
    "transport_lbtru_loss_rate": "0",
    "implicit_batching_minimum_length": "32768",
    "transport_tcp_multiple_receiver_behavior": "source_paced",
    "transport_session_maximum_buffer": "67108864",
    "implicit_batching_interval": "0",
    "transport_lbtru_port_low": "0",
    "transport_lbtru_port_high": "0",
}
"""Options that are not documented or have other defaults here; defaults of ports depend on the endpoint."""
DOCUMENTED = {
    "transport": "tcp",
    "transport_lbtrm_multicast_address": "0.0.0.0",
    "transport_lbtrm_destination_port": "14400",
    "transport_lbtrm_preactivity_timeout": "0",
    "transport_lbtru_client_activity_timeout": "10000",
    "transport_lbtrm_multicast_address_low": "224.10.10.10",
    "transport_lbtrm_multicast_address_high": "224.10.10.14",
    "transport_lbtrm_source_port_low": "14390",
    "transport_lbtrm_source_port_high": "14399",
    "transport_tcp_port": "0",
    "transport_tcp_port_low": "14371",
    "transport_tcp_port_high": "14390",
    "transport_topic_sequence_number_info_interval": "5000",
    "transport_topic_sequence_number_info_active_threshold": "60",
    "transport_lbtru_port": "0",
    "transport_lbtru_maximum_ports": "5",
    "transport_lbtru_connect_interval": "100",
    "transport_lbtru_maximum_connect_attempts": "600",
    "transport_lbtru_acknowledgement_interval": "500",
    "transport_lbtrm_rate_interval": "10",
    "transport_lbtru_rate_interval": "100",
    "transport_lbtrm_nak_initial_backoff_interval": "50",
    "transport_lbtru_nak_initial_backoff_interval": "0",
}
BOTH = {
    "datagram_max_size": "8192",
    "transmission_window_size": "25165824",
    "transmission_window_limit": "0",
    "ignore_interval": "500",
    "sm_minimum_interval": "200",
    "sm_maximum_interval": "10000",
    "data_rate_limit": "10000000",
    "retransmit_rate_limit": "5000000",
    "nak_backoff_interval": "200",
    "nak_suppress_interval": "1000",
    "nak_generation_interval": "10000",
    "send_naks": "1",
    "activity_timeout": "60000",
}


def test_the_defaults_are_the_documented_ones() -> None:
    """Release 6.17."""
    both = {f"transport_{kind}_{name}": value for kind in ("lbtrm", "lbtru") for name, value in BOTH.items()}
    config = TransportConfig()
    shown = {option.name: show(option, config) for option in TRANSPORT_OPTIONS}
    assert shown == DOCUMENTED | both | OURS


OTHER: dict[str, Value] = {
    "transport": "lbtrm",
    "multicast_address": "239.1.2.3",
    "multicast_address_low": "239.1.2.3",
    "multicast_address_high": "239.1.2.3",
    "send_naks": 0,
    "loss_rate": 50,
    "receiver_behavior": "normal",
    "session_maximum_buffer": 77_777,
    "transmission_window_size": 77_777,
}
"""Values that are not the defaults, by the end of the option's name; 777 for all others."""


@pytest.mark.parametrize("option", TRANSPORT_OPTIONS, ids=lambda option: option.name)
def test_every_option_changes_something_and_shows_it(option: Option) -> None:
    value = next((value for end, value in OTHER.items() if option.name.endswith(end)), 777)
    config = option.set(TransportConfig(), value)
    assert config != TransportConfig()
    assert show(option, config) == str(value)


def test_other_options_are_returned() -> None:
    config, others = split({"transport": "lbtru", "ume_flight_size": 7, "transport_lbtru_ignore_interval": "5"})
    assert others == {"ume_flight_size": 7}
    assert config.kind is Transport.LBTRU
    assert config.chosen.source.ignore_ns == 5 * MILLISECOND
    assert attrs.evolve(config, kind=Transport.LBTRM).chosen == TransportConfig().lbtrm


def test_no_group_is_one_of_the_pool() -> None:
    assert split({"transport_lbtrm_multicast_address": "0.0.0.0"})[0].group == ""
    assert split({"transport_lbtrm_multicast_address": "239.1.2.3"})[0].group == "239.1.2.3"
    with pytest.raises(OptionError, match="wants an IPv4 address, not 'everybody'"):
        split({"transport_lbtrm_multicast_address": "everybody"})


@pytest.mark.parametrize(("name", "value"), [("transport", "pigeon"), ("transport_lbtrm_datagram_max_size", 499)])
def test_a_wrong_value_is_refused(name: str, value: str | int) -> None:
    with pytest.raises(OptionError, match=name):
        split({name: value})


def test_a_pool_of_groups_is_a_range() -> None:
    pool: dict[str, Value] = {"transport": "lbtrm", "transport_lbtrm_multicast_address_low": "224.10.10.13"}
    config, _ = split(pool)
    assert [config.group_at(place) for place in range(config.pool)] == ["224.10.10.13", "224.10.10.14"]


def test_a_session_is_named_by_its_address_or_the_pool() -> None:
    named: dict[str, Value] = {
        "transport_lbtrm_multicast_address": "239.1.2.3",
        "transport_lbtru_port": 14_385,
        "transport_lbtru_maximum_ports": 3,
    }
    found = [split({"transport": kind, **those})[0] for kind in ("lbtrm", "lbtru") for those in (named, {})]
    assert [(config.named, config.pool) for config in found] == [
        ("239.1.2.3:14400", 5),
        ("", 5),
        ("14385", 3),
        ("", 5),
    ]
    marks, _ = split({"transport": "lbtrm", "transport_topic_sequence_number_info_interval": 7})
    assert (marks.source.tsni_ns, marks.tcp_range.pair) == (7 * MILLISECOND, (14_371, 14_390))
